"""SQL Server -> PostgreSQL: what cannot be, and how it is told: values, names, rights, another transfer, a budget that is too small."""

from back import Back, back, codes, exists, grow, ids, locks, nothing_left, numbers, spec
from harness import NULL, Proxy, Sandbox, check, equal, eventually

PLAIN = "id int not null primary key, v nvarchar(20)"


def lost(bench, name, column, key, *parts, **more):
    """The transfer fails for this value: column, key of the row and place are told, and nothing is created."""
    error = back(bench).refused(spec(f"dbo.{name}", f"public.{name}", slices={"by": "none"}, **more), "value_does_not_fit", 1)
    equal(error["column"], column, "column")
    check(key in error["hint"] and error["row"] and error["table"], "key, row and table", error)
    for part in parts:
        check(part in error["detail"], repr(part), "in", error["detail"])
    check(not exists(bench.pg, name), "nothing is created")
    return error


def kept(bench, name, column, policy, rows, changed, **how):
    target = bench.name("bkept")
    artifact = back(bench).load(spec(f"dbo.{name}", f"public.{target}", columns=["id", {"source": column, "on_loss": policy, **how}], verify="content"))
    equal(bench.pg.rows(f"SELECT {column} FROM {target} ORDER BY id"), rows, f"values, {policy} {how}")
    equal(artifact["columns"][1]["changed"], changed, f"counted, {policy}")


def test_unpaired_surrogates_are_losses(bench):
    name = bench.name("bsur")
    bench.sandbox.do(f"create table dbo.{name} (id int not null primary key, v nvarchar(20), m nvarchar(max)); insert into dbo.{name} values (1, N'ok', N'ok'), "
                     f"(7, N'ab' + nchar(0xD83D) + N'c', N'ok'), (8, N'😀', N'x' + nchar(0xDE00))")
    lost(bench, name, "v", "id = 7", "unpaired surrogate", "unit 2")
    lost(bench, name, "m", "id = 8", "unpaired surrogate", "unit 1", columns=["id", "m"])
    kept(bench, name, "v", "strip", [("ok",), ("abc",), ("😀",)], 1)
    kept(bench, name, "v", "replace", [("ok",), ("ab\ufffdc",), ("😀",)], 1)
    kept(bench, name, "v", "replace", [("ok",), ("ab?c",), ("😀",)], 1, replacement="?")
    kept(bench, name, "m", "null", [("ok",), ("ok",), (None,)], 1)
    nothing_left(bench)


def test_zero_characters_in_every_kind_of_text(bench):
    name = bench.name("bnul")
    bench.sandbox.do(f"create table dbo.{name} (id int not null primary key, a varchar(10), b nvarchar(max), c char(4), d sql_variant, e ntext); insert into dbo.{name} values "
                     f"(7, 'x' + char(0), N'y' + nchar(0) + N'z', char(0), cast(N'w' + nchar(0) as nvarchar(5)), N'v' + nchar(0))")
    for column, offset in (("a", 1), ("b", 1), ("c", 0), ("d", 1), ("e", 1)):
        lost(bench, name, column, "id = 7", f"U+0000 at byte {offset}", columns=["id", column])
    for column, text in (("a", "x"), ("b", "yz"), ("c", "    "), ("d", "w"), ("e", "v")):
        kept(bench, name, column, "strip", [(text,)], 1)


