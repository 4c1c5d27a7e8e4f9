"""Everything that can be killed is, at random moments: the engine, connections, PostgreSQL's backends, the answer to a COMMIT.
Afterwards the rows are exact: never lost, never doubled."""

import random
import time

from harness import Failed, Proxy, Sandbox, Workspace, check, equal, eventually, spec

ROWS = 60000
SUMS_PG = "count(*), sum(id), sum(h), sum(length(v)), count(n), sum(n)"
SUMS_MS = ["count_big(*)", "sum(cast(id as bigint))", "sum(h)", "sum(cast(len(v) as bigint))", "count_big(n)", "sum(n)"]


def source(bench):
    if not hasattr(bench, "kill_source"):
        name = bench.kill_source = bench.name("killed")
        bench.pg.do(f"CREATE TABLE {name} AS SELECT g AS id, hashtext('h' || g)::bigint AS h, repeat('v', g % 200) AS v, "
                    f"CASE WHEN g % 5 > 0 THEN g::numeric(12,2) / 3 END::numeric(12,2) AS n FROM generate_series(1, {ROWS}) g")
    return bench.kill_source


def exact(bench, sandbox, target, what):
    """The target holds the source's rows, each once."""
    wanted = [float(value) for value in bench.pg.rows(f"SELECT {SUMS_PG} FROM {source(bench)}")[0]]
    got = sandbox.rows([*SUMS_MS, "count_big(distinct id)"], f"from dbo.{target}")[0]
    equal([float(value) for value in got[:-1]], wanted, f"{what}: count and sums")
    equal(int(got[-1]), ROWS, f"{what}: distinct ids")


def as_before(sandbox, target, what):
    equal(sandbox.rows(["id", "v"], f"from dbo.{target}"), [("-1", "old")], f"{what}: the target before its finalize")


def with_old_row(sandbox, target):
    sandbox.do(f"create table dbo.{target} (id int, h bigint, v nvarchar(max), n decimal(12,2)); insert into dbo.{target} (id, v) values (-1, N'old')")


def loading(bench, target, **more):
    return spec(f"public.{source(bench)}", f"dbo.{target}", "truncate", verify="content", **more)


def usual_seconds(bench, work, sandbox):
    target = bench.name("usual")
    with_old_row(sandbox, target)
    began = time.monotonic()
    work.load(loading(bench, target))
    return time.monotonic() - began


def resume_until_done(bench, work, transfer, what):
    for _ in range(3):
        done = work.run("resume", transfer)
        if done.code == 0:
            return done
        if done.code == 2 and "has succeeded" in " ".join(done.said):
            return None  # it was killed behind its very end
        check(done.code in (1, 3, 4) or done.error().get("code") == "target_busy", f"{what}: resume ended with {done.code} {done.said}")
        time.sleep(0.5)
    raise Failed(f"{what}: resume does not come to an end: {done.code} {done.said}")


def test_kill_9_of_the_engine_then_resume(bench):
    rng = random.Random(bench.seed)
    with Sandbox(bench) as sandbox:
        work = Workspace(bench, sandbox)
        usual = usual_seconds(bench, work, sandbox)
        for turn in range(bench.kills):
            target = bench.name("kill9")
            with_old_row(sandbox, target)
            background = work.start_transfer(loading(bench, target))
            moment = rng.uniform(0, 1.1 * usual)
            time.sleep(moment)
            transfer = background.id_if_known()
            finished = background.process.poll() is not None
            background.kill()
            what = f"turn {turn}, killed after {moment:.3f} s of {usual:.3f} s"
            transfer = transfer or background.id_if_known()
            if finished:
                exact(bench, sandbox, target, what)
                continue
            if transfer is None:
                as_before(sandbox, target, what)  # killed before it had begun
                continue
            eventually(lambda: not bench.pg.engine_sessions(), f"{what}: sessions in PostgreSQL", 30)
            old = sandbox.count(f"dbo.{target}") == 1
            if old:
                as_before(sandbox, target, what)
            else:
                exact(bench, sandbox, target, what)  # all rows or none
            done = resume_until_done(bench, work, transfer, what)
            check(done is None or done.artifact["state"] == "succeeded", f"{what}: the artifact's state")
            exact(bench, sandbox, target, f"{what}, then resumed")
            bench.nothing_left(target, sandbox)
            check(work.run("resume", transfer).code == 2, f"{what}: what has succeeded is not resumed")


