"""Load modes, finalizers, what an existing table has besides its rows, verification, profiles, the choice of rows and columns."""

from harness import Sandbox, Workspace, check, equal, spec
from type_table import native_of

FIXED = "id int, v nvarchar(20)"


def source(bench, stem="mode", rows=50):
    name = bench.name(stem)
    bench.pg.do(f"CREATE TABLE {name} (id int, v varchar(10)); INSERT INTO {name} SELECT g, 'v' || g FROM generate_series(1, {rows}) g")
    return name


def existing(bench, name, ddl=FIXED, old="(1001, N'old'), (1002, N'old')"):
    bench.sandbox.do(f"create table dbo.{name} ({ddl})" + (f"; insert into dbo.{name} (id, v) values {old}" if old else ""))


def content(bench, name):
    return sorted(int(row[0]) for row in bench.sandbox.rows(["id"], f"from dbo.{name}"))


# --- modes x existing or missing x finalizers


def test_missing_target_becomes_staging_renamed(bench):
    for mode in ("append", "truncate", "replace", "fail_if_exists"):
        name = source(bench)
        artifact = bench.work.load(spec(f"public.{name}", f"dbo.{name}", mode, verify="content"))
        equal(artifact["finalizer"], "rename", f"finalizer, {mode}")
        equal(content(bench, name), list(range(1, 51)), f"rows, {mode}")
        equal(artifact["rows"], {"read": 50, "acknowledged": 50, "staged": 50, "target": 50,
                                 "target_total": None if mode == "append" else 50}, f"counts, {mode}")
        equal(native_of(bench.sandbox, f"dbo.{name}"), {"id": ("int", True), "v": ("nvarchar(20)", True)}, "columns")
        bench.nothing_left(name)


def test_missing_target_without_create_is_refused(bench):
    name = source(bench)
    for mode in ("append", "truncate", "replace", "fail_if_exists"):
        error = bench.work.refused(spec(f"public.{name}", f"dbo.{name}", mode, create=False), "table_missing", 2)
        check("create" in error["hint"], "the hint names `create`", error)
        check(not bench.sandbox.exists(f"dbo.{name}"), "nothing is created")


def test_existing_target_per_mode(bench):
    wanted = {"append": list(range(1, 51)) + [1001, 1002], "truncate": list(range(1, 51)), "replace": list(range(1, 51))}
    for mode, rows in wanted.items():
        name = source(bench)
        existing(bench, name)
        object_id = bench.sandbox.value(f"object_id(N'dbo.{name}')")
        artifact = bench.work.load(spec(f"public.{name}", f"dbo.{name}", mode, create=False, verify="content"))
        equal(artifact["finalizer"], "insert_select", f"finalizer, {mode}")
        equal(content(bench, name), rows, f"rows, {mode}")
        equal(artifact["rows"]["target"], 50, f"rows.target, {mode}")
        equal(artifact["rows"]["target_total"], None if mode == "append" else 50, f"rows.target_total, {mode}")
        equal(bench.sandbox.value(f"object_id(N'dbo.{name}')"), object_id, f"the same table, {mode}")
        bench.nothing_left(name)


def test_fail_if_exists_refuses_even_an_empty_table(bench):
    name = source(bench)
    existing(bench, name, old="")
    bench.work.refused(spec(f"public.{name}", f"dbo.{name}", "fail_if_exists"), "target_exists", 2)
    equal(bench.sandbox.count(f"dbo.{name}"), 0, "rows")


def test_direct_loads_an_empty_table_in_one_transaction(bench):
    name = source(bench, rows=5000)
    existing(bench, name, old="")
    artifact = bench.work.load(spec(f"public.{name}", f"dbo.{name}", create=False, workers={"export": 1, "load": 1}, slices={"by": "ctid", "count": 4}))
    equal(artifact["finalizer"], "direct", "finalizer")
    equal((artifact["rows"]["read"], artifact["rows"]["staged"], artifact["rows"]["target"]), (5000, None, 5000), "counts")
    equal(content(bench, name), list(range(1, 5001)), "rows")
    bench.nothing_left(name)


