"""SQL Server -> PostgreSQL: engine, sessions, connections and COMMITs die at any moment. Afterwards the rows are exact: never lost,
never doubled; and a COPY that has not come to its end is never committed."""

import random
import time

from back import Back, grow, locks, left_overs, nothing_left, numbers, spec
from harness import Failed, Proxy, Sandbox, check, equal, eventually

DOUBLED = 6
BASE = 250
ROWS = BASE << DOUBLED
WHOLE = (str(62 << DOUBLED), str(63 << DOUBLED))  # rows of a store
SUMS = "count(*), count(DISTINCT id), sum(id::bigint), sum(h), sum(length(v)), count(n), sum(n)"


def source(sandbox):
    """16000 rows in 4 stores."""
    numbers(sandbox, "killed", BASE, "id int not null primary key, store int, h bigint, v nvarchar(200), n decimal(12,2)",
            lambda n: f"{n}, {n % 4}, {n * 7919}, replicate(N'ü', {n % 190}), {'NULL' if n % 5 == 0 else f'{n}.25'}")
    grow(sandbox, "killed", "store, h, v, n", DOUBLED)
    row = sandbox.rows(["count_big(*)", "count_big(distinct id)", "sum(cast(id as bigint))", "sum(h)", "sum(cast(len(v) as bigint))", "count_big(n)", "sum(n)"], "from dbo.killed")[0]
    return tuple(row)


class Field:
    """A sandbox with the source, and PostgreSQL behind a proxy."""

    def __init__(self, bench, faults=None):
        self.bench = bench
        self.sandbox = Sandbox(bench, faults=faults)
        self.sums = source(self.sandbox)
        self.from_source = Proxy(self.sandbox.port)
        self.to_target = Proxy(int(bench.pg.dsn.split("port=")[1].split()[0]))
        dsn = bench.pg.dsn.replace(f"port={self.to_target.target}", f"port={self.to_target.port}")
        self.work = Back(bench, self.from_source.port, house=dsn, secret=self.sandbox.secret)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.from_source.__exit__()
        self.to_target.__exit__()
        self.sandbox.__exit__()

    def target(self, partitioned=False):
        name = self.bench.name("bkill")
        self.bench.pg.do(f"CREATE TABLE {name} (id int, store int, h bigint, v text, n numeric(12,2))" + (" PARTITION BY LIST (store)" if partitioned else f"; INSERT INTO {name} VALUES (-1)"))
        return name

    def loading(self, target, **more):
        more.setdefault("slices", {"by": "range", "count": 4})
        more.setdefault("verify", "content")
        return spec("dbo.killed", f"public.{target}", "truncate", **more)

    def exact(self, target, what):
        equal(self.bench.pg.rows(f"SELECT {SUMS} FROM {target}")[0], self.sums, f"{what}: count and sums")

    def as_before(self, target):
        return self.bench.pg.rows(f"SELECT * FROM {target}") == [("-1", None, None, None, None)]

    def usual(self):
        target = self.target()
        began = time.monotonic()
        self.work.load(self.loading(target))
        self.exact(target, "undisturbed")
        return time.monotonic() - began

    def resumed(self, transfer, what):
        for _ in range(3):
            done = self.work.run("resume", transfer)
            if done.code == 0 or (done.code == 2 and "has succeeded" in " ".join(done.said)):
                return done
            check(done.code in (1, 3, 4) or done.error().get("code") == "target_busy", f"{what}: resume ended with {done.code} {done.said}")
            time.sleep(0.5)
        raise Failed(f"{what}: resume does not come to an end: {done.code} {done.said}")

    def honest(self, target, done, what, slices=False):
        """Either succeeded, or failed with the target as before and resumable; never anything else."""
        if done.code == 0:
            self.exact(target, what)
        else:
            check(done.code in (1, 2, 3) and done.error().get("code"), f"{what}: ended with {done.code} {done.said}")
            if done.code == 2:
                equal(done.artifact["rows"]["read"], 0, f"{what}: 2 is for what had not begun to read; rows read")
            if done.code != 3 and not slices:
                check(self.as_before(target), f"{what}: the target after {done.error().get('code')}", self.bench.pg.rows(f"SELECT count(*), min(id), max(id) FROM {target}"))
            self.resumed(done.artifact["id"], what)
            self.exact(target, f"{what}, resumed after {done.error().get('code')} {done.error().get('detail')}")
        nothing_left(self.bench, self.sandbox)


