"""Bad input: a clear problem before anything is written. Exit code 2 and one line on the command line; code and field over HTTP."""

import json
import re
import socket
import subprocess

from harness import NULL, SECRET, Postgres, Proxy, Sandbox, Workspace, check, equal, eventually, own_cluster, run, spec

GOOD = {"source": {"connection": "shop", "table": "public.t"}, "target": {"connection": "warehouse", "table": "dbo.t", "mode": "append"}}


def changed(path, value):
    """GOOD with one member set; None removes it."""
    out = json.loads(json.dumps(GOOD))
    at = out
    *folders, last = path.split(".")
    for folder in folders:
        at = at.setdefault(folder, {})
    if value is None:
        at.pop(last, None)
    else:
        at[last] = value
    return out


# body, HTTP status, code, field
OFFLINE = [
    ("", 400, "body_missing", None),
    ("{", 400, "malformed_json", None),
    ('{"source": 1,}', 400, "malformed_json", None),
    ("nonsense", 400, "malformed_json", None),
    ('{"a": "\\ud800"}', 400, "malformed_json", None),
    ("[" * 200 + "]" * 200, 400, "json_too_deep", None),
    ("[]", 422, "bad_value", None),
    (changed("sauce", {}), 422, "unknown_field", "sauce"),
    (changed("source.conection", "x"), 422, "unknown_field", "source.conection"),
    (changed("target.moode", "append"), 422, "unknown_field", "target.moode"),
    (changed("load.batchrows", 5), 422, "unknown_field", "load.batchrows"),
    (changed("columns", [{"source": "a", "targt": "b"}]), 422, "unknown_field", "columns[0].targt"),
    (changed("source", None), 422, "missing_field", "source"),
    (changed("target.mode", None), 422, "missing_field", "target.mode"),
    (changed("target.mode", "apend"), 422, "bad_value", "target.mode"),
    (changed("workers", {"export": 0}), 422, "bad_value", "workers.export"),
    (changed("workers", {"load": "many"}), 422, "bad_value", "workers.load"),
    (changed("columns", []), 422, "bad_value", "columns"),
    (changed("verify", "hash"), 422, "bad_value", "verify"),
    (changed("profile", "fast"), 422, "bad_value", "profile"),
    (changed("slices", {"count": 99999}), 422, "bad_value", "slices.count"),
    (changed("source.query", "SELECT 1"), 422, "conflicting_fields", None),
    (changed("slices", {"by": "value"}), 422, "conflicting_fields", "slices.column"),
    (changed("target.replace_dependants", "drop"), 422, "conflicting_fields", "target.replace_dependants"),
    (changed("source.connection", "shopp"), 422, "connection_unknown", "source.connection"),
    (changed("target.connection", "nowhere"), 422, "connection_unknown", "target.connection"),
    (changed("target", {"connection": "readonly", "table": "dbo.t", "mode": "append"}), 403, "connection_not_writable", "target.connection"),
    (changed("columns", ["a", {"source": "b", "target": "a"}]), 422, "column_repeated", "columns[1]"),
    (changed("target.table", "[dbo.t"), 422, None, "target.table"),
    (changed("source.table", '"public.t'), 422, None, "source.table"),
    (changed("target.mode", "merge"), 422, None, "target.key"),
    (changed("load.keep_nulls", False), 422, "not_supported_yet", "load.keep_nulls"),
    (changed("load.tablespace", "x"), 422, "not_supported_yet", "load.tablespace"),
    (changed("read", {"isolation": "read_uncommitted"}), 422, "not_supported_yet", "read.isolation"),
    (changed("target.backend", "freetds"), 422, "not_supported_yet", "target.backend"),
]

READONLY = '[connections.readonly]\ntype = "mssql"\nhost = "127.0.0.1"\nport = 1\nuser = "sa"\n'


