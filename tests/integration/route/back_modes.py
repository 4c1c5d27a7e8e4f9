"""SQL Server -> PostgreSQL: modes and finalizers, and what they leave of the target's own: grants, views, triggers, sequences."""

from back import back, codes, columns_of, exists, ids, left_overs, nothing_left, numbers, passed, spec
from harness import check, equal


def source(bench, rows=50, name=None):
    name = name or bench.name("bsrc")
    numbers(bench.sandbox, name, rows, "id int not null primary key, v nvarchar(20) null, store int null",
            lambda n: f"{n}, {'NULL' if n % 10 == 0 else repr(f'v{n}')}, {n % 4}")
    return name


def test_straight_transfer_creates_the_table(bench):
    name = source(bench, 1000)
    artifact = back(bench).load(spec(f"dbo.{name}", f"public.{name}", verify="content"))
    equal(columns_of(bench.pg, name), {"id": ("integer", False), "v": ("character varying(20)", True), "store": ("integer", True)}, "columns")
    equal(bench.pg.rows(f"SELECT count(*), sum(id), count(v), sum(store) FROM {name}"), [("1000", "500500", "900", "1500")], "rows")
    equal((artifact["route"], artifact["finalizer"], artifact["rows"]["read"]), ("mssql_to_postgres", "rename", 1000), "route, finalizer, rows")
    passed(artifact, "content")
    equal(bench.pg.value(f"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{name}'::regclass AND contype = 'p'"), "PRIMARY KEY (id)", "key")
    nothing_left(bench)


def test_missing_target_per_mode(bench):
    name = source(bench)
    for mode in ("append", "truncate", "replace", "fail_if_exists"):
        target = bench.name("bmode")
        artifact = back(bench).load(spec(f"dbo.{name}", f"public.{target}", mode, verify="content"))
        equal(artifact["finalizer"], "rename", f"finalizer, {mode}")
        equal(ids(bench, target), list(range(1, 51)), f"rows, {mode}")
        equal(artifact["rows"], {"read": 50, "acknowledged": 50, "staged": 50, "target": 50, "target_total": None if mode == "append" else 50}, f"counts, {mode}")
        missing = bench.name("bmode")
        error = back(bench).refused(spec(f"dbo.{name}", f"public.{missing}", mode, create=False), "table_missing", 2)
        check("create" in error["hint"] and not exists(bench.pg, missing), f"the hint names `create`, {mode}", error)
    nothing_left(bench)


def existing(bench, ddl="id int, v text, store int", old="(1001, 'old', 1), (1002, NULL, 2)"):
    name = bench.name("bold")
    bench.pg.do(f"CREATE TABLE {name} ({ddl})" + (f"; INSERT INTO {name} (id, v, store) VALUES {old}" if old else ""))
    return name


def test_existing_target_per_mode(bench):
    name = source(bench)
    for mode, rows in {"append": list(range(1, 51)) + [1001, 1002], "truncate": list(range(1, 51)), "replace": list(range(1, 51))}.items():
        target = existing(bench, "id integer, v varchar(20), store integer")
        oid = bench.pg.value(f"SELECT '{target}'::regclass::oid")
        artifact = back(bench).load(spec(f"dbo.{name}", f"public.{target}", mode, create=False, verify="content"))
        equal(artifact["finalizer"], "insert_select", f"finalizer, {mode}")
        equal(ids(bench, target), rows, f"rows, {mode}")
        equal((artifact["rows"]["target"], artifact["rows"]["target_total"]), (50, None if mode == "append" else 50), f"counts, {mode}")
        equal(bench.pg.value(f"SELECT '{target}'::regclass::oid"), oid, f"the same table, {mode}")
    for old in ("", "(1, 'x', 1)"):
        target = existing(bench, old=old)
        back(bench).refused(spec(f"dbo.{name}", f"public.{target}", "fail_if_exists"), "target_exists", 2)
        equal(ids(bench, target), [1] if old else [], "rows of the refused target")
    nothing_left(bench)