def test_direct_is_all_or_nothing(bench):
    name = bench.name("direct")
    bench.pg.do(f"CREATE TABLE {name} AS SELECT g AS id, CASE WHEN g = 4999 THEN 'far too long a text here' ELSE 'v' END AS v FROM generate_series(1, 5000) g")
    existing(bench, name, old="")
    for slicing in ({"by": "ctid", "count": 4}, {"by": "none"}):  # also where no slice was ended: exit code 2 is for what was not begun
        bench.work.refused(spec(f"public.{name}", f"dbo.{name}", workers={"export": 1, "load": 1}, slices=slicing), "value_does_not_fit", 1)
        equal(bench.sandbox.count(f"dbo.{name}"), 0, "rows")
    bench.nothing_left(name)


def test_direct_is_not_chosen_where_it_would_promise_too_much(bench):
    name = source(bench)
    for target, more in ((bench.name("d"), {"verify": "content"}), (bench.name("d"), {"workers": {"export": 1, "load": 2}})):
        existing(bench, target, old="")
        more.setdefault("workers", {"export": 1, "load": 1})
        artifact = bench.work.load(spec(f"public.{name}", f"dbo.{target}", **more))
        equal(artifact["finalizer"], "insert_select", f"finalizer with {more}")


def test_an_empty_source_makes_an_empty_target(bench):
    name = source(bench, rows=0)
    for mode, old in (("append", 2), ("truncate", 0), ("replace", 0)):
        target = bench.name("empty")
        existing(bench, target)
        bench.work.load(spec(f"public.{name}", f"dbo.{target}", mode, verify="content"))
        equal(bench.sandbox.count(f"dbo.{target}"), old, f"rows, {mode}")
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", verify="content"))
    equal(bench.sandbox.count(f"dbo.{name}"), 0, "rows of a created table")
    direct = bench.name("empty")
    existing(bench, direct, old="")
    artifact = bench.work.load(spec(f"public.{name}", f"dbo.{direct}", workers={"export": 1, "load": 1}))
    equal(artifact["finalizer"], "direct", "finalizer")


def test_replace_rebuilds_a_table_of_another_definition(bench):
    name = source(bench)
    existing(bench, name, "id bigint, v nvarchar(20)")
    artifact = bench.work.load(spec(f"public.{name}", f"dbo.{name}", "replace", verify="content",
                                    columns=[{"source": "id", "type": "int"}, {"source": "v", "type": "nvarchar(50)"}]))
    equal(artifact["finalizer"], "rename", "finalizer")
    equal({c: t for c, (t, _) in native_of(bench.sandbox, f"dbo.{name}").items()}, {"id": "int", "v": "nvarchar(50)"}, "columns")
    equal(content(bench, name), list(range(1, 51)), "rows")


def test_primary_key_and_not_null_are_created(bench):
    name = bench.name("key")
    bench.pg.do(f"CREATE TABLE {name} (b int, a varchar(5), c int NOT NULL, d int UNIQUE, PRIMARY KEY (a, b)); INSERT INTO {name} VALUES (1, 'x', 2, 3)")
    bench.work.load(spec(f"public.{name}", f"dbo.{name}"))
    equal({c: n for c, (_, n) in native_of(bench.sandbox, f"dbo.{name}").items()}, {"b": False, "a": False, "c": False, "d": True}, "nullable")
    equal(bench.sandbox.rows(["c.name"], "from sys.indexes i join sys.index_columns k on k.object_id = i.object_id and k.index_id = i.index_id "
                             "join sys.columns c on c.object_id = k.object_id and c.column_id = k.column_id where i.is_primary_key = 1 "
                             f"and i.object_id = object_id(N'dbo.{name}') order by k.key_ordinal"), [("a",), ("b",)], "key columns in their order")
    plan = bench.work.run("plan", "-", "--format", "json", text=__import__("json").dumps(spec(f"public.{name}", f"dbo.{bench.name('key')}")))
    check("not_carried" in plan.out and "unique" in plan.out.lower(), "the plan lists what is not carried", plan.out[:2000])


