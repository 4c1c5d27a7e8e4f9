"""DELETE in every state: sessions, locks and staging are gone afterwards, and the target is as before."""

import signal

from harness import Proxy, Sandbox, Workspace, check, equal, eventually, spec


def source(bench, rows=20000):
    name = bench.name("cancel")
    bench.pg.do(f"CREATE TABLE {name} AS SELECT g AS id, repeat('x', 100) AS v FROM generate_series(1, {rows}) g")
    return name


def cancelled(bench, engine, sandbox, transfer, name):
    answer = engine.ask("DELETE", f"/v1/transfers/{transfer}")
    equal(answer.status, 202, f"DELETE {answer.body[:200]}")
    status = engine.wait(transfer, "cancelled")
    equal(status["error"]["code"], "cancelled", "code")
    equal(engine.artifact(transfer)["state"], "cancelled", "state in the artifact")
    bench.nothing_left(name, sandbox)
    engine.problem(engine.ask("DELETE", f"/v1/transfers/{transfer}"), 409, "transfer_ended")


def resumed(bench, engine, sandbox, transfer, name, rows):
    equal(engine.ask("POST", f"/v1/transfers/{transfer}/resume").status, 202, "resume")
    engine.wait(transfer, "succeeded")
    equal(sandbox.rows(["count_big(*)", "count_big(distinct id)"], f"from dbo.{name}"), [(str(rows), str(rows))], "rows after the resume")
    bench.nothing_left(name, sandbox)


def test_while_queued(bench):
    name = source(bench)
    with Sandbox(bench, faults=[{"kind": "stall_bulk", "bytes": 100, "wait_ms": 5000}]) as sandbox:
        work = Workspace(bench, sandbox, server="max_transfers = 1")
        with work.serve() as engine:
            first = engine.submit(spec(f"public.{name}", f"dbo.{name}"))
            engine.wait(first, "running")
            second = engine.submit(spec(f"public.{name}", f"dbo.{name}_2"))
            equal(engine.status(second)["state"], "queued", "state")
            equal(engine.ask("DELETE", f"/v1/transfers/{second}").status, 202, "DELETE")
            engine.wait(second, "cancelled")
            engine.wait(first, "succeeded")
            check(not sandbox.exists(f"dbo.{name}_2"), "the second was never begun")
            equal(sandbox.count(f"dbo.{name}"), 20000, "rows of the first")


def test_while_planning(bench):
    name = source(bench)
    with Sandbox(bench, faults=[{"kind": "delay", "match": "HAS_PERMS_BY_NAME", "wait_ms": 20000}]) as sandbox:
        with Workspace(bench, sandbox).serve() as engine:
            transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}"))
            engine.wait(transfer, "planning")
            cancelled(bench, engine, sandbox, transfer, name)
            check(not sandbox.exists(f"dbo.{name}"), "nothing is made")
            resumed(bench, engine, sandbox, transfer, name, 20000)


def test_while_the_source_is_locked_by_another(bench):
    name = source(bench)
    holder = bench.pg.session(f"BEGIN; LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE; SELECT 'held'; SELECT pg_sleep(100);")
    try:
        eventually(lambda: bench.pg.rows(f"SELECT 1 FROM pg_locks WHERE relation = '{name}'::regclass AND granted AND mode = 'AccessExclusiveLock'"), "the lock")
        with bench.work.serve() as engine:
            transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}"))
            eventually(lambda: bench.pg.rows("SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'rowferry%' AND wait_event_type = 'Lock'"),
                       "the engine waits for the lock")
            cancelled(bench, engine, bench.sandbox, transfer, name)
    finally:
        holder.kill()
        holder.wait()
        bench.pg.do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(100)%' AND pid <> pg_backend_pid()")


def test_while_running(bench):
    name = source(bench, 200000)
    with Sandbox(bench) as sandbox, Proxy(sandbox.port) as proxy:
        with Workspace(bench, proxy.port, secret=sandbox.secret).serve() as engine:
            transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}"))
            engine.wait(transfer, "running")
            eventually(lambda: engine.status(transfer)["rows_written"] > 0, "rows are written")
            proxy.pause()
            equal(engine.ask("DELETE", f"/v1/transfers/{transfer}").status, 202, "DELETE")
            proxy.resume()
            engine.wait(transfer, "cancelled")
            bench.nothing_left(name, sandbox)
            check(not sandbox.exists(f"dbo.{name}"), "the target is not made")
            resumed(bench, engine, sandbox, transfer, name, 200000)