def test_kill_9_of_serve_then_resume_over_http(bench):
    rng = random.Random(bench.seed + 1)
    with Sandbox(bench) as sandbox:
        work = Workspace(bench, sandbox)
        target = bench.name("kill9s")
        with_old_row(sandbox, target)
        engine = work.serve()
        transfer = engine.submit(loading(bench, target))
        engine.wait(transfer, "running", "verifying", "finalizing", "succeeded")
        time.sleep(rng.uniform(0, 0.3))
        state = engine.status(transfer)["state"]
        engine.kill()
        with work.serve() as again:
            if state != "succeeded":
                equal(again.status(transfer)["state"], "interrupted", "after the restart")
                equal(again.artifact(transfer)["error"]["code"], "interrupted", "artifact of an interrupted transfer")
                equal(again.ask("POST", f"/v1/transfers/{transfer}/resume").status, 202, "resume")
            again.wait(transfer, "succeeded")
        exact(bench, sandbox, target, "after the resume")
        bench.nothing_left(target, sandbox)


def killed_in_state(bench, match, state, nth=1):
    """The engine is killed while a statement waits in the sandbox; the resume finds the truth."""
    with Sandbox(bench, faults=[{"kind": "delay", "match": match, "nth": nth, "wait_ms": 3000}]) as sandbox:
        work = Workspace(bench, sandbox)
        target = bench.name("kills")
        with_old_row(sandbox, target)
        background = work.start_transfer(loading(bench, target, slices={"by": "none"}))
        background.wait_for(state)
        time.sleep(1.0)
        transfer = background.id()
        background.kill()
        done = resume_until_done(bench, work, transfer, f"killed while {state}")
        exact(bench, sandbox, target, f"killed while {state}")
        bench.nothing_left(target, sandbox)
        return done


def test_killed_while_verifying_goes_on_with_the_staged_rows(bench):
    done = killed_in_state(bench, "AS staged", "verifying")
    check(all(s["read_seconds"] == 0 for s in done.artifact["slices"]), "no slice is read again", done.artifact["slices"])


def test_killed_at_the_finalizing_commit(bench):
    killed_in_state(bench, "COMMIT TRANSACTION", "finalizing", nth=3)


def test_killed_after_the_finalizing_commit(bench):
    """What comes after the COMMIT is repeated, the rows are not."""
    done = killed_in_state(bench, "DROP TABLE [dbo].[rowferry_", "finalizing")
    equal([c["result"] for c in done.artifact["checks"]], ["passed"], "checks")


def test_clean_drops_what_nobody_needs(bench):
    name = source(bench)
    with Sandbox(bench, faults=[{"kind": "delay", "match": "AS staged", "wait_ms": 4000}]) as sandbox:
        work = Workspace(bench, sandbox)
        background = work.start_transfer(spec(f"public.{name}", "dbo.cleaned"))
        background.wait_for("verifying")
        background.kill()
        eventually(lambda: sandbox.lock_is_free("[dbo].[cleaned]"), "the session of the killed process is gone")
        staging = sandbox.left_overs()
        equal(len(staging), 1, f"staging kept {staging}")
        listed = work.run("clean", "--older-than", "0s")
        equal(listed.code, 0, f"clean {listed.said}")
        check(staging[0] in listed.out, "it is listed", listed.out)
        equal(sandbox.left_overs(), staging, "only listed")
        dropped = work.run("clean", "--older-than", "0s", "--yes")
        equal(dropped.code, 0, f"clean --yes {dropped.said}")
        equal(sandbox.left_overs(), [], "dropped")


# --- connections


