"""Every way of slicing, under a writer and with TRUNCATE, CLUSTER and VACUUM FULL attempted meanwhile: the target is one snapshot."""

import threading

from harness import Proxy, Workspace, check, equal, eventually, spec

ACCOUNTS = 300

# A ledger that balances after every transaction: deltas of an account sum to its balance, all balances to a constant; every
# transaction also replaces rows (delete, insert), so that ids move and pages change.
LEDGER = """
CREATE TABLE {name} (id bigserial PRIMARY KEY, account int, amount bigint NOT NULL, stamp bigint NOT NULL, pad text) WITH (fillfactor = 60);
INSERT INTO {name} (account, amount, stamp, pad)
  SELECT nullif(g % {accounts}, 0), 1000, 0, repeat('p', 100 + g % 50) FROM generate_series(1, {rows}) g;
CREATE TABLE {name}_control (stop bool, rounds bigint);
INSERT INTO {name}_control VALUES (false, 0);
CREATE PROCEDURE {name}_write() LANGUAGE plpgsql AS $$
DECLARE n bigint := 0; moved bigint; who bigint; other bigint;
BEGIN
  LOOP
    n := n + 1;
    moved := (random() * 100)::bigint + 1;
    SELECT id INTO who FROM {name} WHERE id >= (random() * {rows})::bigint ORDER BY id LIMIT 1;
    SELECT id INTO other FROM {name} WHERE id >= (random() * {rows})::bigint AND id <> who ORDER BY id LIMIT 1;
    UPDATE {name} SET amount = amount - moved, stamp = n WHERE id = who;
    UPDATE {name} SET amount = amount + moved, stamp = n, pad = repeat('q', (random() * 150)::int) WHERE id = other;
    WITH gone AS (DELETE FROM {name} WHERE id = who RETURNING account, amount)
      INSERT INTO {name} (account, amount, stamp, pad) SELECT account, amount - 7, n, 'new' FROM gone UNION ALL SELECT account, 7, n, NULL FROM gone;
    WITH pair AS (SELECT id, amount FROM {name} WHERE pad IS NULL ORDER BY id LIMIT 1),
         gone AS (DELETE FROM {name} USING pair WHERE {name}.id = pair.id RETURNING {name}.amount)
      UPDATE {name} SET amount = amount + (SELECT sum(amount) FROM gone), stamp = n
       WHERE id = (SELECT max(id) FROM {name} WHERE pad IS NOT NULL) AND EXISTS (SELECT 1 FROM gone);
    COMMIT;
    IF n % 50 = 0 AND (SELECT stop FROM {name}_control) THEN EXIT; END IF;
  END LOOP;
  UPDATE {name}_control SET rounds = n;
END $$;
"""


class Writer:
    """Moves money between rows until it is told to stop; and others who try to move the whole table."""

    def __init__(self, bench, name, disturb):
        self.bench = bench
        self.name = name
        self.disturb = disturb
        self.tried = {}
        self.stopped = threading.Event()

    def __enter__(self):
        self.process = self.bench.pg.session(f"CALL {self.name}_write();")
        self.thread = threading.Thread(target=self._disturb)
        self.thread.start()
        return self

    def _disturb(self):
        while not self.stopped.is_set():
            for sql in self.disturb:
                if self.stopped.is_set():
                    break
                session = self.bench.pg.session(f"SET lock_timeout = '200ms'; {sql};")
                _, errors = session.communicate()
                kind = next(word for word in ("CLUSTER", "VACUUM", "TRUNCATE") if word in sql)
                self.tried.setdefault(kind, []).append("lock timeout" in errors or "deadlock" in errors)
            self.stopped.wait(0.05)

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()
        self.bench.pg.do(f"UPDATE {self.name}_control SET stop = true")
        _, errors = self.process.communicate(timeout=120)
        check(self.process.returncode == 0, "the writer failed:", errors)
        check(int(self.bench.pg.value(f"SELECT rounds FROM {self.name}_control")) > 0, "the writer has written")


