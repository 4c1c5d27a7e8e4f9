"""SQL Server -> PostgreSQL: profiles, the history of a pipeline over HTTP, cancellation in each state, and round trips of random tables."""

import json
import random
import time

from back import Back, back, codes, exists, grow, ids, left_overs, locks, nothing_left, numbers, spec
from harness import Proxy, Sandbox, check, equal, eventually
from harness import spec as to_sandbox


def stores(bench, sandbox=None, rows=240):
    name = bench.name("bprof")
    numbers(sandbox or bench.sandbox, name, rows, "id int not null primary key, store int not null, v nvarchar(100)", lambda n: f"{n}, {n % 3}, replicate(N'v', {n % 100})")
    return name


def test_gentle_source(bench):
    source, target = stores(bench), bench.name("bgentle")
    artifact = back(bench).load(spec(f"dbo.{source}", f"public.{target}", profile="gentle_source", verify="content"))
    check("dirty_read" in codes(artifact), "neither SNAPSHOT nor RCSI: read uncommitted, and said", artifact["warnings"])
    filled = artifact["spec"]
    equal((filled["read"]["drain"], filled["workers"]["export"], filled["read"]["isolation"]), (True, 2, "auto"), "the filled spec")
    equal(ids(bench, target), list(range(1, 241)), "rows")


def test_disposable_copy(bench):
    source, target = stores(bench), bench.name("bdisp")
    for turn in range(2):
        artifact = back(bench).load(spec(f"dbo.{source}", f"public.{target}", "truncate", profile="disposable_copy", target_partition={"by": "list", "column": "store"}, verify="content"))
        filled = artifact["spec"]["load"]
        equal((filled["commit"], filled["freeze"], filled["unlogged"], filled["exchange"]), ("slice", True, True, True), f"the filled spec, turn {turn}")
        equal((artifact["finalizer"], len(artifact["slices"])), ("per_slice", 3), "finalizer and slices")
        equal(ids(bench, target), list(range(1, 241)), "rows")
        equal(bench.pg.rows(f"SELECT DISTINCT c.relpersistence FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE inhparent = '{target}'::regclass"), [("u",)], "unlogged")
    flat = bench.name("bdisp")
    artifact = back(bench).load(spec(f"dbo.{source}", f"public.{flat}", "truncate", profile="disposable_copy", verify="content"))
    check("profile_fallback" in codes(artifact), "a table without partitions: shared staging, with a notice", artifact["warnings"])
    equal(ids(bench, flat), list(range(1, 241)), "rows")
    nothing_left(bench)


def test_low_memory_and_high_throughput(bench):
    source = stores(bench)
    for profile in ("low_memory", "high_throughput_safe"):
        target = bench.name("bprof")
        artifact = back(bench).load(spec(f"dbo.{source}", f"public.{target}", profile=profile, verify="content"))
        equal((artifact["spec"]["profile"], ids(bench, target)), (profile, list(range(1, 241))), "profile and rows")


def test_a_pipeline_remembers_its_runs(bench):
    source, target = stores(bench), bench.name("bpipe")
    work = Back(bench, bench.sandbox)
    (work.folder / "hourly.json").write_text(json.dumps(spec(f"dbo.{source}", f"public.{target}", "truncate", target_partition={"by": "list", "column": "store"},
                                                             load={"commit": "slice"}, read={"drain": True})), encoding="utf-8")
    work.config.write_text(work.config.read_text() + f'\n[pipelines.hourly]\nspec = "{work.folder / "hourly.json"}"\n')

    def run_once(engine):
        answer = engine.ask("POST", "/v1/pipelines/hourly/runs")
        equal(answer.status, 202, f"POST of a run {answer.body[:300]}")
        transfer = answer.json()["id"]
        engine.wait(transfer, "succeeded")
        return engine.artifact(transfer)

    with work.serve() as engine:
        first = run_once(engine)
        check(not (first.get("compared_with_median") or {}).get("runs"), "nothing to compare with yet", first.get("compared_with_median"))
        for _ in range(2):
            artifact = run_once(engine)
        check(artifact["compared_with_median"], "compared with the runs before", artifact.get("compared_with_median"))
        listed = engine.ask("GET", "/v1/pipelines").json()
        check("hourly" in str(listed) and "median" in str(listed), "the list of pipelines", listed)
    with work.serve() as engine:  # the history is on disk
        artifact = run_once(engine)
        check(artifact["compared_with_median"], "after a restart", artifact.get("compared_with_median"))
        check("3" in json.dumps(artifact["compared_with_median"]), "three runs before", artifact["compared_with_median"])
    equal(ids(bench, target), list(range(1, 241)), "rows")
    check(any("slice" in line and "seconds" in line for line in engine.log_path.read_text(encoding="utf-8").splitlines()), "a line in the log for each slice")