def test_values_too_long_or_too_large_for_the_target(bench):
    name = bench.name("bfit")
    bench.sandbox.do(f"create table dbo.{name} (id int not null primary key, v nvarchar(20), n decimal(10,4), d datetime2(7)); "
                     f"insert into dbo.{name} values (1, N'abcd', 1.5, '2024-01-01'), (7, N'abcdef', 12345.6789, '2024-01-01T00:00:00.1234567')")
    target = bench.name("bfit")
    bench.pg.do(f"CREATE TABLE {target} (id int, v varchar(5), n numeric(6,2), d timestamp(3))")
    for column, part in (("v", "varchar(5)"), ("n", "12345.6789")):
        error = back(bench).refused(spec(f"dbo.{name}", f"public.{target}", columns=["id", column]), "value_does_not_fit", 1)
        check(error["column"] == column and "id = 7" in error["hint"] and part in error["detail"], "column, key and limit", error)
    artifact = back(bench).load(spec(f"dbo.{name}", f"public.{target}", source_where="id = 7", columns=["id", {"source": "v", "on_loss": "truncate"}, "d"], verify="content"))
    equal(bench.pg.rows(f"SELECT id, v, d FROM {target}"), [("7", "abcde", "2024-01-01 00:00:00.123")], "cut values")
    equal([one["changed"] for one in artifact["columns"]], [0, 1, 1], "counted")
    bench.pg.do(f"CREATE TABLE {target}_n (id int, v text NOT NULL)")
    bench.sandbox.do(f"insert into dbo.{name} values (9, NULL, NULL, NULL)")
    error = back(bench).refused(spec(f"dbo.{name}", f"public.{target}_n"), "null_in_not_null", 1)
    check(error["column"] == "v" and "id = 9" in error["hint"], "column and key", error)
    equal(ids(bench, f"{target}_n"), [], "rows")


def test_text_that_is_no_json_or_xml_is_told_by_the_server(bench):
    name = bench.name("bjson")
    bench.sandbox.do(f"create table dbo.{name} ({PLAIN}); insert into dbo.{name} values (1, N'[1]'), (2, N'[1')")
    bench.pg.do(f"CREATE TABLE {name} (id int, v jsonb)")
    done = back(bench).transfer(spec(f"dbo.{name}", f"public.{name}"))
    equal((done.code, done.error()["server"]["number"]), (1, "22P02"), f"exit code and SQLSTATE {done.said}")
    equal(ids(bench, name), [], "rows")
    nothing_left(bench)


def test_names_that_fold_or_cut_to_the_same(bench):
    name = bench.name("bname")
    bench.sandbox.do(f"create table dbo.{name} ({PLAIN})")
    long = "ü" * 31
    for pair, code in ((("Name", "name"), "names_collide"), ((long + "a1", long + "a2"), "names_collide"), (("x" * 64, "y"), "name_too_long"), (("ctid", "y"), "name_reserved"), (("y", "y"), None)):
        columns = [{"source": "id", "target": pair[0]}, {"source": "v", "target": pair[1]}]
        done = back(bench).transfer(spec(f"dbo.{name}", f"public.{name}", columns=columns))
        equal(done.code, 2, f"exit code for {pair} {done.said}")
        if code:
            equal(done.error()["code"], code, f"code for {pair} {done.said}")
            check(pair[1] in str(done.error()) or pair[0] in str(done.error()), "the name is told", done.error())
    error = back(bench).refused(spec(f"dbo.{name}", ["public", "t" * 64]), "name_too_long", 2)
    equal(error["field"], "target.table", "field")
    check(not exists(bench.pg, name), "nothing is created")


