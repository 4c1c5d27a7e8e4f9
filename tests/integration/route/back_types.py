"""Every SQL Server type of docs/types.md's second table, at its limits and NULL: made by T-SQL in the sandbox, loaded into a created
PostgreSQL table, and compared with the text that PostgreSQL prints; and the columns that were created."""

from back import back, codes, columns_of, passed, spec
from harness import check, equal

# name, SQL Server's type, the type of the created column, (T-SQL value, what PostgreSQL prints)
COLUMNS = [
    ("c_bit", "bit", "boolean", [("0", "f"), ("1", "t")]),
    ("c_tiny", "tinyint", "smallint", [("0", "0"), ("255", "255")]),
    ("c_small", "smallint", "smallint", [("-32768", "-32768"), ("32767", "32767")]),
    ("c_int", "int", "integer", [("-2147483648", "-2147483648"), ("2147483647", "2147483647")]),
    ("c_big", "bigint", "bigint", [("-9223372036854775808", "-9223372036854775808"), ("9223372036854775807", "9223372036854775807")]),
    ("c_real", "real", "real", [("-3.40282346638528859E38", "-3.4028235e+38"), ("1.17549435E-38", "1.1754944e-38"), ("0.1", "0.1"), ("16777217", "1.6777216e+07")]),
    ("c_float24", "float(24)", "real", [("0.1", "0.1")]),
    ("c_float", "float", "double precision", [("-1.7976931348623157E308", "-1.7976931348623157e+308"), ("2.2250738585072014E-308", "2.2250738585072014e-308"),
                                             ("0.1E0", "0.1"), ("9007199254740993", "9.007199254740992e+15")]),
    ("c_dec38", "decimal(38,0)", "numeric(38,0)", [("-99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"),
                                                   ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"), ("0", "0")]),
    ("c_decfrac", "decimal(38,38)", "numeric(38,38)", [("-0.99999999999999999999999999999999999999", "-0.99999999999999999999999999999999999999"),
                                                       ("0.00000000000000000000000000000000000001", "0.00000000000000000000000000000000000001")]),
    ("c_dec92", "decimal(9,2)", "numeric(9,2)", [("-9999999.99", "-9999999.99"), ("-0.05", "-0.05"), ("0.10", "0.10")]),
    ("c_dec19", "numeric(19,4)", "numeric(19,4)", [("-999999999999999.9999", "-999999999999999.9999"), ("10000", "10000.0000")]),
    ("c_dec28", "decimal(28,13)", "numeric(28,13)", [("999999999999999.9999999999999", "999999999999999.9999999999999"), ("100", "100.0000000000000")]),
    ("c_money", "money", "numeric(19,4)", [("-922337203685477.5808", "-922337203685477.5808"), ("922337203685477.5807", "922337203685477.5807"), ("-0.0001", "-0.0001")]),
    ("c_smallmoney", "smallmoney", "numeric(10,4)", [("-214748.3648", "-214748.3648"), ("214748.3647", "214748.3647")]),
    ("c_date", "date", "date", [("'0001-01-01'", "0001-01-01"), ("'9999-12-31'", "9999-12-31"), ("'2000-02-29'", "2000-02-29"), ("'1999-12-31'", "1999-12-31")]),
    ("c_time7", "time(7)", "time(6) without time zone", [("'00:00:00'", "00:00:00"), ("'23:59:59.9999999'", "23:59:59.999999"), ("'00:00:00.0000001'", "00:00:00")]),
    ("c_time3", "time(3)", "time(3) without time zone", [("'23:59:59.999'", "23:59:59.999")]),
    ("c_time0", "time(0)", "time(0) without time zone", [("'23:59:59'", "23:59:59")]),
    ("c_dt2_7", "datetime2(7)", "timestamp(6) without time zone", [("'0001-01-01 00:00:00'", "0001-01-01 00:00:00"), ("'9999-12-31 23:59:59.9999999'", "9999-12-31 23:59:59.999999"),
                                                                  ("'1969-12-31 23:59:59.9999999'", "1969-12-31 23:59:59.999999")]),
    ("c_dt2_6", "datetime2(6)", "timestamp(6) without time zone", [("'1999-12-31 23:59:59.999999'", "1999-12-31 23:59:59.999999")]),
    ("c_dt2_0", "datetime2(0)", "timestamp(0) without time zone", [("'9999-12-31 23:59:59'", "9999-12-31 23:59:59")]),
    ("c_datetime", "datetime", "timestamp(3) without time zone", [("'1753-01-01'", "1753-01-01 00:00:00"), ("'9999-12-31T23:59:59.997'", "9999-12-31 23:59:59.997"),
                                                                  ("'2024-02-29T12:34:56.003'", "2024-02-29 12:34:56.003"), ("'1899-12-31T23:59:59.990'", "1899-12-31 23:59:59.99")]),
    ("c_smalldt", "smalldatetime", "timestamp(0) without time zone", [("'1900-01-01'", "1900-01-01 00:00:00"), ("'2079-06-06T23:59:00'", "2079-06-06 23:59:00")]),
    ("c_dto7", "datetimeoffset(7)", "timestamp(6) with time zone", [("'0001-01-01 00:00:00 +00:00'", "0001-01-01 00:00:00+00"), ("'9999-12-31 23:59:59.9999999 +00:00'", "9999-12-31 23:59:59.999999+00"),
                                                                   ("'2024-06-30 23:59:59.5 -07:00'", "2024-07-01 06:59:59.5+00"), ("'2024-01-01 00:00:00 +14:00'", "2023-12-31 10:00:00+00")]),
    ("c_dto0", "datetimeoffset(0)", "timestamp(0) with time zone", [("'2024-01-01 05:30:00 +05:30'", "2024-01-01 00:00:00+00")]),
    ("c_char", "char(5)", "character(5)", [("'ab'", "ab   "), ("''", "     "), ("'abcde'", "abcde")]),
    ("c_varchar", "varchar(20)", "character varying(20)", [("''", ""), ("' a '", " a "), ("replicate('x', 20)", "x" * 20)]),
    ("c_vc8000", "varchar(8000)", "character varying(8000)", [("replicate('y', 8000)", "y" * 8000)]),
    ("c_vcmax", "varchar(max)", "text", [("''", ""), ("replicate(cast('z' as varchar(max)), 20001)", "z" * 20001)]),
    ("c_text", "text", "text", [("''", ""), ("'old text'", "old text")]),
    ("c_nchar", "nchar(5)", "character(5)", [("N'ïö☃'", "ïö☃  "), ("N''", "     ")]),
    ("c_nvarchar", "nvarchar(20)", "character varying(20)", [("N''", ""), ("N'naïve ☃ 😀'", "naïve ☃ 😀"), ("replicate(N'😀', 10)", "😀" * 10)]),
    ("c_nv4000", "nvarchar(4000)", "character varying(4000)", [("replicate(N'ü', 4000)", "ü" * 4000)]),
    ("c_nvmax", "nvarchar(max)", "text", [("N''", ""), ("replicate(cast(N'☃😀' as nvarchar(max)), 5000)", "☃😀" * 5000)]),
    ("c_ntext", "ntext", "text", [("N'älter'", "älter"), ("N''", "")]),
    ("c_binary", "binary(4)", "bytea", [("0x00ff", "\\x00ff0000"), ("0xdeadbeef", "\\xdeadbeef")]),
    ("c_varbinary", "varbinary(20)", "bytea", [("0x", "\\x"), ("0x00", "\\x00")]),
    ("c_vbmax", "varbinary(max)", "bytea", [("0x", "\\x"), ("cast(replicate(cast('a' as varchar(max)), 9000) as varbinary(max))", "\\x" + "61" * 9000)]),
    ("c_image", "image", "bytea", [("0x0102", "\\x0102"), ("0x", "\\x")]),
    ("c_uuid", "uniqueidentifier", "uuid", [("'00112233-4455-6677-8899-AABBCCDDEEFF'", "00112233-4455-6677-8899-aabbccddeeff"),
                                            ("'00000000-0000-0000-0000-000000000000'", "00000000-0000-0000-0000-000000000000")]),
    ("c_xml", "xml", "xml", [("N'<a b=\"1\">x&amp;y</a>'", '<a b="1">x&amp;y</a>')]),
    ("c_variant", "sql_variant", "text", [("cast(1 as int)", "1"), ("cast(N'é' as nvarchar(5))", "é"), ("cast(0x0102 as varbinary(4))", "\\x0102")]),
    ("c_json", "json", "json", [('N\'{"b":1,"a":[2]}\'', '{"b":1,"a":[2]}')]),
    ("c_named", "sysname", "character varying(128)", [("N'a name'", "a name")]),
]
NOT_NULL = {"c_named"}


def every_type(bench):
    """The table with every type, made and loaded once for all tests of this module."""
    if not hasattr(bench, "back_every_type"):
        name = bench.name("back_types")
        ddl = ", ".join(f"{c} {t} {'not null' if c in NOT_NULL else 'null'}" for c, t, *_ in COLUMNS)
        bench.sandbox.do(f"create table dbo.{name} (id int not null primary key, {ddl}, c_rowversion rowversion, c_twice as id * 2)")
        names = ", ".join(c for c, *_ in COLUMNS)
        for row in range(1 + max(len(values) for *_, values in COLUMNS)):  # the last row is all NULL
            values = [v[row][0] if row < len(v) else "N'none'" if c in NOT_NULL else "NULL" for c, _, _, v in COLUMNS]
            bench.sandbox.do(f"insert into dbo.{name} (id, {names}) values ({row}, {', '.join(values)})")
        bench.back_every_type = (name, back(bench).load(spec(f"dbo.{name}", f"public.{name}", verify="content")))
    return bench.back_every_type


def test_every_type_at_its_limits_and_null(bench):
    name, artifact = every_type(bench)
    rows = int(bench.sandbox.value("count(*)", f"from dbo.{name}"))
    wrong = []
    for column, _, _, values in COLUMNS:
        got = [row[0] for row in bench.pg.rows(f"SELECT {column} FROM {name} ORDER BY id")]
        expected = [text for _, text in values] + ["none" if column in NOT_NULL else None] * (rows - len(values))
        if got != expected:
            wrong.append(f"{column}: {str(got)[:300]} instead of {str(expected)[:300]}")
    check(not wrong, "\n  ".join([f"{len(wrong)} columns:", *wrong]))
    equal(artifact["rows"]["read"], rows, "rows read")
    passed(artifact, "content")


def test_created_columns_are_those_of_the_table_of_types(bench):
    name, artifact = every_type(bench)
    created = columns_of(bench.pg, name)
    wrong = [f"{c} ({t}): {created[c][0]} instead of {w}" for c, t, w, _ in COLUMNS if created[c][0] != w]
    check(not wrong, "\n  ".join(["created:", *wrong]))
    equal((created["c_rowversion"], created["c_twice"]), (("bytea", False), ("integer", True)), "rowversion and computed column")
    check(all(nullable for c, (_, nullable) in created.items() if c not in NOT_NULL | {"id", "c_rowversion"}), "NULL is taken where it was", created)
    equal(bench.pg.rows(f"SELECT count(*), count(DISTINCT c_rowversion), min(length(c_rowversion)), max(length(c_rowversion)), bool_and(c_twice = 2 * id) FROM {name}"),
          [(str(artifact["rows"]["read"]),) * 2 + ("8", "8", "t")], "rowversions are eight bytes, computed values")


def test_what_is_lossy_for_a_column_is_warned_of_and_counted(bench):
    _, artifact = every_type(bench)
    warned = {one.get("column") for one in artifact["warnings"]}
    check({"c_time7", "c_dt2_7", "c_dto7"} <= warned, "warnings for 100 ns", artifact["warnings"])
    equal({one["column"] for one in artifact["warnings"] if one["code"] == "offset_not_kept"}, {"c_dto7", "c_dto0"}, "warnings for the offset")
    counts = {one["source"]: one for one in artifact["columns"]}
    for column, lost in (("c_time7", 2), ("c_dt2_7", 2), ("c_dto7", 3), ("c_dto0", 1), ("c_dt2_6", 0), ("c_time3", 0)):
        equal(counts[column]["changed"], lost, f"values of {column} that lost digits or offset")


def loaded(bench, name, ddl, rows, columns=None, **more):
    """A table made by T-SQL and loaded; its artifact."""
    bench.sandbox.do(f"create table dbo.{name} ({ddl})")
    for row in rows:
        bench.sandbox.do(f"insert into dbo.{name} {f'({columns})' if columns else ''} values ({row})")
    return back(bench).load(spec(f"dbo.{name}", f"public.{name}", verify="content", **more))


def test_o11_money_and_decimal_never_pass_through_floats(bench):
    name = bench.name("o11")
    loaded(bench, name, "id int, m money, s smallmoney, d decimal(28,13)",
           ("1, 296685.43, 0.6116, -67723280.09282985", "2, -922337203685477.5808, -214748.3648, 202552.85", "3, 0.0001, -0.0001, -0.05"))
    equal([kind for kind, _ in columns_of(bench.pg, name).values()], ["integer", "numeric(19,4)", "numeric(10,4)", "numeric(28,13)"], "types")
    equal(bench.pg.rows(f"SELECT m, s, d FROM {name} ORDER BY id"),
          [("296685.4300", "0.6116", "-67723280.0928298500000"), ("-922337203685477.5808", "-214748.3648", "202552.8500000000000"),
           ("0.0001", "-0.0001", "-0.0500000000000")], "values")


def test_o12_nul_in_text_is_a_loss_with_its_place(bench):
    name = bench.name("o12")
    bench.sandbox.do(f"create table dbo.{name} (id int primary key, v nvarchar(20), n varchar(20)); "
                     f"insert into dbo.{name} values (1, N'ok', 'ok'), (2, N'ab' + nchar(0) + N'cd', 'x' + char(0))")
    for column, offset in (("v", 2), ("n", 1)):
        error = back(bench).refused(spec(f"dbo.{name}", f"public.{name}", columns=["id", column]), "value_does_not_fit", 1)
        equal((error["column"], error["row"]), (column, 2), f"column and row in {error}")
        check(f"U+0000 at byte {offset}" in error["detail"] and "id = 2" in error["hint"], "offset and key of the row", error)
    check(bench.pg.value(f"SELECT to_regclass('public.{name}')") is None, "nothing is created")
    for policy, text in (("strip", "abcd"), ("replace", "ab\ufffdcd"), ("null", None)):
        artifact = back(bench).load(spec(f"dbo.{name}", f"public.{name}", "replace", columns=["id", {"source": "v", "on_loss": policy}], verify="content"))
        equal(bench.pg.rows(f"SELECT v FROM {name} ORDER BY id"), [("ok",), (text,)], f"values, {policy}")
        equal(artifact["columns"][1]["changed"], 1, f"counted, {policy}")


def test_o13_large_values_are_whole(bench):
    name = bench.name("o13")
    loaded(bench, name, "id int, v nvarchar(max), b varbinary(max), t text, i image",
           ("1, replicate(cast(N'x' as nvarchar(max)), 70000) + N'END', cast(replicate(cast('0123456789a' as varchar(max)), 1000000) as varbinary(max)), "
            "replicate(cast('t' as varchar(max)), 70000), cast(replicate(cast('i' as varchar(max)), 70000) as varbinary(max))",
            "2, NULL, NULL, NULL, NULL", "3, replicate(cast(N'☃' as nvarchar(max)), 5500000), NULL, NULL, NULL"))
    equal(bench.pg.rows(f"SELECT length(v), right(v, 3), length(b), md5(b), length(t), length(i) FROM {name} ORDER BY id"),
          [("70003", "END", "11000000", bench.pg.value("SELECT md5(repeat('0123456789a', 1000000)::bytea)"), "70000", "70000"), (None,) * 6,
           ("5500000", "☃☃☃", None, None, None, None)], "lengths, hashes and tail")


def test_o14_uuid_text_is_the_same_on_both_sides(bench):
    name = bench.name("o14")
    loaded(bench, name, "u uniqueidentifier", ("'00112233-4455-6677-8899-aabbccddeeff'",))
    equal(bench.pg.rows(f"SELECT u, encode(uuid_send(u), 'hex') FROM {name}"), [("00112233-4455-6677-8899-aabbccddeeff", "00112233445566778899aabbccddeeff")], "uuid")
    equal(bench.sandbox.value("convert(varchar(36), u)", f"from dbo.{name}"), "00112233-4455-6677-8899-AABBCCDDEEFF", "in the sandbox")


COLLATIONS = {
    "SQL_Latin1_General_CP1_CI_AS": "é", "SQL_Latin1_General_CP1251_CI_AS": "П", "SQL_Latin1_General_CP850_CI_AS": "é", "Cyrillic_General_CI_AS": "П",
    "Japanese_CI_AS": "あ", "Latin1_General_100_CI_AS_SC_UTF8": "é😀", "SQL_Latin1_General_CP437_CI_AS": "é", "Polish_CI_AS": "ł", "Greek_CI_AS": "λ", "Turkish_CI_AS": "ş",
    "Hebrew_CI_AS": "א", "Arabic_CI_AS": "ب", "Latvian_CI_AS": "ā", "Vietnamese_CI_AS": "đ", "Thai_CI_AS": "ก", "Chinese_PRC_CI_AS": "中", "Korean_Wansung_CI_AS": "한",
    "Chinese_Taiwan_Stroke_CI_AS": "中", "Latin1_General_BIN2": "€",
}


def test_o15_text_of_every_collation_family(bench):
    name = bench.name("o15")
    columns = [(f"c{n}", collation, text) for n, (collation, text) in enumerate(COLLATIONS.items())]
    loaded(bench, name, "id int, " + ", ".join(f"{c} varchar(20) collate {k}, {c}c char(6) collate {k}, {c}t text collate {k}" if not k.endswith("UTF8")
                                               else f"{c} varchar(20) collate {k}, {c}c char(6) collate {k}, {c}t varchar(max) collate {k}" for c, k, _ in columns),
           ["1, " + ", ".join(f"N'{t}', N'{t}', N'{t}'" for *_, t in columns)])
    for column, collation, text in columns:
        row = bench.pg.rows(f"SELECT {column}, rtrim({column}c), {column}t FROM {name}")[0]
        equal(row, (text, text, text), collation)


def test_o16_the_seventh_digit_is_dropped_and_days_stay(bench):
    name = bench.name("o16")
    loaded(bench, name, "a datetime2(7), b time(7), c datetime2(0), d datetime2(3), e datetime, f smalldatetime",
           ("'2022-12-05 16:56:49.1812318', '23:59:59.9999999', '2024-01-15 10:30:45', '2024-01-15 10:30:45.123', '2025-05-16T16:33:33.123', '2024-02-29T12:34:00'",
            "'9999-12-31 23:59:59.9999999', NULL, NULL, NULL, NULL, NULL"))
    equal(bench.pg.rows(f"SELECT * FROM {name} ORDER BY a"),
          [("2022-12-05 16:56:49.181231", "23:59:59.999999", "2024-01-15 10:30:45", "2024-01-15 10:30:45.123", "2025-05-16 16:33:33.123", "2024-02-29 12:34:00"),
           ("9999-12-31 23:59:59.999999", None, None, None, None, None)], "values")


def test_o17_sql_variant_as_lossless_text(bench):
    name = bench.name("o17")
    values = [("cast('2026-09-16 10:11:12.1234567' as datetime2(7))", "2026-09-16 10:11:12.1234567", "datetime2(7)"), ("cast('10:11:12' as time(3))", "10:11:12.000", "time(3)"),
              ("cast(0x0102 as varbinary(8))", "\\x0102", "varbinary(8)"), ("cast(11.77 as decimal(10,4))", "11.7700", "decimal(10,4)"), ("cast(1.5 as money)", "1.5000", "money"),
              ("cast(N'é' as nvarchar(4))", "é", "nvarchar(4)"), ("cast('00112233-4455-6677-8899-aabbccddeeff' as uniqueidentifier)", "00112233-4455-6677-8899-aabbccddeeff", "uniqueidentifier"),
              ("cast(200 as tinyint)", "200", "tinyint"), ("NULL", None, None)]
    loaded(bench, name, "id int, v sql_variant", [f"{n}, {sql}" for n, (sql, *_) in enumerate(values)], columns="id, v")
    got = [row[0] and row[0].lower() if row[0] and row[0].count("-") == 4 else row[0] for row in bench.pg.rows(f"SELECT v FROM {name} ORDER BY id")]
    equal(got, [text for _, text, _ in values], "values")
    target = bench.name("o17")
    back(bench).load(spec(f"dbo.{name}", f"public.{target}", columns=["id", {"source": "v", "variant_base_type": True}], verify="content"))
    equal(bench.pg.rows(f"SELECT v_type FROM {target} ORDER BY id"), [(base,) for *_, base in values], "base types")


def test_keep_offset_adds_a_column(bench):
    name = bench.name("offset")
    loaded(bench, name, "id int, o datetimeoffset(3)", ("1, '2024-06-30 23:59:59.5 -07:00'", "2, '2024-01-01 00:00:00 +05:30'", "3, NULL"),
           columns="id, o")
    target = bench.name("offset")
    artifact = back(bench).load(spec(f"dbo.{name}", f"public.{target}", columns=["id", {"source": "o", "keep_offset": True}], verify="content"))
    check("offset_not_kept" not in codes(artifact) and artifact["columns"][1]["changed"] == 0, "nothing is lost", artifact["warnings"], artifact["columns"])
    equal(bench.pg.rows(f"SELECT o, o_offset FROM {target} ORDER BY id"), [("2024-07-01 06:59:59.5+00", "-07:00"), ("2023-12-31 18:30:00+00", "+05:30"), (None, None)], "values")


def test_o18_rowversion_is_bytes_and_no_moment(bench):
    name = bench.name("o18")
    loaded(bench, name, "id int, r rowversion", ("1", "2"), columns="id")
    rows = bench.pg.rows(f"SELECT id, r FROM {name} ORDER BY id")
    wanted = [(i, "\\x" + r.lower().removeprefix("0x")) for i, r in bench.sandbox.rows(["id", "convert(varchar(30), cast(r as binary(8)), 1)"], f"from dbo.{name} order by id")]
    equal(rows, wanted, "values")
    check(len(rows[0][1]) == 18, "eight bytes", rows)


def test_o19_values_take_the_form_of_the_target_s_types(bench):
    name = bench.name("o19")
    bench.sandbox.do(f"create table dbo.{name} (id int, i int, d date, dt datetime, t tinyint, b bit, b2 bit, j nvarchar(max), n decimal(9,2), v varchar(10), u uniqueidentifier, f real); "
                     f"insert into dbo.{name} values (1, 5, '2024-02-29', '2024-02-29T00:00:00', 200, 1, 0, N'{{\"a\":1}}', 1.50, '12', '00112233-4455-6677-8899-aabbccddeeff', 0.5), "
                     f"(2, NULL, NULL, NULL, NULL, NULL, NULL, N'[1]', NULL, NULL, NULL, NULL)")
    bench.pg.do(f"CREATE TABLE {name} (id int, i bigint, d date, dt date, t smallint, b boolean, b2 smallint, j jsonb, n numeric, v text, u uuid, f double precision)")
    back(bench).load(spec(f"dbo.{name}", f"public.{name}", verify="content"))
    equal(bench.pg.rows(f"SELECT * FROM {name} ORDER BY id"),
          [("1", "5", "2024-02-29", "2024-02-29", "200", "t", "0", '{"a": 1}', "1.50", "12", "00112233-4455-6677-8899-aabbccddeeff", "0.5"),
           ("2", None, None, None, None, None, None, "[1]", None, None, None, None)], "values")
    narrow = bench.name("o19")
    bench.sandbox.do(f"create table dbo.{narrow} (id int primary key, v bigint); insert into dbo.{narrow} values (7, 3000000000)")
    bench.pg.do(f"CREATE TABLE {narrow} (id int, v int)")
    error = back(bench).refused(spec(f"dbo.{narrow}", f"public.{narrow}"), "value_does_not_fit", 1)
    check(error["column"] == "v" and error["value"] == "3000000000" and "id = 7" in error["hint"], "column, value and row", error)
    equal(bench.pg.value(f"SELECT count(*) FROM {narrow}"), "0", "rows")


def test_o21_empty_null_and_blanks_are_three_things(bench):
    name = bench.name("o21")
    loaded(bench, name, "id int, a nvarchar(10) null, b varchar(max) null, c char(5) null", ("1, N'', '', ''", "2, NULL, NULL, NULL", "3, N' ', ' ', 'ab'"))
    equal(bench.pg.rows(f"SELECT a, b, c FROM {name} ORDER BY id"), [("", "", "     "), (None, None, None), (" ", " ", "ab   ")], "values")
    text = bench.name("o21")
    bench.pg.do(f"CREATE TABLE {text} (id int, a text, b text, c text)")
    back(bench).load(spec(f"dbo.{name}", f"public.{text}", verify="content"))
    equal(bench.pg.rows(f"SELECT '<' || a || '>', '<' || b || '>', '<' || c || '>' FROM {text} ORDER BY id"), [("<>", "<>", "<     >"), (None, None, None), ("< >", "< >", "<ab   >")], "values in text")