def test_an_empty_source_makes_an_empty_target(bench):
    name = source(bench, 0)
    for mode, old in (("append", [1001, 1002]), ("truncate", []), ("replace", [])):
        target = existing(bench, "id integer, v varchar(20), store integer")
        back(bench).load(spec(f"dbo.{name}", f"public.{target}", mode, verify="content"))
        equal(ids(bench, target), old, f"rows, {mode}")
    back(bench).load(spec(f"dbo.{name}", f"public.{name}", verify="content"))
    equal(ids(bench, name), [], "rows of a created table")


def test_direct_loads_an_empty_table_in_one_transaction(bench):
    name = source(bench, 400)
    target = existing(bench, old="")
    one = {"export": 1, "load": 1}
    artifact = back(bench).load(spec(f"dbo.{name}", f"public.{target}", create=False, workers=one, slices={"by": "range", "count": 4}))
    equal((artifact["finalizer"], artifact["rows"]["read"], artifact["rows"]["staged"], artifact["rows"]["target"]), ("direct", 400, None, 400), "finalizer and counts")
    equal(ids(bench, target), list(range(1, 401)), "rows")
    narrow = existing(bench, "id int, v varchar(3), store int", old="")
    error = back(bench).refused(spec(f"dbo.{name}", f"public.{narrow}", workers=one, slices={"by": "range", "count": 4}), "value_does_not_fit", 1)
    check(error["column"] == "v" and ids(bench, narrow) == [], "all or nothing", error)
    nothing_left(bench)


def test_truncate_keeps_the_table_under_a_view_and_all_that_hangs_on_it(bench):
    name = source(bench)
    target = existing(bench, "id int PRIMARY KEY, v text, store int CHECK (store < 9)")
    bench.pg.do(f"CREATE VIEW {target}_v AS SELECT id, v FROM {target}; CREATE INDEX {target}_i ON {target} (v); CREATE TABLE {target}_log (n int); "
                f"CREATE FUNCTION {target}_f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO {target}_log VALUES (NEW.id); RETURN NEW; END $$; "
                f"CREATE TRIGGER t AFTER INSERT ON {target} FOR EACH ROW EXECUTE FUNCTION {target}_f(); "
                f"DROP ROLE IF EXISTS {target}_r; CREATE ROLE {target}_r; GRANT SELECT ON {target} TO {target}_r; COMMENT ON TABLE {target} IS 'mine'")
    look = (f"SELECT '{target}'::regclass::oid, relacl::text, obj_description('{target}'::regclass), (SELECT count(*) FROM pg_index WHERE indrelid = c.oid), "
            f"(SELECT string_agg(tgname || tgenabled::text, ',') FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal) FROM pg_class c WHERE oid = '{target}'::regclass")
    before = bench.pg.rows(look)
    for fire in (False, True):
        artifact = back(bench).load(spec(f"dbo.{name}", f"public.{target}", "truncate", verify="content", load={"fire_triggers": fire, "analyze": True}))
        equal(artifact["finalizer"], "insert_select", "finalizer")
        equal(bench.pg.rows(look), before, "table, grants, comment, indexes and triggers")
        equal(ids(bench, f"{target}_v"), list(range(1, 51)), "the view has the new rows")
        equal(len(ids(bench, f"{target}_log", "n")), 50 if fire else 0, f"rows that the trigger wrote, fire_triggers {fire}")
    equal(bench.pg.value(f"SELECT reltuples::int FROM pg_class WHERE oid = '{target}'::regclass"), "50", "analyzed")
    bench.pg.do(f"DROP OWNED BY {target}_r; DROP ROLE {target}_r")
    nothing_left(bench)