def test_what_needs_no_server_is_told_at_post(bench):
    work = Workspace(bench, bench.sandbox, extra=READONLY)
    wrong = []
    with work.serve() as engine:
        for body, status, code, field in OFFLINE:
            text = body if isinstance(body, str) else json.dumps(body)
            for path in ("/v1/transfers", "/v1/plan"):
                answer = engine.ask("POST", path, text)
                document = answer.json()
                right = answer.status == status and (code is None or document.get("code") == code) and (
                    field is None or document.get("field") == field) and answer.headers.get("content-type") == "application/problem+json"
                if not right:
                    wrong.append(f"{path} {text[:90]}: {answer.status} {document.get('code')} {document.get('field')} instead of {status} {code} {field}")
        near = engine.post(changed("source.conection", "x")).json()
        check("connection" in near.get("hint", "") + near["detail"], "the nearest name is told", near)
        equal(engine.ask("GET", "/v1/transfers").json()["transfers"], [], "transfers made")
    check(not wrong, "\n  ".join([f"{len(wrong)} answers:", *wrong]))


def test_what_needs_no_server_ends_the_command_with_2(bench):
    work = Workspace(bench, bench.sandbox, extra=READONLY)
    for body, *_ in OFFLINE:
        text = body if isinstance(body, str) else json.dumps(body)
        for command in ("transfer", "plan"):
            done = work.run(command, "-", text=text)
            equal(done.code, 2, f"exit code of {command} for {text[:90]} {done.said}")
            equal(len(done.said), 1, f"lines of {command} for {text[:90]}: {done.log[:300]}")
            equal(done.out, "", f"output of {command} for {text[:90]}")


def test_command_line_and_configuration(bench):
    work = bench.work
    for arguments in (["transfer"], ["transfer", "nowhere.json"], ["tranfer", "-"], ["plan", "-", "--format", "xml"], ["resume", "../../etc/passwd"],
                      ["resume", "01234567890123456789012345"], ["clean", "--older-than", "soon"], ["--nonsense"]):
        done = run([bench.binary, *arguments, "--config", work.config], "{}", env=work.environment)
        equal(done.returncode, 2, f"exit code of {arguments} {done.stderr[-300:]}")
        check(done.stderr.strip(), "something is said about", arguments)
    for text, field in (("[server]\nlissen = 1", "server.lissen"), ("[connections.a]\ntype = \"postgres\"\ndsn = \"host=x password=geheim\"", "dsn"),
                        ("[connections.a]\ntype = \"oracle\"", "type"), ("not toml at all", ""), ("[server]\nlisten = \"0.0.0.0:0\"", "server.token"),
                        ("[connections.a]\ntype = \"mssql\"\nhost = \"h\"\nuser = \"u\"\npassword = \"geheim\"", "password")):
        path = bench.folder("config") / "rowferry.toml"
        path.write_text(text)
        done = run([bench.binary, "plan", "-", "--config", path], "{}")
        equal(done.returncode, 2, f"exit code for {text!r}")
        check(field in done.stderr, field, "in", done.stderr)
        check("geheim" not in done.stderr + done.stdout, "a secret of the configuration is echoed:", done.stderr)
    done = run([bench.binary, "plan", "-", "--config", "/nowhere/rowferry.toml"], "{}")
    equal(done.returncode, 2, "exit code without a configuration")


def test_missing_tables_and_columns(bench):
    name = bench.name("bad")
    bench.pg.do(f"CREATE TABLE {name} (id int, v text)")
    bench.sandbox.do(f"create table dbo.{name} (id int, w nvarchar(10) null, must int not null)")
    work = bench.work
    work.refused(spec("public.not_there", f"dbo.{name}"), "table_missing", 2)
    work.refused(spec("not_there.t", f"dbo.{name}"), "table_missing", 2)
    work.refused(spec(f"public.{name}", "dbo.not_there", create=False), "table_missing", 2)
    work.refused(spec(f"public.{name}", ["nowhere", "not_there"]), "schema_missing", 2)
    error = work.refused(spec(f"public.{name}", f"dbo.{name}", columns=["id", "vv"]), "column_missing", 2)
    equal(error["field"], "columns[1].source", "field")
    check("vv" in error["detail"], "the column is named", error)
    error = work.refused(spec(f"public.{name}", f"dbo.{name}", columns=[{"source": "id", "target": "must"}, {"source": "v", "target": "ww"}]), "column_missing", 2)
    equal(error["field"], "columns[1].target", "field")
    error = work.refused(spec(f"public.{name}", f"dbo.{name}"), "target_column_unfilled", 2)
    equal(error["column"], "must", "column")
    bench.sandbox.do(f"create table dbo.{name}_x (x int null)")
    work.refused(spec(f"public.{name}", f"dbo.{name}_x"), "no_columns_match", 2)
    work.refused(spec(None, f"dbo.{name}", source_query="SELECT nope FROM nowhere"), "table_missing", 2)
    work.refused(spec(None, f"dbo.{name}", source_query="SELEKT 1"), "syntax_error", 2)
    work.refused(spec(f"public.{name}", f"dbo.{name}_y", source_where="id >"), "syntax_error", 2)
    work.refused(spec(f"public.{name}", f"dbo.{name}_y", source_where="nope = 1"), "column_missing", 2)
    bench.sandbox.do(f"create view dbo.{name}_v as select id from dbo.{name}")
    work.refused(spec(f"public.{name}", f"dbo.{name}_v"), "not_a_table", 2)
    equal(bench.sandbox.count(f"dbo.{name}"), 0, "rows")
    check(not bench.sandbox.exists(f"dbo.{name}_y"), "nothing is created")
    bench.nothing_left(name)


