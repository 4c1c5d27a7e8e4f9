"""The HTTP interface with a real engine behind it."""

import json
import signal
import threading
import time

from harness import Proxy, Sandbox, Workspace, check, equal, eventually, spec


def source(bench, rows=100):
    name = bench.name("http")
    bench.pg.do(f"CREATE TABLE {name} AS SELECT g AS id, repeat('x', 50) AS v FROM generate_series(1, {rows}) g")
    return name


def test_a_transfer_from_post_to_artifact(bench):
    name = source(bench)
    with bench.work.serve() as engine:
        answer = engine.post(spec(f"public.{name}", f"dbo.{name}", verify="content"))
        equal(answer.status, 202, "POST")
        document = answer.json()
        transfer = document["id"]
        equal(answer.headers["location"], f"/v1/transfers/{transfer}", "Location")
        check(document["state"] in ("queued", "planning", "running"), "state", document["state"])
        status = engine.wait(transfer, "succeeded")
        equal(status["rows"], {"read": 100, "acknowledged": 100, "staged": 100, "target": 100, "target_total": None}, "rows")
        equal(status["error"], None, "error")
        artifact = engine.artifact(transfer)
        for member in ("schema_version", "id", "attempt", "state", "route", "spec", "source", "target", "consistency", "finalizer", "columns", "rows", "bytes",
                       "seconds", "rows_per_second", "stages", "bottleneck", "advice", "slices", "checks", "warnings", "parts", "engine", "error"):
            check(member in artifact, f"the artifact has {member}")
        equal((artifact["id"], artifact["attempt"], artifact["state"], artifact["route"]), (transfer, 1, "succeeded", "postgres_to_mssql"), "head")
        equal(artifact["source"]["product"], "PostgreSQL", "source")
        check(set(artifact["seconds"]) >= {"queued", "plan", "source_export", "target_load", "verify", "target_finalize", "total"}, "seconds")
        check(artifact["engine"]["peak_rss_bytes"] >= artifact["engine"]["idle_rss_bytes"] > 0, "memory")
    equal(bench.sandbox.count(f"dbo.{name}"), 100, "rows")


def test_etags_spare_the_body(bench):
    name = source(bench)
    with bench.work.serve() as engine:
        transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}"))
        engine.wait(transfer, "succeeded")
        for path in (f"/v1/transfers/{transfer}", f"/v1/transfers/{transfer}/artifact"):
            first = engine.ask("GET", path)
            tag = first.headers["etag"]
            again = engine.ask("GET", path, headers={"If-None-Match": tag})
            equal((again.status, again.body, again.headers["etag"]), (304, b"", tag), path)
            equal(engine.ask("GET", path, headers={"If-None-Match": '"other"'}).status, 200, "another tag")
            head = engine.ask("HEAD", path)
            equal((head.status, head.body, head.headers["etag"]), (200, b"", tag), "HEAD")


def test_lists_are_paged_newest_first(bench):
    name = source(bench, 1)
    work = Workspace(bench, bench.sandbox)
    with work.serve() as engine:
        ids = [engine.submit(spec(f"public.{name}", f"dbo.{name}_{i}")) for i in range(5)]
        for transfer in ids:
            engine.wait(transfer)
        found, after = [], ""
        while True:
            page = engine.ask("GET", f"/v1/transfers?limit=2{after}").json()
            found += [one["id"] for one in page["transfers"]]
            check(len(page["transfers"]) <= 2, "size of a page")
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        equal(found, ids[::-1], "all, newest first")
        failed = engine.submit(spec("public.not_there", f"dbo.{name}"))
        engine.wait(failed, "failed")
        listed = engine.ask("GET", "/v1/transfers?state=failed").json()["transfers"]
        equal([(one["id"], one["error"]) for one in listed], [(failed, "table_missing")], "by state")
        engine.problem(engine.ask("GET", "/v1/transfers?state=broken"), 400, "bad_parameter")
        engine.problem(engine.ask("GET", "/v1/transfers?limit=0"), 400, "bad_parameter")
        engine.problem(engine.ask("GET", "/v1/transfers?limt=2"), 400, "bad_parameter")