def test_things_that_are_not_there_or_no_tables(bench):
    name = bench.name("bgone")
    bench.sandbox.do(f"create table dbo.{name} ({PLAIN}); insert into dbo.{name} values (1, N'a')")
    work = back(bench)
    work.refused(spec("dbo.nope", "public.nope"), "table_missing", 2)
    equal(work.refused(spec(f"dbo.{name}", f"public.{name}", columns=["id", "vv"]), "column_missing", 2)["field"], "columns[1].source", "field")
    work.refused(spec(None, f"public.{name}", source_query="select nope from dbo.nowhere"), "table_missing", 2)
    work.refused(spec(None, f"public.{name}", source_query="selekt 1"), "syntax_error", 2)
    work.refused(spec(f"dbo.{name}", f"public.{name}", source_where="id >"), "syntax_error", 2)
    work.refused(spec(f"dbo.{name}", f"public.{name}", source_where="nope = 1"), "column_missing", 2)
    bench.pg.do(f"CREATE VIEW {name}_v AS SELECT 1 AS id; CREATE MATERIALIZED VIEW {name}_m AS SELECT 1 AS id; CREATE SEQUENCE {name}_s; CREATE TABLE {name}_x (x int)")
    for suffix, code in (("v", "not_a_table"), ("m", "not_a_table"), ("s", "not_a_table"), ("x", "no_columns_match")):
        work.refused(spec(f"dbo.{name}", f"public.{name}_{suffix}"), code, 2)
    work.refused(spec(f"dbo.{name}", ["no_such_schema", name]), "schema_missing", 2)
    done = work.transfer({**spec(f"dbo.{name}", f"public.{name}"), "target": {"connection": "shop", "table": f"public.{name}", "mode": "append", "create": True}})
    check(done.code == 2 and "not writable" in " ".join(done.said) and "shop" in " ".join(done.said), "a connection that is not writable", done.code, done.said)
    for wanted in ("varchar(0)", "no_such_type", "numeric(1001,1)", "int); drop table x --", "integer[]"):
        done = work.transfer(spec(f"dbo.{name}", f"public.{name}", columns=[{"source": "v", "type": wanted}]))
        equal(done.code, 2, f"exit code for the type {wanted} {done.said}")
    done = work.transfer(spec(f"dbo.{name}", f"public.{name}", "merge", target_key=["id"]))
    equal(done.code, 2, f"merge is not there yet {done.said}")
    check(not exists(bench.pg, name), "nothing is created")
    nothing_left(bench)


def guarded(bench, role):
    dsn = bench.pg.dsn.replace("user=postgres", f"user={role}")
    return Back(bench, bench.sandbox, house=dsn)


