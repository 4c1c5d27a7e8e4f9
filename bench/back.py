"""The lines of bench/run for the route SQL Server -> PostgreSQL: a sandbox that keeps its tables is the source.

Reference: as many parallel `psql \\copy ... FROM file (FORMAT binary)` as there are load workers, from files made beforehand. For
loads into a partition per slice each file goes into a fresh unlogged table of its own with FREEZE; for loads through one staging
table all go into one fresh logged table without it.
"""
import json
import shutil
import statistics
import subprocess
import time

STORES = 4
NARROW = ("g::int as id", "(g * 7)::bigint as b", "g * 0.5::float8 as f", "timestamp '2020-01-01' + g * interval '1 second' as t",
          f"g % {STORES} as store")


def wide_columns():
    """The 55-column shape: (name, SQL Server's type, PostgreSQL's expression over g)."""
    out = []

    def add(prefix, count, native, expression):
        out.extend((f"{prefix}{i}", native, expression.format(i=i)) for i in range(1, count + 1))

    add("i", 8, "int", "(g * 31 + {i})::int")
    add("b", 8, "bigint", "(g * 1000003::bigint + {i})")
    add("d", 6, "decimal(18,4)", "(g * 1.2345 + {i})::numeric(18,4)")
    add("m", 6, "money", "(g * 0.0125 - {i})::numeric(19,4)")
    add("f", 4, "float", "(g * 0.37 + {i})::float8")
    add("t", 6, "datetime2(6)", "timestamp '2020-01-01' + g * interval '1.000123 second' + {i} * interval '1 day'")
    add("a", 3, "date", "date '2000-01-01' + (g % 9000)::int + {i}")
    add("k", 2, "bit", "(g + {i}) % 2 = 0")
    add("u", 2, "uniqueidentifier", "md5((g + {i})::text)::uuid")
    add("s", 8, "nvarchar(40)", "case when (g + {i}) % 10 < 3 then null else 'article ' || (g * {i} % 100000) end")
    add("n", 2, "nvarchar(200)", "repeat('remark of the cashier ', 1 + (g % 4)::int) || (g + {i})")
    out[0] = ("store", "int", f"(g % {STORES})::int")
    return out


def back_config(store, dsn):
    def source(name, encrypt):
        return f"""[connections.{name}]
type = "mssql"
host = "127.0.0.1"
port = {store.port}
database = "shop"
user = "sa"
password = {{ env = "BENCH_PASSWORD" }}
encrypt = "{encrypt}"
trust_server_certificate = true
writable = true
"""

    return f"""[server]
listen = "127.0.0.1:0"
state_dir = "state_back"
[connections.pg]
type = "postgres"
dsn = "{dsn}"
writable = true
""" + source("store", "off") + source("store_tls", "on")