def outcome_is_honest(bench, work, sandbox, target, done, what):
    """Either succeeded, or failed with the target as before and resumable; never anything else."""
    if done.code == 0:
        exact(bench, sandbox, target, what)
    else:
        check(done.code in (1, 2, 3), f"{what}: ended with {done.code} {done.said}")
        check(done.error().get("code"), f"{what}: the problem is told", done.error())
        if done.code == 2:
            equal(done.artifact["rows"]["read"], 0, f"{what}: 2 is for what had not begun to read; rows read")
        if done.code != 3 and sandbox.count(f"dbo.{target}") == 1:
            as_before(sandbox, target, what)
        resume_until_done(bench, work, done.artifact["id"], what)
        exact(bench, sandbox, target, f"{what}, resumed after {done.error().get('code')}")
    bench.nothing_left(target, sandbox)


def test_connections_to_the_target_cut_at_random_moments(bench):
    rng = random.Random(bench.seed + 2)
    with Sandbox(bench) as sandbox, Proxy(sandbox.port) as proxy:
        work = Workspace(bench, proxy.port, secret=sandbox.secret)
        usual = usual_seconds(bench, work, sandbox)
        for turn in range(bench.kills):
            target = bench.name("cut")
            with_old_row(sandbox, target)
            background = work.start_transfer(loading(bench, target))
            moment = rng.uniform(0.1, 1.0) * usual
            time.sleep(moment)
            cut = proxy.cut_one(rng.randrange)
            outcome_is_honest(bench, work, sandbox, target, background.wait(), f"turn {turn}, a connection cut after {moment:.3f} s ({cut})")


def test_a_bulk_load_cut_once_is_read_and_loaded_again(bench):
    for bytes_before in (1, 5000, 300000):
        with Sandbox(bench, faults=[{"kind": "cut_bulk", "bytes": bytes_before, "nth": 2}]) as sandbox:
            work = Workspace(bench, sandbox)
            target = bench.name("cutbulk")
            with_old_row(sandbox, target)
            artifact = work.load(loading(bench, target, slices={"by": "ctid", "count": 8}))
            exact(bench, sandbox, target, f"cut after {bytes_before} bytes")
            check(artifact["retries"] and any(s["retries"] for s in artifact["slices"]), "the retry is in the artifact", artifact["retries"])
            bench.nothing_left(target, sandbox)


def backends(bench, exporter):
    """The engine's sessions in PostgreSQL: the exporter idles in its transaction, the workers COPY."""
    return [int(pid) for pid, state, query in bench.pg.engine_sessions() if exporter != query.lstrip().upper().startswith("COPY")]


def test_postgresql_backends_terminated_at_random_moments(bench):
    rng = random.Random(bench.seed + 3)
    with Sandbox(bench) as sandbox:
        work = Workspace(bench, sandbox)
        usual = usual_seconds(bench, work, sandbox)
        for turn in range(bench.kills):
            for exporter in (False, True):
                target = bench.name("term")
                with_old_row(sandbox, target)
                background = work.start_transfer(loading(bench, target))
                moment = rng.uniform(0.1, 0.9) * usual
                time.sleep(moment)
                found = backends(bench, exporter)
                victim = rng.choice(found) if found else None
                if victim:
                    bench.pg.do(f"SELECT pg_terminate_backend({victim})")
                outcome_is_honest(bench, work, sandbox, target, background.wait(),
                                  f"turn {turn}, {'exporter' if exporter else 'worker'} {victim} terminated after {moment:.3f} s")


def test_terminated_worker_is_replaced_under_the_same_snapshot(bench):
    with Sandbox(bench, faults=[{"kind": "stall_bulk", "bytes": 10000, "wait_ms": 1500}]) as sandbox, Proxy(sandbox.port) as proxy:
        work = Workspace(bench, proxy.port, secret=sandbox.secret)
        name = bench.name("worker")
        bench.pg.do(f"CREATE TABLE {name} AS SELECT g AS id, repeat('x', 200) AS v FROM generate_series(1, 200000) g")
        background = work.start_transfer(spec(f"public.{name}", f"dbo.{name}", verify="content"))
        background.wait_for("running")
        victims = eventually(lambda: backends(bench, exporter=False), "a worker's COPY")
        proxy.pause()
        bench.pg.do(f"DELETE FROM {name} WHERE id % 2 = 0")
        bench.pg.do(f"SELECT pg_terminate_backend({victims[0]})")
        proxy.resume()
        done = background.wait()
        equal(done.code, 0, f"exit code {done.said}")
        equal(sandbox.rows(["count_big(*)", "count_big(distinct id)"], f"from dbo.{name}"), [("200000", "200000")], "the rows of the first snapshot")
        equal(done.artifact["attempt"], 1, "attempts")
        check(any(s["retries"] for s in done.artifact["slices"]), "a slice was read again")


