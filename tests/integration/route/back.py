"""What the tests of SQL Server -> PostgreSQL share: the sandbox is the source, a PostgreSQL database the target."""

import harness
from harness import Workspace, check, equal, eventually, say

UNSUPPORTED = 40000  # the sandbox: a statement that real servers know


class Back(Workspace):
    """A workspace whose PostgreSQL may also be written, under the name `house`."""

    def __init__(self, bench, sandbox, house=None, extra="", **more):
        dsn = house if house is not None else bench.pg.dsn
        super().__init__(bench, sandbox, extra=f'[connections.house]\ntype = "postgres"\ndsn = "{dsn}"\nwritable = true\n{extra}', **more)


def back(bench):
    """The one that tests without wishes share."""
    if not hasattr(bench, "back_work"):
        bench.back_work = Back(bench, bench.sandbox)
    return bench.back_work


def spec(source, target, mode="append", create=True, **more):
    """A transfer spec of this direction."""
    return harness.spec(source, target, mode, create, connections=("warehouse", "house"), **more)


def can(sandbox, sql):
    """Runs T-SQL that the sandbox may not know; where it does not, the rest of the test is not run, and that is said."""
    error = sandbox.error_of(sql)
    check(error in (None, UNSUPPORTED), f"error {error} in {sql}")
    if error:
        say(f"     not run: the sandbox does not know {sql[:70]}")
    return not error


def numbers(sandbox, name, rows, columns, values):
    """A table of the sandbox with `rows` rows; `columns` is its DDL, `values` a function of the row's number (from 1)."""
    sandbox.do(f"create table dbo.{name} ({columns})")
    for first in range(1, rows + 1, 500):
        lines = ", ".join(f"({values(n)})" for n in range(first, min(first + 500, rows + 1)))
        sandbox.do(f"insert into dbo.{name} values {lines}")


def grow(sandbox, name, columns, times):
    """Doubles a table `times` times; its key column `id` (not an identity) goes on counting, `columns` are copied."""
    for _ in range(times):
        sandbox.do(f"declare @n int; select @n = max(id) from dbo.{name}; "
                   f"insert into dbo.{name} (id, {columns}) select id + @n, {columns} from dbo.{name}")


def columns_of(pg, table):
    """{column: its type as PostgreSQL prints it} of a table, and whether it takes NULL."""
    rows = pg.rows("SELECT attname, format_type(atttypid, atttypmod), NOT attnotnull FROM pg_attribute "
                   f"WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum")
    return {name: (kind, nullable == "t") for name, kind, nullable in rows}


def exists(pg, table):
    return pg.value(f"SELECT to_regclass('{table}') IS NOT NULL") == "t"


def left_overs(pg):
    """Names of tables that only transfers make; the ledger stays."""
    return [row[0] for row in pg.rows("SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relname LIKE 'rowferry\\_%' "
                                      "AND relname <> 'rowferry_ledger'")]


def sandbox_sessions(sandbox):
    """Sessions of the engine in the sandbox."""
    return int(sandbox.value("count(*)", "from sys.dm_exec_sessions where program_name like N'rowferry%'"))


def locks(pg):
    return int(pg.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"))


def nothing_left(bench, sandbox=None, pg=None, seconds=20, staging=False):
    """No session, lock or staging table of a transfer is there, on either side."""
    sandbox, pg = sandbox or bench.sandbox, pg or bench.pg
    eventually(lambda: not pg.engine_sessions(), f"no session of the engine in PostgreSQL {pg.engine_sessions()}", seconds)
    eventually(lambda: sandbox_sessions(sandbox) == 0, "no session of the engine in the sandbox", seconds)
    equal(locks(pg), 0, "advisory locks")
    if not staging:
        equal(left_overs(pg), [], "staging tables left")


def ids(bench, table, column="id"):
    return [int(row[0]) for row in bench.pg.rows(f"SELECT {column} FROM {table} ORDER BY 1")]


def codes(artifact):
    return [one["code"] for one in artifact["warnings"]]


def passed(artifact, name):
    check(any(one["name"] == name and one["result"] == "passed" for one in artifact["checks"]), f"the check {name}", artifact["checks"])