def test_types_that_cannot_map(bench):
    name = bench.name("types")
    bench.pg.do(f"CREATE TABLE {name} (v bytea, t text, d date)")
    for ddl, column in (("v int", "v"), ("t uniqueidentifier", "t"), ("d bit", "d"), ("v sql_variant not null", "v")):
        target = bench.name("types")
        bench.sandbox.do(f"create table dbo.{target} ({ddl})")
        error = bench.work.refused(spec(f"public.{name}", f"dbo.{target}", columns=[column]), "type_mismatch", 2)
        check(ddl.split()[1] in error["detail"] and column in error["detail"], "column and types are named", error)
    for wanted in ("nvarchar(0)", "varchar(9000)", "no_such_type", "decimal(39,1)", "int); drop table x --", "nvarchar(20) collate No_Such_Collation"):
        done = bench.work.transfer(spec(f"public.{name}", f"dbo.{bench.name('types')}", columns=[{"source": "t", "type": wanted}]))
        equal(done.code, 2, f"exit code for the type {wanted} {done.said}")
        check(done.error().get("column") or "columns" in done.error().get("field", ""), "column or field for", wanted, done.error())


def never_echoed(work, done, secret):
    for text, where in ((done.out, "output"), (done.log, "log")):
        check(secret not in text, f"the password is in the {where}")
    for path in work.folder.rglob("*"):
        if path.is_file() and path.stat().st_size < 10_000_000:
            check(secret.encode() not in path.read_bytes(), f"the password is in {path.relative_to(work.folder)}")


def test_wrong_password_of_the_target(bench):
    name = bench.name("secret")
    bench.pg.do(f"CREATE TABLE {name} (id int)")
    wrong = "hunter2-wrong-ïü"
    work = Workspace(bench, bench.sandbox, secret=wrong)
    done = work.transfer(spec(f"public.{name}", f"dbo.{name}"))
    equal(done.code, 2, f"exit code {done.said}")
    equal((done.error()["code"], done.error()["server"]["number"]), ("login_failed", "18456"), "code and number")
    check("sa" in done.error()["detail"], "the user is named", done.error())
    equal(len(done.said), 1, "lines")
    never_echoed(work, done, wrong)
    done = work.run("plan", "-", text=json.dumps(spec(f"public.{name}", f"dbo.{name}")))
    equal((done.code, len(done.said)), (2, 1), "exit code and lines of plan")
    never_echoed(work, done, wrong)
    work = Workspace(bench, bench.sandbox, secret="")
    del work.environment["DW_SECRET"]
    done = work.transfer(spec(f"public.{name}", f"dbo.{name}"))
    equal(done.code, 2, f"exit code without the variable {done.said}")
    check("DW_SECRET" in done.log, "the variable is named", done.said)