def test_target_key_makes_the_key_of_a_created_table(bench):
    name = source(bench)
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", target_key=["id"]))
    equal(bench.sandbox.error_of(f"insert into dbo.{name} values (1, N'again')"), 2627, "duplicate key")
    twice = bench.name("twice")
    bench.pg.do(f"CREATE TABLE {twice} (id int, v text); INSERT INTO {twice} VALUES (1, 'a'), (1, 'b')")
    done = bench.work.transfer(spec(f"public.{twice}", f"dbo.{twice}", target_key=["id"]))
    equal(done.code, 1, f"exit code {done.said}")
    equal(done.error()["server"]["number"], "1505", f"the server's number {done.error()}")
    check(not bench.sandbox.exists(f"dbo.{twice}"), "the table is not there")
    bench.nothing_left(twice)


# --- what an existing table has besides rows


def test_identity_per_mode(bench):
    for mode, next_least in (("append", 51), ("truncate", 51), ("replace", 51)):
        name = source(bench)
        bench.sandbox.do(f"create table dbo.{name} (id int identity(1,1), v nvarchar(20))")
        bench.work.load(spec(f"public.{name}", f"dbo.{name}", mode, verify="content"))
        equal(content(bench, name), list(range(1, 51)), f"ids, {mode}")
        bench.sandbox.do(f"insert into dbo.{name} (v) values (N'next')")
        check(int(bench.sandbox.value("id", f"from dbo.{name} where v = N'next'")) >= next_least, f"the next number, {mode}")
        equal(bench.sandbox.error_of(f"insert into dbo.{name} (id, v) values (900, N'x')"), 544, f"IDENTITY_INSERT is off, {mode}")


def test_identity_direct_and_not_kept(bench):
    name = source(bench)
    bench.sandbox.do(f"create table dbo.{name} (id int identity(1,1), v nvarchar(20))")
    artifact = bench.work.load(spec(f"public.{name}", f"dbo.{name}", workers={"export": 1, "load": 1}, source_where="id > 40"))
    equal(artifact["finalizer"], "direct", "finalizer")
    equal(content(bench, name), list(range(41, 51)), "ids")
    bench.sandbox.do(f"insert into dbo.{name} (v) values (N'next')")
    check(int(bench.sandbox.value("max(id)", f"from dbo.{name}")) >= 51, "the next number")
    numbered = bench.name("numbered")
    bench.sandbox.do(f"create table dbo.{numbered} (id int identity(500,10), v nvarchar(20))")
    artifact = bench.work.load(spec(f"public.{name}", f"dbo.{numbered}", load={"keep_identity": False}))
    check("identity_numbered" in [w["code"] for w in artifact["warnings"]], "warning", artifact["warnings"])
    equal(content(bench, numbered), list(range(500, 1000, 10)), "numbers of the server")


def test_computed_and_rowversion_columns_are_left_out(bench):
    name = bench.name("computed")
    bench.pg.do(f"CREATE TABLE {name} (id int, twice int, stamp bytea, v text); INSERT INTO {name} VALUES (4, 99, '\\x00', 'a')")
    bench.sandbox.do(f"create table dbo.{name} (id int, twice as id * 2, stamp rowversion, v nvarchar(5))")
    artifact = bench.work.load(spec(f"public.{name}", f"dbo.{name}", verify="content"))
    equal(bench.sandbox.rows(["id", "twice", "v"], f"from dbo.{name}"), [("4", "8", "a")], "row")
    equal({w["column"] for w in artifact["warnings"] if w["code"] == "not_insertable"}, {"twice", "stamp"}, "left out")
    equal([c["source"] for c in artifact["columns"]], ["id", "v"], "columns")
    error = bench.work.refused(spec(f"public.{name}", f"dbo.{name}", columns=["id", "twice"]), "column_not_writable", 2)
    equal(error["field"], "columns[1]", "field")