def ledger(bench, rows):
    name = bench.name("ledger")
    bench.pg.do(LEDGER.format(name=name, rows=rows, accounts=ACCOUNTS))
    return name


def balanced(bench, name, target, rows):
    """Only one snapshot balances."""
    total, ids, distinct = bench.sandbox.rows(["sum(amount)", "count_big(*)", "count_big(distinct id)"], f"from dbo.{target}")[0]
    equal(int(total), 1000 * rows, "the total of all amounts")
    equal(ids, distinct, "every id once")


def run_under_fire(bench, slices, rows=30000, workers=None):
    name = ledger(bench, rows)
    fire = [f"CLUSTER {name} USING {name}_pkey", f"VACUUM FULL {name}", f"BEGIN; TRUNCATE {name}; ROLLBACK"]
    target = bench.name("snap")
    with Proxy(bench.sandbox.port) as proxy, Writer(bench, name, fire) as writer:
        proxy.rate = 3_000_000 * rows / 30000  # so that the transfer takes a second or two
        eventually(lambda: bench.pg.value(f"SELECT max(stamp) FROM {name}") != "0", "the writer works")
        artifact = Workspace(bench, proxy.port, secret=bench.sandbox.secret).load(spec(f"public.{name}", f"dbo.{target}", verify="content", slices=slices, workers=workers or {"export": 3, "load": 3}))
    equal(artifact["consistency"], "one_snapshot", "consistency")
    balanced(bench, name, target, rows)
    equal(sum(s["rows"] for s in artifact["slices"]), artifact["rows"]["read"], "rows of the slices")
    for kind in ("CLUSTER", "VACUUM", "TRUNCATE"):
        check(any(writer.tried.get(kind, [])), f"{kind} was refused the table at least once {writer.tried}")
    bench.nothing_left(target)
    bench.pg.do(f"DROP TABLE {name} CASCADE")
    return artifact, writer


def test_ctid_slices_under_a_writer(bench):
    artifact, _ = run_under_fire(bench, {"by": "ctid", "count": 9})
    check(len(artifact["slices"]) >= 8, "several slices", len(artifact["slices"]))


def test_range_slices_under_a_writer(bench):
    artifact, _ = run_under_fire(bench, {"by": "range", "column": "id", "count": 7})
    check(len(artifact["slices"]) >= 6, "several slices", len(artifact["slices"]))


def test_value_slices_under_a_writer(bench):
    artifact, _ = run_under_fire(bench, {"by": "value", "column": "account"}, rows=12000)
    equal(len(artifact["slices"]), ACCOUNTS, "a slice for every account, NULL among them")


def test_hash_slices_under_a_writer(bench):
    artifact, _ = run_under_fire(bench, {"by": "hash", "column": "account", "count": 6})
    equal(len(artifact["slices"]), 6, "slices")


def test_one_slice_under_a_writer(bench):
    artifact, _ = run_under_fire(bench, {"by": "none"})
    equal(len(artifact["slices"]), 1, "slices")


def test_auto_slices_under_a_writer(bench):
    run_under_fire(bench, {"by": "auto"})


def test_truncate_cluster_and_vacuum_full_wait_or_give_up(bench):
    """They get the table only before the snapshot or after the transfer: never in between."""
    rows = 30000
    name = ledger(bench, rows)
    target = bench.name("snap")
    stop = threading.Event()
    refused = {"CLUSTER": 0, "VACUUM": 0, "TRUNCATE": 0}

    def disturb():
        while not stop.is_set():
            for kind, sql in (("CLUSTER", f"CLUSTER {name} USING {name}_pkey"), ("VACUUM", f"VACUUM FULL {name}"),
                              ("TRUNCATE", f"BEGIN; TRUNCATE {name}; ROLLBACK")):
                _, errors = bench.pg.session(f"SET lock_timeout = '150ms'; {sql};").communicate()
                refused[kind] += "lock timeout" in errors

    with Proxy(bench.sandbox.port) as proxy:
        work = Workspace(bench, proxy.port, secret=bench.sandbox.secret)
        proxy.rate = 2_000_000  # so that the transfer takes a second or two
        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            artifact = work.load(spec(f"public.{name}", f"dbo.{target}", verify="content", slices={"by": "ctid", "count": 12}, workers={"export": 4, "load": 4}))
        finally:
            stop.set()
            thread.join()
    equal(artifact["rows"]["read"], rows, "rows read")
    balanced(bench, name, target, rows)
    check(all(refused.values()), "each was refused the table at least once", refused)


