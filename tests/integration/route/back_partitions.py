"""Partitioned PostgreSQL targets: created and reused by list and range, committed slice by slice, exchanged; FREEZE, UNLOGGED, tablespace."""

import time

from back import back, codes, exists, ids, left_overs, nothing_left, numbers, passed, spec
from harness import check, equal, eventually

SLICE = {"commit": "slice"}
TWO = {"export": 2, "load": 2}


def stores(bench, rows=60, sandbox=None):
    """Rows in stores 0, 1, 2 and NULL."""
    name = bench.name("bstore")
    numbers(sandbox or bench.sandbox, name, rows, "id int not null, store int null, v nvarchar(20)",
            lambda n: f"{n}, {'NULL' if n % 4 == 3 else n % 4}, N'v{n}'")
    return name


def partitions(bench, table):
    """{partition: its bound} of a table."""
    return dict(bench.pg.rows("SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
                              f"WHERE i.inhparent = '{table}'::regclass ORDER BY 1"))


def by_list(bench, source, target, mode="truncate", load=None, **more):
    return spec(f"dbo.{source}", f"public.{target}", mode, target_partition={"by": "list", "column": "store"}, load={**SLICE, **(load or {})}, workers=TWO,
                verify=more.pop("verify", "content"), **more)


def persistence(bench, table):
    return bench.pg.rows(f"SELECT c.relname, c.relpersistence FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = '{table}'::regclass ORDER BY 1")


def frozen(bench, table):
    """Every row of a table is frozen: its pages are all-visible and all-frozen."""
    return bench.pg.value(f"SELECT bool_and((t_infomask & 768) = 768) FROM generate_series(0, pg_relation_size('{table}') / 8192 - 1) b, "
                          f"heap_page_items(get_raw_page('{table}', b::int))") == "t"


def test_list_partitions_are_created_and_reused(bench):
    source, target = stores(bench), bench.name("blist")
    bench.pg.do("CREATE EXTENSION IF NOT EXISTS pageinspect")
    artifact = back(bench).load(by_list(bench, source, target, load={"freeze": True, "unlogged": True}))
    equal((artifact["finalizer"], len(artifact["slices"])), ("per_slice", 4), "finalizer, slices")
    passed(artifact, "rows_in_partitions")
    passed(artifact, "content")
    made = partitions(bench, target)
    equal(sorted(made.values()), ["FOR VALUES IN (0)", "FOR VALUES IN (1)", "FOR VALUES IN (2)", "FOR VALUES IN (NULL)"], f"bounds of {made}")
    check(f"{target}_1" in made and f"{target}_null" in made, "names", made)
    equal({kind for _, kind in persistence(bench, target)}, {"u"}, "unlogged partitions")
    check("unlogged" in codes(artifact), "unlogged is said", artifact["warnings"])
    check(frozen(bench, f"{target}_1"), "rows are frozen")
    equal(ids(bench, target), list(range(1, 61)), "rows")
    oids = bench.pg.rows(f"SELECT inhrelid FROM pg_inherits WHERE inhparent = '{target}'::regclass ORDER BY 1")
    bench.sandbox.do(f"update dbo.{source} set v = N'again' where store = 1; insert into dbo.{source} values (61, 5, N'new'); delete from dbo.{source} where store is null")
    artifact = back(bench).load(by_list(bench, source, target, load={"freeze": True}))
    equal(bench.pg.rows(f"SELECT store, count(*) FROM {target} GROUP BY 1 ORDER BY 1"), [("0", "15"), ("1", "15"), ("2", "15"), ("5", "1")], "rows after the second run")
    equal(bench.pg.value(f"SELECT count(*) FROM {target}_null"), "0", "the partition of a vanished store is emptied")
    equal(bench.pg.value(f"SELECT count(*) FROM {target}_1 WHERE v = 'again'"), "15", "new values")
    now = bench.pg.rows(f"SELECT inhrelid FROM pg_inherits WHERE inhparent = '{target}'::regclass ORDER BY 1")
    check(set(oids) <= set(now) and len(now) == 5, "partitions are reused", oids, now)
    check(all(one["table"] is None or target in str(one["table"]) for one in artifact["slices"] if "table" in one), "slices name their partitions", artifact["slices"])
    nothing_left(bench)