def test_replace_rebuilds_only_where_nothing_depends(bench):
    name = source(bench)
    target = existing(bench, "id bigint PRIMARY KEY, v text, store int")
    rebuilt = [{"source": "id", "type": "integer"}, {"source": "v", "type": "varchar(20)"}, "store"]
    artifact = back(bench).load(spec(f"dbo.{name}", f"public.{target}", "replace", columns=rebuilt, verify="content"))
    equal(artifact["finalizer"], "rename", "finalizer")
    equal([kind for kind, _ in columns_of(bench.pg, target).values()], ["integer", "character varying(20)", "integer"], "the new definition")
    equal(bench.pg.rows(f"SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{target}'::regclass AND contype = 'p'"),
          [(f"{target}_pkey", "PRIMARY KEY (id)")], "the key and its name")
    target = existing(bench, "id bigint, v text, store int")
    bench.pg.do(f"CREATE VIEW {target}_v AS SELECT id FROM {target}; CREATE INDEX {target}_i ON {target} (v)")
    error = back(bench).refused(spec(f"dbo.{name}", f"public.{target}", "replace", columns=rebuilt), "dependants", 2)
    check(f"{target}_v" in error["detail"], "the view is named", error)
    equal(ids(bench, target), [1001, 1002], "rows of the refused target")
    bench.pg.do(f"DROP VIEW {target}_v")
    error = back(bench).refused(spec(f"dbo.{name}", f"public.{target}", "replace", columns=rebuilt), "dependants", 2)
    check(f"{target}_i" in error["detail"], "the index is named", error)
    bench.pg.do(f"CREATE VIEW {target}_v AS SELECT id FROM {target}")
    artifact = back(bench).load(spec(f"dbo.{name}", f"public.{target}", "replace", columns=rebuilt, target_replace_dependants="drop", verify="content"))
    equal((ids(bench, target), exists(bench.pg, f"{target}_v")), (list(range(1, 51)), False), "rows, and the view is dropped as asked")
    nothing_left(bench)


