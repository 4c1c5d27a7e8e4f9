"""Every type of docs/types.md's first table, at its limits and NULL: loaded into a created table, read back through FreeTDS, compared
with what PostgreSQL prints; and the columns that were created."""

import datetime
import decimal
import re
import struct

from harness import Failed, check, equal, spec

# --- the same value in two notations


def as_number(text):
    return decimal.Decimal(text)


def as_float32(text):
    return struct.pack("f", float(text))


def as_float64(text):
    return struct.pack("d", float(text))


def as_bool(text):
    return {"true": "1", "false": "0"}.get(text, text)


def as_bytes(text):
    return bytes.fromhex(text.removeprefix("\\x").removeprefix("0x"))


def as_uuid(text):
    return text.lower()


def as_text(text):
    return text


def as_day(text):
    return text[:10]


def as_time(text):
    """Digits beyond the microsecond are zeros, and trailing zeros say nothing."""
    found = re.search(r"(\d\d:\d\d:\d\d)(?:\.(\d+))?$", text)
    if not found:
        raise Failed(f"no time of day: {text!r}")
    return found.group(1), (found.group(2) or "").rstrip("0")


def as_moment(text):
    text = re.sub(r"\s*\+00(:00)?$", "", text)
    return text[:10], as_time(text)


# name, PostgreSQL's type, the type in the created table, values (SQL expressions), how to compare
COLUMNS = [
    ("c_bool", "boolean", "bit", ["true", "false"], as_bool),
    ("c_int2", "smallint", "smallint", ["-32768", "32767"], as_number),
    ("c_int4", "integer", "int", ["-2147483648", "2147483647"], as_number),
    ("c_int8", "bigint", "bigint", ["-9223372036854775808", "9223372036854775807"], as_number),
    ("c_float4", "real", "real", ["'-3.4028235e38'", "'3.4028235e38'", "'1.1754944e-38'", "'0.1'"], as_float32),
    ("c_float8", "double precision", "float(53)", ["'-1.7976931348623157e308'", "'1.7976931348623157e308'", "'2.2250738585072014e-308'", "'0.1'"],
     as_float64),
    ("c_num38", "numeric(38,0)", "decimal(38,0)", ["-99999999999999999999999999999999999999", "99999999999999999999999999999999999999", "0"],
     as_number),
    ("c_numfrac", "numeric(38,38)", "decimal(38,38)",
     ["-0.99999999999999999999999999999999999999", "0.00000000000000000000000000000000000001"], as_number),
    ("c_num102", "numeric(10,2)", "decimal(10,2)", ["-99999999.99", "99999999.99", "-0.05"], as_number),
    ("c_numneg", "numeric(3,-2)", "decimal(5,0)", ["-99900", "99900", "100"], as_number),
    ("c_numsmall", "numeric(2,4)", "decimal(4,4)", ["-0.0099", "0.0099"], as_number),
    ("c_numany", "numeric", "decimal(38,18)", ["-99999999999999999999.999999999999999999", "1.5"], as_number),
    ("c_num50", "numeric(50,2)", "decimal(38,18)", ["-99999999999999999999.99", "0.01"], as_number),
    ("c_money", "money", "decimal(19,2)", ["'-92233720368547758.08'", "'92233720368547758.07'"], None),
    ("c_date", "date", "date", ["'0001-01-01'", "'9999-12-31'", "'2024-02-29'"], as_day),
    ("c_time", "time", "time(6)", ["'00:00:00'", "'23:59:59.999999'"], as_time),
    ("c_time0", "time(0)", "time(0)", ["'00:00:00'", "'23:59:59'"], as_time),
    ("c_timetz", "time with time zone", "varchar(24)", ["'00:00:00+15:59'", "'23:59:59.999999-15:59'", "'10:20:30+05:30'"], as_text),
    ("c_stamp", "timestamp", "datetime2(6)", ["'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'", "'1969-12-31 23:59:59.000001'"],
     as_moment),
    ("c_stamp0", "timestamp(0)", "datetime2(0)", ["'0001-01-01 00:00:00'", "'9999-12-31 23:59:59'"], as_moment),
    ("c_stamp3", "timestamp(3)", "datetime2(3)", ["'2000-01-01 00:00:00.001'", "'1999-12-31 23:59:59.999'"], as_moment),
    ("c_stamptz", "timestamptz", "datetimeoffset(6)", ["'0001-01-01 00:00:00+00'", "'9999-12-31 23:59:59.999999+00'", "'2024-06-30 23:59:59.5-07'"],
     as_moment),
    ("c_interval", "interval", "varchar(80)", ["'1 mon 2 days 03:04:05'", "'-178000000 years'", "'-1 days +02:03:04.000005'"], as_text),
    ("c_uuid", "uuid", "uniqueidentifier", ["'00112233-4455-6677-8899-aabbccddeeff'", "'00000000-0000-0000-0000-000000000000'",
                                            "'ffffffff-ffff-ffff-ffff-ffffffffffff'"], as_uuid),
    ("c_bytea", "bytea", "varbinary(max)", ["'\\x'", "'\\x00ff00'", "decode(repeat('00ff1f', 4000), 'hex')"], as_bytes),
    ("c_varchar", "varchar(20)", "nvarchar(40)", ["''", "repeat(U&'\\+01F600', 20)", "' two  blanks '"], as_text),
    ("c_vc2000", "varchar(2000)", "nvarchar(4000)", ["repeat(U&'\\+01F600', 2000)", "'x'"], as_text),
    ("c_vc2001", "varchar(2001)", "nvarchar(max)", ["repeat(U&'\\+01F600', 2001)", "''"], as_text),
    ("c_char", "char(5)", "nchar(5)", ["'ab'", "''", "'ïö☃xy'"], None),
    ("c_char4001", "char(4001)", "nvarchar(max)", ["'ab'"], None),
    ("c_text", "text", "nvarchar(max)", ["''", "'naïve ☃ 😀'", "repeat('long ü ', 10000)", "E'tab\\there'", "chr(65533) || chr(1114109)"], as_text),
    ("c_name", "name", "nvarchar(63)", ["repeat('n', 63)", "''"], as_text),
    ("c_mood", "mood", "nvarchar(63)", ["'ok'", "'so la la'"], as_text),
    ("c_xml", "xml", "nvarchar(max)", ["'<a b=\"1\">x&amp;y</a>'"], as_text),
    ("c_json", "json", "nvarchar(max)", ["'{\"b\":1, \"a\":2}'", "'null'"], as_text),
    ("c_jsonb", "jsonb", "nvarchar(max)", ["'{\"b\":1,\"a\":2,\"a\":3}'", "'null'", "'\"☃\"'"], as_text),
    ("c_inet", "inet", "nvarchar(49)", ["'10.0.0.1/8'", "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127'"], as_text),
    ("c_cidr", "cidr", "nvarchar(49)", ["'10.0.0.0/8'"], as_text),
    ("c_macaddr", "macaddr", "nvarchar(17)", ["'08:00:2b:01:02:03'"], as_text),
    ("c_range", "int4range", "nvarchar(max)", ["'[1,5)'", "'empty'", "'(,)'"], as_text),
    ("c_ints", "integer[]", "nvarchar(max)", ["array[1,null,3]", "'{}'", "array[[1,2],[3,4]]"], as_text),
    ("c_texts", "text[]", "nvarchar(max)", ["array['a,b','c\"d',null,'']"], as_text),
    ("c_pair", "pair", "nvarchar(max)", ["row(1,'x')::pair", "row(null,'a,\"b')::pair"], as_text),
    ("c_tsvector", "tsvector", "nvarchar(max)", ["'b a a'"], as_text),
    ("c_point", "point", "nvarchar(max)", ["'(1.5,-2)'"], as_text),
    ("c_bit", "bit(5)", "varchar(5)", ["B'10101'", "B'00000'"], as_text),
    ("c_varbit", "bit varying(70)", "varchar(70)", ["B''", "repeat('10', 35)::varbit"], as_text),
    ("c_varbitlong", "bit varying(8001)", "varchar(max)", ["repeat('1', 8001)::varbit"], as_text),
    ("c_varbitany", "bit varying", "varchar(max)", ["B'1'"], as_text),
    ("c_oid", "oid", "bigint", ["0", "4294967295"], as_number),
    ("c_xid", "xid", "bigint", ["'4294967295'"], as_number),
    ("c_regclass", "regclass", "nvarchar(256)", ["'pg_class'"], None),
    ("c_domain", "positive", "int", ["1", "2147483647"], as_number),
    ("c_domtext", "short_text", "nvarchar(20)", ["'dö'", "''"], as_text),
]