def test_vanished_stores_stay_where_the_source_is_filtered(bench):
    source, target = stores(bench), bench.name("bwhere")
    back(bench).load(by_list(bench, source, target))
    bench.sandbox.do(f"delete from dbo.{source} where store = 2")
    artifact = back(bench).load(by_list(bench, source, target, source_where="store = 1"))
    check("vanished_kept" in codes(artifact), "the warning", artifact["warnings"])
    equal(bench.pg.rows(f"SELECT store, count(*) FROM {target} GROUP BY 1 ORDER BY 1"), [("0", "15"), ("1", "15"), ("2", "15"), (None, "15")], "rows")


def test_exchange_never_shows_a_reader_an_empty_partition(bench):
    source, target = stores(bench), bench.name("bxchg")
    back(bench).load(by_list(bench, source, target))
    bench.pg.do(f"CREATE INDEX {target}_v ON {target} (v); CREATE VIEW {target}_view AS SELECT * FROM {target}")
    reader = bench.pg.session(f"BEGIN; SELECT count(*) FROM {target}_1; SELECT pg_sleep(1.5); SELECT count(*) FROM {target}_1; COMMIT;")
    eventually(lambda: bench.pg.rows(f"SELECT 1 FROM pg_locks WHERE relation = '{target}_1'::regclass"), "the reader reads")
    bench.sandbox.do(f"update dbo.{source} set v = N'x'")
    artifact = back(bench).load(by_list(bench, source, target, load={"exchange": True, "freeze": True, "lock_timeout_ms": 300}))
    out, errors = reader.communicate()
    check(out.count("15") == 2, "the reader saw the old rows twice", out, errors)
    equal(bench.pg.rows(f"SELECT count(*), count(DISTINCT id), min(v), max(v) FROM {target}_view"), [("60", "60", "x", "x")], "rows through the view")
    equal(len(bench.pg.rows(f"SELECT 1 FROM pg_index i JOIN pg_inherits h ON h.inhrelid = i.indrelid WHERE h.inhparent = '{target}'::regclass AND i.indisvalid")), 4, "indexes of the partitions")
    equal(bench.pg.value(f"SELECT indisvalid FROM pg_index WHERE indexrelid = '{target}_v'::regclass"), "t", "the index of the table")
    equal(bench.pg.rows(f"SELECT count(*) FROM pg_constraint WHERE conname LIKE 'rowferry%' AND conrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = '{target}'::regclass)"), [("0",)], "no check of ours stays")
    equal(artifact["finalizer"], "per_slice", "finalizer")
    nothing_left(bench)


def test_exchange_of_one_partition(bench):
    source, target = stores(bench), bench.name("bone")
    back(bench).load(by_list(bench, source, target))
    artifact = back(bench).load(spec(f"dbo.{source}", f"public.{target}_1", "truncate", source_where="store = 1 and id < 30", load={"exchange": True}, verify="content"))
    equal(artifact["finalizer"], "exchange", "finalizer")
    equal(bench.pg.rows(f"SELECT store, count(*) FROM {target} GROUP BY 1 ORDER BY 1"), [("0", "15"), ("1", "8"), ("2", "15"), (None, "15")], "rows")
    done = back(bench).transfer(spec(f"dbo.{source}", f"public.{target}_1", "truncate", load={"exchange": True}))
    equal(done.code, 1, f"rows of other stores fail {done.said}")
    equal(bench.pg.rows(f"SELECT store, count(*) FROM {target} GROUP BY 1 ORDER BY 1"), [("0", "15"), ("1", "8"), ("2", "15"), (None, "15")], "rows afterwards")
    nothing_left(bench)


