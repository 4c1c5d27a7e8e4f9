"""Slices of a SQL Server table: every row once, whatever the key; values that come late; consistency as it was had."""

import time

from back import Back, back, can, codes, ids, nothing_left, numbers, spec
from harness import Sandbox, check, equal

# name, DDL of the key, its values; rows are numbered from 1
KEYS = [
    ("nullable", "int null", [*map(str, range(1, 11)), "NULL"]),
    ("all_null", "int null", ["NULL"] * 5),
    ("bounds", "bigint", ["-9223372036854775808", "9223372036854775807", "0", "-1", "1"]),
    ("small_bounds", "tinyint", ["0", "255", "1", "254"]),
    ("one_value", "int", ["42"] * 20),
    ("skewed", "int", ["7"] * 60 + [str(n) for n in range(100, 120)]),
    ("mixed_case", "nvarchar(10)", ["N'a'", "N'A'", "N'a '", "N'B'", "N'b'", "N'z'", "N'_'", "N''", "N' '", "N'é'", "N'E'", "N'😀'", "NULL", "N'it''s'"]),
    ("code_page", "varchar(10)", ["'a'", "'A'", "'a '", "'ß'", "'ss'", "'é'", "'e'", "''", "'€'", "'~'", "NULL"]),
    ("padded", "char(4)", ["'a'", "'A'", "'ab'", "''", "'abcd'"]),
    ("binary_order", "nvarchar(10) collate Latin1_General_BIN2", ["N'a'", "N'B'", "N'A'", "N'b'", "N'ü'", "N'a '"]),
    ("uuid", "uniqueidentifier", [f"'{n * 2654435761 % 2**32:08x}-{n:04x}-4000-8000-{(50 - n) * 1000003:012x}'" for n in range(50)] + ["NULL"]),
    ("instants", "datetime2(7)", ["'0001-01-01'", "'9999-12-31T23:59:59.9999999'", "'2024-01-01T00:00:00.0000001'", "'2024-01-01T00:00:00.0000002'", "'2024-01-01'", "NULL"]),
    ("ticks", "datetime", ["'1753-01-01'", "'9999-12-31T23:59:59.997'", "'2024-01-01T00:00:00.003'", "'2024-01-01T00:00:00.007'", "'2024-01-01'"]),
    ("minutes", "smalldatetime", ["'1900-01-01'", "'2079-06-06T23:59:00'", "'2024-01-01'"]),
    ("days", "date", ["'0001-01-01'", "'9999-12-31'", "'2024-02-29'", "NULL"]),
    ("offsets", "datetimeoffset(3)", ["'2024-01-01 00:00:00 +00:00'", "'2024-01-01 02:00:00 +02:00'", "'2024-01-01 00:00:00 -05:00'", "'0001-01-01 00:00:00 +00:00'", "NULL"]),
    ("decimals", "decimal(38,10)", ["-9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999999", "0", "0.0000000001", "-0.0000000001"]),
    ("money", "money", ["-922337203685477.5808", "922337203685477.5807", "0", "0.0001"]),
    ("floats", "float", ["-1.7976931348623157E308", "1.7976931348623157E308", "0E0", "0.1E0", "2.2250738585072014E-308", "1E0", "NULL"]),
    ("singles", "real", ["0.1", "0.2", "3.40282346638528859E38", "16777216"]),
    ("bit", "bit", ["0", "1", "1", "NULL"]),
    ("bytes", "varbinary(8)", ["0x", "0x00", "0x0000", "0x01", "0xff", "0x0100", "NULL"]),
]


def once(bench, target, rows, what):
    equal(bench.pg.rows(f"SELECT count(*), count(DISTINCT n), min(n), max(n) FROM {target}"), [(str(rows), str(rows), "1", str(rows))], what)