def test_period_columns_are_left_to_the_server(bench):
    name = bench.name("period")
    bench.pg.do(f"CREATE TABLE {name} (id int PRIMARY KEY, since timestamp, until timestamp, v text); "
                f"INSERT INTO {name} SELECT g, '2000-01-01', '2001-01-01', 'v' FROM generate_series(1, 20) g")
    for mode, workers, finalizer in (("append", 1, "direct"), ("append", 2, "insert_select"), ("truncate", 2, "insert_select"), ("replace", 2, "insert_select")):
        target = bench.name("period")
        bench.sandbox.do(f"create table dbo.{target} (id int primary key, since datetime2(3) generated always as row start not null, "
                         "until datetime2(3) generated always as row end not null, v nvarchar(5), period for system_time (since, until))")
        artifact = bench.work.load(spec(f"public.{name}", f"dbo.{target}", mode, workers={"export": workers, "load": workers}))
        equal(artifact["finalizer"], finalizer, f"finalizer, {mode}")
        equal({w["column"] for w in artifact["warnings"] if w["code"] == "not_insertable"}, {"since", "until"}, "left out")
        equal(bench.sandbox.rows(["count(*)", "min(year(until))"], f"from dbo.{target} where since > '2002-01-01' and v = N'v'"), [("20", "9999")], f"rows, {mode}")
        bench.nothing_left(target)
    error = bench.work.refused(spec(f"public.{name}", f"dbo.{target}", columns=["id", "until"]), "column_not_writable", 2)
    check("period" in error["detail"], "the reason is told", error)


def test_check_constraints_hold_and_can_be_left_to_the_server(bench):
    name = source(bench)
    existing(bench, name, "id int check (id < 40), v nvarchar(20)", old="(1, N'old')")
    for mode in ("append", "truncate"):
        done = bench.work.transfer(spec(f"public.{name}", f"dbo.{name}", mode))
        equal((done.code, done.error().get("server", {}).get("number")), (1, "547"), f"exit code and number, {mode} {done.said}")
        equal(content(bench, name), [1], f"rows afterwards, {mode}")
        bench.nothing_left(name)
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", "truncate", source_where="id < 40"))
    equal(bench.sandbox.count(f"dbo.{name}"), 39, "rows")


def test_unique_index_and_old_rows(bench):
    name = source(bench)
    existing(bench, name, "id int primary key, v nvarchar(20)", old="(50, N'old')")
    done = bench.work.transfer(spec(f"public.{name}", f"dbo.{name}"))
    equal((done.code, done.error()["code"]), (1, "duplicate_key"), f"exit code and code {done.said}")
    equal(content(bench, name), [50], "rows afterwards")
    bench.nothing_left(name)
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", "truncate"))
    equal(content(bench, name), list(range(1, 51)), "after truncate")


def test_rows_that_the_server_drops_in_silence_are_missed(bench):
    """An index with IGNORE_DUP_KEY takes a load of duplicates without an error: only the server's count tells."""
    name = bench.name("dropped")
    bench.pg.do(f"CREATE TABLE {name} AS SELECT g % 90 AS id, 'v' || g AS v FROM generate_series(1, 100) g")
    for workers, finalizer, mode in ((1, "direct", "append"), (2, "insert_select", "append"), (2, "insert_select", "truncate")):
        target = bench.name("dropped")
        bench.sandbox.do(f"create table dbo.{target} (id int, v nvarchar(20)); create unique index u on dbo.{target} (id) with (ignore_dup_key = on)")
        done = bench.work.transfer(spec(f"public.{name}", f"dbo.{target}", mode, workers={"export": workers, "load": workers}))
        equal((done.code, done.artifact["finalizer"]), (1, finalizer), f"{mode} {done.said}")
        code, detail = ("rows_not_taken", "of 100 rows sent the server took 90") if finalizer == "direct" else ("finalize_count", "100 rows were loaded, 90 arrived")
        equal(done.error()["code"], code, "code")
        check(detail in done.error()["detail"] and "IGNORE_DUP_KEY" in done.error()["hint"], "both counts and the cause", done.error())
        check("ignore_dup_key" in [w["code"] for w in done.artifact["warnings"]], "the plan warned", done.artifact["warnings"])
        equal(bench.sandbox.count(f"dbo.{target}"), 0, f"rows afterwards, {mode}")
        bench.nothing_left(target)