def test_wrong_password_and_missing_rights_of_the_source(bench):
    with own_cluster() as (dsn, folder):
        pg = Postgres(dsn, "guarded")
        pg.do("CREATE ROLE locked LOGIN PASSWORD 'right'; CREATE TABLE t (id int); CREATE TABLE hidden (id int); GRANT SELECT ON t TO locked; "
              "CREATE TABLE policed (id int); ALTER TABLE policed ENABLE ROW LEVEL SECURITY; GRANT SELECT ON policed TO locked; "
              "CREATE POLICY high ON policed USING (id > 5)")
        hba = folder / "data" / "pg_hba.conf"
        hba.write_text("host all locked 127.0.0.1/32 scram-sha-256\n" + hba.read_text())
        pg.do("SELECT pg_reload_conf()")
        source = pg.dsn.replace("user=postgres", "user=locked")
        wrong = "hunter2-wrong"
        for given, code, exit_code in ((wrong, "login_failed", 2), ("right", None, 0)):
            work = Workspace(bench, bench.sandbox, source=source, environment={"SHOP_SECRET": given})
            work.config.write_text(work.config.read_text().replace(f'dsn = "{source}"', f'dsn = "{source}"\npassword = {{ env = "SHOP_SECRET" }}'))
            target = bench.name("guarded")
            done = work.transfer(spec("public.t", f"dbo.{target}"))
            equal((done.code, done.error().get("code")), (exit_code, code), f"exit code and code with the password {given} {done.said}")
            never_echoed(work, done, wrong)
        equal(done.artifact["state"], "succeeded", "with the right password")
        error = work.refused(spec("public.hidden", f"dbo.{bench.name('guarded')}"), "no_permission", 2)
        check("hidden" in error["detail"], "the table is named", error)
        error = work.refused(spec("public.policed", f"dbo.{bench.name('guarded')}"), "row_security", 2)
        check(error.get("hint"), "a hint", error)
        work = Workspace(bench, bench.sandbox, source=dsn.replace("dbname=postgres", "dbname=not_there"))
        work.refused(spec("public.t", f"dbo.{bench.name('guarded')}"), "database_missing", 2)


def test_o34_passwords_of_every_kind(bench):
    name = bench.name("o34")
    bench.pg.do(f"CREATE TABLE {name} (id int); INSERT INTO {name} VALUES (1)")
    for secret in ("a;b{c}d'e\"f=g%h@i:j/k?l#m[n]é ", "x" * 128, "☃😀", ""):
        with Sandbox(bench, secret=secret) as sandbox:
            Workspace(bench, sandbox).load(spec(f"public.{name}", f"dbo.{name}"))
            work = Workspace(bench, sandbox)
            path = work.folder / "secret"
            path.write_text(secret, encoding="utf-8")
            work.config.write_text(work.config.read_text().replace('{ env = "DW_SECRET" }', f'{{ file = "{path}" }}'))
            done = work.transfer(spec(f"public.{name}", f"dbo.{name}", "truncate"))
            equal(done.code, 0, f"exit code with a file {done.said}")
            check(not secret or secret not in done.out + done.log, "the password is echoed")
            done = Workspace(bench, sandbox, secret=secret + "z" if len(secret) < 128 else secret[1:]).transfer(spec(f"public.{name}", f"dbo.{name}", "truncate"))
            equal((done.code, done.error().get("code")), (2, "login_failed"), f"another password is let in instead of {secret!r}")


def test_o34_settings_that_do_not_parse_are_refused_before_any_login(bench):
    """A connection string cut in the wrong place would come back as a failed login with half a password."""
    for dsn in ("host=127.0.0.1 dbname", "host=127.0.0.1 user='locked", "postgres://u@[::1/db", "host=127.0.0.1 nonsense=1"):
        work = Workspace(bench, bench.sandbox, source="")
        work.config.write_text(work.config.read_text().replace('dsn = ""', f'dsn = "{dsn}"'))
        done = work.transfer(spec("public.t", "dbo.t"))
        equal((done.code, len(done.said)), (2, 1), f"exit code and lines for {dsn} {done.said}")
        check("login" not in str(done.error().get("code")), "no login was tried", done.said)
        check("dsn" in done.said[0] or "shop" in done.said[0], "the setting or its connection is named", done.said)