# --- cancellation: no session stays in either server


def cancelled(bench, engine, sandbox, transfer, target, before):
    equal(engine.ask("DELETE", f"/v1/transfers/{transfer}").status, 202, "DELETE")
    began = time.monotonic()
    engine.wait(transfer, "cancelled")
    check(time.monotonic() - began < 15, "it is cancelled soon", time.monotonic() - began)
    nothing_left(bench, sandbox)
    equal(bench.pg.rows(f"SELECT id FROM {target}"), before, "the target is as before")


def resumed(bench, engine, sandbox, transfer, target, rows):
    equal(engine.ask("POST", f"/v1/transfers/{transfer}/resume").status, 202, "resume")
    engine.wait(transfer, "succeeded")
    equal(bench.pg.rows(f"SELECT count(*), count(DISTINCT id) FROM {target}"), [(str(rows), str(rows))], "rows after the resume")
    nothing_left(bench, sandbox)


def old_table(bench):
    target = bench.name("bcan")
    bench.pg.do(f"CREATE TABLE {target} (id int, store int, v text); INSERT INTO {target} VALUES (-1)")
    return target


def test_cancel_while_planning(bench):
    with Sandbox(bench, faults=[{"kind": "delay", "match": "sys.columns", "wait_ms": 6000}]) as sandbox:
        source, target = stores(bench, sandbox), old_table(bench)
        with Back(bench, sandbox).serve() as engine:
            transfer = engine.submit(spec(f"dbo.{source}", f"public.{target}", "truncate"))
            engine.wait(transfer, "planning")
            time.sleep(0.3)
            cancelled(bench, engine, sandbox, transfer, target, [("-1",)])
            resumed(bench, engine, sandbox, transfer, target, 240)


def test_cancel_while_running(bench):
    with Sandbox(bench) as sandbox, Proxy(sandbox.port) as proxy:
        source, target = stores(bench, sandbox), old_table(bench)
        grow(sandbox, source, "store, v", 6)
        with Back(bench, proxy.port, secret=sandbox.secret).serve() as engine:
            for how in ({}, {"read": {"drain": True}}):
                proxy.down_rate = 300_000
                transfer = engine.submit(spec(f"dbo.{source}", f"public.{target}", "truncate", verify="content", **how))
                engine.wait(transfer, "running")
                eventually(lambda: engine.status(transfer)["rows"]["read"] > 0, "rows are read")
                cancelled(bench, engine, sandbox, transfer, target, [("-1",)])
                proxy.down_rate = None
            resumed(bench, engine, sandbox, transfer, target, 240 << 6)


def blocked(bench, engine, source, target, state, lock, **more):
    """A transfer that waits in this state for a lock that somebody else holds on a table; (its id, the holder)."""
    holder = bench.pg.session(f"BEGIN; {lock};")
    eventually(lambda: bench.pg.rows(f"SELECT 1 FROM pg_locks WHERE relation = '{target}'::regclass AND granted"), "the lock")
    transfer = engine.submit(spec(f"dbo.{source}", f"public.{target}", "truncate", load={"lock_timeout_ms": 60000, **more}, verify="content"))
    engine.wait(transfer, state)
    time.sleep(0.3)
    return transfer, holder


def test_cancel_while_finalizing_before_the_commit(bench):
    source, target = stores(bench), old_table(bench)
    with back(bench).serve() as engine:
        transfer, holder = blocked(bench, engine, source, target, "finalizing", f"SELECT count(*) FROM {target}")
        equal(engine.ask("DELETE", f"/v1/transfers/{transfer}").status, 202, "DELETE")
        engine.wait(transfer, "cancelled")
        nothing_left(bench)
        holder.communicate("COMMIT;\n")
        equal(bench.pg.rows(f"SELECT id FROM {target}"), [("-1",)], "the target is as before")
        resumed(bench, engine, bench.sandbox, transfer, target, 240)