def test_conflicts(bench):
    name = source(bench)
    with Sandbox(bench, faults=[{"kind": "delay", "match": "AS staged", "wait_ms": 3000}]) as sandbox:
        with Workspace(bench, sandbox).serve() as engine:
            transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}"))
            engine.problem(engine.ask("GET", f"/v1/transfers/{transfer}/artifact"), 409, "no_artifact_yet")
            engine.problem(engine.ask("POST", f"/v1/transfers/{transfer}/resume"), 409, "transfer_active")
            engine.wait(transfer, "succeeded")
            engine.problem(engine.ask("DELETE", f"/v1/transfers/{transfer}"), 409, "transfer_ended")
            engine.problem(engine.ask("POST", f"/v1/transfers/{transfer}/resume"), 409, "transfer_ended")
            for path in ("/v1/transfers/nope", "/v1/transfers/..%2f..%2fx", "/v1/transfers/01234567890123456789012345", "/v1/transfers/nope/artifact"):
                engine.problem(engine.ask("GET", path), 404, "transfer_unknown")
            engine.problem(engine.ask("DELETE", "/v1/transfers/nope"), 404, "transfer_unknown")
            engine.problem(engine.ask("GET", "/v2/transfers"), 404, "route_unknown")
            answer = engine.ask("PUT", "/v1/transfers", {})
            engine.problem(answer, 405, "method_not_allowed")
            check("POST" in answer.headers["allow"], "Allow", answer.headers)


def test_requests_that_are_refused(bench):
    name = source(bench)
    good = json.dumps(spec(f"public.{name}", f"dbo.{name}"))
    with bench.work.serve() as engine:
        engine.problem(engine.ask("POST", "/v1/transfers", good, {"Content-Type": "text/plain"}), 415, "media_type_not_supported")
        engine.problem(engine.ask("POST", "/v1/transfers", good, {"Content-Type": "application/x-www-form-urlencoded"}), 415, "media_type_not_supported")
        engine.problem(engine.ask("GET", "/v1/transfers", headers={"Host": "elsewhere.example"}), 421, "host_not_allowed")
        equal(engine.ask("GET", "/healthz", headers={"Host": "elsewhere.example"}).status, 200, "the probe takes any Host")
        answer = engine.ask("POST", "/v1/transfers", good, {"Origin": "http://evil.example"})
        equal(answer.status, 403, "an Origin of another site")
        engine.problem(engine.ask("POST", "/v1/transfers", "x" * (1 << 21)), 413, engine.ask("POST", "/v1/transfers", "x" * (1 << 21)).json()["code"])
        equal(engine.ask("GET", "/v1/transfers").json()["transfers"][:0], [], "still alive")


def test_bearer_token(bench):
    work = Workspace(bench, bench.sandbox, server='token = { env = "ROUTE_TOKEN" }', environment={"ROUTE_TOKEN": "s3cret-token"})
    with work.serve() as engine:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret-token"}):
            engine.problem(engine.ask("GET", "/v1/transfers", headers=headers), 401, "token_wrong")
        equal(engine.ask("GET", "/v1/transfers", headers={"Authorization": "Bearer s3cret-token"}).status, 200, "with the token")
        for path in ("/healthz", "/readyz", "/openapi.yaml"):
            equal(engine.ask("GET", path).status, 200, path)


def test_plan_writes_nothing(bench):
    name = source(bench)
    body = spec(f"public.{name}", f"dbo.{name}")
    with bench.work.serve() as engine:
        answer = engine.ask("POST", "/v1/plan", body)
        equal((answer.status, answer.headers["content-type"].split(";")[0]), (200, "application/json"), "JSON")
        plan = answer.json()
        check("rename" in json.dumps(plan) and "CREATE TABLE" in json.dumps(plan), "finalizer and statements", plan)
        text = engine.ask("POST", "/v1/plan?format=text", body)
        equal((text.status, text.headers["content-type"].split(";")[0]), (200, "text/plain"), "text")
        check(name in text.body.decode(), "the table is named")
        engine.problem(engine.ask("POST", "/v1/plan?format=xml", body), 400, "bad_parameter")
        document = engine.problem(engine.ask("POST", "/v1/plan", spec("public.not_there", f"dbo.{name}")), 422, "table_missing")
        equal(document["connection"], "shop", "connection")
    check(not bench.sandbox.exists(f"dbo.{name}"), "nothing is made")
    equal(bench.sandbox.left_overs(), [], "no staging")


def test_idempotency_keys_hold_over_restarts(bench):
    name = source(bench)
    work = Workspace(bench, bench.sandbox)
    body = spec(f"public.{name}", f"dbo.{name}")
    with work.serve() as engine:
        first = engine.post(body, {"Idempotency-Key": "night-7"}).json()["id"]
        equal(engine.post(body, {"Idempotency-Key": "night-7"}).json()["id"], first, "the same transfer")
        engine.problem(engine.post({**body, "verify": "content"}, {"Idempotency-Key": "night-7"}), 422, "idempotency_key_reused")
        engine.wait(first, "succeeded")
    with work.serve() as engine:
        equal(engine.post(body, {"Idempotency-Key": "night-7"}).json()["id"], first, "the same transfer after a restart")
        equal(len(engine.ask("GET", "/v1/transfers").json()["transfers"]), 1, "transfers")
    equal(bench.sandbox.count(f"dbo.{name}"), 100, "rows: loaded once")


