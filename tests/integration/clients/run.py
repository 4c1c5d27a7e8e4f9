"""Starts the sandbox and drives it with clients that others wrote: FreeTDS, tedious, pytds.

Arguments: the rowferry binary, a directory for what npm and pip install (kept between runs). Exit code 77 = nothing could
be tested here. A client that is not installed, or cannot be fetched, is skipped and said so.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
BINARY = pathlib.Path(sys.argv[1]).resolve()
CACHE = pathlib.Path(sys.argv[2])
PASSWORD = "p@ss;wörd ]'\"1"
TEDIOUS = "tedious@19"
PYTDS = "python-tds==1.17.1"
SKIPPED = []


class Sandbox:
    """One sandbox process; its port is read from the line that it prints."""

    def __init__(self, *arguments: str):
        environment = dict(os.environ, SANDBOX_PASSWORD=PASSWORD)
        self.process = subprocess.Popen(
            [BINARY, "sandbox", "--listen", "127.0.0.1:0", "--database", "shop", "--password-env", "SANDBOX_PASSWORD", *arguments],
            stdout=subprocess.PIPE, env=environment, text=True)
        line = self.process.stdout.readline()
        assert "not SQL Server" in line, f"the first line must say what this is: {line!r}"
        self.port = int(line.split("127.0.0.1:")[1].split(",")[0].strip())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=20)
        assert code == 0, f"the sandbox ended with {code}"


def run(command, **how) -> subprocess.CompletedProcess:
    return subprocess.run([str(part) for part in command], text=True, capture_output=True, timeout=120, **how)


def must(command, **how) -> str:
    done = run(command, **how)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


class FreeTds:
    """tsql, bsqldb and freebcp against one sandbox."""

    def __init__(self, sandbox: Sandbox, directory: pathlib.Path, encryption: str = "off"):
        self.directory = directory
        config = directory / "freetds.conf"
        config.write_text(f"[global]\ntds version = 7.4\nclient charset = UTF-8\ntext size = 2147483647\n[sandbox]\nhost = 127.0.0.1\n"
                          f"port = {sandbox.port}\nencryption = {encryption}\ndatabase = shop\n")
        # tsql writes datetimes in FreeTDS's own form: ISO is easier to compare.
        (directory / "locales.conf").write_text("[default]\ndate format = %Y-%m-%d %H:%M:%S.%z\n")
        self.environment = dict(os.environ, FREETDSCONF=str(config), FREETDSLOCALES=str(directory / "locales.conf"))

    def tsql(self, sql: str) -> str:
        done = run(["tsql", "-S", "sandbox", "-U", "sa", "-P", PASSWORD, "-o", "fhq", "-t", "|"], env=self.environment,
                   input=sql + "\nGO\nexit\n")
        assert done.returncode == 0, f"tsql: {done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def bsqldb(self, sql: str) -> str:
        return must(["bsqldb", "-S", "sandbox", "-U", "sa", "-P", PASSWORD, "-D", "shop", "-q", "-h", "-t", "|"],
                    env=self.environment, input=sql + "\ngo\n")

    def bcp(self, direction: str, table: str, file: pathlib.Path, *more: str) -> str:
        # freebcp sets TEXTSIZE to 4096 unless told otherwise.
        return must(["freebcp", table, direction, file, "-S", "sandbox", "-U", "sa", "-P", PASSWORD, "-D", "shop",
                     "-T", "2147483647", *more], env=self.environment)


BCP_TABLE = """create table dbo.bcp (id int not null, big bigint null, name nvarchar(40) null, code varchar(10) null,
 price decimal(12,4) null, ratio float null, flag bit null, day datetime null, note nvarchar(max) null)"""
BCP_ROWS = [
    "1|9223372036854775807|naïve ☃|abc|12345678.1234|0.5|1|2024-02-29 12:34:56.123|" + "long ü " * 3000 + "end",
    "2||||||||",
    "3|-9223372036854775808|😀😀|z|-0.0001|-2.25|0|1900-01-01 00:00:00.000|x",
]


def check_login(tds: FreeTds) -> None:
    out = tds.tsql("select 1 as a, N'naïve ☃' as b")
    assert "1|naïve ☃" in out, out
    out = tds.tsql("select @@version")
    assert "not" in out.lower() and "rowferry" in out.lower(), f"@@VERSION must say what this is: {out}"
    wrong = run(["tsql", "-S", "sandbox", "-U", "sa", "-P", "wrong"], env=tds.environment, input="exit\n")
    assert "18456" in wrong.stdout + wrong.stderr, f"a wrong password must be refused with 18456: {wrong}"
    assert "wrong" not in wrong.stdout + wrong.stderr, "the password must not be echoed"


def check_statements(tds: FreeTds) -> None:
    out = tds.tsql("create table dbo.s (id int primary key, v nvarchar(20))\nGO\ninsert into dbo.s values (1, N'a'), (2, NULL)\nGO\n"
                   "update dbo.s set v = N'b' where id = 2\nGO\nselect id, v from dbo.s order by id\nGO\n"
                   "begin tran\ndelete from dbo.s\nrollback\nGO\nselect count(*) from dbo.s")
    assert "1|a" in out and "2|b" in out and out.strip().splitlines()[-1] == "2", out
    out = tds.tsql("insert into dbo.s values (1, N'again')")
    assert "2627" in out, out
    out = tds.bsqldb("select id, v from dbo.s order by id")
    assert [line.replace(" ", "") for line in out.strip().splitlines()] == ["1|a", "2|b"], out


def check_freebcp(tds: FreeTds) -> None:
    tds.tsql(BCP_TABLE)
    source = tds.directory / "in.txt"
    source.write_text("\n".join(BCP_ROWS) + "\n", encoding="utf-8")
    out = tds.bcp("in", "dbo.bcp", source, "-c", "-t", "|")
    assert "3 rows copied" in out, out
    assert "3|" in tds.tsql("select count(*), max(id) from dbo.bcp"), "three rows must be there"
    exported = tds.directory / "out.txt"
    tds.bcp("out", "dbo.bcp", exported, "-c", "-t", "|")
    # The export names days in FreeTDS's own form: load it again and compare what the server has.
    tds.tsql("select * into dbo.bcp2 from dbo.bcp where 1 = 0")
    ids = [line.split("|")[:5] for line in exported.read_text(encoding="utf-8").splitlines()]
    assert ids == [row.split("|")[:5] for row in BCP_ROWS], ids
    long = exported.read_text(encoding="utf-8").splitlines()[0].split("|")[8]
    assert long == BCP_ROWS[0].split("|")[8], "the long value must come back whole"


def check_freebcp_many(tds: FreeTds) -> None:
    tds.tsql("create table dbo.many (id int not null, v varchar(30) null)")
    source = tds.directory / "many.txt"
    source.write_text("".join(f"{i}\tvalue {i}\n" for i in range(20000)))
    out = tds.bcp("in", "dbo.many", source, "-c", "-b", "7000")
    assert "20000 rows copied" in out, out
    exported = tds.directory / "many.out"
    tds.bcp("out", "dbo.many", exported, "-c")
    assert sorted(exported.read_text().splitlines()) == sorted(source.read_text().splitlines())


def check_refused_load(tds: FreeTds) -> None:
    tds.tsql("create table dbo.pk (id int not null primary key)")
    source = tds.directory / "pk.txt"
    source.write_text("1\n2\n1\n")
    done = run(["freebcp", "dbo.pk", "in", source, "-S", "sandbox", "-U", "sa", "-P", PASSWORD, "-D", "shop", "-c"],
               env=tds.environment)
    assert "2627" in done.stdout + done.stderr or "duplicate" in (done.stdout + done.stderr).lower(), done
    assert tds.tsql("select count(*) from dbo.pk").strip().splitlines()[-1] == "0", "a refused load must leave nothing"


def freetds() -> None:
    if not all(shutil.which(tool) for tool in ("tsql", "bsqldb", "freebcp")):
        SKIPPED.append("FreeTDS: tsql, bsqldb, freebcp are not installed")
        return
    for arguments, encryption in (([], "off"), (["--encrypt", "login"], "request"), (["--encrypt", "on"], "require")):
        with Sandbox(*arguments) as sandbox, tempfile.TemporaryDirectory() as directory:
            tds = FreeTds(sandbox, pathlib.Path(directory), encryption)
            for check in (check_login, check_statements, check_freebcp, check_freebcp_many, check_refused_load):
                check(tds)
                print(f"ok freetds, encryption {encryption}: {check.__name__[6:]}", flush=True)


def tedious() -> None:
    if not shutil.which("npm") or not shutil.which("node"):
        SKIPPED.append("tedious: npm and node are not installed")
        return
    if not (CACHE / "node_modules" / "tedious").is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        done = run(["npm", "install", "--prefix", CACHE, "--no-audit", "--no-fund", "--loglevel=error", TEDIOUS])
        if done.returncode != 0:
            SKIPPED.append(f"tedious: npm cannot fetch it: {done.stderr.strip()}")
            return
    for arguments, encrypt in (([], "false"), (["--encrypt", "on"], "true")):
        with Sandbox(*arguments) as sandbox:
            done = run(["node", HERE / "tedious.js", sandbox.port, "sa", PASSWORD, "shop", encrypt],
                       env=dict(os.environ, NODE_PATH=str(CACHE / "node_modules")))
            print(done.stdout, end="", flush=True)
            assert done.returncode == 0, f"tedious, encrypt {encrypt}: {done.stdout}\n{done.stderr}"


def pytds() -> None:
    target = CACHE / "py"
    if not (target / "pytds").is_dir():
        done = run([sys.executable, "-m", "pip", "install", "-q", "--target", target, PYTDS])
        if done.returncode != 0:
            SKIPPED.append(f"pytds: pip cannot fetch it: {done.stderr.strip()}")
            return
    with Sandbox() as sandbox:
        print(must([sys.executable, HERE / "pytds_client.py", sandbox.port, "sa", PASSWORD, "shop"],
                   env=dict(os.environ, PYTHONPATH=str(target))), end="", flush=True)


def main() -> int:
    wanted = sys.argv[3:] or ["freetds", "tedious", "pytds"]
    clients = {"freetds": freetds, "tedious": tedious, "pytds": pytds}
    for name in wanted:
        clients[name]()
    for reason in SKIPPED:
        print(f"skipped {reason}", flush=True)
    return 77 if len(SKIPPED) == len(wanted) else 0


if __name__ == "__main__":
    sys.exit(main())