def test_o40_every_row_once_whatever_the_key(bench):
    ways = ({"by": "range", "column": "k", "count": 4}, {"by": "value", "column": "k"}, {"by": "hash", "column": "k", "count": 3}, {"by": "auto", "count": 3}, {"by": "none"})
    wrong = []
    with back(bench).serve() as engine:
        running = []
        for case, ddl, values in KEYS:
            name = bench.name(f"bk_{case}")
            bench.sandbox.do(f"create table dbo.{name} (n int not null, k {ddl}); insert into dbo.{name} values " + ", ".join(f"({n}, {v})" for n, v in enumerate(values, 1)))
            if "NULL" not in values:
                bench.sandbox.do(f"create clustered index cx on dbo.{name} (k)")
            for way in ways:
                target = bench.name("bonce")
                running.append((case, way, len(values), target, engine.submit(spec(f"dbo.{name}", f"public.{target}", verify="content", slices=way))))
        for case, way, rows, target, transfer in running:
            status = engine.wait(transfer, "succeeded", "failed")
            if status["state"] == "failed":
                wrong.append(f"{case} by {way['by']}: {status['error']['code']}: {status['error']['detail']}")
                continue
            artifact = engine.artifact(transfer)
            got = bench.pg.rows(f"SELECT count(*), count(DISTINCT n), min(n), max(n) FROM {target}")[0]
            if got != (str(rows), str(rows), "1", str(rows)) or sum(s["rows"] for s in artifact["slices"]) != rows:
                wrong.append(f"{case} by {way['by']}: count, distinct, least, greatest {got} of {rows}; slices {[(s['predicate'], s['rows']) for s in artifact['slices']]}")
            if case == "nullable" and way["by"] in ("range", "value") and not any("NULL" in s["predicate"] and s["rows"] == 1 for s in artifact["slices"]):
                wrong.append(f"NULL is no slice of its own by {way['by']}: {artifact['slices']}")
    check(not wrong, "\n  ".join([f"{len(wrong)} of {len(running)}:", *wrong]))
    nothing_left(bench)


def test_value_slices_tell_texts_apart_by_their_bytes(bench):
    name = bench.name("bvalues")
    numbers(bench.sandbox, name, 12, "n int, k nvarchar(5)", lambda n: f"{n}, {['N%sa%s', 'N%sA%s', 'N%sa %s'][n % 3] % (chr(39), chr(39))}")
    artifact = back(bench).load(spec(f"dbo.{name}", f"public.{name}", verify="content", slices={"by": "value", "column": "k"}))
    equal(sorted(s["rows"] for s in artifact["slices"]), [4, 4, 4], f"slices {artifact['slices']}")
    once(bench, name, 12, "rows")
    equal(bench.pg.rows(f"SELECT k, count(*) FROM {name} GROUP BY k ORDER BY k COLLATE \"C\""), [("A", "4"), ("a", "4"), ("a ", "4")], "values")


def test_partitions_are_slices(bench):
    name = bench.name("bparts")
    if not can(bench.sandbox, f"create partition function pf_{name} (int) as range right for values (10, 20, 30)"):
        return
    bench.sandbox.do(f"create partition scheme ps_{name} as partition pf_{name} all to ([primary])")
    bench.sandbox.do(f"create table dbo.{name} (n int not null, k int null) on ps_{name} (k)")
    bench.sandbox.do(f"insert into dbo.{name} values (1, NULL), (2, -5), (3, 10), (4, 19), (5, 20), (6, 29), (7, 9), (8, 2147483647)")
    for way in ({"by": "partition"}, {"by": "auto"}, {"by": "range", "column": "k", "count": 3}, {"by": "value", "column": "k"}, {"by": "none"}):
        target = bench.name("bparts")
        artifact = back(bench).load(spec(f"dbo.{name}", f"public.{target}", verify="content", slices=way))
        once(bench, target, 8, f"rows by {way}")
        if way["by"] == "partition":
            equal(sorted(s["rows"] for s in artifact["slices"]), [1, 2, 2, 3], f"rows of the slices {artifact['slices']}")


def test_a_table_without_partitions_has_no_such_slices(bench):
    back(bench).refused(spec(f"dbo.{bench.name('nope')}", "public.nope", slices={"by": "partition"}), "table_missing", 2)
    flat = bench.name("bflat")
    bench.sandbox.do(f"create table dbo.{flat} (n int)")
    error = back(bench).refused(spec(f"dbo.{flat}", f"public.{flat}", slices={"by": "partition"}), "slices_impossible", 2)
    equal(error["field"], "slices.by", "field")


def test_slices_that_cannot_be_are_refused(bench):
    name = bench.name("border")
    bench.sandbox.do(f"create table dbo.{name} (id int, x xml, t nvarchar(max), i image, j ntext)")
    for way, code, field in (({"by": "range", "column": "x"}, "slices_impossible", "slices.column"), ({"by": "value", "column": "t"}, "slices_impossible", "slices.column"),
                             ({"by": "range", "column": "i"}, "slices_impossible", "slices.column"), ({"by": "value", "column": "j"}, "slices_impossible", "slices.column"),
                             ({"by": "range"}, "slices_impossible", "slices.column"), ({"by": "ctid"}, "slices_impossible", "slices.by"), ({"by": "range", "column": "nope"}, "column_missing", None)):
        error = back(bench).refused(spec(f"dbo.{name}", f"public.{name}", slices=way), code, 2)
        check(field is None or error["field"] == field, "field for", way, error)
        check(way.get("column", "") in error["detail"], "the column is named", error)
    check(bench.pg.value(f"SELECT to_regclass('{name}')") is None, "nothing is created")