def test_cancel_while_verifying(bench):
    """Somebody locks staging as soon as its rows are committed."""
    with Sandbox(bench) as sandbox, Proxy(sandbox.port) as proxy:
        source, target = stores(bench, sandbox), old_table(bench)
        grow(sandbox, source, "store, v", 4)
        with Back(bench, proxy.port, secret=sandbox.secret).serve() as engine:
            proxy.down_rate = 400_000
            transfer = engine.submit(spec(f"dbo.{source}", f"public.{target}", "truncate", load={"lock_timeout_ms": 60000}, slices={"by": "none"}, workers={"export": 1, "load": 1}))
            eventually(lambda: bench.pg.rows("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'COPY%' AND state = 'active'"), "COPY has begun")
            holder = bench.pg.session(f"BEGIN; LOCK TABLE {left_overs(bench.pg)[0]} IN ACCESS EXCLUSIVE MODE;")
            engine.wait(transfer, "verifying")
            time.sleep(0.3)
            equal(engine.ask("DELETE", f"/v1/transfers/{transfer}").status, 202, "DELETE")
            eventually(lambda: not bench.pg.rows("SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'rowferry%' AND query LIKE 'SELECT%count%' AND state = 'active'"), "the count is cancelled")
            holder.communicate("COMMIT;\n")
            engine.wait(transfer, "cancelled")
            nothing_left(bench, sandbox)
            equal(bench.pg.rows(f"SELECT id FROM {target}"), [("-1",)], "the target is as before")
            resumed(bench, engine, sandbox, transfer, target, 240 << 4)


def test_once_commit_is_sent_its_outcome_is_awaited(bench):
    source, target = stores(bench), old_table(bench)
    bench.pg.do(f"CREATE FUNCTION {target}_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2.5); RETURN NULL; END $$; "
                f"CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON {target} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.id = 240) EXECUTE FUNCTION {target}_slow()")
    with back(bench).serve() as engine:
        transfer = engine.submit(spec(f"dbo.{source}", f"public.{target}", "truncate", load={"fire_triggers": True}, verify="content"))
        eventually(lambda: bench.pg.rows("SELECT 1 FROM pg_stat_activity WHERE query = 'COMMIT' AND state = 'active' AND application_name LIKE 'rowferry%'"), "COMMIT is under way")
        equal(engine.ask("DELETE", f"/v1/transfers/{transfer}").status, 202, "DELETE")
        equal(engine.wait(transfer)["state"], "succeeded", "it was committed")
    equal(ids(bench, target), list(range(1, 241)), "rows")
    nothing_left(bench)


def test_cancel_at_random_moments(bench):
    rng = random.Random(bench.seed + 5)
    with Sandbox(bench) as sandbox:
        source = stores(bench, sandbox)
        grow(sandbox, source, "store, v", 5)
        target, rows = bench.name("brand"), str(240 << 5)
        with Back(bench, sandbox).serve() as engine:
            wanted = spec(f"dbo.{source}", f"public.{target}", "truncate", verify="content", slices={"by": "range", "count": 4})
            began = time.monotonic()
            engine.wait(engine.submit(wanted), "succeeded")
            usual = time.monotonic() - began
            for turn in range(max(4, bench.kills)):
                transfer = engine.submit(wanted)
                time.sleep(rng.uniform(0, usual * 1.2))
                engine.ask("DELETE", f"/v1/transfers/{transfer}")
                state = engine.wait(transfer)["state"]
                check(state in ("cancelled", "succeeded"), f"turn {turn}: state {state}")
                equal(bench.pg.rows(f"SELECT count(*), count(DISTINCT id) FROM {target}"), [(rows, rows)], f"turn {turn}: rows, {state}")
                nothing_left(bench, sandbox)


# --- PostgreSQL -> sandbox -> PostgreSQL