def test_pipelines(bench):
    name = source(bench)
    with Sandbox(bench, faults=[{"kind": "delay", "match": "AS staged", "wait_ms": 2500}]) as sandbox:
        work = Workspace(bench, sandbox, extra='[pipelines.hourly]\nspec = "hourly.json"\n[pipelines.broken]\nspec = "nowhere.json"\n')
        (work.folder / "hourly.json").write_text(json.dumps(spec(f"public.{name}", f"dbo.{name}", "truncate")))
        with work.serve() as engine:
            answer = engine.ask("POST", "/v1/pipelines/hourly/runs")
            equal((answer.status, answer.json()["pipeline"]), (202, "hourly"), "the first run")
            first = answer.json()["id"]
            document = engine.problem(engine.ask("POST", "/v1/pipelines/hourly/runs"), 409, "pipeline_running")
            check(first in json.dumps(document), "the run is named", document)
            engine.wait(first, "succeeded")
            second = engine.ask("POST", "/v1/pipelines/hourly/runs").json()["id"]
            engine.wait(second, "succeeded")
            engine.problem(engine.ask("POST", "/v1/pipelines/none/runs"), 404, "pipeline_unknown")
            equal(engine.ask("POST", "/v1/pipelines/broken/runs").status // 100, 4, "a spec that is not there")
            listed = {one["name"]: one for one in engine.ask("GET", "/v1/pipelines").json()["pipelines"]}
            last = listed["hourly"]["last_run"]
            equal((last["id"], last["state"]), (second, "succeeded"), "last run")
        equal(sandbox.count(f"dbo.{name}"), 100, "rows")


def test_resume_of_a_failed_transfer_is_a_new_attempt(bench):
    name = bench.name("http")
    bench.pg.do(f"CREATE TABLE {name} (id int, d date); INSERT INTO {name} VALUES (1, 'infinity')")
    with bench.work.serve() as engine:
        transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}"))
        equal(engine.wait(transfer, "failed")["error"]["code"], "value_does_not_fit", "code")
        bench.pg.do(f"UPDATE {name} SET d = '2024-01-01'")
        answer = engine.ask("POST", f"/v1/transfers/{transfer}/resume")
        equal((answer.status, answer.headers["location"]), (202, f"/v1/transfers/{transfer}"), "resume")
        status = engine.wait(transfer, "succeeded")
        check(status["attempt"] >= 2, "attempt", status["attempt"])
        equal(status["error"], None, "error")
    equal(bench.sandbox.count(f"dbo.{name}"), 1, "rows")
    bench.nothing_left(name)


def test_a_full_queue_answers_429(bench):
    name = source(bench)
    with Sandbox(bench, faults=[{"kind": "stall_bulk", "bytes": 10, "wait_ms": 20000}]) as sandbox:
        work = Workspace(bench, sandbox, server="max_transfers = 1")
        with work.serve() as engine:
            first = engine.submit(spec(f"public.{name}", f"dbo.{name}"))
            engine.wait(first, "running")
            waiting = []
            for _ in range(300):
                answer = engine.post(spec(f"public.{name}", f"dbo.{name}"))
                if answer.status != 202:
                    break
                waiting.append(answer.json()["id"])
            engine.problem(answer, 429, "queue_full")
            check(int(answer.headers["retry-after"]) > 0, "Retry-After")
            equal(len(waiting), 100, "that wait")
            for transfer in waiting:
                equal(engine.ask("DELETE", f"/v1/transfers/{transfer}").status, 202, "DELETE of one that waits")
            engine.wait(waiting[0], "cancelled")
            equal(engine.post(spec(f"public.{name}", f"dbo.{name}")).status, 202, "there is room again")
            engine.ask("DELETE", f"/v1/transfers/{first}")


def test_transfers_share_the_sessions_of_a_connection(bench):
    """Four at once, each with more sessions than its share: they take turns, none waits for another half served."""
    name = source(bench, 40000)
    work = Workspace(bench, bench.sandbox, server="max_transfers = 4")
    with work.serve() as engine:
        for workers in ({"export": 1, "load": 3}, {"export": 3, "load": 1}, {"export": 7, "load": 7}, {"export": 1, "load": 6}):
            ids = [engine.submit(spec(f"public.{name}", f"dbo.{name}_{i}", "truncate", workers=workers, slices={"by": "ctid", "count": 16})) for i in range(4)]
            for transfer in ids:
                engine.wait(transfer, "succeeded")
        for i in range(4):
            equal(bench.sandbox.count(f"dbo.{name}_{i}"), 40000, "rows")