OTHERS = """
CREATE TYPE mood AS ENUM ('ok', 'so la la');
CREATE TYPE pair AS (n int, t text);
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE DOMAIN short_text AS varchar(10);
"""


def native_of(sandbox, table):
    """{column: (its type as types.md writes it, nullable)} of a table, from the server's catalogue."""
    found = {}
    for name, kind, length, precision, scale, nullable in sandbox.rows(
            ["c.name", "t.name", "c.max_length", "c.precision", "c.scale", "c.is_nullable"],
            f"from sys.columns c join sys.types t on t.user_type_id = c.user_type_id where c.object_id = object_id(N'{table}') "
            "order by c.column_id"):
        length = int(length)
        if kind in ("nvarchar", "nchar"):
            kind += "(max)" if length < 0 else f"({length // 2})"
        elif kind in ("varchar", "char", "varbinary", "binary"):
            kind += "(max)" if length < 0 else f"({length})"
        elif kind == "float":
            kind = f"float({precision})"
        elif kind in ("decimal", "numeric"):
            kind = f"decimal({precision},{scale})"
        elif kind in ("time", "datetime2", "datetimeoffset"):
            kind += f"({scale})"
        found[name] = (kind, nullable == "1")
    return found


def source_table(bench, name):
    rows = max(len(values) for _, _, _, values, _ in COLUMNS)
    bench.pg.do(OTHERS.replace("CREATE TYPE", "DROP TYPE IF EXISTS").replace("CREATE DOMAIN", "DROP DOMAIN IF EXISTS").replace(
        " AS ENUM ('ok', 'so la la')", " CASCADE").replace(" AS (n int, t text)", " CASCADE").replace(
        " AS int CHECK (value > 0)", " CASCADE").replace(" AS varchar(10)", " CASCADE"))
    bench.pg.do(OTHERS + f"CREATE TABLE {name} (id int PRIMARY KEY, {', '.join(f'{c} {t}' for c, t, *_ in COLUMNS)}, "
                "c_generated int GENERATED ALWAYS AS (id * 2) STORED)")
    for i in range(rows + 1):  # the last row is all NULL
        values = [f"({v[i]})::{t}" if i < len(v) else "NULL" for _, t, _, v, _ in COLUMNS]
        bench.pg.do(f"INSERT INTO {name} VALUES ({i}, {', '.join(values)})")