class Back:
    def __init__(self, bench, measured):
        self.bench, self.measured = bench, measured
        self.config = bench.work / "back.toml"
        self.shapes = {}
        store = bench.serve([bench.rowferry, "sandbox", "--listen", "127.0.0.1:0", "--database", "shop", "--encrypt", "login",
                             "--password-env", "BENCH_PASSWORD"])
        self.port = store.port
        self.config.write_text(back_config(store, bench.dsn))

    def transfer(self, spec):
        path = self.bench.work / "back.json"
        path.write_text(json.dumps(spec))
        usage = self.measured([self.bench.rowferry, "transfer", str(path), "--config", str(self.config)], env=self.bench.env)
        usage.artifact = json.loads(usage.out)
        return usage

    # -- set-up ---------------------------------------------------------------------------------------------------
    def make(self, shape, rows, expressions, definition=None):
        """The shape's rows in PostgreSQL, in the sandbox, and in a binary file for each store."""
        if shape in self.shapes:
            return
        bench = self.bench
        bench.psql(f"create table {shape} as select {', '.join(expressions)} from generate_series(1, {rows}) g")
        if definition:
            self.tds(f"create table dbo.{shape} ({definition})")
        self.transfer({"source": {"connection": "pg", "table": f"public.{shape}"},
                       "target": {"connection": "store", "table": f"dbo.{shape}", "mode": "append", "create": not definition}})
        folder = bench.work / shape
        folder.mkdir()
        folder.chmod(0o755)
        for store in range(STORES):
            with (folder / f"{store}.bin").open("wb") as out:
                subprocess.run(["psql", "-qX", "-d", bench.dsn, "-c",
                                f"COPY (SELECT * FROM {shape} WHERE store = {store}) TO STDOUT (FORMAT binary)"],
                               stdout=out, check=True)
        self.shapes[shape] = rows

    def tds(self, sql):
        subprocess.run(["tsql", "-H", "127.0.0.1", "-p", str(self.port), "-U", "sa", "-P", self.bench.env["BENCH_PASSWORD"], "-D",
                        "shop"], input=f"{sql}\ngo\n", text=True, check=True, env=dict(self.bench.env, TDSVER="7.4"),
                       capture_output=True)

    # -- what is measured ---------------------------------------------------------------------------------------------
    def spec(self, shape, disposable, drain=False, tls=False):
        spec = {"source": {"connection": "store_tls" if tls else "store", "table": f"dbo.{shape}"},
                "target": {"connection": "pg", "table": f"public.{shape}_back", "mode": "truncate", "create": True},
                "slices": {"by": "value", "column": "store"}, "workers": {"export": STORES, "load": STORES},
                "read": {"drain": drain, "memory_budget": "4 GiB"}}
        if disposable:
            spec["target"]["partition"] = {"by": "list", "column": "store"}
            spec["load"] = {"commit": "slice", "unlogged": True, "freeze": True}
        return spec

    def back(self, shape, disposable, drain=False, tls=False):
        """One transfer; the target is made by the first of a kind and renewed by the others."""
        return self.transfer(self.spec(shape, disposable, drain, tls))

    def fresh(self, shape):
        self.bench.psql(f"drop table if exists {shape}_back")

    def psql_copies(self, shape, disposable):
        """Wall seconds of the parallel loads; their tables are made within, as the engine's are truncated within."""
        if not disposable:
            self.bench.psql(f"drop table if exists ref_all; create table ref_all (like {shape})")
        children = []
        began = time.monotonic()
        for store in range(STORES):
            file = self.bench.work / shape / f"{store}.bin"
            if disposable:
                script = (f"begin;\ndrop table if exists ref_{store};\ncreate unlogged table ref_{store} (like {shape});\n"
                          f"\\copy ref_{store} from '{file}' (format binary, freeze)\ncommit;\n")
            else:
                script = f"\\copy ref_all from '{file}' (format binary)\n"
            child = subprocess.Popen(["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-d", self.bench.dsn], stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL)
            child.stdin.write(script.encode())
            child.stdin.close()
            children.append(child)
        for child in children:
            if child.wait() != 0:
                raise RuntimeError("a psql copy of the reference failed")
        return time.monotonic() - began

    def drain(self, shape):
        return self.measured([str(self.bench.build / "bench/tds_drain"), "127.0.0.1", str(self.port), "shop", "sa",
                              f"SELECT * FROM dbo.{shape}"], env=self.bench.env)

    def repeat(self, shape, disposable, drain=False, tls=False):
        """(transfers, psql walls, drains), taken in turn."""
        self.fresh(shape)
        transfers, copies, drains = [], [], []
        for _ in range(self.bench.args.repeat):
            copies.append(self.psql_copies(shape, disposable))
            transfers.append(self.back(shape, disposable, drain, tls))
            drains.append(self.drain(shape))
        return transfers, copies, drains

    def bound(self, transfers, drains):
        """The note of a line whose sandbox gives its rows too slowly to judge the route."""
        wall = statistics.median(t.wall for t in transfers)
        ready = statistics.median(json.loads(d.out)["seconds"] for d in drains)
        print(f"precondition: the sandbox gives the bytes at {wall / ready:.1f} x the route's rate")
        return "" if ready * 3 <= wall else "sandbox_bound"

    def narrow(self):
        rows = self.bench.args.rows
        self.make("narrow", rows, NARROW)
        transfers, copies, drains = self.repeat("narrow", True)
        note = self.bound(transfers, drains)
        med = statistics.median
        self.bench.add("back_wall", f"sandbox -> postgres, {STORES} unlogged partitions, FREEZE: wall / parallel psql \\copy",
                       med(t.wall / c for t, c in zip(transfers, copies)), 1.25, med(t.wall for t in transfers) / rows * 1e9, note)
        self.bench.add("back_cpu", "engine CPU / tds_drain CPU", med(t.cpu / d.cpu for t, d in zip(transfers, drains)), 2.5,
                       med(t.cpu for t in transfers) / rows * 1e9, note)

    def wide(self):
        rows = self.bench.args.wide_rows
        columns = wide_columns()
        self.make("wide", rows, [f"{expression} as {name}" for name, _, expression in columns],
                  ", ".join(f"{name} {native} null" for name, native, _ in columns))
        med = statistics.median
        for disposable in (False, True):
            for drain in (False, True):
                for tls in (False, True):
                    kind = "_".join(("disposable" if disposable else "plain", "drained" if drain else "streaming",
                                     *(("tls",) if tls else ())))
                    transfers, copies, drains = self.repeat("wide", disposable, drain, tls)
                    note = self.bound(transfers, drains)
                    self.bench.add(f"wide_{kind}", f"{len(columns)} columns, {kind.replace('_', ', ')}: wall / parallel psql \\copy",
                                   med(t.wall / c for t, c in zip(transfers, copies)), 1.35,
                                   med(t.wall for t in transfers) / rows * 1e9, note)
                    if not drain:
                        over = [(e["peak_rss_bytes"] - e["idle_rss_bytes"]) / 2**20 for e in
                                (t.artifact["engine"] for t in transfers)]
                        self.bench.add(f"wide_{kind}_mem", "peak resident memory over idle, MiB", med(over), 32)

    # -- peers: their rates for information, or what kept them from one --------------------------------------------------------
    def peers(self):
        rows = min(self.bench.args.rows, 500_000)
        self.make("peer", rows, NARROW)
        self.pgloader(rows)
        self.tds_fdw(rows)

    def told(self, name, began, rows, error):
        if error:
            print(f"{name}: could not: {error.strip().splitlines()[-1][:200] if error.strip() else 'no word of why'}")
        else:
            print(f"{name}: {rows / (time.monotonic() - began):,.0f} rows/s")

    def pgloader(self, rows):
        if shutil.which("pgloader") is None:
            print("pgloader: skipped, not installed")
            return
        port = dict(part.split("=", 1) for part in self.bench.dsn.split())["port"]
        script = self.bench.work / "peer.load"
        password = self.bench.env["BENCH_PASSWORD"].replace("@", "@@")
        script.write_text(f"LOAD DATABASE FROM mssql://sa:{password}@127.0.0.1:{self.port}/shop\n"
                          f"INTO postgresql://postgres@127.0.0.1:{port}/postgres\n"
                          "INCLUDING ONLY TABLE NAMES LIKE 'peer' IN SCHEMA 'dbo';\n")
        began = time.monotonic()
        try:
            done = subprocess.run(["pgloader", "--on-error-stop", str(script)], text=True, capture_output=True, timeout=120,
                                  env=dict(self.bench.env, TDSPORT=str(self.port), TDSVER="7.4"), check=False)
            loaded = subprocess.run(["psql", "-qXAt", "-d", self.bench.dsn, "-c", "select count(*) from dbo.peer"], text=True,
                                    capture_output=True, check=False).stdout.strip()
            self.told("pgloader", began, rows, "" if loaded == str(rows) else done.stdout + done.stderr)
        except subprocess.TimeoutExpired:
            self.told("pgloader", began, rows, "not done within 120 s")

    def tds_fdw(self, rows):
        sql = (f"create extension tds_fdw; create server peer foreign data wrapper tds_fdw options (servername '127.0.0.1', port "
               f"'{self.port}', database 'shop', tds_version '7.4'); create user mapping for postgres server peer options (username "
               f"'sa', password '{self.bench.env['BENCH_PASSWORD']}'); create foreign table peer_foreign (id int, b bigint, f float8, "
               "t timestamp, store int) server peer options (schema_name 'dbo', table_name 'peer');")
        made = subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-d", self.bench.dsn, "-c", sql], text=True,
                              capture_output=True, check=False)
        if made.returncode != 0:
            print(f"tds_fdw: skipped: {made.stderr.strip().splitlines()[0][:200]}")
            return
        began = time.monotonic()
        done = subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-d", self.bench.dsn, "-c",
                               "set statement_timeout = '120s'; create table peer_fdw as select * from peer_foreign"], text=True,
                              capture_output=True, check=False)
        self.told("tds_fdw", began, rows, done.stderr if done.returncode != 0 else "")