def test_truncate_with_foreign_keys_to_the_target(bench):
    name = source(bench)
    existing(bench, name, "id int primary key, v nvarchar(20)", old="(60, N'old')")
    child = bench.name("child")
    bench.sandbox.do(f"create table dbo.{child} (id int references dbo.{name} (id))")
    artifact = bench.work.load(spec(f"public.{name}", f"dbo.{name}", "truncate"))
    check("delete_instead_of_truncate" in [w["code"] for w in artifact["warnings"]], "warning", artifact["warnings"])
    equal(content(bench, name), list(range(1, 51)), "rows")
    bench.sandbox.do(f"insert into dbo.{child} values (7)")
    done = bench.work.transfer(spec(f"public.{name}", f"dbo.{name}", "truncate"))
    equal((done.code, done.error()["server"]["number"]), (1, "547"), f"a row that is referred to {done.said}")
    equal(content(bench, name), list(range(1, 51)), "rows afterwards")


def test_replace_refuses_dependants_and_names_them(bench):
    name = source(bench)
    existing(bench, name, "id bigint primary key, v nvarchar(20) default N'x'", old="(60, N'old')")
    child = bench.name("child")
    bench.sandbox.do(f"create table dbo.{child} (id bigint constraint fk_{child} references dbo.{name} (id))")
    rebuilt = [{"source": "id", "type": "int"}, "v"]
    error = bench.work.refused(spec(f"public.{name}", f"dbo.{name}", "replace", columns=rebuilt), "dependants", 2)
    check(f"fk_{child}" in error["detail"] and child in error["detail"], "the dependant is named", error)
    equal(content(bench, name), [60], "rows afterwards")
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", "replace", columns=rebuilt, target_replace_dependants="drop"))
    equal(content(bench, name), list(range(1, 51)), "rows")
    equal(bench.sandbox.value("count(*)", f"from sys.foreign_keys where name = N'fk_{child}'"), "0", "the foreign key is gone")


def test_replace_refuses_to_drop_indexes_and_checks_unasked(bench):
    name = source(bench)
    existing(bench, name, "id bigint, v nvarchar(20)")
    bench.sandbox.do(f"create index ix_{name} on dbo.{name} (v); alter table dbo.{name} add constraint ck_{name} check (id > 0)")
    rebuilt = [{"source": "id", "type": "int"}, "v"]
    error = bench.work.refused(spec(f"public.{name}", f"dbo.{name}", "replace", columns=rebuilt), "dependants", 2)
    check(f"ix_{name}" in error["detail"] and f"ck_{name}" in error["detail"], "index and check are named", error)
    equal(content(bench, name), [1001, 1002], "rows afterwards")
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", "replace"))  # the definition need not change: nothing is dropped
    equal(bench.sandbox.value("count(*)", f"from sys.indexes where name = N'ix_{name}'"), "1", "the index is still there")
    equal(content(bench, name), list(range(1, 51)), "rows")


def test_table_lock_settings(bench):
    for lock in ("auto", True, False):
        name = source(bench)
        existing(bench, name)
        bench.work.load(spec(f"public.{name}", f"dbo.{name}", load={"table_lock": lock}))
        equal(bench.sandbox.count(f"dbo.{name}"), 52, f"rows, table_lock {lock}")


# --- verification


