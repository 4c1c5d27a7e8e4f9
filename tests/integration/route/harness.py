"""What the tests of the route stand on: processes of ours, PostgreSQL through psql, the sandbox through FreeTDS.

Everything listens on loopback, on ports that the system chose; only processes that were started here are ended, by
their id.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
SECRET = "p@ss;wörd ]'\"1"  # of the sandbox's login, in every test that does not say otherwise
WAIT = 60 * float(os.environ.get("ROWFERRY_TEST_SLOWNESS", "1"))  # seconds until something counts as hung
FIELD, RECORD, NULL = "\x1f", "\x1e", "\x1dNULL"
TERMINAL = ("succeeded", "failed", "cancelled", "interrupted")


class Failed(AssertionError):
    pass


def check(condition, *what):
    if not condition:
        raise Failed(" ".join(str(part) for part in what))


def equal(actual, expected, *what):
    if actual != expected:
        raise Failed(f"{' '.join(str(part) for part in what)}: {actual!r} instead of {expected!r}")


def eventually(question, what, seconds=None):
    """Asks until the answer is true; gives it."""
    until = time.monotonic() + (seconds or WAIT)
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > until:
            raise Failed(f"{what}: still not so after {seconds or WAIT:.0f} s")
        time.sleep(0.02)


def start(command, **how):
    return subprocess.Popen([str(part) for part in command], text=True, encoding="utf-8", errors="replace", **how)


def run(command, text="", timeout=None, **how):
    try:
        return subprocess.run([str(part) for part in command], input=text, capture_output=True, text=True, encoding="utf-8",
                              errors="replace", timeout=timeout or 2 * WAIT, check=False, **how)
    except subprocess.TimeoutExpired as expired:
        raise Failed(f"{command[0]} {command[1]} hangs: {expired.stderr}") from None


SANITIZER = re.compile(r"(ERROR: (?:Address|Leak)Sanitizer|runtime error:).*")


def sane(text, whose):
    """A process built with sanitizers has found nothing."""
    found = SANITIZER.search(text)
    if found:
        raise Failed(f"{whose}: {text[found.start():found.start() + 3000]}")


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


# --- PostgreSQL


class Postgres:
    """A database of its own in a cluster; psql does the talking."""

    def __init__(self, cluster_dsn, database):
        self.cluster_dsn = cluster_dsn
        self.database = database
        self.dsn = re.sub(r"dbname=\S+", "", cluster_dsn) + f" dbname={database}"
        self._psql(cluster_dsn, f"CREATE DATABASE {database}")

    def drop(self):
        self._psql(self.cluster_dsn, f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")

    @staticmethod
    def command(dsn):
        return ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-F", FIELD, "-R", RECORD, "-P", f"null={NULL}", "-d", dsn]

    def _psql(self, dsn, sql):
        done = run(self.command(dsn), sql)
        if done.returncode != 0:
            raise Failed(f"psql: {done.stderr.strip()} in {sql[:300]}")
        return done.stdout

    def do(self, sql):
        self._psql(self.dsn, sql)

    def rows(self, query):
        """Rows of texts, None for NULL, as PostgreSQL prints them in UTC."""
        out = self._psql(self.dsn, "SET TimeZone = 'UTC';\n" + query)
        if out.endswith("\n"):
            out = out[:-1]
        if not out:
            return []
        return [tuple(None if value == NULL else value for value in row.split(FIELD)) for row in out.split(RECORD)]

    def value(self, query):
        return self.rows(query)[0][0]

    def session(self, sql):
        """A psql of its own that works on `sql` in the background."""
        process = start(self.command(self.dsn), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(sql + "\n")
        process.stdin.flush()
        return process

    def engine_sessions(self):
        return self.rows("SELECT pid, state, left(query, 60) FROM pg_stat_activity WHERE datname = current_database() "
                         "AND application_name LIKE 'rowferry%'")


@contextlib.contextmanager
def cluster():
    """The dsn of the cluster that the environment names, or of one that lives as long as the tests."""
    given = os.environ.get("ROWFERRY_TEST_PG") or os.environ.get("ROWFERRY_TEST_DSN")
    if given:
        yield given
        return
    with own_cluster() as (dsn, _):
        yield dsn


@contextlib.contextmanager
def own_cluster():
    with tempfile.TemporaryDirectory(prefix="route-pg.") as work:
        os.chmod(work, 0o755)  # the server's user enters it
        folder = pathlib.Path(work, "pg")
        started = run([ROOT / "tools" / "pg", "start", folder])
        check(started.returncode == 0, "tools/pg start:", started.stderr)
        try:
            yield started.stdout.strip(), folder
        finally:
            run([ROOT / "tools" / "pg", "stop", folder])


# --- the sandbox, and FreeTDS to look into it


class Sandbox:
    """One sandbox process with a database `dw`."""

    def __init__(self, bench, *arguments, faults=None, secret=SECRET):
        self.bench = bench
        self.secret = secret
        self.folder = bench.folder("sandbox")
        command = [bench.binary, "sandbox", "--listen", "127.0.0.1:0", "--database", "dw", "--password-env", "SANDBOX_SECRET"]
        if faults is not None:
            path = self.folder / "faults.json"
            path.write_text(json.dumps({"faults": faults}))
            command += ["--faults", path]
        self.errors = open(self.folder / "stderr", "w+", encoding="utf-8")
        self.process = start(command + list(arguments), stdout=subprocess.PIPE, stderr=self.errors,
                             env={**os.environ, "SANDBOX_SECRET": secret})
        line = self.process.stdout.readline()
        found = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
        check(found, "the sandbox does not start:", line, (self.folder / "stderr").read_text())
        self.port = int(found.group(1))
        self.freetds = self._freetds()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            pass
        code = self.process.poll()
        end(self.process)
        self.errors.close()
        sane((self.folder / "stderr").read_text(encoding="utf-8", errors="replace"), "the sandbox")
        check(code == 0, "the sandbox ended with", code)

    def _freetds(self):
        conf = self.folder / "freetds.conf"
        conf.write_text("[global]\ntds version = 7.4\nclient charset = UTF-8\ntext size = 2147483647\n"
                        f"[sandbox]\nhost = 127.0.0.1\nport = {self.port}\nencryption = request\ndatabase = dw\n")
        return {**os.environ, "FREETDSCONF": str(conf), "TDSVER": "7.4"}

    def tsql(self, sql):
        """(what tsql printed, the numbers of the errors)."""
        done = run(["tsql", "-S", "sandbox", "-U", "sa", "-P", self.secret, "-o", "fhq", "-t", FIELD],
                   sql + "\nGO\nexit\n", env=self.freetds)
        text = done.stdout + done.stderr
        errors = [int(number) for number, level in re.findall(r"Msg (\d+) \(severity (\d+)", text) if int(level) > 10]
        check(done.returncode == 0, "tsql:", text)
        return done.stdout, errors

    def do(self, sql):
        out, errors = self.tsql(sql)
        check(not errors, f"errors {errors} in {sql[:300]}:", self.bench.tail(out))

    def error_of(self, sql):
        _, errors = self.tsql(sql)
        return errors[0] if errors else None

    def rows(self, columns, rest):
        """Rows of texts, None for NULL, of SELECT `columns` (each an expression) `rest`, as FreeTDS prints them."""
        out, errors = self.tsql(f"select N'{RECORD}' as mark_, {', '.join(columns)} {rest}")
        check(not errors, f"errors {errors} in select {columns} {rest}:", out[-500:])
        rows = []
        for record in out.split(RECORD)[1:]:
            record = record[1:] if record.startswith(FIELD) else record
            values = (record[:-1] if record.endswith("\n") else record).split(FIELD)
            equal(len(values), len(columns), "columns of a row that tsql printed")
            rows.append(tuple(None if value == "NULL" else value for value in values))
        return rows

    def value(self, expression, rest=""):
        return self.rows([expression], rest)[0][0]

    def exists(self, table):
        return self.value(f"object_id({literal(table)})") is not None

    def count(self, table):
        return int(self.value("count_big(*)", f"from {table}"))

    def left_overs(self):
        """Names of tables that only transfers make; the ledger stays."""
        return [row[0] for row in self.rows(["name"], "from sys.tables where name like N'rowferry[_]%' and name <> N'rowferry_ledger'")]

    def lock_is_free(self, table):
        resource = literal("rowferry:" + table.lower())
        out, errors = self.tsql(f"declare @r int; exec @r = sp_getapplock @Resource = {resource}, @LockMode = 'Exclusive', "
                                f"@LockOwner = 'Session', @LockTimeout = 0; select N'{RECORD}' as mark_, @r as r")
        check(not errors, "sp_getapplock:", errors)
        return int(out.split(RECORD)[1].strip(FIELD + "\n")) >= 0


def literal(text):
    return "N'" + text.replace("'", "''") + "'"


# --- the engine


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    def json(self):
        return json.loads(self.body)


class Outcome:
    """How a command ended."""

    def __init__(self, done):
        sane(done.stderr, "the engine")
        self.code = done.returncode
        self.out = done.stdout
        self.log = done.stderr
        found = re.findall(r"^rowferry: (.*)$", done.stderr, re.M)
        self.said = found
        self.artifact = None
        if done.stdout.lstrip().startswith("{"):
            self.artifact = json.loads(done.stdout)

    def error(self):
        return (self.artifact or {}).get("error") or {}


class Workspace:
    """A folder with a configuration and a state directory; the commands run in it."""

    def __init__(self, bench, target, source=None, encrypt="off", server="", target_extra="", environment=None, secret=None, extra=""):
        self.bench = bench
        self.folder = bench.folder("work")
        port = target if isinstance(target, int) else target.port
        self.secret = secret if secret is not None else getattr(target, "secret", SECRET)
        self.environment = {**os.environ, "DW_SECRET": self.secret, **(environment or {})}
        self.config = self.folder / "rowferry.toml"
        dsn = source if source is not None else bench.pg.dsn
        self.config.write_text(
            f'[server]\nlisten = "127.0.0.1:0"\nstate_dir = "state"\n{server}\n'
            f'[connections.shop]\ntype = "postgres"\ndsn = "{dsn}"\n'
            f'[connections.warehouse]\ntype = "mssql"\nhost = "127.0.0.1"\nport = {port}\ndatabase = "dw"\nuser = "sa"\n'
            f'password = {{ env = "DW_SECRET" }}\nencrypt = "{encrypt}"\nwritable = true\n{target_extra}\n{extra}\n',
            encoding="utf-8")

    def command(self, *arguments):
        return [self.bench.binary, *arguments, "--config", self.config]

    def run(self, *arguments, text=""):
        return Outcome(run(self.command(*arguments), text, env=self.environment))

    def transfer(self, spec):
        return self.run("transfer", "-", text=spec if isinstance(spec, str) else json.dumps(spec))

    def load(self, spec):
        """A transfer that has to succeed; its artifact."""
        done = self.transfer(spec)
        check(done.code == 0, f"the transfer ended with {done.code}: {done.said} {self.bench.tail(done.log)}")
        equal(done.artifact["state"], "succeeded", "state")
        for one in done.artifact["checks"]:
            check(one["result"] in ("passed", "not_applicable"), "check", one)
        return done.artifact

    def refused(self, spec, code, exit_code=None):
        """A transfer that has to fail with this problem; its error."""
        done = self.transfer(spec)
        check(done.code != 0, f"the transfer succeeded instead of failing with {code}")
        check(done.artifact is not None, f"there is no artifact: exit {done.code}, {done.said} {self.bench.tail(done.log)}")
        error = done.error()
        equal(error.get("code"), code, f"the problem ({error.get('detail')})")
        if exit_code is not None:
            equal(done.code, exit_code, f"exit code of {code}")
        equal(len(done.said), 1, f"lines on standard error {done.said}")
        return error

    def start_transfer(self, spec):
        """`rowferry transfer` in the background: (process, function that waits for the transfer's id)."""
        path = self.folder / f"spec{time.monotonic_ns()}.json"
        path.write_text(json.dumps(spec), encoding="utf-8")
        return Background(self, self.command("transfer", path))

    def start_resume(self, transfer_id):
        return Background(self, self.command("resume", transfer_id))

    def serve(self, *arguments):
        return Engine(self, *arguments)


class Background:
    """A command in the background; its output goes to files, so that it never waits for us."""

    def __init__(self, work, command):
        stem = work.folder / f"run{time.monotonic_ns()}"
        self.out, self.log = stem.with_suffix(".out"), stem.with_suffix(".log")
        with open(self.out, "w", encoding="utf-8") as out, open(self.log, "w", encoding="utf-8") as log:
            self.process = start(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=work.environment)

    def text(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def id_if_known(self):
        found = re.search(r"^([0-9a-z]{10,}) (queued|planning|running)", self.text(), re.M)
        return found.group(1) if found else None

    def id(self):
        return eventually(lambda: self.id_if_known() or (self.process.poll() is not None and self._ended()), "a transfer id")

    def _ended(self):
        raise Failed(f"the command ended with {self.process.returncode}: {self.text()[-500:]}")

    def state_seen(self, state):
        return re.search(rf"^[0-9a-z]{{10,}} {state}", self.text(), re.M) is not None

    def wait_for(self, state):
        eventually(lambda: self.state_seen(state) or (self.process.poll() is not None and self._ended()), f"state {state}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def wait(self):
        try:
            self.process.wait(timeout=2 * WAIT)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed("the command hangs: " + self.text()[-500:]) from None

        class Done:
            returncode = self.process.returncode
            stdout = self.out.read_text(encoding="utf-8")
            stderr = self.text()

        return Outcome(Done)


class Engine:
    """`rowferry serve`."""

    def __init__(self, work, *arguments):
        self.work = work
        self.log_path = work.folder / f"serve{time.monotonic_ns()}.log"
        self.log = open(self.log_path, "w", encoding="utf-8")
        self.process = start(work.command("serve", *arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log,
                             env=work.environment)
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        check(found, "serve does not start:", line, self.log_path.read_text())
        self.port = int(found.group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """SIGTERM, and the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(timeout=2 * WAIT)
        finally:
            end(self.process)
            self.log.close()
        sane(self.log_path.read_text(encoding="utf-8", errors="replace"), "the engine")
        return code

    def kill(self):
        end(self.process)

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        try:
            every = dict(headers or {})
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            if body is not None:
                body = body.encode()
                every.setdefault("Content-Type", "application/json")
            connection.request(method, path, body=body, headers=every)
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def post(self, spec, headers=None):
        return self.ask("POST", "/v1/transfers", spec, headers)

    def submit(self, spec):
        answer = self.post(spec)
        equal(answer.status, 202, f"POST /v1/transfers {answer.body[:300]}")
        return answer.json()["id"]

    def status(self, transfer_id):
        answer = self.ask("GET", f"/v1/transfers/{transfer_id}")
        equal(answer.status, 200, "GET of a transfer")
        return answer.json()

    def wait(self, transfer_id, *states):
        """Polls until the transfer is in one of the states (default: a terminal one); its status."""
        wanted = states or TERMINAL

        def look():
            status = self.status(transfer_id)
            if status["state"] in TERMINAL and status["state"] not in wanted:
                raise Failed(f"{status['state']} instead of {wanted}: {status['error']}")
            return status if status["state"] in wanted else None

        return eventually(look, f"{transfer_id} in {wanted}")

    def artifact(self, transfer_id):
        answer = self.ask("GET", f"/v1/transfers/{transfer_id}/artifact")
        equal(answer.status, 200, f"the artifact {answer.body[:200]}")
        return answer.json()

    def problem(self, answer, status, code):
        """The problem document of an answer, checked for its shape."""
        equal(answer.status, status, f"status {answer.body[:300]}")
        equal(answer.headers.get("content-type"), "application/problem+json", "content type of a problem")
        document = answer.json()
        equal(document.get("code"), code, f"code of {document}")
        equal(document.get("status"), status, "status within the problem")
        check(document.get("title") and document.get("detail"), "title and detail of", document)
        return document


# --- a proxy that cuts


class Proxy:
    """TCP to a port on loopback. cut(direction, before, text): when the client (or server) sends `text`, the connection is cut
    before it is passed on, or when the answer to it has come from the other side."""

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.pairs = []
        self.rule = None
        self.cuts = 0
        self.closed = False
        self.gate = threading.Event()
        self.gate.set()
        self.rate = None  # bytes a second of each connection, towards the server
        self.down_rate = None  # and towards the client
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True
        self.gate.set()
        self.listener.close()
        for pair in list(self.pairs):
            self._cut(pair)

    def cut_at(self, text, nth, when, encoding="utf-16-le"):
        """`when`: "before" the nth request with this text reaches the server, or "after" the server has answered it."""
        assert when in ("before", "after")
        with self.lock:
            self.rule = {"text": text.encode(encoding), "left": nth, "when": when}

    def cut_one(self, chooser):
        with self.lock:
            pairs = list(self.pairs)
        if not pairs:
            return False
        self._cut(pairs[chooser(len(pairs))])
        return True

    def pause(self):
        """Nothing of the client goes to the server until resume()."""
        self.gate.clear()

    def resume(self):
        self.gate.set()

    def _accept(self):
        while not self.closed:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                if self.closed:
                    return
                continue
            pair = {"client": client, "server": server, "cut_on_answer": False, "tail": b""}
            for side in (client, server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.pairs.append(pair)
            threading.Thread(target=self._up, args=(pair,), daemon=True).start()
            threading.Thread(target=self._down, args=(pair,), daemon=True).start()

    def _cut(self, pair):
        with self.lock:
            if pair in self.pairs:
                self.pairs.remove(pair)
                self.cuts += 1
        for side in (pair["client"], pair["server"]):
            with contextlib.suppress(OSError):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                side.close()

    def _strikes(self, pair, data):
        with self.lock:
            rule = self.rule
            if rule is None:
                return None
            text = rule["text"]
            seen = (pair["tail"] + data).count(text)
            pair["tail"] = data[-(len(text) - 1):]
            if seen == 0:
                return None
            rule["left"] -= seen
            if rule["left"] > 0:
                return None
            self.rule = None
            return rule["when"]

    def _up(self, pair):
        with contextlib.suppress(OSError):
            while data := pair["client"].recv(65536):
                self.gate.wait()
                if self.rate:
                    time.sleep(len(data) / self.rate)
                when = self._strikes(pair, data)
                if when == "before":
                    break
                if when == "after":
                    pair["cut_on_answer"] = True
                pair["server"].sendall(data)
        self._cut(pair)

    def _down(self, pair):
        with contextlib.suppress(OSError):
            while data := pair["server"].recv(8192 if self.down_rate else 65536):
                if pair["cut_on_answer"]:
                    break
                if self.down_rate:
                    time.sleep(len(data) / self.down_rate)
                pair["client"].sendall(data)
        self._cut(pair)


# --- the bench that all tests share


class Bench:
    def __init__(self, binary, pg, seed, kills, folder):
        self.binary = binary
        self.pg = pg
        self.seed = seed
        self.kills = kills
        self.root = folder
        self.names = 0
        self._sandbox = None
        self._work = None

    def folder(self, kind):
        self.names += 1
        path = self.root / f"{kind}{self.names}"
        path.mkdir()
        return path

    def name(self, stem):
        """A table's name that nobody else has."""
        self.names += 1
        return f"{stem}_{self.names}"

    @property
    def sandbox(self):
        """The sandbox that tests without wishes share."""
        if self._sandbox is None:
            self._sandbox = Sandbox(self)
        return self._sandbox

    @property
    def work(self):
        if self._work is None:
            self._work = Workspace(self, self.sandbox)
        return self._work

    def close(self):
        if self._sandbox is not None:
            self._sandbox.__exit__()

    @staticmethod
    def tail(text):
        return " / ".join(text.strip().splitlines()[-6:])

    def nothing_left(self, table, sandbox=None, seconds=20):
        """No session, lock or staging table of a transfer is there."""
        sandbox = sandbox or self.sandbox
        eventually(lambda: not self.pg.engine_sessions(), f"no session of the engine in PostgreSQL {self.pg.engine_sessions()}", seconds)
        eventually(lambda: sandbox.lock_is_free(f"[dbo].[{table}]"), f"the lock of {table} is free", seconds)
        equal(sandbox.left_overs(), [], "staging tables left")


def spec(source, target, mode="append", create=True, connections=("shop", "warehouse"), **more):
    """A transfer spec; keywords with a dot's meaning go in whole: source_where, target_key, and top-level fields."""
    out = {"source": {"connection": connections[0], "table": source},
           "target": {"connection": connections[1], "table": target, "mode": mode, "create": create}}
    for key, value in more.items():
        side, _, field = key.partition("_")
        if side in ("source", "target") and field:
            out[side][field] = value
        else:
            out[key] = value
    if "query" in out["source"]:
        del out["source"]["table"]
    return out


def say(text):
    print(text, flush=True)
    sys.stdout.flush()