KINDS = [
    ("boolean", lambda r: f"({'true' if r.random() < 0.5 else 'false'})"),
    ("smallint", lambda r: str(r.choice([-32768, 32767, 0, r.randrange(-32768, 32768)]))),
    ("integer", lambda r: str(r.choice([-2147483648, 2147483647, 0, r.randrange(-2**31, 2**31)]))),
    ("bigint", lambda r: f"'{r.choice([-2**63, 2**63 - 1, 0, r.randrange(-2**63, 2**63)])}'"),
    ("real", lambda r: f"'{r.choice(['0', '-0', '1e-45', '3.4028235e38', repr(r.uniform(-1e6, 1e6))])}'"),
    ("double precision", lambda r: f"'{r.choice(['0', '-0', '5e-324', '1.7976931348623157e308', repr(r.uniform(-1e300, 1e300)), repr(r.random())])}'"),
    ("numeric(38,0)", lambda r: str(r.choice([10**38 - 1, -10**38 + 1, r.randrange(-10**20, 10**20)]))),
    ("numeric(20,10)", lambda r: f"{r.randrange(-10**9, 10**9)}.{r.randrange(10**10):010d}"),
    ("numeric(5,5)", lambda r: f"0.{r.randrange(10**5):05d}"),
    ("date", lambda r: f"date '0001-01-01' + {r.randrange(3652059)}"),
    ("time(6)", lambda r: f"time '00:00' + interval '{r.randrange(86400 * 10**6)} microseconds'"),
    ("timestamp(6)", lambda r: f"timestamp '0001-01-01' + interval '{r.randrange(3652059)} days' + interval '{r.randrange(86400 * 10**6)} microseconds'"),
    ("timestamp(0)", lambda r: f"timestamp '1970-01-01' + interval '{r.randrange(-10**9, 10**9)} seconds'"),
    ("timestamptz(3)", lambda r: f"timestamptz '2000-01-01 00:00+00' + interval '{r.randrange(-10**12, 10**12)} milliseconds'"),
    ("uuid", lambda r: f"'{r.getrandbits(128):032x}'"),
    ("bytea", lambda r: f"'\\x{bytes(r.randrange(256) for _ in range(r.choice([0, 1, 7, 300]))).hex()}'"),
    ("varchar(40)", lambda r: text(r, 40)),
    ("char(7)", lambda r: text(r, 7, ALPHABET[:-2])),  # padded to 7 characters, which must be 7 UTF-16 units
    ("text", lambda r: text(r, r.choice([0, 3, 50, 5000]))),
]
ALPHABET = "abcABC  \t\n'\"\\%_,;|äößéñŁж中あ한☃€\u00a0\u200d\ufffd😀𝒳"


def text(rng, most, alphabet=ALPHABET):
    value = "".join(rng.choice(alphabet) for _ in range(rng.randrange(most + 1)))
    return "'" + value.replace("'", "''") + "'"


def test_random_tables_go_there_and_come_back_identical(bench):
    rng = random.Random(bench.seed + 9)
    work = back(bench)
    for turn in range(6):
        name = bench.name("trip")
        kinds = [rng.choice(KINDS) for _ in range(rng.randrange(1, 15))]
        must = [rng.random() < 0.3 for _ in kinds]
        columns = [f"c{n}" for n in range(len(kinds))]
        bench.pg.do(f"CREATE TABLE {name} (id int PRIMARY KEY, " + ", ".join(f"{c} {k}{' NOT NULL' if m else ''}" for c, (k, _), m in zip(columns, kinds, must)) + ")")
        rows = rng.choice([0, 1, 60, 400])
        if rows:
            bench.pg.do(f"INSERT INTO {name} VALUES " + ", ".join("(" + ", ".join([str(i)] + ["NULL" if not m and rng.random() < 0.2 else make(rng) for (_, make), m in zip(kinds, must)]) + ")"
                                                                 for i in range(rows)))
        work.load(to_sandbox(f"public.{name}", f"dbo.{name}", verify="content"))
        made, same = bench.name("trip"), bench.name("trip")
        bench.pg.do(f"CREATE TABLE {same} (LIKE {name} INCLUDING ALL)")
        slices = rng.choice([{"by": "none"}, {"by": "range", "count": 3}, {"by": "hash", "column": "id", "count": 4}, {"by": "auto"}])
        for target, mode in ((made, "fail_if_exists"), (same, rng.choice(["append", "truncate", "replace"]))):
            work.load(spec(f"dbo.{name}", f"public.{target}", mode, verify="content", slices=slices))
            listed = ", ".join(["id", *columns])
            wanted = bench.pg.rows(f"SELECT {listed} FROM {name} ORDER BY id")
            got = bench.pg.rows(f"SELECT {listed} FROM {target} ORDER BY id")
            for before, after in zip(wanted, got):
                equal(after, before, f"seed {bench.seed}, turn {turn}, {mode}, a row of {[k for k, _ in kinds]}")
            equal(len(got), len(wanted), f"seed {bench.seed}, turn {turn}: rows")
        check(locks(bench.pg) == 0 and exists(bench.pg, made), "locks")