def test_kill_9_of_the_engine_then_resume(bench):
    rng = random.Random(bench.seed)
    with Field(bench) as field:
        usual = field.usual()
        for turn in range(2 * bench.kills):
            slices = turn % 2 == 1
            target = field.target(partitioned=slices)
            how = {"load": {"commit": "slice", "freeze": True, "unlogged": turn % 4 == 3}, "slices": {}} if slices else {}
            background = field.work.start_transfer(field.loading(target, **how))
            moment = rng.uniform(0.1, 1.1) * usual
            time.sleep(moment)
            finished = background.process.poll() is not None
            background.kill()
            transfer = background.id_if_known()
            what = f"turn {turn}, {'by slices, ' if slices else ''}killed after {moment:.3f} s of {usual:.3f} s"
            eventually(lambda: not bench.pg.engine_sessions() and locks(bench.pg) == 0, f"{what}: sessions in PostgreSQL", 30)
            count = int(bench.pg.value(f"SELECT count(*) FROM {target}"))
            if slices:
                check(all(n in WHOLE for _, n in bench.pg.rows(f"SELECT store, count(*) FROM {target} GROUP BY 1")), f"{what}: stores are whole or absent", count)
            else:
                check(field.as_before(target) or count == ROWS, f"{what}: all rows or none", count)
            if transfer and not finished:
                field.resumed(transfer, what)
                field.exact(target, f"{what}, then resumed")
                nothing_left(bench, field.sandbox)
                equal(field.work.run("resume", transfer).code, 2, f"{what}: what has succeeded is not resumed")