def test_truncate_queued_behind_the_exporter_blocks_nobody(bench):
    """A TRUNCATE that waits without a timeout stands in the queue before every later lock: the workers must have theirs already."""
    rows = 30000
    name = ledger(bench, rows)
    target = bench.name("snap")
    with Proxy(bench.sandbox.port) as proxy:
        work = Workspace(bench, proxy.port, secret=bench.sandbox.secret)
        proxy.rate = 200_000  # bytes a second: an idle machine would be done before anybody looks
        background = work.start_transfer(spec(f"public.{name}", f"dbo.{target}", verify="content", slices={"by": "ctid", "count": 12},
                                              workers={"export": 4, "load": 4}))
        background.wait_for("running")
        held = f"SELECT count(*) FROM pg_locks WHERE relation = '{name}'::regclass AND mode = 'AccessShareLock' AND granted"
        eventually(lambda: int(bench.pg.value(held)) >= 5, "the exporter and its four workers hold the table")
        proxy.pause()
        session = bench.pg.session(f"SET lock_timeout = '100s'; TRUNCATE {name};")
        eventually(lambda: bench.pg.rows(f"SELECT 1 FROM pg_locks WHERE relation = '{name}'::regclass AND NOT granted"), "the TRUNCATE waits for the table")
        proxy.rate = 0
        proxy.resume()
        finished = background.wait()
    session.stdin.close()
    session.wait(timeout=150)
    equal(finished.code, 0, f"exit code {finished.said}")
    equal(finished.artifact["rows"]["read"], rows, "rows read")
    balanced(bench, name, target, rows)
    equal(bench.pg.value(f"SELECT count(*) FROM {name}"), "0", "the TRUNCATE came after")


def test_partitioned_tables(bench):
    name = bench.name("parts")
    bench.pg.do(f"CREATE TABLE {name} (id int, k int) PARTITION BY LIST (k); CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES IN (1); "
                f"CREATE TABLE {name}_2 PARTITION OF {name} FOR VALUES IN (2) PARTITION BY RANGE (id); "
                f"CREATE TABLE {name}_2a PARTITION OF {name}_2 FOR VALUES FROM (0) TO (500); CREATE TABLE {name}_2b PARTITION OF {name}_2 DEFAULT; "
                f"CREATE TABLE {name}_rest PARTITION OF {name} DEFAULT; INSERT INTO {name} SELECT g, CASE WHEN g % 7 = 0 THEN NULL ELSE g % 4 END FROM generate_series(1, 2000) g")
    for by in ("partition", "ctid", "auto", "none"):
        target = bench.name("parts")
        bench.work.load(spec(f"public.{name}", f"dbo.{target}", verify="content", slices={"by": by}))
        equal(bench.sandbox.rows(["count_big(distinct id)", "count_big(*)"], f"from dbo.{target}"), [("2000", "2000")], f"rows by {by}")


def exactly_once(bench, name, column, slices):
    """Every row once, whatever the cuts."""
    target = bench.name("once")
    artifact = bench.work.load(spec(f"public.{name}", f"dbo.{target}", verify="content", slices=slices))
    rows = int(bench.pg.value(f"SELECT count(*) FROM {name}"))
    equal(sum(s["rows"] for s in artifact["slices"]), rows, f"rows of the slices by {slices}")
    got = sorted(bench.sandbox.rows(["n", f"cast({column} as nvarchar(60))"], f"from dbo.{target}"), key=str)
    equal(len(got), rows, f"rows by {slices}")
    equal(sorted(int(r[0]) for r in got), list(range(1, rows + 1)), f"every row once by {slices}")
    return artifact