def test_range_partitions_are_created_and_reused(bench):
    source, target = bench.name("brange"), bench.name("brange")
    numbers(bench.sandbox, source, 400, "id int not null primary key, v nvarchar(20)", lambda n: f"{n}, N'v{n}'")
    wish = {"target_partition": {"by": "range", "column": "id"}, "load": SLICE, "workers": TWO, "verify": "content"}
    artifact = back(bench).load(spec(f"dbo.{source}", f"public.{target}", "truncate", slices={"by": "range", "count": 4}, **wish))
    made = partitions(bench, target)
    equal((len(artifact["slices"]), len(made)), (4, 4), f"slices and partitions {made}")
    equal(ids(bench, target), list(range(1, 401)), "rows")
    bench.sandbox.do(f"update dbo.{source} set v = N'again'; delete from dbo.{source} where id > 390; insert into dbo.{source} values (-5, N'again'), (100000, N'again')")
    artifact = back(bench).load(spec(f"dbo.{source}", f"public.{target}", "truncate", **wish))
    equal(partitions(bench, target), made, "partitions are reused")
    equal(bench.pg.rows(f"SELECT count(*), count(DISTINCT id), min(id), max(id), min(v), max(v) FROM {target}"), [("392", "392", "-5", "100000", "again", "again")], "rows")
    own = bench.name("bown")
    bench.pg.do(f"CREATE TABLE {own} (id int, v text) PARTITION BY RANGE (id); CREATE TABLE {own}_a PARTITION OF {own} FOR VALUES FROM (0) TO (100); "
                f"CREATE TABLE {own}_b PARTITION OF {own} FOR VALUES FROM (100) TO (300)")
    artifact = back(bench).load(spec(f"dbo.{source}", f"public.{own}", "truncate", load=SLICE, workers=TWO, verify="content"))
    equal(bench.pg.rows(f"SELECT count(*), count(DISTINCT id), (SELECT count(*) FROM {own}_a), (SELECT count(*) FROM {own}_b) FROM {own}"), [("392", "392", "99", "200")], "rows of own partitions")
    nothing_left(bench)


def test_partitions_through_staging(bench):
    source, target = stores(bench), bench.name("bstage")
    artifact = back(bench).load(spec(f"dbo.{source}", f"public.{target}", "truncate", target_partition={"by": "list", "column": "store"}, workers=TWO, verify="content"))
    equal(artifact["finalizer"], "insert_select", "finalizer")
    equal(len(partitions(bench, target)), 4, "partitions")
    equal(ids(bench, target), list(range(1, 61)), "rows")
    bench.sandbox.do(f"insert into dbo.{source} values (61, 9, N'new')")
    back(bench).load(spec(f"dbo.{source}", f"public.{target}", "truncate", target_partition={"by": "list", "column": "store"}, verify="content"))
    equal((ids(bench, target), len(partitions(bench, target))), (list(range(1, 62)), 5), "rows and partitions of the second run")
    nothing_left(bench)


def test_text_stores_that_differ_by_case_or_blanks(bench):
    source, target = bench.name("btext"), bench.name("btext")
    numbers(bench.sandbox, source, 30, "id int, store nvarchar(40)", lambda n: f"{n}, N'{['a', 'A', 'a ', 'Straße 1', 'x' * 40, chr(39) * 2][n % 6]}'")
    for _ in range(2):
        back(bench).load(by_list(bench, source, target))
        equal(bench.pg.rows(f"SELECT store, count(*) FROM {target} GROUP BY 1 ORDER BY store COLLATE \"C\""),
              [("'", "5"), ("A", "5"), ("Straße 1", "5"), ("a", "5"), ("a ", "5"), ("x" * 40, "5")], "rows")
        equal(len(partitions(bench, target)), 6, "partitions")


