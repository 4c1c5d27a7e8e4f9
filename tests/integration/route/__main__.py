"""End-to-end tests of PostgreSQL -> SQL Server: the binary, a PostgreSQL, the sandbox, FreeTDS.

    python3 tests/integration/route BINARY [PART of a test's name …]

ROWFERRY_TEST_PG: dsn of a throw-away cluster (else one is started); ROWFERRY_TEST_SEED, ROWFERRY_TEST_KILLS: the seed of all
random choices and how often things are killed. The last line is "route: N passed, N failed"; exit code 77 when the tools that
the tests need are not installed.
"""

import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True

import back_bad_input  # noqa: E402  (nothing may be written beside the sources)
import back_kills  # noqa: E402
import back_modes  # noqa: E402
import back_partitions  # noqa: E402
import back_profiles  # noqa: E402
import back_slices  # noqa: E402
import back_types  # noqa: E402
import bad_input  # noqa: E402
import cancel  # noqa: E402
import http_api  # noqa: E402
import kills  # noqa: E402
import losses  # noqa: E402
import modes  # noqa: E402
import slices  # noqa: E402
import type_table  # noqa: E402
from harness import Bench, Failed, Postgres, cluster, say  # noqa: E402

MODULES = (type_table, losses, modes, slices, bad_input, http_api, cancel, kills, back_types, back_slices, back_modes, back_partitions, back_bad_input, back_profiles, back_kills)


def tests(wanted):
    for module in MODULES:
        for name, function in vars(module).items():
            if name.startswith("test_") and function.__module__ == module.__name__:
                full = f"{module.__name__}.{name[5:]}"
                if not wanted or any(part in full for part in wanted):
                    yield full, function


def run_all(bench, wanted):
    failed = []
    passed = 0
    for name, function in tests(wanted):
        began = time.monotonic()
        try:
            function(bench)
        except Failed as failure:
            failed.append(name)
            say(f"FAIL {name}: {failure}")
        except Exception:  # a broken test is a failed one, and the others still run
            failed.append(name)
            say(f"FAIL {name}:\n{traceback.format_exc()}")
        else:
            passed += 1
            say(f"ok   {name} ({time.monotonic() - began:.1f} s)")
    return passed, failed


def main():
    missing = [tool for tool in ("psql", "tsql", "bsqldb") if shutil.which(tool) is None]
    if missing:
        say(f"skipped: {', '.join(missing)} not installed")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is ended
    seed = int(os.environ.get("ROWFERRY_TEST_SEED") or random.randrange(1, 2**31))
    kill_count = int(os.environ.get("ROWFERRY_TEST_KILLS") or 5)
    say(f"seed {seed}, {kill_count} kills (ROWFERRY_TEST_SEED, ROWFERRY_TEST_KILLS)")
    with tempfile.TemporaryDirectory(prefix="route.") as folder, cluster() as dsn:
        pg = Postgres(dsn, f"route_{os.getpid()}")
        bench = Bench(pathlib.Path(sys.argv[1]).resolve(), pg, seed, kill_count, pathlib.Path(folder))
        try:
            passed, failed = run_all(bench, sys.argv[2:])
        finally:
            bench.close()
            pg.drop()
    for name in failed:
        say(f"failed: {name}")
    say(f"route: {passed} passed, {len(failed)} failed")
    return 1 if failed or passed == 0 else 0


sys.exit(main())