def test_o40_slices_of_awkward_keys(bench):
    cases = {
        "nullable": ("k int", "SELECT nullif(g, 11), g FROM generate_series(1, 11) g"),
        "all_null": ("k int", "SELECT NULL::int, g FROM generate_series(1, 5) g"),
        "bounds": ("k bigint", "SELECT unnest(array[-9223372036854775808, 9223372036854775807, 0, -1, 1]::bigint[]), generate_series(1, 5)"),
        "one_value": ("k int", "SELECT 42, g FROM generate_series(1, 20) g"),
        "mixed_case": ("k text", "SELECT unnest(array['a','B','A','b','Z','z','_','']), generate_series(1, 8)"),
        "collated": ('k text COLLATE "C"', "SELECT chr(64 + g % 60), g FROM generate_series(1, 60) g"),
        "case_ignored": ('k text COLLATE key_ci', "SELECT unnest(array['a','B','A','b','Z','z','_','','ä','Ä',NULL]), generate_series(1, 11)"),
        "uuid": ("k uuid", "SELECT md5(g::text)::uuid, g FROM generate_series(1, 50) g"),
        "moments": ("k timestamp", "SELECT 'infinity'::timestamp, 1 UNION ALL SELECT '2024-01-01'::timestamp + g * interval '1 day', g FROM generate_series(2, 30) g"),
        "numbers": ("k numeric", "SELECT 'NaN'::numeric, 1 UNION ALL SELECT g / 3.0, g FROM generate_series(2, 30) g"),
        "floats": ("k float8", "SELECT 'NaN'::float8, 1 UNION ALL SELECT '-0'::float8, 2 UNION ALL SELECT 0, 3 UNION ALL SELECT g, g FROM generate_series(4, 30) g"),
    }
    bench.pg.do("CREATE COLLATION key_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    for case, (ddl, rows) in cases.items():
        name = bench.name(f"key_{case}")
        bench.pg.do(f"CREATE TABLE {name} ({ddl}, n int); INSERT INTO {name} {rows}")
        skip = {"moments", "numbers", "floats"}
        for slicing in ({"by": "range", "column": "k", "count": 4}, {"by": "value", "column": "k"}, {"by": "hash", "column": "k", "count": 3}):
            if case in skip:
                # The key itself does not fit; only the other column is loaded.
                target = bench.name("once")
                artifact = bench.work.load(spec(f"public.{name}", f"dbo.{target}", columns=["n"], slices=slicing))
                equal(sorted(int(r[0]) for r in bench.sandbox.rows(["n"], f"from dbo.{target}")), list(range(1, artifact["rows"]["read"] + 1)), f"{case} by {slicing}")
                equal(artifact["rows"]["read"], int(bench.pg.value(f"SELECT count(*) FROM {name}")), f"rows of {case} by {slicing}")
                continue
            artifact = exactly_once(bench, name, "k", slicing)
            if case == "nullable" and slicing["by"] in ("range", "value"):
                check(any("NULL" in s["predicate"] and s["rows"] == 1 for s in artifact["slices"]), "NULL is a slice of its own", artifact["slices"])


def test_slices_that_cannot_be_are_refused(bench):
    name = bench.name("flat")
    bench.pg.do(f"CREATE TABLE {name} (id int); CREATE VIEW {name}_v AS SELECT * FROM {name}")
    for source, slicing, field in ((f"public.{name}_v", {"by": "ctid"}, "slices.by"), (f"public.{name}", {"by": "partition"}, "slices.by"),
                                   (f"public.{name}", {"by": "range"}, "slices.column"), (f"public.{name}", {"by": "hash"}, "slices.column")):
        error = bench.work.refused(spec(source, f"dbo.{name}", slices=slicing), "slices_impossible", 2)
        equal(error.get("field"), field, f"field for {slicing}")
    error = bench.work.refused(spec(f"public.{name}", f"dbo.{name}", slices={"by": "range", "column": "nope"}), "column_missing", 2)
    check("nope" in error["detail"], "the column is named", error)
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", slices={"by": "ctid", "count": 4}))