def test_verification_levels(bench):
    name = source(bench, rows=3000)
    names = {"count": [], "source_count": ["source_count"], "content": ["source_count", "content"]}
    seen = {}
    for level in names:
        artifact = bench.work.load(spec(f"public.{name}", f"dbo.{bench.name('verified')}", verify=level))
        seen[level] = [one["name"] for one in artifact["checks"] if one["result"] == "passed"]
        equal(artifact["spec"]["verify"], level, "verify in the artifact")
    check(any("source" in one for one in seen["source_count"]), "a COUNT at the source", seen)
    check(any("content" in one for one in seen["content"]), "a hash over the content", seen)
    check(not any("content" in one for one in seen["count"]), "only what was asked for", seen)


def test_content_check_sees_a_changed_value(bench):
    """The sandbox answers the read back of staging only after somebody has changed a row in it."""
    name = source(bench, rows=500)
    faults = [{"kind": "delay", "match": "AS staged", "wait_ms": 4000}]
    with Sandbox(bench, faults=faults) as sandbox:
        work = Workspace(bench, sandbox)
        background = work.start_transfer(spec(f"public.{name}", f"dbo.{name}", verify="content"))
        background.wait_for("verifying")
        staging = sandbox.left_overs()
        equal(len(staging), 1, f"staging tables {staging}")
        sandbox.do(f"update dbo.[{staging[0]}] set v = N'spoilt' where id = 77")
        done = background.wait()
        equal(done.code, 1, f"exit code {done.said}")
        check(any("content" in one["name"] and one["result"] == "failed" for one in done.artifact["checks"]), "checks", done.artifact["checks"])
        check(not sandbox.exists(f"dbo.{name}"), "the target is untouched")
        bench.nothing_left(name, sandbox)


def test_count_check_sees_a_lost_row(bench):
    name = source(bench, rows=500)
    with Sandbox(bench, faults=[{"kind": "delay", "match": "AS staged", "wait_ms": 4000}]) as sandbox:
        work = Workspace(bench, sandbox)
        background = work.start_transfer(spec(f"public.{name}", f"dbo.{name}"))
        background.wait_for("verifying")
        sandbox.do(f"delete from dbo.[{sandbox.left_overs()[0]}] where id = 77")
        done = background.wait()
        equal(done.code, 1, f"exit code {done.said}")
        check(any(one["result"] == "failed" for one in done.artifact["checks"]), "checks", done.artifact["checks"])
        check(not sandbox.exists(f"dbo.{name}"), "the target is untouched")


def test_discarding_sandbox_counts_and_does_not_pretend(bench):
    name = source(bench, rows=2000)
    with Sandbox(bench, "--discard") as sandbox:
        artifact = Workspace(bench, sandbox).transfer(spec(f"public.{name}", f"dbo.{name}", verify="content"))
        equal(artifact.code, 0, f"exit code {artifact.said}")
        content_checks = [one for one in artifact.artifact["checks"] if "content" in one["name"]]
        equal([(one["result"], one["reason"]) for one in content_checks], [("not_run", "discard")], "content check")
        equal(sandbox.count(f"dbo.{name}"), 2000, "COUNT answers")


# --- profiles, rows, columns


def test_profiles_fill_the_spec(bench):
    name = source(bench, rows=2000)
    for profile in ("high_throughput_safe", "gentle_source", "disposable_copy", "low_memory"):
        target = bench.name("profile")
        artifact = bench.work.load(spec(f"public.{name}", f"dbo.{target}", profile=profile))
        equal(artifact["spec"]["profile"], profile, "profile in the artifact")
        equal(bench.sandbox.count(f"dbo.{target}"), 2000, f"rows, {profile}")
    for field in ("workers", "verify", "load", "slices"):
        check(field in artifact["spec"], f"the filled spec has {field}", artifact["spec"])


def test_drained_slices_are_the_same_rows(bench):
    name = source(bench, rows=20000)
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", verify="content", read={"drain": True, "memory_budget": "16 MiB"}, slices={"by": "ctid", "count": 8}))
    equal(content(bench, name), list(range(1, 20001)), "rows")