def test_a_target_partitioned_differently_is_refused(bench):
    source = stores(bench)
    flat, other, hashed = bench.name("bflat"), bench.name("bother"), bench.name("bhash")
    bench.pg.do(f"CREATE TABLE {flat} (id int, store int, v text); CREATE TABLE {other} (id int, store int, v text) PARTITION BY LIST (v); "
                f"CREATE TABLE {hashed} (id int, store int, v text) PARTITION BY HASH (store); CREATE TABLE {hashed}_1 PARTITION OF {hashed} FOR VALUES WITH (MODULUS 1, REMAINDER 0)")
    for target in (flat, other, hashed):
        back(bench).refused(by_list(bench, source, target), "partitioned_differently", 2)
        if target != other:
            back(bench).refused(spec(f"dbo.{source}", f"public.{target}", "truncate", load=SLICE), "commit_slice_needs_partition", 2)
    back(bench).refused(by_list(bench, source, bench.name("bnever"), "append"), "commit_slice_replaces", 2)
    target = bench.name("bsliced")
    error = back(bench).refused(by_list(bench, source, target, slices={"by": "range", "column": "id"}), "commit_slice_needs_partition", 2)
    check(error["field"].startswith("slices"), "field", error)
    check(not exists(bench.pg, target), "nothing is made")
    many = bench.name("bmany")
    bench.pg.do(f"CREATE TABLE {many} (id int, store int, v text) PARTITION BY LIST (store); CREATE TABLE {many}_a PARTITION OF {many} FOR VALUES IN (0, 1); CREATE TABLE {many}_b PARTITION OF {many} DEFAULT")
    done = back(bench).transfer(spec(f"dbo.{source}", f"public.{many}", "truncate", load=SLICE))
    check(done.code in (1, 2) and done.error()["code"] == "partition_bounds", "a partition of two stores", done.said)
    nothing_left(bench)


def test_a_failed_run_names_the_partitions_that_it_renewed(bench):
    source, target = stores(bench), bench.name("bpart")
    bench.pg.do(f"CREATE TABLE {target} (id int, store int, v varchar(20), CHECK (id <> 30)) PARTITION BY LIST (store)")
    done = back(bench).transfer(spec(f"dbo.{source}", f"public.{target}", "truncate", load=SLICE, workers={"export": 1, "load": 1}))
    equal((done.code, done.artifact["state"]), (1, "failed"), f"a row that a check refuses {done.said}")
    renewed = [name for name in partitions(bench, target)]
    check(renewed and all(name in str(done.artifact["warnings"]) + str(done.error()) for name in renewed), "partitions renewed are listed", renewed, done.artifact["warnings"])
    bench.sandbox.do(f"delete from dbo.{source} where id = 30")
    again = back(bench).run("resume", done.artifact["id"])
    equal(again.code, 0, f"resume {again.said}")
    equal(bench.pg.rows(f"SELECT count(*), count(DISTINCT id) FROM {target}"), [("59", "59")], "rows after the resume")
    nothing_left(bench)


def test_o41_freeze_only_where_its_rules_hold(bench):
    bench.pg.do("CREATE EXTENSION IF NOT EXISTS pageinspect")
    source = stores(bench)
    one = {"export": 1, "load": 1}
    created = bench.name("bfz")
    artifact = back(bench).load(spec(f"dbo.{source}", f"public.{created}", workers=one, load={"freeze": True}))
    equal((artifact["finalizer"], frozen(bench, created)), ("direct", True), "created in the same transaction")
    artifact = back(bench).load(spec(f"dbo.{source}", f"public.{created}", "truncate", workers=one, load={"freeze": True}))
    equal((artifact["finalizer"], frozen(bench, created), ids(bench, created)), ("direct", True, list(range(1, 61))), "truncated in the same transaction")
    check("locked_while_loaded" in codes(artifact), "the lock is said", artifact["warnings"])
    for what, mode, workers in (("appended", "append", one), ("several workers", "truncate", TWO)):
        artifact = back(bench).load(spec(f"dbo.{source}", f"public.{created}", mode, workers=workers, load={"freeze": True}))
        check("freeze_not_possible" in codes(artifact), f"a notice, {what}", artifact["warnings"])
    through = bench.name("bfz")
    artifact = back(bench).load(spec(f"dbo.{source}", f"public.{through}", target_partition={"by": "list", "column": "store"}, workers=one, load={"freeze": True}))
    check("freeze_not_possible" in codes(artifact) and ids(bench, through) == list(range(1, 61)), "a partitioned table", artifact["warnings"])
    reader = bench.pg.session(f"BEGIN; SELECT count(*) FROM {created}; SELECT pg_sleep(1); COMMIT;")
    eventually(lambda: bench.pg.rows(f"SELECT 1 FROM pg_locks WHERE relation = '{created}'::regclass"), "the reader reads")
    back(bench).load(spec(f"dbo.{source}", f"public.{created}", "truncate", workers=TWO, load={"lock_timeout_ms": 200}))
    reader.communicate()
    nothing_left(bench)