def printed_by_postgres(bench, name, column, kind):
    expression = {"c_money": f"{column}::numeric::text", "c_char": f"{column}::bpchar::text", "c_regclass": f"{column}::text"}.get(column, f"{column}::text")
    if kind.startswith("char"):
        width = int(kind[5:-1])
        expression = f"rpad({column}::text, {width})"
    return [row[0] for row in bench.pg.rows(f"SELECT {expression} FROM {name} ORDER BY id")]


def moment(column):
    """FreeTDS prints moments to the minute; the server's own text has all of them."""
    return f"convert(varchar(40), {column}, 121)"


def compare_column(bench, name, column, kind, same):
    expected = printed_by_postgres(bench, name, column, kind)
    expression = moment(f"[{column}]") if same in (as_day, as_time, as_moment) else f"[{column}]"
    actual = [row[0] for row in bench.sandbox.rows([expression], f"from dbo.{name} order by id")]
    same = same or (as_number if column == "c_money" else as_text)
    equal(len(actual), len(expected), f"rows of {column}")
    for row, (got, wanted) in enumerate(zip(actual, expected)):
        if wanted is None or got is None:
            equal(got, wanted, f"{column}, row {row}, NULL")
        elif same(got) != same(wanted):
            raise Failed(f"{column}, row {row}: {got[:200]!r} instead of {wanted[:200]!r}")