def test_values_that_come_late_are_read_too(bench):
    with Sandbox(bench, faults=[{"kind": "delay", "match": "CAST(2 AS int)", "wait_ms": 2500}]) as sandbox:
        work = Back(bench, sandbox)
        name = bench.name("blate")
        numbers(sandbox, name, 30, "n int, k int", lambda n: f"{n}, {n % 3}")
        background = work.start_transfer(spec(f"dbo.{name}", f"public.{name}", verify="content", slices={"by": "value", "column": "k"}, workers={"export": 1, "load": 1}))
        background.wait_for("running")
        time.sleep(0.5)
        sandbox.do(f"insert into dbo.{name} values (31, 77), (32, NULL)")
        done = background.wait()
        equal(done.code, 0, f"exit code {done.said}")
        if bench.pg.value(f"SELECT count(*) FROM {name}") == "30":
            check(any("late" in code or "value" in code for code in codes(done.artifact)), "rows with late values are read, or warned of", done.artifact["warnings"])
        else:
            once(bench, name, 32, "rows, the late ones among them")
            equal(len(done.artifact["slices"]), 5, f"slices {done.artifact['slices']}")
        nothing_left(bench, sandbox)


def had(work, bench, sandbox, source, isolation, count):
    target = bench.name("biso")
    read = {"isolation": isolation} if isolation else {}
    artifact = work.load(spec(f"dbo.{source}", f"public.{target}", verify="source_count", read=read, slices={"by": "range", "column": "n", "count": count}))
    once(bench, target, 40, f"rows under {isolation}")
    return artifact["consistency"], "dirty_read" in codes(artifact)


def test_consistency_is_what_was_had(bench):
    with Sandbox(bench) as sandbox:
        work = Back(bench, sandbox)
        name = bench.name("biso")
        numbers(sandbox, name, 40, "n int not null primary key, k int", lambda n: f"{n}, {n % 3}")
        for isolation, count, wanted in ((None, 1, ("none", False)), ("read_committed", 3, ("none", False)), ("read_uncommitted", 1, ("none", True)), ("auto", 2, ("none", True))):
            equal(had(work, bench, sandbox, name, isolation, count), wanted, f"{isolation}, {count} slices, neither SNAPSHOT nor RCSI")
        error = work.refused(spec(f"dbo.{name}", f"public.{name}", read={"isolation": "snapshot"}), "snapshot_not_allowed", 2)
        check("snapshot_isolation_state" in str(error) and error["field"] == "read.isolation", "the setting and the field", error)
        nothing_left(bench, sandbox)
        if not can(sandbox, "alter database dw set allow_snapshot_isolation on"):
            return
        for isolation, count, wanted in (("snapshot", 1, ("one_snapshot", False)), ("snapshot", 3, ("per_slice", False)), ("auto", 3, ("per_slice", False)), (None, 1, ("none", False))):
            equal(had(work, bench, sandbox, name, isolation, count), wanted, f"{isolation}, {count} slices, SNAPSHOT allowed")
        sandbox.do("alter database dw set allow_snapshot_isolation off; alter database dw set read_committed_snapshot on")
        for isolation, count, wanted in ((None, 1, ("one_snapshot", False)), ("read_committed", 3, ("per_slice", False)), ("auto", 1, ("one_snapshot", False)), ("read_uncommitted", 1, ("none", True))):
            equal(had(work, bench, sandbox, name, isolation, count), wanted, f"{isolation}, {count} slices, RCSI")
        nothing_left(bench, sandbox)


def test_auto_slices_a_clustered_table_and_says_why(bench):
    name = bench.name("bauto")
    numbers(bench.sandbox, name, 1000, "n int not null primary key, k int", lambda n: f"{n}, {n % 3}")
    for count, slices in ((None, 1), (4, 4)):
        target = bench.name("bauto")
        way = {"by": "auto", "count": count} if count else {"by": "auto"}
        artifact = back(bench).load(spec(f"dbo.{name}", f"public.{target}", slices=way))
        equal(len(artifact["slices"]), slices, f"slices for {way} {artifact['slices']}")
        once(bench, target, 1000, "rows")
    plan = back(bench).run("plan", "-", "--format", "json", text=__import__("json").dumps(spec(f"dbo.{name}", "public.never", slices={"by": "auto", "count": 4})))
    check("clustered index" in plan.out, "the reason is in the plan", plan.out[:800])
    check(ids(bench, target, "n") == list(range(1, 1001)), "ids")