def test_where_and_query(bench):
    name = source(bench)
    target = bench.name("where")
    bench.work.load(spec(f"public.{name}", f"dbo.{target}", source_where="id % 10 = 0 -- a comment", verify="content"))
    equal(content(bench, target), [10, 20, 30, 40, 50], "rows of `where`")
    target = bench.name("query")
    artifact = bench.work.load(spec(None, f"dbo.{target}", source_query=f"SELECT a.id, a.v || '!' AS v, count(*) AS n FROM public.{name} a, public.{name} b "
                                    "WHERE a.id <= 3 GROUP BY 1, 2 ORDER BY 1", verify="content"))
    equal(bench.sandbox.rows(["id", "v", "n"], f"from dbo.{target} order by id"), [("1", "v1!", "50"), ("2", "v2!", "50"), ("3", "v3!", "50")], "rows")
    equal(artifact["consistency"], "one_snapshot", "consistency")
    view = bench.name("view")
    bench.pg.do(f"CREATE VIEW {view} AS SELECT id, v FROM {name} WHERE id > 45")
    bench.work.load(spec(f"public.{view}", f"dbo.{view}", verify="content"))
    equal(content(bench, view), [46, 47, 48, 49, 50], "rows of a view")


def test_column_lists_renames_and_order(bench):
    name = bench.name("cols")
    bench.pg.do(f"CREATE TABLE {name} (a int, b int, c int, \"D\" int); INSERT INTO {name} VALUES (1, 2, 3, 4)")
    target = bench.name("cols")
    bench.work.load(spec(f"public.{name}", f"dbo.{target}", columns=["c", {"source": "a", "target": "renamed"}, "D"]))
    equal(list(native_of(bench.sandbox, f"dbo.{target}")), ["c", "renamed", "D"], "columns in the spec's order")
    equal(bench.sandbox.rows(["c", "renamed", "[D]"], f"from dbo.{target}"), [("3", "1", "4")], "values")
    target = bench.name("cols")
    bench.sandbox.do(f"create table dbo.{target} (d int, [C] int, extra int null, b int, a int)")
    artifact = bench.work.load(spec(f"public.{name}", f"dbo.{target}", verify="content"))
    equal(bench.sandbox.rows(["d", "[C]", "extra", "b", "a"], f"from dbo.{target}"), [("4", "3", None, "2", "1")], "matched by name, never by position")
    equal({c["source"]: c["target"] for c in artifact["columns"]}, {"a": "a", "b": "b", "c": "C", "D": "d"}, "pairs")


def test_case_that_is_not_unique_matches_only_exactly(bench):
    name = bench.name("case")
    bench.pg.do(f'CREATE TABLE {name} (id int, "Val" int, "val" int); INSERT INTO {name} VALUES (1, 2, 3)')
    bench.sandbox.do(f"create table dbo.{name} (id int, [VAL] int null)")
    artifact = bench.work.load(spec(f"public.{name}", f"dbo.{name}"))
    equal(bench.sandbox.rows(["id", "[VAL]"], f"from dbo.{name}"), [("1", None)], "an ambiguous column is not carried")
    equal({w["column"] for w in artifact["warnings"] if w["code"] == "unmatched_source"}, {"Val", "val"}, "warnings")


def test_wider_and_narrower_existing_types(bench):
    name = bench.name("fit")
    bench.pg.do(f"CREATE TABLE {name} (a int, b int, c int, d text, e varchar(5), f numeric(6,2), g timestamp, h smallint); "
                f"INSERT INTO {name} VALUES (1, 2, 3, '4', 'e', 5.50, '2024-01-02 03:04:05', 7)")
    bench.sandbox.do(f"create table dbo.{name} (a bigint, b decimal(12,2), c float, d nvarchar(10), e nchar(5), f decimal(38,10), g datetime2(7), h tinyint)")
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", verify="content"))
    row = bench.sandbox.rows(["a", "b", "cast(c as int)", "d", "rtrim(e)", "f", "h"], f"from dbo.{name}")[0]
    equal(row, ("1", "2.00", "3", "4", "e", "5.5000000000", "7"), "values")
    bench.pg.do(f"UPDATE {name} SET h = 256")
    error = bench.work.refused(spec(f"public.{name}", f"dbo.{name}"), "value_does_not_fit", 1)
    equal((error["column"], error["value"]), ("h", "256"), "column and value")