def test_unlogged_and_tablespace(bench):
    source, target = stores(bench), bench.name("bun")
    artifact = back(bench).load(spec(f"dbo.{source}", f"public.{target}", load={"unlogged": True}, verify="content"))
    equal(bench.pg.value(f"SELECT relpersistence FROM pg_class WHERE oid = '{target}'::regclass"), "u", "persistence of the created table")
    check("unlogged" in codes(artifact), "it is said", artifact["warnings"])
    logged = bench.name("blog")
    bench.pg.do(f"CREATE TABLE {logged} (id int, store int, v text)")
    back(bench).load(spec(f"dbo.{source}", f"public.{logged}", "truncate", load={"unlogged": True}, verify="content"))
    equal(bench.pg.value(f"SELECT relpersistence FROM pg_class WHERE oid = '{logged}'::regclass"), "p", "an existing table stays as it is")
    error = back(bench).refused(spec(f"dbo.{source}", "public.never", load={"tablespace": "not there"}), "tablespace_missing", 2)
    equal(error["field"], "load.tablespace", "field")
    spaced = bench.name("bspace")
    bench.pg.do(f"SET allow_in_place_tablespaces = on;\nCREATE TABLESPACE {spaced} LOCATION ''")
    try:
        artifact = back(bench).load(by_list(bench, source, spaced, load={"tablespace": spaced}))
        check("tablespace" in codes(artifact), "the danger is said", artifact["warnings"])
        equal(bench.pg.value(f"SELECT count(*) FROM pg_class c JOIN pg_tablespace t ON t.oid = c.reltablespace WHERE t.spcname = '{spaced}' AND c.relkind = 'r'"), "4", "partitions in it")
        bench.pg.do(f"DROP TABLE {spaced}")
    finally:
        bench.pg.do(f"DROP TABLESPACE {spaced}")
    equal(left_overs(bench.pg), [], "staging tables left")


def test_a_lock_that_another_holds_is_asked_for_again(bench):
    source, target = stores(bench), bench.name("bheld")
    bench.pg.do(f"CREATE TABLE {target} (id int, store int, v text); INSERT INTO {target} VALUES (-1)")
    holder = bench.pg.session(f"BEGIN; SELECT count(*) FROM {target};")
    eventually(lambda: bench.pg.rows(f"SELECT 1 FROM pg_locks WHERE relation = '{target}'::regclass"), "the lock is held")
    background = back(bench).start_transfer(spec(f"dbo.{source}", f"public.{target}", "truncate", load={"lock_timeout_ms": 300}, verify="content"))
    background.wait_for("finalizing")
    time.sleep(0.5)
    holder.communicate("COMMIT;\n")
    done = background.wait()
    equal(done.code, 0, f"exit code {done.said}")
    artifact = done.artifact
    equal(ids(bench, target), list(range(1, 61)), "rows")
    check("finalize_retried" in codes(artifact) or artifact["retries"], "it is told", artifact["warnings"])
    nothing_left(bench)