def test_polls_while_a_transfer_runs(bench):
    """The status document counts up, and stays quick to get."""
    name = source(bench, 300000)
    with bench.work.serve() as engine:
        transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}", slices={"by": "ctid", "count": 8}))
        seen, waits = [], []
        stop = threading.Event()

        def others():
            while not stop.is_set():
                engine.ask("GET", f"/v1/transfers/{transfer}")
                time.sleep(0.02)

        threads = [threading.Thread(target=others) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            while True:
                began = time.monotonic()
                status = engine.status(transfer)
                waits.append(time.monotonic() - began)
                seen.append(status["rows_written"])
                if status["state"] not in ("queued", "planning", "running"):
                    break
                check(status["slices"] == [] or sum(s["rows_written"] for s in status["slices"]) == status["rows_written"], "slices add up", status["slices"])
                time.sleep(0.01)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        engine.wait(transfer, "succeeded")
        equal(seen, sorted(seen), "rows written only grow")
        check(sorted(waits)[len(waits) // 2] < 0.5, "median of a poll", sorted(waits)[len(waits) // 2])


def test_sigterm_leaves_nothing_behind_and_the_transfer_resumable(bench):
    name = source(bench, 50000)
    with Sandbox(bench) as sandbox, Proxy(sandbox.port) as proxy:
        work = Workspace(bench, proxy.port, server='shutdown_grace = "1s"', secret=sandbox.secret)
        engine = work.serve()
        transfer = engine.submit(spec(f"public.{name}", f"dbo.{name}", verify="content"))
        engine.wait(transfer, "running")
        eventually(lambda: engine.status(transfer)["rows"]["read"] > 0, "rows are read")
        proxy.pause()
        engine.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        try:
            equal(engine.ask("GET", "/readyz").status, 503, "readyz")
        except OSError:
            pass  # it takes no new connection any more
        proxy.resume()
        code = engine.stop()
        check(code in (0, 4), "exit code of serve", code)
        state = json.loads(next((work.folder / "state").rglob(f"*{transfer}*.json")).read_text())["state"] if code == 4 else None
        check(state in (None, "cancelled", "interrupted", "succeeded"), "state", state)
        bench.nothing_left(name, sandbox)
        if not sandbox.exists(f"dbo.{name}"):
            done = work.run("resume", transfer)
            equal(done.code, 0, f"resume {done.said}")
        equal(sandbox.count(f"dbo.{name}"), 50000, "rows")


def test_sigterm_of_the_command_exits_with_4(bench):
    name = source(bench, 50000)
    with Sandbox(bench, faults=[{"kind": "delay", "match": "AS staged", "wait_ms": 15000}]) as sandbox:
        work = Workspace(bench, sandbox, server='shutdown_grace = "1s"')
        background = work.start_transfer(spec(f"public.{name}", f"dbo.{name}"))
        background.wait_for("verifying")
        background.process.send_signal(signal.SIGTERM)
        done = background.wait()
        equal(done.code, 4, f"exit code {done.said}")
        transfer = background.id()
        check(transfer in " ".join(done.said), "how to go on is said", done.said)
        check(not sandbox.exists(f"dbo.{name}"), "the target is untouched")
        equal(bench.pg.engine_sessions(), [], "sessions")
        done = work.run("resume", transfer)
        equal(done.code, 0, f"resume {done.said}")
        equal(sandbox.count(f"dbo.{name}"), 50000, "rows")
        bench.nothing_left(name, sandbox)


def test_health_and_descriptions(bench):
    with bench.work.serve() as engine:
        equal(engine.ask("GET", "/healthz").json(), {"status": "ok"}, "healthz")
        equal(engine.ask("GET", "/readyz").json(), {"status": "ready"}, "readyz")
        check(engine.ask("GET", "/openapi.yaml").body.startswith(b"openapi: 3.1"), "openapi.yaml")
        check("properties" in engine.ask("GET", "/spec.schema.json").json(), "spec.schema.json")
        done = bench.work.run("health", "--address", f"127.0.0.1:{engine.port}")
        equal(done.code, 0, f"rowferry health {done.log}")
    done = bench.work.run("health", "--address", f"127.0.0.1:{engine.port}")
    check(done.code != 0, "rowferry health of a stopped service")