def test_login_errors_are_told_apart(bench):
    name = bench.name("login")
    bench.pg.do(f"CREATE TABLE {name} (id int)")
    for number, code in ((18456, "login_failed"), (18488, "password_expired"), (4060, "database_unavailable"), (40615, "firewall")):
        with Sandbox(bench, faults=[{"kind": "login_error", "times": 0, "number": number, "severity": 14, "text": f"Refused with {number}."}]) as sandbox:
            error = Workspace(bench, sandbox).refused(spec(f"public.{name}", f"dbo.{name}"), code, 2)
            check(str(number) in str(error["server"]) and "Refused with" in str(error), "the server's words", error)
    work = Workspace(bench, bench.sandbox)
    work.config.write_text(work.config.read_text().replace('database = "dw"', 'database = "not_there"'))
    done = work.transfer(spec(f"public.{name}", f"dbo.{name}"))
    equal((done.code, done.error().get("code")), (2, "database_unavailable"), f"another database {done.said}")


def test_missing_rights_of_the_target(bench):
    name = bench.name("rights")
    bench.pg.do(f"CREATE TABLE {name} (id int); INSERT INTO {name} VALUES (1)")
    for match, number in (("CREATE TABLE", 262), ("INSERT BULK", 4834), ("SELECT TOP (1) 1", 229)):
        faults = [{"kind": "error", "match": match, "times": 0, "number": number, "severity": 14, "text": f"Permission was denied, {number}."}]
        with Sandbox(bench, faults=faults) as sandbox:
            if number == 229:
                sandbox.do(f"create table dbo.{name} (id int)")
            done = Workspace(bench, sandbox).transfer(spec(f"public.{name}", f"dbo.{name}"))
            equal((done.code, done.error().get("code")), (2, "right_missing"), f"{number} on {match} {done.said}")
            check(str(number) in str(done.error()["server"]) and done.error().get("hint"), "the server's words and a hint", done.error())
            bench.nothing_left(name, sandbox)


def test_more_workers_than_sessions(bench):
    name = bench.name("sessions")
    bench.pg.do(f"CREATE TABLE {name} (id int)")
    for workers, connection in (({"export": 8, "load": 1}, "shop"), ({"export": 1, "load": 8}, "warehouse")):
        error = bench.work.refused(spec(f"public.{name}", f"dbo.{name}", workers=workers), "max_sessions", 2)
        equal(error["connection"], connection, "connection")
    bench.work.load(spec(f"public.{name}", f"dbo.{name}", workers={"export": 7, "load": 7}))


def test_unreachable_hosts_within_the_connect_deadline(bench):
    name = bench.name("unreachable")
    bench.pg.do(f"CREATE TABLE {name} (id int)")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        work = Workspace(bench, port)
        done = work.transfer(spec(f"public.{name}", f"dbo.{name}"))
        equal((done.code, done.error().get("code"), len(done.said)), (2, "connect_failed", 1), f"refused by the host {done.said}")
        check(str(port) in str(done.error()), "the address is told", done.error())
        work = Workspace(bench, bench.sandbox, source=f"host=127.0.0.1 port={port} dbname=x user=postgres")
        done = work.transfer(spec(f"public.{name}", f"dbo.{name}"))
        equal((done.code, done.error().get("code"), len(done.said)), (2, "connect_failed", 1), f"no PostgreSQL there {done.said}")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing
        port = silent.getsockname()[1]
        work = Workspace(bench, port, target_extra='connect_timeout = "2s"')
        done = work.transfer(spec(f"public.{name}", f"dbo.{name}"))
        equal((done.code, done.error().get("code")), (2, "timeout"), f"a silent server {done.said}")
        work = Workspace(bench, bench.sandbox, source=f"host=127.0.0.1 port={port} dbname=x user=postgres")
        work.config.write_text(work.config.read_text().replace("[connections.warehouse]", 'connect_timeout = "2s"\n[connections.warehouse]'))
        done = work.transfer(spec(f"public.{name}", f"dbo.{name}"))
        equal((done.code, done.error().get("code")), (2, "timeout"), f"a silent PostgreSQL {done.said}")


def certificate(folder, name):
    """A self-signed certificate for this name; (certificate, key)."""
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    done = run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}",
                "-addext", f"subjectAltName=DNS:{name}"])
    check(done.returncode == 0, "openssl:", done.stderr)
    return cert, key