def test_terminated_exporter_starts_a_new_attempt(bench):
    with Sandbox(bench) as sandbox, Proxy(sandbox.port) as proxy:
        work = Workspace(bench, proxy.port, secret=sandbox.secret)
        name = bench.name("exporter")
        bench.pg.do(f"CREATE TABLE {name} AS SELECT g AS id, repeat('x', 200) AS v FROM generate_series(1, 200000) g")
        background = work.start_transfer(spec(f"public.{name}", f"dbo.{name}", verify="content"))
        background.wait_for("running")
        eventually(lambda: backends(bench, exporter=False), "a worker's COPY")
        proxy.pause()
        every = [pid for pid, *_ in bench.pg.engine_sessions()]
        bench.pg.do(f"DELETE FROM {name} WHERE id % 2 = 0")
        bench.pg.do(f"SELECT pg_terminate_backend(pid) FROM unnest(array[{', '.join(every)}]) AS pid")
        proxy.resume()
        done = background.wait()
        check(done.code in (0, 1), f"exit code {done.code} {done.said}")
        if done.code == 0:
            check(done.artifact["attempt"] >= 2, "a new attempt", done.artifact["attempt"])
        else:
            resume_until_done(bench, work, done.artifact["id"], "without a snapshot")
        count = sandbox.rows(["count_big(*)", "count_big(distinct id)"], f"from dbo.{name}")
        equal(count, [("100000", "100000")], "the rows of one snapshot, never of two")
        bench.nothing_left(name, sandbox)


# --- COMMIT


def commit_cut(bench, when, nth, through_proxy):
    target = bench.name("commit")
    faults = None if through_proxy else [{"kind": f"cut_{when}_commit", "nth": nth}]
    with Sandbox(bench, faults=faults) as sandbox, Proxy(sandbox.port) as proxy:
        work = Workspace(bench, proxy.port if through_proxy else sandbox, secret=sandbox.secret)
        with_old_row(sandbox, target)
        if through_proxy:
            proxy.cut_at("COMMIT TRANSACTION", nth, when)
        done = work.transfer(loading(bench, target, slices={"by": "ctid", "count": 4}))
        equal(proxy.rule, None, f"COMMIT {nth} has come by and was cut; what is left")
        outcome_is_honest(bench, work, sandbox, target, done, f"cut {when} COMMIT {nth}, {'proxy' if through_proxy else 'sandbox'}")
        return done


def test_o39_cut_just_before_any_commit(bench):
    """The first COMMIT is staging's, then the slices', then finalize's, then that of dropping staging."""
    for nth in (1, 2, 5, 6, 7):
        for through_proxy in (True, False):
            commit_cut(bench, "before", nth, through_proxy)


def test_o39_cut_just_after_any_commit(bench):
    for nth in (1, 2, 5, 6, 7):
        for through_proxy in (True, False):
            done = commit_cut(bench, "after", nth, through_proxy)
            check(done.code in (0, 1, 3), f"exit code {done.code}")


def test_o39_append_to_a_heap_without_a_key_is_never_doubled(bench):
    name = source(bench)
    for when in ("before", "after"):
        for nth in (5, 6):
            target = bench.name("heap")
            with Sandbox(bench) as sandbox, Proxy(sandbox.port) as proxy:
                sandbox.do(f"create table dbo.{target} (id int, h bigint, v nvarchar(max), n decimal(12,2))")
                proxy.cut_at("COMMIT TRANSACTION", nth, when)
                work = Workspace(bench, proxy.port, secret=sandbox.secret)
                done = work.transfer(spec(f"public.{name}", f"dbo.{target}", slices={"by": "ctid", "count": 4}))
                equal(proxy.rule, None, f"COMMIT {nth} has come by and was cut; what is left")
                if done.code != 0:
                    resume_until_done(bench, work, done.artifact["id"], f"cut {when} COMMIT {nth}")
                exact(bench, sandbox, target, f"append, cut {when} COMMIT {nth}")