def test_a_source_that_dies_within_a_row(bench):
    """The answer to a slice's SELECT stops within a row: read again; and when the server is gone for good, nothing is committed."""
    for bytes_before in (3000, 70001, 200000):
        with Field(bench, faults=[{"kind": "cut_reply", "match": "[v]", "nth": 6, "bytes": bytes_before}]) as field:
            target = field.target()
            done = field.work.transfer(field.loading(target))
            field.honest(target, done, f"an answer cut after {bytes_before} bytes")
    field = Field(bench)
    try:
        field.from_source.down_rate = 400_000
        for partitioned in (False, True):
            target = field.target(partitioned)
            if partitioned:
                break
            background = field.work.start_transfer(field.loading(target))
            eventually(lambda: bench.pg.rows("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'COPY%' AND state = 'active' AND application_name LIKE 'rowferry%'"), "COPY has begun")
            field.sandbox.process.kill()
            field.sandbox.process.wait()
            done = background.wait()
            check(done.code == 1 and done.error().get("code"), "the source is gone", done.code, done.said)
            check(field.as_before(target), "nothing is committed")
            eventually(lambda: not bench.pg.engine_sessions(), "no session of the engine in PostgreSQL")
            equal(locks(bench.pg), 0, "advisory locks")
            for name in left_overs(bench.pg):
                check(int(bench.pg.value(f"SELECT count(*) FROM {name}")) % (ROWS // 4) == 0, "a staging table that is kept holds whole slices", name)
                bench.pg.do(f"DROP TABLE {name}")
    finally:
        field.from_source.__exit__()
        field.to_target.__exit__()
        field.sandbox.errors.close()


def copying(bench):
    return [int(row[0]) for row in bench.pg.rows("SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY%' AND state = 'active' AND application_name LIKE 'rowferry%'")]


def test_backends_terminated_within_copy(bench):
    with Field(bench) as field:
        for turn, how in enumerate(({}, {"workers": {"export": 1, "load": 1}, "verify": "count", "load": {"freeze": True}}, {"load": {"commit": "slice"}, "slices": {}})):
            slices = "slices" in how
            target = field.target(partitioned=slices)
            field.from_source.down_rate = 600_000
            background = field.work.start_transfer(field.loading(target, **how))
            victims = eventually(lambda: copying(bench), "COPY has begun")
            time.sleep(0.15)
            bench.pg.do(f"SELECT pg_terminate_backend({victims[0]})")
            field.from_source.down_rate = None
            done = background.wait()
            field.honest(target, done, f"a COPY terminated, {how}", slices)
            if done.code == 0:
                check(done.artifact["retries"] or done.artifact["attempt"] > 1, f"the repetition is in the artifact, {how}", done.artifact["retries"])


def test_sessions_of_either_server_end_at_random_moments(bench):
    rng = random.Random(bench.seed + 1)
    with Field(bench) as field:
        usual = field.usual()
        for turn in range(bench.kills):
            for side in ("source", "target", "backend"):
                target = field.target()
                background = field.work.start_transfer(field.loading(target))
                moment = rng.uniform(0.2, 1.0) * usual
                time.sleep(moment)
                if side == "backend":
                    found = [pid for pid, *_ in bench.pg.engine_sessions()]
                    if found:
                        bench.pg.do(f"SELECT pg_terminate_backend({rng.choice(found)})")
                else:
                    (field.from_source if side == "source" else field.to_target).cut_one(rng.randrange)
                field.honest(target, background.wait(), f"turn {turn}, {side} cut after {moment:.3f} s of {usual:.3f} s")


def commit_cut(bench, field, when, nth, how):
    slices = "slices" in how
    target = field.target(partitioned=slices)
    if how.get("verify") == "count":
        bench.pg.do(f"TRUNCATE {target}")
    field.to_target.cut_at("COMMIT\0", nth, when, "ascii")
    done = field.work.transfer(field.loading(target, **how) if how.get("verify") != "count" else {**field.loading(target, **how), "target": {"connection": "house", "table": f"public.{target}", "mode": "append"}})
    struck = field.to_target.rule is None
    field.to_target.rule = None
    what = f"cut {when} COMMIT {nth}, {how}"
    if how.get("verify") == "count" and done.code != 0:
        check(bench.pg.value(f"SELECT count(*) FROM {target}") in (("0",) if done.code != 3 else ("0", str(ROWS))), f"{what}: no row or all")
        field.resumed(done.artifact["id"], what)
        field.exact(target, f"{what}, resumed")
        nothing_left(bench, field.sandbox)
    else:
        field.honest(target, done, what, slices)
    return struck


def test_o39_cut_just_before_and_after_any_commit(bench):
    """Staging's COMMIT, the slices', finalize's, that of the left-overs: until there is no such COMMIT any more."""
    with Field(bench) as field:
        field.usual()  # the ledger is there
        for when in ("before", "after"):
            for how in ({}, {"load": {"commit": "slice"}, "slices": {}}):
                nth = 1
                while commit_cut(bench, field, when, nth, how):
                    nth += 1
                check(nth > 4, f"COMMITs cut {when}, {how}", nth)


def test_o39_a_direct_load_and_its_one_commit(bench):
    with Field(bench) as field:
        field.usual()
        for when in ("before", "after"):
            check(commit_cut(bench, field, when, 1, {"verify": "count", "workers": {"export": 1, "load": 1}}), "a COMMIT was cut")


def test_a_copy_without_its_trailer_is_never_committed(bench):
    """The engine and its connection die in the middle of the one COPY of a direct load."""
    with Field(bench) as field:
        for how in ("kill", "cut"):
            target = field.target()
            bench.pg.do(f"TRUNCATE {target}")
            field.from_source.down_rate = 400_000
            wanted = spec("dbo.killed", f"public.{target}", "append", workers={"export": 1, "load": 1}, slices={"by": "none"})
            background = field.work.start_transfer(wanted)
            eventually(lambda: copying(bench), "COPY has begun")
            time.sleep(0.3)
            if how == "kill":
                background.kill()
            else:
                while field.to_target.cut_one(lambda count: 0):
                    pass
            eventually(lambda: not copying(bench), "the COPY has ended")
            equal(bench.pg.value(f"SELECT count(*) FROM {target}"), "0", f"rows, {how}")
            field.from_source.down_rate = None
            if how == "cut":
                done = background.wait()
                if done.code == 0:
                    field.exact(target, "loaded again")
                    continue
            field.resumed(background.id(), how) if how == "kill" else field.resumed(done.artifact["id"], how)
            field.exact(target, f"{how}, resumed")
        nothing_left(bench, field.sandbox)
