"""Drives the sandbox with pytds: login, transaction, bulk load, read back. Arguments: port, user, password, database."""

import io
import sys

import pytds
from pytds.tds_base import Column
from pytds.tds_types import IntType, NVarCharType

port, user, password, database = sys.argv[1:5]


def fetch(cursor, sql):
    cursor.execute(sql)
    return cursor.fetchall()


def transaction(connection, cursor) -> None:
    cursor.execute("create table dbo.py (id int not null, name nvarchar(50) null)")
    cursor.execute("create table dbo.py_text (id int null, name nvarchar(50) null)")
    connection.commit()
    cursor.execute("insert into dbo.py values (%s, %s)", (1, "naïve ☃"))
    assert fetch(cursor, "select id, name from dbo.py") == [(1, "naïve ☃")]
    connection.rollback()
    assert fetch(cursor, "select count(*) from dbo.py") == [(0,)], "the rollback left rows"


def typed_load(connection, cursor) -> None:
    rows = [(i, f"name {i} 😀" if i % 3 else None) for i in range(300)]
    columns = [Column("id", type=IntType(), flags=Column.fReadWrite), Column("name", type=NVarCharType(50))]
    cursor.copy_to(table_or_view="py", schema="dbo", data=rows, columns=columns, keep_nulls=True)
    connection.commit()
    assert fetch(cursor, "select id, name from dbo.py order by id") == rows


def load_as_text(connection, cursor) -> None:
    """Every column sent as nvarchar(4000): the server converts."""
    data = io.StringIO("\n".join(f"{i}\tname {i}" for i in range(50)))
    cursor.copy_to(data, "py_text", sep="\t", columns=["id", "name"])
    connection.commit()
    assert fetch(cursor, "select id, name from dbo.py_text order by id") == [(i, f"name {i}") for i in range(50)]


def main() -> None:
    with pytds.connect(
        dsn="127.0.0.1", port=int(port), user=user, password=password, database=database, autocommit=False, timeout=20
    ) as connection:
        with connection.cursor() as cursor:
            for check in (transaction, typed_load, load_as_text):
                check(connection, cursor)
                print(f"ok pytds: {check.__name__}")
            cursor.execute("drop table dbo.py")
            connection.commit()


main()