def test_o35_certificates_and_mandatory_encryption(bench):
    name = bench.name("o35")
    bench.pg.do(f"CREATE TABLE {name} (id int); INSERT INTO {name} VALUES (1)")
    loading = spec(f"public.{name}", f"dbo.{name}")
    cert, key = certificate(bench.folder("tls"), "db.example")
    with Sandbox(bench, "--encrypt", "on", "--tls-cert", cert, "--tls-key", key) as sandbox:
        error = Workspace(bench, sandbox, encrypt="on").refused(loading, "certificate_not_trusted", 2)
        check("ca_file" in error["hint"] and "trust_server_certificate" in error["hint"], "the hint names the settings", error)
        check("self" in error["detail"].lower(), "self-signed is said", error)
        error = Workspace(bench, sandbox, encrypt="on", target_extra=f'ca_file = "{cert}"').refused(loading, "certificate_name_mismatch", 2)
        check("server_name" in error.get("hint", ""), "the hint names server_name", error)
        Workspace(bench, sandbox, encrypt="on", target_extra=f'ca_file = "{cert}"\nserver_name = "db.example"').load(loading)
        Workspace(bench, sandbox, encrypt="on", target_extra="trust_server_certificate = true").load(loading)
        equal(sandbox.count(f"dbo.{name}"), 2, "rows")
        error = Workspace(bench, sandbox, encrypt="off").refused(loading, "encryption_refused", 2)
        check('"on"' in error["hint"], "the hint names the setting that a server with mandatory encryption takes", error)
        Workspace(bench, sandbox, encrypt="login", target_extra="trust_server_certificate = true").load(loading)
        equal(sandbox.count(f"dbo.{name}"), 3, "rows")
    with Sandbox(bench) as sandbox:  # has no encryption
        Workspace(bench, sandbox, encrypt="on", target_extra="trust_server_certificate = true").refused(loading, "encryption_refused", 2)
        check(not sandbox.exists(f"dbo.{name}"), "nothing went in clear text")
    work = Workspace(bench, bench.sandbox, encrypt="strict")
    done = work.transfer(loading)
    equal((done.code, len(done.said)), (2, 1), f"strict is not there yet {done.said}")
    check("strict" in done.said[0], "it says so", done.said)


def test_another_transfer_into_the_same_target(bench):
    name = bench.name("busy")
    bench.pg.do(f"CREATE TABLE {name} AS SELECT g AS id FROM generate_series(1, 1000) g")
    with Sandbox(bench, faults=[{"kind": "stall_bulk", "bytes": 100, "wait_ms": 3000}]) as sandbox, Proxy(sandbox.port) as proxy:
        first = Workspace(bench, proxy.port, secret=sandbox.secret).start_transfer(spec(f"public.{name}", f"dbo.{name}"))
        eventually(sandbox.left_overs, "staging is made, so the lock is taken")
        proxy.pause()  # what it has still to ask for waits until the second is refused
        error = Workspace(bench, sandbox).refused(spec(f"public.{name}", f"DBO.{name.upper()}"), "target_busy", 2)
        check(name.lower() in str(error).lower(), "the target is named", error)
        proxy.resume()
        equal(first.wait().code, 0, "the first goes on")
        equal(sandbox.count(f"dbo.{name}"), 1000, "rows")
        bench.nothing_left(name, sandbox)


def test_secrets_are_in_no_document(bench):
    name = bench.name("documents")
    bench.pg.do(f"CREATE TABLE {name} (id int); INSERT INTO {name} VALUES (1)")
    work = Workspace(bench, bench.sandbox)
    done = work.transfer(spec(f"public.{name}", f"dbo.{name}"))
    never_echoed(work, done, SECRET)
    check(NULL not in done.out, "no marker of ours")
    done = subprocess.run([str(part) for part in work.command("transfer", "-", "--log", "json", "--log-level", "debug")],
                          input=json.dumps(spec(f"public.{name}", f"dbo.{name}")), capture_output=True, text=True, env=work.environment, timeout=120, check=False)
    check(SECRET not in done.stderr + done.stdout, "the password is in the debug log")
    lines = [line for line in done.stderr.splitlines() if line.startswith("{")]
    check(lines and all(re.search(r'"(level|message|msg)"', line) and json.loads(line) for line in lines), "the log is JSON", done.stderr[:500])