def test_existing_columns_of_the_older_and_rarer_types(bench):
    """Each has a form of its own in a bulk load: text pointers, halves of money, minutes, UTF-8 under a collation."""
    name = bench.name("rare")
    columns = [("a", "text", "'naïve'", "text", "cast(a as nvarchar(20))", "naïve"), ("b", "text", "'☃😀'", "ntext", "cast(b as nvarchar(20))", "☃😀"),
               ("c", "bytea", "'\\x00ff'", "image", "convert(varchar(20), cast(c as varbinary(9)), 1)", "0x00FF"),
               ("d", "xml", "'<a>ü</a>'", "xml", "cast(d as nvarchar(40))", "<a>ü</a>"),
               ("e", "numeric(19,4)", "-922337203685477.5808", "money", "cast(e as decimal(19,4))", "-922337203685477.5808"),
               ("f", "numeric(10,4)", "214748.3647", "smallmoney", "cast(f as decimal(10,4))", "214748.3647"),
               ("g", "timestamp(0)", "'2079-06-06 23:59:00'", "smalldatetime", "convert(varchar(40), g, 121)", "2079-06-06 23:59:00.000"),
               ("h", "bytea", "'\\x01020304'", "binary(4)", "convert(varchar(20), h, 1)", "0x01020304"),
               ("i", "text", "'é😀'", "varchar(6) collate Latin1_General_100_CI_AS_SC_UTF8", "i", "é😀"),
               ("j", "text", "'€'", "char(3) collate Latin1_General_BIN2", "j", "€  "), ("k", "text", "'Ω'", "varchar(1) collate Greek_CI_AS", "k", "Ω")]
    bench.pg.do(f"CREATE TABLE {name} (id int, {', '.join(f'{c[0]} {c[1]}' for c in columns)}); "
                f"INSERT INTO {name} VALUES (1, {', '.join(c[2] for c in columns)}), (2, {', '.join('NULL' for _ in columns)})")
    bench.sandbox.do(f"create table dbo.{name} (id int not null, {', '.join(f'{c[0]} {c[3]} null' for c in columns)})")
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", verify="content"))
    equal(bench.sandbox.rows([c[4] for c in columns], f"from dbo.{name} order by id"), [tuple(c[5] for c in columns), (None,) * len(columns)], "rows")
    bench.pg.do(f"UPDATE {name} SET i = 'éééé' WHERE id = 1")
    error = bench.work.refused(spec(f"public.{name}", f"dbo.{name}"), "value_does_not_fit", 1)
    equal(error["column"], "i", "column")
    check("8 bytes" in error["detail"], "UTF-8 columns count bytes", error)


def test_several_hundred_columns(bench):
    name = bench.name("wide")
    columns = [f"c{i} int" for i in range(600)]
    bench.pg.do(f"CREATE TABLE {name} ({', '.join(columns)}); INSERT INTO {name} (c0, c299, c599) VALUES (1, 2, 3), (4, NULL, 6)")
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", verify="content"))
    equal(bench.sandbox.rows(["c0", "c1", "c299", "c599"], f"from dbo.{name} order by c0"), [("1", None, "2", "3"), ("4", None, None, "6")], "values")


def test_large_values_cross_packets(bench):
    name = bench.name("large")
    bench.pg.do(f"CREATE TABLE {name} (id int, t text, b bytea); INSERT INTO {name} VALUES (1, repeat('☃😀x', 1000000), decode(repeat('00ff7f', 1000000), 'hex')), "
                "(2, NULL, NULL), (3, '', '')")
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", verify="content"))
    equal(bench.sandbox.rows(["len(t)", "datalength(b)", "right(t, 4)"], f"from dbo.{name} where id = 1"), [("4000000", "3000000", "☃😀x")], "lengths")