def loaded_types(bench):
    """The table with every type, loaded once for all tests of this module."""
    if not hasattr(bench, "every_type"):
        name = bench.name("every_type")
        source_table(bench, name)
        bench.every_type = (name, bench.work.load(spec(f"public.{name}", f"dbo.{name}", verify="content")))
    return bench.every_type


def test_every_type_at_its_limits_and_null(bench):
    name, artifact = loaded_types(bench)
    wrong = []
    for column, kind, _, _, same in COLUMNS:
        try:
            compare_column(bench, name, column, kind, same)
        except Failed as failure:
            wrong.append(str(failure))
    check(not wrong, "\n  ".join([f"{len(wrong)} columns:", *wrong]))
    equal(artifact["rows"]["read"], int(bench.pg.value(f"SELECT count(*) FROM {name}")), "rows read")


def test_generated_column_is_a_plain_one(bench):
    name, _ = loaded_types(bench)
    equal(bench.sandbox.rows(["id", "c_generated"], f"from dbo.{name} order by id"), bench.pg.rows(f"SELECT id, c_generated FROM {name} ORDER BY id"),
          "values")
    equal(bench.sandbox.value("is_computed", f"from sys.columns where object_id = object_id(N'dbo.{name}') and name = N'c_generated'"), "0",
          "is_computed")


def test_created_columns_are_those_of_the_table_of_types(bench):
    name, artifact = loaded_types(bench)
    created = native_of(bench.sandbox, f"dbo.{name}")
    wrong = [f"{column} ({source}): {created[column][0]} instead of {wanted}" for column, source, wanted, _, _ in COLUMNS
             if created[column][0] != wanted]
    check(not wrong, "\n  ".join(["created:", *wrong]))
    equal(created["id"], ("int", False), "the key's column")
    check(all(nullable for column, (_, nullable) in created.items() if column != "id"), "every other column takes NULL")
    reported = {one["target"]: one["target_type"] for one in artifact["columns"]}
    for column, _, wanted, _, _ in COLUMNS:
        equal(reported[column], wanted, f"target_type of {column} in the artifact")


def test_numeric_without_precision_and_unknown_types_are_warned_of(bench):
    _, artifact = loaded_types(bench)
    codes = {(warning["code"], warning.get("column")) for warning in artifact["warnings"]}
    for column in ("c_numany", "c_num50"):
        check(("numeric_without_precision", column) in codes, "warnings", codes)


def test_rewritten_columns_are_not_compared(bench):
    name, artifact = loaded_types(bench)
    check("c_text" not in artifact["columns_not_compared"], "text is compared", artifact["columns_not_compared"])
    check({one["result"] for one in artifact["checks"] if "content" in one["name"]} == {"passed"}, "content check", artifact["checks"])


def test_bsqldb_reads_the_same(bench):
    """DB-Library is another reader than tsql: its numbers, days and texts are the same."""
    from harness import run
    name, _ = loaded_types(bench)
    done = run(["bsqldb", "-S", "sandbox", "-U", "sa", "-P", bench.sandbox.secret, "-D", "dw", "-q", "-h", "-t", "|"],
               f"select id, c_int8, c_num102, c_int4, c_varchar from dbo.{name} where id < 2 order by id\ngo\n", env=bench.sandbox.freetds)
    equal(done.returncode, 0, f"bsqldb {done.stderr}")
    got = [[value.strip() for value in line.split("|")] for line in done.stdout.strip().splitlines()]
    wanted = [[*row] for row in bench.pg.rows(f"SELECT id, c_int8, c_num102, c_int4, c_varchar FROM {name} WHERE id < 2 ORDER BY id")]
    equal(got, wanted, "rows")