def test_o20_sequences_and_generated_columns(bench):
    name = bench.name("o20")
    bench.sandbox.do(
        f"create table dbo.{name} (id int identity(1,1) primary key, a int); insert into dbo.{name} (a) values (10), (20), (30), (40), (50), (60), (70)")
    cases = {"by_default": "id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", "always": "id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "serial": "id serial PRIMARY KEY"}
    for case, key in cases.items():
        for mode, workers in (("append", {"export": 1, "load": 1}), ("append", {"export": 2, "load": 2}), ("truncate", {"export": 1, "load": 1}), ("replace", {"export": 2, "load": 2})):
            target = bench.name(f"o20_{case}")
            bench.pg.do(f"CREATE TABLE {target} ({key}, a int, b int GENERATED ALWAYS AS (a * 2) STORED)")
            back(bench).load(spec(f"dbo.{name}", f"public.{target}", mode, create=False, workers=workers))
            bench.pg.do(f"INSERT INTO {target} (a) VALUES (1)")
            equal(bench.pg.rows(f"SELECT id, a, b FROM {target} ORDER BY id"), [(str(i), str(i * 10), str(i * 20)) for i in range(1, 8)] + [("8", "1", "2")],
                  f"rows and the next number, {case}, {mode}, {workers}")
    rebuilt = bench.name("o20_rebuilt")
    bench.pg.do(f"CREATE TABLE {rebuilt} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a bigint)")
    back(bench).load(spec(f"dbo.{name}", f"public.{rebuilt}", "replace", columns=[{"source": "id", "type": "integer"}, {"source": "a", "type": "integer"}]))
    equal([kind for kind, _ in columns_of(bench.pg, rebuilt).values()], ["integer", "integer"], "the new definition")
    bench.pg.do(f"INSERT INTO {rebuilt} (a) VALUES (1)")
    equal(bench.pg.rows(f"SELECT max(id), max(a) FROM {rebuilt}"), [("8", "70")], "a rebuilt table goes on counting")
    nothing_left(bench)


def test_keys_not_null_and_what_is_not_carried(bench):
    name = bench.name("bkey")
    bench.sandbox.do(f"create table dbo.{name} (b int not null, a varchar(5) not null, c int not null default 7, d int null unique, primary key (a, b)); "
                     f"insert into dbo.{name} values (1, 'x', 2, 3)")
    back(bench).load(spec(f"dbo.{name}", f"public.{name}"))
    equal({c: n for c, (_, n) in columns_of(bench.pg, name).items()}, {"b": False, "a": False, "c": False, "d": True}, "nullable")
    equal(bench.pg.value(f"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{name}'::regclass AND contype = 'p'"), "PRIMARY KEY (a, b)", "key")
    plan = back(bench).run("plan", "-", "--format", "json", text=__import__("json").dumps(spec(f"dbo.{name}", f"public.{bench.name('bkey')}")))
    check("not_carried" in plan.out and "unique" in plan.out.lower() and "default" in plan.out.lower(), "the plan lists what is not carried", plan.out[:1500])
    keyed = bench.name("bkey")
    back(bench).load(spec(f"dbo.{name}", f"public.{keyed}", target_key=["c"]))
    equal(bench.pg.value(f"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{keyed}'::regclass AND contype = 'p'"), "PRIMARY KEY (c)", "the key of the spec")


def test_where_query_columns_and_names(bench):
    name = source(bench)
    target = bench.name("bwhere")
    back(bench).load(spec(f"dbo.{name}", f"public.{target}", source_where="id % 10 = 0 -- a comment", verify="content"))
    equal(ids(bench, target), [10, 20, 30, 40, 50], "rows of `where`")
    target = bench.name("bquery")
    artifact = back(bench).load(spec(None, f"public.{target}", source_query=f"select id, v + N'!' as w from dbo.{name} where id < 4", verify="content"))
    equal(bench.pg.rows(f"SELECT id, w FROM {target} ORDER BY 1"), [("1", "v1!"), ("2", "v2!"), ("3", "v3!")], "rows of a query")
    view = bench.name("bview")
    bench.sandbox.do(f"create view dbo.{view} as select id, v from dbo.{name} where id > 47")
    back(bench).load(spec(f"dbo.{view}", f"public.{view}", columns=[{"source": "v", "target": "Straße \"x\""}, {"source": "id", "type": "bigint"}], verify="content"))
    equal(columns_of(bench.pg, view), {'Straße "x"': ("character varying(20)", True), "id": ("bigint", False)}, "columns in the spec's order")
    equal(ids(bench, view), [48, 49, 50], "rows of a view")
    odd = ["public", "odd]name 'x' \"y\""]
    back(bench).load(spec(f"dbo.{name}", odd, verify="content"))
    equal(ids(bench, '"odd]name \'x\' ""y"""'), list(range(1, 51)), "rows of a table with an odd name")
    bench.sandbox.do("create table dbo.[sel ect]]] ([order] int, [a]]b] int, [naïve ☃] int, [1st] int); insert into dbo.[sel ect]]] values (1, 2, 3, 4)")
    back(bench).load(spec(["dbo", "sel ect]"], "public.odd_source", verify="content"))
    equal(bench.pg.rows('SELECT "order", "a]b", "naïve ☃", "1st" FROM odd_source'), [("1", "2", "3", "4")], "columns with odd names")


def test_content_check_sees_a_changed_value(bench):
    """Somebody changes a row of staging before it is read back."""
    name = source(bench, 500)
    target = existing(bench)
    bench.pg.do("CREATE OR REPLACE FUNCTION spoil() RETURNS event_trigger LANGUAGE plpgsql AS $$ DECLARE c record; BEGIN "
                "FOR c IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table' AND object_identity LIKE '%rowferry\\_%' AND object_identity NOT LIKE '%ledger%' LOOP "
                "EXECUTE format('CREATE TRIGGER spoil BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION public.spoil_row()', c.object_identity); END LOOP; END $$; "
                "CREATE OR REPLACE FUNCTION spoil_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 77 THEN NEW.v = 'spoilt'; END IF; RETURN NEW; END $$; "
                "CREATE EVENT TRIGGER spoil ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION spoil()")
    try:
        done = back(bench).transfer(spec(f"dbo.{name}", f"public.{target}", "truncate", verify="content"))
        equal((done.code, done.error().get("code")), (1, "verification_failed"), f"exit code and code {done.said}")
        check(any(one["name"] == "content" and one["result"] == "failed" for one in done.artifact["checks"]), "checks", done.artifact["checks"])
        equal(ids(bench, target), [1001, 1002], "the target is untouched")
        bench.pg.do("CREATE OR REPLACE FUNCTION spoil_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 77 THEN RETURN NULL; END IF; RETURN NEW; END $$")
        done = back(bench).transfer(spec(f"dbo.{name}", f"public.{target}", "truncate"))
        equal(done.code, 1, f"a row that a trigger drops {done.said}")
        equal(ids(bench, target), [1001, 1002], "the target is untouched")
    finally:
        bench.pg.do("DROP EVENT TRIGGER spoil; DROP FUNCTION spoil(); DROP FUNCTION spoil_row() CASCADE")
    nothing_left(bench)
