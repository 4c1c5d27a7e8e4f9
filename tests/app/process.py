#!/usr/bin/env python3
"""The program as a process: standard streams that are closed, full or read by nobody; files that are none.

No database is needed: a transfer whose source cannot be reached goes through the same output as one that succeeds.
"""
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BINARY = sys.argv.pop(1) if len(sys.argv) > 1 else "build/rowferry"

CONFIG = """
[server]
listen = "127.0.0.1:0"
state_dir = "state"
[connections.shop]
type = "postgres"
dsn = "host=127.0.0.1 port=1 dbname=none user=none"
[connections.warehouse]
type = "mssql"
host = "127.0.0.1"
port = 1
database = "dw"
user = "sa"
encrypt = "off"
writable = true
"""
SPEC = {"source": {"connection": "shop", "table": "public.t"},
        "target": {"connection": "warehouse", "table": "dbo.t", "mode": "replace", "create": True}}


class Process(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.config = self.file("rowferry.toml", CONFIG)
        self.spec = self.file("spec.json", json.dumps(SPEC))

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def shell(self, redirect, *args):
        """Runs the program with a shell's redirections; (exit code, standard output, standard error)."""
        done = subprocess.run(["bash", "-c", f'"$@" {redirect}', "bash", BINARY, *args], capture_output=True,
                              text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def transfer(self, redirect):
        return self.shell(redirect, "transfer", "--config", self.config, self.spec)

    def serve(self, **streams):
        process = subprocess.Popen([BINARY, "serve", "--config", self.config], stdout=subprocess.PIPE, **streams)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        port = int(re.search(rb":(\d+)\n", process.stdout.readline()).group(1))
        return process, port

    def ask(self, port, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text)


class Streams(Process):
    def test_no_state_of_the_standard_streams_changes_the_exit_code_of_a_transfer(self):
        for redirect in ("2>/dev/full", "2> >(true)", "<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "> >(true)"):
            with self.subTest(redirect):
                code, _, _ = self.transfer(redirect)
                self.assertEqual(code, 2, "the source cannot be reached")

    def test_an_artifact_that_cannot_be_written_is_kept_where_a_message_says(self):
        for redirect in (">/dev/full", ">&-"):
            with self.subTest(redirect):
                _, _, err = self.transfer(redirect)
                said = re.search(r"cannot be written to standard output: .*; it is kept in (.*)\n", err)
                self.assertTrue(said, err)
                with open(said.group(1), encoding="utf-8") as kept:
                    self.assertEqual(json.load(kept)["state"], "failed")

    def test_a_result_that_cannot_be_written_is_a_failure(self):
        _, port = self.serve(stderr=subprocess.DEVNULL)
        for redirect in (">/dev/full", ">&-"):
            with self.subTest(redirect):
                code, _, err = self.shell(redirect, "health", "--address", f"127.0.0.1:{port}")
                self.assertEqual(code, 1)
                self.assertIn("cannot write to standard output", err)
        self.assertEqual(self.shell("", "health", "--address", f"127.0.0.1:{port}")[0], 0)

    def test_a_service_outlives_the_reader_of_its_log(self):
        reading, writing = os.pipe()
        process, port = self.serve(stderr=writing)
        os.close(writing)
        os.close(reading)
        for _ in range(2):
            status, _ = self.ask(port, "POST", "/v1/transfers", json.dumps(SPEC), **{"Content-Type": "application/json"})
            self.assertEqual(status, 202)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        self.assertEqual(self.ask(port, "GET", "/healthz")[0], 200)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0)

    def test_a_service_starts_without_standard_streams(self):
        process = subprocess.Popen(["bash", "-c", 'exec "$@" <&- >&- 2>&-', "bash", BINARY, "serve", "--config",
                                    self.config])
        self.addCleanup(process.kill)
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0)


class Files(Process):
    def test_what_is_no_spec_file_is_bad_input(self):
        for name, problem in ((self.folder, "Is a directory"), ("/dev/zero", "larger than"), ("/nowhere", "No such")):
            with self.subTest(name):
                code, _, err = self.shell("", "transfer", "--config", self.config, name)
                self.assertEqual(code, 2)
                self.assertIn(problem, err)
        code, _, err = self.shell("</dev/zero", "transfer", "--config", self.config, "-")
        self.assertEqual((code, "larger than" in err), (2, True), err)

    def test_a_spec_may_come_through_a_pipe(self):
        done = subprocess.run(["bash", "-c", f'"{BINARY}" transfer --config {self.config} <(cat {self.spec})'],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertIn('"connection":"shop"', done.stdout.replace(" ", ""), done.stderr)

    def test_what_is_no_configuration_is_bad_input(self):
        for name, problem in ((self.folder, "Is a directory"), ("/dev/zero", "larger than")):
            with self.subTest(name):
                code, _, err = self.shell("", "plan", "--config", name, self.spec)
                self.assertEqual(code, 2)
                self.assertIn(problem, err)

    def test_what_is_no_secret_file_is_bad_input(self):
        for name, problem in ((self.folder, "Is a directory"), ("/dev/zero", "larger than")):
            with self.subTest(name):
                config = self.file("p.toml", CONFIG.replace("[server]", f'[server]\ntoken = {{ file = "{name}" }}'))
                code, _, err = self.shell("", "serve", "--config", config)
                self.assertEqual(code, 2)
                self.assertIn(problem, err)


class Arguments(Process):
    def test_an_unknown_argument_is_named_beside_the_subcommands(self):
        for given in ("--foo", "foo"):
            code, _, err = self.shell("", given)
            self.assertEqual(code, 2)
            self.assertIn(f'"{given}"', err)
            self.assertIn("serve, transfer, plan", err)

    def test_help_that_cannot_be_written_is_a_failure(self):
        self.assertEqual(self.shell(">/dev/full", "--help")[0], 1)
        self.assertEqual(self.shell("", "--help")[0], 0)


if __name__ == "__main__":
    unittest.main()