def test_text_in_a_key_gets_a_width(bench):
    name = bench.name("text_key")
    bench.pg.do(f"CREATE TABLE {name} (code text PRIMARY KEY, v varchar); INSERT INTO {name} VALUES ('a', 'x'), ('b', NULL)")
    bench.work.load(spec(f"public.{name}", f"dbo.{name}"))
    equal(native_of(bench.sandbox, f"dbo.{name}"), {"code": ("nvarchar(450)", False), "v": ("nvarchar(max)", True)}, "columns")
    equal(bench.sandbox.error_of(f"insert into dbo.{name} (code) values (N'a')"), 2627, "the key is there")
    long = bench.name("text_key")
    bench.pg.do(f"CREATE TABLE {long} (code text PRIMARY KEY); INSERT INTO {long} VALUES (repeat('k', 451))")
    error = bench.work.refused(spec(f"public.{long}", f"dbo.{long}"), "value_does_not_fit")
    equal(error.get("column"), "code", "column of the problem")
    check(not bench.sandbox.exists(f"dbo.{long}"), "nothing is created")


def test_types_of_the_spec_override_the_table(bench):
    name = bench.name("own_types")
    bench.pg.do(f"CREATE TABLE {name} (id int, a text, b int[], c numeric, d timestamp); "
                f"INSERT INTO {name} VALUES (1, 'x', '{{1,null,3}}', 123456789012345678901234567890123456789.5, '2024-01-02 03:04:05')")
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", verify="content", columns=[
        "id", {"source": "a", "type": "nvarchar(30)"}, {"source": "b", "type": "json"}, {"source": "c", "type": "nvarchar(max)"},
        {"source": "d", "target": "when", "type": "datetime2(0)"}]))
    created = native_of(bench.sandbox, f"dbo.{name}")
    equal([created[c][0] for c in ("a", "c", "when")], ["nvarchar(30)", "nvarchar(max)", "datetime2(0)"], "types")
    row = bench.sandbox.rows(["a", "b", "c", moment("[when]")], f"from dbo.{name}")[0]
    equal(row[:3], ("x", "[1,null,3]", "123456789012345678901234567890123456789.5"), "values")
    equal(as_moment(row[3]), as_moment("2024-01-02 03:04:05"), "moment")


def test_scanned_numeric_gets_the_scale_that_is_used(bench):
    name = bench.name("scanned")
    bench.pg.do(f"CREATE TABLE {name} (id int, n numeric); INSERT INTO {name} VALUES (1, 1.5), (2, -12345.00625), (3, NULL)")
    artifact = bench.work.load(spec(f"public.{name}", f"dbo.{name}", verify="content", columns=["id", {"source": "n", "scan_numeric": True}]))
    kind = native_of(bench.sandbox, f"dbo.{name}")["n"][0]
    found = re.fullmatch(r"decimal\((\d+),5\)", kind)
    check(found and int(found.group(1)) >= 10, "type", kind)
    equal([row[0] and as_number(row[0]) for row in bench.sandbox.rows(["n"], f"from dbo.{name} order by id")],
          [as_number("1.5"), as_number("-12345.00625"), None], "values")
    check("numeric_without_precision" not in [w["code"] for w in artifact["warnings"]], "no warning", artifact["warnings"])


def test_uuid_order_and_instants_are_the_servers_own(bench):
    """Not only read back alike: the server itself must see the same value."""
    name, _ = loaded_types(bench)
    equal(bench.sandbox.value("count(*)", f"from dbo.{name} where c_uuid = '00112233-4455-6677-8899-AABBCCDDEEFF'"), "1", "uuid found")
    equal(bench.sandbox.value("count(*)", f"from dbo.{name} where c_stamptz = '2024-07-01 08:59:59.5 +02:00'"), "1", "instant found")
    equal(bench.sandbox.value("count(*)", f"from dbo.{name} where c_date = '{datetime.date(2024, 2, 29).isoformat()}'"), "1", "day found")