def test_missing_rights_of_the_target(bench):
    name, role = bench.name("bright"), bench.name("brole")
    bench.sandbox.do(f"create table dbo.{name} ({PLAIN}); insert into dbo.{name} values (1, N'a'), (2, N'b')")
    bench.pg.do(f"CREATE ROLE {role} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE TABLE {name} (id int, v text); INSERT INTO {name} VALUES (9)")
    work = guarded(bench, role)
    try:
        for grant, mode in (("SELECT 1", "append"), (f"GRANT SELECT ON {name} TO {role}", "append"), (f"GRANT INSERT ON {name} TO {role}", "append")):
            bench.pg.do(grant)
            done = work.transfer(spec(f"dbo.{name}", f"public.{name}", mode, create=False))
            check(done.code == 2 and done.error()["code"] in ("right_missing", "no_permission", "ledger_forbidden"), f"after {grant}", done.code, done.said)
            check(role in str(done.error()) or "permission denied" in str(done.error()), "the role or the server's words", done.error())
            equal(ids(bench, name), [9], "rows")
        bench.pg.do(f"GRANT CREATE ON SCHEMA public TO {role}")
        ledger = exists(bench.pg, "rowferry_ledger")
        if ledger:
            bench.pg.do(f"GRANT SELECT, INSERT, UPDATE, DELETE ON rowferry_ledger TO {role}")
        work.load(spec(f"dbo.{name}", f"public.{name}", "append", create=False, verify="content"))
        equal(ids(bench, name), [1, 2, 9], "rows of append")
        done = work.transfer(spec(f"dbo.{name}", f"public.{name}", "truncate", create=False))
        check(done.code == 2 and done.error()["code"] == "right_missing" and "DELETE" in str(done.error()), "neither TRUNCATE nor DELETE", done.said)
        bench.pg.do(f"GRANT DELETE ON {name} TO {role}")
        artifact = work.load(spec(f"dbo.{name}", f"public.{name}", "truncate", create=False, verify="content"))
        check("delete_instead_of_truncate" in codes(artifact), "a notice", artifact["warnings"])
        equal(ids(bench, name), [1, 2], "rows")
        bench.pg.do(f"GRANT TRUNCATE ON {name} TO {role}")
        artifact = work.load(spec(f"dbo.{name}", f"public.{name}", "truncate", create=False, load={"analyze": True}))
        check("delete_instead_of_truncate" not in codes(artifact), "no notice", artifact["warnings"])
        bench.pg.do(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        work.refused(spec(f"dbo.{name}", f"public.{name}", "append"), "row_security", 2)
    finally:
        bench.pg.do(f"REVOKE ALL ON SCHEMA public FROM {role}; DROP OWNED BY {role}; DROP ROLE {role}; GRANT CREATE ON SCHEMA public TO PUBLIC")
    nothing_left(bench)


def test_missing_rights_of_the_source(bench):
    with Sandbox(bench, faults=[{"kind": "error", "match": "FROM [dbo].[secret]", "times": 0, "number": 229, "severity": 14, "text": "The SELECT permission was denied on the object 'secret'."}]) as sandbox:
        sandbox.do(f"create table dbo.secret ({PLAIN})")
        done = Back(bench, sandbox).transfer(spec("dbo.secret", f"public.{bench.name('never')}"))
        equal((done.code, done.error()["server"]["number"]), (2, "229"), f"exit code and number {done.said}")
        nothing_left(bench, sandbox)


def test_another_transfer_into_the_same_target(bench):
    name = bench.name("bbusy")
    with Sandbox(bench) as sandbox, Proxy(sandbox.port) as proxy:
        numbers(sandbox, name, 500, "id int not null primary key, v nvarchar(200)", lambda n: f"{n}, replicate(N'x', 200)")
        grow(sandbox, name, "v", 3)
        proxy.down_rate = 800_000
        work = Back(bench, proxy.port, secret=sandbox.secret)
        first = work.start_transfer(spec(f"dbo.{name}", f"public.{name}", verify="content"))
        eventually(lambda: locks(bench.pg) > 0 or first.process.poll() is not None, "the first has the lock")
        done = Back(bench, sandbox).transfer(spec(f"dbo.{name}", f"public.{name}", "truncate"))
        equal((done.code, done.error().get("code")), (2, "target_busy"), f"the second {done.said}")
        proxy.down_rate = None
        equal(first.wait().code, 0, "the first goes on")
        equal(len(ids(bench, name)), 4000, "rows")
        nothing_left(bench, sandbox)


def test_a_drained_slice_that_is_larger_than_the_budget(bench):
    name = bench.name("bdrain")
    numbers(bench.sandbox, name, 250, "id int not null primary key, v nvarchar(400), store int", lambda n: f"{n}, replicate(N'x', 400), {n % 4}")
    grow(bench.sandbox, name, "v, store", 5)  # 8000 rows of about 400 bytes
    tight = {"drain": True, "memory_budget": "1 MiB"}
    error = back(bench).refused(spec(f"dbo.{name}", f"public.{name}", read=tight, slices={"by": "none"}), "drain_budget", 1)
    check(error["field"] == "read.memory_budget" and error["slice"], "field and slice", error)
    check("slices" in error["hint"] and any(c.isdigit() for c in error["hint"]), "sizes that would fit", error)
    check(not exists(bench.pg, name), "nothing is created")
    artifact = back(bench).load(spec(f"dbo.{name}", f"public.{name}", read=tight, slices={"by": "range", "count": 8}, verify="content"))
    equal(bench.pg.rows(f"SELECT count(*), count(DISTINCT id) FROM {name}"), [("8000", "8000")], "rows")
    check(all(s["read_seconds"] is not None and s["write_seconds"] is not None for s in artifact["slices"]), "seconds of each slice", artifact["slices"][:2])
    plan = back(bench).run("plan", "-", "--format", "json", text=__import__("json").dumps(spec(f"dbo.{name}", "public.never", read=tight, slices={"by": "none"})))
    check("drain_budget" in plan.out, "the plan warns", plan.out[-1500:])
    check(NULL not in plan.out, "no marker of ours")
    nothing_left(bench)