def test_o39_direct_load_and_its_one_commit(bench):
    name = source(bench)
    for when in ("before", "after"):
        target = bench.name("direct")
        with Sandbox(bench) as sandbox, Proxy(sandbox.port) as proxy:
            sandbox.do(f"create table dbo.{target} (id int, h bigint, v nvarchar(max), n decimal(12,2))")
            proxy.cut_at("COMMIT TRANSACTION", 1, when)
            work = Workspace(bench, proxy.port, secret=sandbox.secret)
            done = work.transfer(spec(f"public.{name}", f"dbo.{target}", workers={"export": 1, "load": 1}))
            equal(done.artifact["finalizer"], "direct", "finalizer")
            equal(proxy.rule, None, "the COMMIT has come by and was cut; what is left")
            if done.code != 0:
                resume_until_done(bench, work, done.artifact["id"], f"direct, cut {when} COMMIT")
            exact(bench, sandbox, target, f"direct, cut {when} COMMIT")


def test_o39_transient_errors_are_repeated_with_a_bound(bench):
    cases = [("INSERT BULK", number) for number in (1205, 40613, 10928, 49918)] + [("INSERT INTO [dbo].[transient", 1205), ("TRUNCATE TABLE", 1222)]
    for match, number in cases:
        target = bench.name("transient")
        with Sandbox(bench, faults=[{"kind": "error", "match": match, "number": number, "severity": 13 if number == 1205 else 16}]) as sandbox:
            with_old_row(sandbox, target)
            artifact = Workspace(bench, sandbox).load(loading(bench, target))
            exact(bench, sandbox, target, f"{number} on {match}")
            told = artifact["retries"] or [w for w in artifact["warnings"] if w["code"] == "finalize_retried"]
            check(told, f"{number} on {match}: the repetition is in the artifact")
    target = bench.name("transient")
    with Sandbox(bench, faults=[{"kind": "error", "match": "INSERT BULK", "number": 1205, "severity": 13, "times": 0}]) as sandbox:
        with_old_row(sandbox, target)
        done = Workspace(bench, sandbox).transfer(loading(bench, target))
        equal((done.code, done.error().get("server", {}).get("number")), (1, "1205"), f"an error without end {done.said}")
        as_before(sandbox, target, "1205 without end")
        bench.nothing_left(target, sandbox)


def test_o39_transient_errors_start_a_direct_load_anew(bench):
    """A failure in a later batch takes the earlier ones of the same transaction along: they are loaded again, not doubled."""
    name = source(bench)
    for fault in ({"kind": "error", "match": "INSERT BULK", "nth": 1, "number": 1205, "severity": 13},
                  {"kind": "error", "match": "INSERT BULK", "nth": 3, "number": 40613, "severity": 16},
                  {"kind": "cut_bulk", "bytes": 300000, "nth": 3}):
        target = bench.name("transient")
        with Sandbox(bench, faults=[fault]) as sandbox:
            sandbox.do(f"create table dbo.{target} (id int, h bigint, v nvarchar(max), n decimal(12,2))")
            done = Workspace(bench, sandbox).transfer(spec(f"public.{name}", f"dbo.{target}", workers={"export": 1, "load": 1}, load={"batch_rows": 10000}))
            equal((done.code, done.artifact["finalizer"]), (0, "direct"), f"{fault} {done.said}")
            exact(bench, sandbox, target, str(fault))
            check(done.artifact["retries"], "the repetition is in the artifact")
            bench.nothing_left(target, sandbox)


def test_lock_session_lost_while_loading(bench):
    """The session that holds the target's lock dies: the lock is taken again before finalize, or the transfer fails cleanly."""
    with Sandbox(bench, faults=[{"kind": "delay", "match": "AS staged", "wait_ms": 2000}]) as sandbox, Proxy(sandbox.port) as proxy:
        work = Workspace(bench, proxy.port, secret=sandbox.secret)
        target = bench.name("lock")
        with_old_row(sandbox, target)
        background = work.start_transfer(loading(bench, target))
        background.wait_for("verifying")
        while proxy.cut_one(lambda count: 0):
            pass
        outcome_is_honest(bench, work, sandbox, target, background.wait(), "all connections cut while verifying")