def test_while_a_direct_load_is_running(bench):
    """The rows are on their way into the target itself: one transaction, rolled back."""
    name = source(bench, 200000)
    with Sandbox(bench) as sandbox, Proxy(sandbox.port) as proxy:
        sandbox.do(f"create table dbo.{name} (id int, v nvarchar(max))")
        with Workspace(bench, proxy.port, secret=sandbox.secret).serve() as engine:
            transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}", workers={"export": 1, "load": 1}, load={"batch_rows": 10000}))
            engine.wait(transfer, "running")
            eventually(lambda: engine.status(transfer)["rows"]["acknowledged"] > 0, "a batch is acknowledged")
            proxy.pause()
            equal(engine.ask("DELETE", f"/v1/transfers/{transfer}").status, 202, "DELETE")
            proxy.resume()
            engine.wait(transfer, "cancelled")
            equal(engine.artifact(transfer)["finalizer"], "direct", "finalizer")
            bench.nothing_left(name, sandbox)
            equal(sandbox.count(f"dbo.{name}"), 0, "rows")
            resumed(bench, engine, sandbox, transfer, name, 200000)


def test_while_the_target_takes_nothing(bench):
    """A server that has stopped reading must not hold up the cancellation."""
    name = source(bench, 200000)
    with Sandbox(bench, faults=[{"kind": "stall_bulk", "bytes": 1000, "wait_ms": 8000, "times": 4}]) as sandbox:
        with Workspace(bench, sandbox).serve() as engine:
            transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}"))
            engine.wait(transfer, "running")
            eventually(lambda: engine.status(transfer)["rows"]["read"] > 0, "rows are read")
            cancelled(bench, engine, sandbox, transfer, name)


def test_while_verifying(bench):
    name = source(bench)
    with Sandbox(bench, faults=[{"kind": "delay", "match": "AS staged", "wait_ms": 20000}]) as sandbox:
        with Workspace(bench, sandbox).serve() as engine:
            transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}"))
            engine.wait(transfer, "verifying")
            cancelled(bench, engine, sandbox, transfer, name)
            check(not sandbox.exists(f"dbo.{name}"), "the target is not made")
            resumed(bench, engine, sandbox, transfer, name, 20000)


def test_while_finalizing_before_the_commit(bench):
    name = source(bench)
    with Sandbox(bench, faults=[{"kind": "delay", "match": f"INSERT INTO [dbo].[{name}]", "wait_ms": 15000}]) as sandbox:
        sandbox.do(f"create table dbo.{name} (id int, v nvarchar(max)); insert into dbo.{name} values (-1, N'old')")
        with Workspace(bench, sandbox).serve() as engine:
            transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}", "truncate"))
            engine.wait(transfer, "finalizing")
            cancelled(bench, engine, sandbox, transfer, name)
            equal(sandbox.rows(["id", "v"], f"from dbo.{name}"), [("-1", "old")], "the target is as before")
            resumed(bench, engine, sandbox, transfer, name, 20000)


def test_once_commit_is_sent_its_outcome_is_awaited(bench):
    """Staging's COMMIT is the first, the slice's the second, finalize's the third."""
    name = source(bench)
    with Sandbox(bench, faults=[{"kind": "delay", "match": "COMMIT TRANSACTION", "nth": 3, "wait_ms": 3000}]) as sandbox:
        with Workspace(bench, sandbox).serve() as engine:
            transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}", slices={"by": "none"}))
            engine.wait(transfer, "finalizing")
            eventually(lambda: sandbox.process.poll() is None, "the sandbox")
            import time
            time.sleep(1.0)
            answer = engine.ask("DELETE", f"/v1/transfers/{transfer}")
            equal(answer.status, 202, "DELETE")
            status = engine.wait(transfer)
            equal(status["state"], "succeeded", "it was committed")
            equal(sandbox.count(f"dbo.{name}"), 20000, "rows")
            bench.nothing_left(name, sandbox)


def test_ctrl_c_cancels_the_command(bench):
    name = source(bench)
    with Sandbox(bench, faults=[{"kind": "delay", "match": "AS staged", "wait_ms": 15000}]) as sandbox:
        work = Workspace(bench, sandbox)
        background = work.start_transfer(spec(f"public.{name}", f"dbo.{name}"))
        background.wait_for("verifying")
        background.process.send_signal(signal.SIGINT)
        done = background.wait()
        equal((done.code, done.artifact["state"]), (130, "cancelled"), f"exit code and state {done.said}")
        bench.nothing_left(name, sandbox)


def test_at_random_moments(bench):
    import random
    import time
    rng = random.Random(bench.seed)
    name = source(bench, 100000)
    with bench.work.serve() as engine:
        began = time.monotonic()
        engine.wait(engine.submit(spec(f"public.{name}", f"dbo.{name}", "truncate")), "succeeded")
        usual = time.monotonic() - began
        for turn in range(max(4, bench.kills)):
            transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}", "truncate", verify="content"))
            time.sleep(rng.uniform(0, usual * 1.2))
            engine.ask("DELETE", f"/v1/transfers/{transfer}")
            state = engine.wait(transfer)["state"]
            check(state in ("cancelled", "succeeded"), f"turn {turn}: state {state}")
            equal(bench.sandbox.rows(["count_big(*)", "count_big(distinct id)"], f"from dbo.{name}"), [("100000", "100000")], f"turn {turn}: rows, {state}")
            bench.nothing_left(name)
