#!/usr/bin/env python3
"""Checks the shape of the source: layers, sizes, banned patterns.

    tests/tidy/tidy.py ROOT         one line a finding; exit 1 when there is any
    tests/tidy/tidy.py --self-test  proves on bad samples that every rule can fail
"""
import os
import pathlib
import re
import sys
import tempfile

FILE_LINES_MAX = 620
FUNCTION_LINES_MAX = 90

# What each folder of src/ may include besides itself. api/ lies beside src/ and is a layer all the same.
BASICS = {"base", "async", "net", "rows", "system"}
MAY_INCLUDE = {
    "base": set(),
    "async": {"base"},
    "net": {"async", "base"},
    "rows": {"net", "async", "base"},
    "system": {"rows", "net", "async", "base"},
    "http": BASICS,
    "tds": BASICS,
    "postgres": BASICS,  # speaks through libpq
    "mssql": BASICS | {"tds"},
    "clickhouse": BASICS | {"http"},
    "arrow": BASICS,
    "sandbox": BASICS | {"tds"},  # tds/wire only, see below
    "transfer": BASICS,  # knows no system by name and no wire format
    "api": BASICS | {"http", "transfer"},
    "app": None,  # everything
}
WIRE_MAY_INCLUDE = {"base", "rows"}

# Libraries that only one folder may see: header prefix -> folders.
LIBRARIES = {
    "uv.h": {"net"},
    "libpq": {"postgres"},
    "postgresql/": {"postgres"},
    "llhttp": {"http"},
    "openssl/": {"net"},
    "spdlog/": {"base"},
    "simdjson": {"base"},
    "toml": {"app"},
}

# (name, pattern, where) on code without comments and string contents; `where` are the top folders it holds for.
CODE = {"src", "api", "bench", "tests"}
PRODUCT = {"src", "api"}
BANNED = [
    ("using namespace std", re.compile(r"using\s+namespace\s+std\s*;"), CODE),
    ("a thread of our own (offload to the loop's pool)", re.compile(r"std::(jthread|thread|async)\b(?!::hardware)"), PRODUCT),
    ("a blocking sleep", re.compile(r"(?<![\w:.>])(::)?(sleep|usleep|nanosleep)\s*\(|std::this_thread"), PRODUCT),
    ("a capturing lambda coroutine", re.compile(r"\[[^\[\]]+\]\s*(\([^()]*(\([^()]*\)[^()]*)*\))?\s*(mutable\s*)?(noexcept\s*)?->\s*(\w+::)*Task\b"), CODE),
    ("a detached task or thread", re.compile(r"(\.|->)detach\s*\(\s*\)"), CODE),
    ("std::format (libstdc++ 12 has none: use fmt)", re.compile(r"std::format\b"), CODE),
]
# On every line of every text file.
RAW = [
    ("a note to self", re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")),
    ("a path of somebody's machine", re.compile(r"(?<![\w.~$}])/(work|root|Users|home/\w+)/")),
    ("a registry's host name", re.compile(r"\b(deb|registry|pypi|proxy|static)\.[a-z]+\.(org|com|io)\b|\b(pypi|crates)\.(org|io)\b")),
]
NOLINT = re.compile(r"NOLINT(?!\w*\([\w\-.,* ]+\): ?\S)")

SKIPPED = {".git", "node_modules", "__pycache__", "subprojects", "state"}
TEXT_SUFFIXES = {".cpp", ".hpp", ".c", ".h", ".py", ".sh", ".md", ".build", ".txt", ".toml", ".json", ".yaml", ".yml", ".html", ".js", ".in", ""}


class Findings(list):
    def add(self, path, line, what):
        self.append((str(path), line, what))


def without_comments_and_strings(text):
    """Keeps line breaks; empties strings, drops comments."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.S)

    def blank(match):
        lines = "\n" * match.group(0).count("\n")
        return lines if match.group(0)[0] == "/" else '""' + lines

    return token.sub(blank, text)


def layer_of(path):
    """('net', False) for src/net/loop.cpp, ('tds', True) for src/tds/wire/…; (None, False) outside the layers."""
    parts = path.parts
    if parts[0] == "src" and len(parts) > 2:
        return parts[1], "wire" in parts[2:-1]
    return ("api", False) if parts[0] == "api" else (None, False)


def check_include(path, number, header, findings):
    layer, wire = layer_of(path)
    if layer is None:
        return
    for prefix, folders in LIBRARIES.items():
        if header.startswith(prefix) and layer not in folders:
            findings.add(path, number, f"{header} is for {', '.join(sorted(folders))} only")
    target = header.split("/")[0]
    if target in ("tests", "bench"):
        findings.add(path, number, f"nothing includes {target}/")
    if "/" not in header or target not in MAY_INCLUDE:
        return
    if wire:
        own = target == layer and "/wire/" in header
        if not own and target not in WIRE_MAY_INCLUDE:
            findings.add(path, number, f"wire code includes only base, rows and its own wire/, not {header}")
        return
    allowed = MAY_INCLUDE.get(layer)
    if layer not in MAY_INCLUDE:
        findings.add(path, number, f"src/{layer} is no known layer: add it to tests/tidy")
    elif allowed is not None and target != layer and target not in allowed:
        findings.add(path, number, f"the arrow from {layer} to {target} is not one of the layers")
    elif layer == "sandbox" and target == "tds" and not header.startswith("tds/wire/"):
        findings.add(path, number, "the sandbox uses tds/wire only, not the client's session")


CONTROL = re.compile(r"\s*(if|for|while|switch|do|else|try|catch|namespace|class|struct|union|enum|extern|return|case|\}|#)\b|\s*\}")


def check_functions(path, lines, findings):
    """By clang-format's indentation: a head that ends with '{' after a ')', down to the '}' of the same indentation."""
    for number, line in enumerate(lines):
        if not line.rstrip().endswith("{"):
            continue
        first = number  # of a head that is broken over lines
        while first > 0 and lines[first - 1].strip() and lines[first - 1].rstrip()[-1] not in ";{}:":
            first -= 1
        head = lines[first]
        indent = len(head) - len(head.lstrip())
        if CONTROL.match(head) or indent > 4 or ")" not in "".join(lines[first:number + 1]):
            continue
        for end in range(number + 1, len(lines)):
            if re.match(r" {%d}\}" % indent, lines[end]):
                if end - first > FUNCTION_LINES_MAX:
                    findings.add(path, first + 1, f"a function of {end - first} lines; at most {FUNCTION_LINES_MAX}")
                break


def check_source(path, text, findings):
    lines = text.splitlines()
    if len(lines) > FILE_LINES_MAX:
        findings.add(path, len(lines), f"{len(lines)} lines; at most {FILE_LINES_MAX}")
    if path.suffix == ".hpp" and "#pragma once" not in text:
        findings.add(path, 1, "a header without #pragma once")
    for number, line in enumerate(lines, 1):
        include = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
        if include:
            check_include(path, number, include.group(1), findings)
        if NOLINT.search(line):
            findings.add(path, number, "NOLINT names its check and its reason: NOLINT(check): why")
    code = without_comments_and_strings(text)
    for name, pattern, where in BANNED:
        if path.parts[0] in where:
            for match in pattern.finditer(code):
                findings.add(path, code.count("\n", 0, match.start()) + 1, name)
    check_functions(path, code.splitlines(), findings)


def files(root):
    for folder, names, entries in os.walk(root):
        names[:] = [n for n in names if n not in SKIPPED and not n.startswith("build")]
        for entry in sorted(entries):
            path = pathlib.Path(folder, entry)
            if entry != ".git" and path.suffix in TEXT_SUFFIXES and path.is_file() and not path.is_symlink():
                yield path


def check_tree(root):
    findings = Findings()
    for path in files(root):
        relative = path.relative_to(root)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a sample of bytes
        # This file and its neighbours hold the patterns themselves.
        if relative.parts[:2] != ("tests", "tidy"):
            for number, line in enumerate(text.splitlines(), 1):
                for name, pattern in RAW:
                    if pattern.search(line):
                        findings.add(relative, number, name)
        if path.suffix in (".cpp", ".hpp") and relative.parts[0] in CODE:
            check_source(relative, text, findings)
    return findings


GOOD = {
    "src/net/loop.cpp": '#include <uv.h>\n#include "async/task.hpp"\n#include "net/loop.hpp"\n'
                        'int f() {\n  // std::thread, sleep( in words is fine\n  return 0;  // NOLINT(check-name): a reason\n}\n',
    "src/net/loop.hpp": "#pragma once\n",
    "src/tds/wire/packet.cpp": '#include "base/bytes.hpp"\n#include "rows/batch.hpp"\n#include "tds/wire/packet.hpp"\n',
    "src/sandbox/server.cpp": '#include "tds/wire/types.hpp"\n',
    "src/app/main.cpp": '#include "postgres/source.hpp"\n#include "mssql/sink.hpp"\n',
    "tests/net/test_loop.cpp": '#include <uv.h>\n#include <thread>\nstd::thread t;\nauto f = [](int x) -> Task<void> { co_return; };\n',
    "README.md": "curl 127.0.0.1:8080/healthz\n",
}
LONG_FUNCTION = "int f() {\n" + "  g();\n" * (FUNCTION_LINES_MAX + 2) + "}\n"
BAD = {
    "an arrow up": ("src/rows/x.cpp", '#include "transfer/plan.hpp"\n'),
    "base includes net": ("src/base/x.cpp", '#include "net/loop.hpp"\n'),
    "transfer knows a system": ("src/transfer/x.cpp", '#include "mssql/sink.hpp"\n'),
    "systems know each other": ("src/mssql/x.cpp", '#include "postgres/source.hpp"\n'),
    "protocols include each other": ("src/tds/x.cpp", '#include "http/server.hpp"\n'),
    "wire includes async": ("src/tds/wire/x.cpp", '#include "async/task.hpp"\n'),
    "wire includes its session": ("src/tds/wire/x.cpp", '#include "tds/session.hpp"\n'),
    "another folder's wire": ("src/postgres/wire/x.cpp", '#include "tds/wire/types.hpp"\n'),
    "sandbox uses the client": ("src/sandbox/x.cpp", '#include "tds/session.hpp"\n'),
    "an unknown layer": ("src/novel/x.cpp", '#include "base/bytes.hpp"\n'),
    "libuv outside net": ("src/transfer/x.cpp", "#include <uv.h>\n"),
    "libpq outside postgres": ("src/app/x.cpp", "#include <libpq-fe.h>\n"),
    "product includes tests": ("src/base/x.cpp", '#include "tests/support/hex.hpp"\n'),
    "a long file": ("src/base/x.cpp", "int a;\n" * (FILE_LINES_MAX + 1)),
    "a long function": ("src/base/x.cpp", LONG_FUNCTION),
    "a long member function": ("src/base/x.cpp", "struct S {\n  int f(int a,\n        int b) {\n" + "    g();\n" * 95 + "  }\n};\n"),
    "a header without a guard": ("src/base/x.hpp", "int a;\n"),
    "a note": ("src/base/x.cpp", "// TODO later\n"),
    "a note in a script": ("tools/x", "# FIXME\n"),
    "using namespace std": ("tests/base/x.cpp", "using namespace std;\n"),
    "a thread": ("src/base/x.cpp", "void f() { std::thread t(g); }\n"),
    "a sleep": ("src/base/x.cpp", "void f() { sleep(1); }\n"),
    "a sleep of this thread": ("src/base/x.cpp", "void f() { std::this_thread::sleep_for(1s); }\n"),
    "a lambda coroutine with [&]": ("src/base/x.cpp", "auto f = [&](int x) -> Task<void> { co_return; };\n"),
    "a lambda coroutine with [this]": ("tests/x/x.cpp", "auto f = [this]() -> async::Task<int> { co_return 1; };\n"),
    "a lambda coroutine without parameters": ("src/base/x.cpp", "auto f = [x] -> async::Task<int> { co_return 1; };\n"),
    "detach": ("src/base/x.cpp", "void f() { worker.detach(); }\n"),
    "std::format": ("src/base/x.cpp", 'auto s = std::format("");\n'),
    "a bare NOLINT": ("src/base/x.cpp", "int a;  // NOLINT\n"),
    "NOLINT without a reason": ("src/base/x.cpp", "int a;  // NOLINT(some-check)\n"),
    "somebody's folder": ("docs/x.md", "see /home/someone/notes\n"),
    "a machine's folder": ("tools/x", "cd /Users/someone/main\n"),
    "a registry": ("tools/x", "curl registry.example.org\n"),
}


def self_test():
    passed = failed = 0

    def tree(files_):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files_.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return check_tree(pathlib.Path(folder))

    for name, (path, text) in BAD.items():
        found = tree({path: text})
        if len(found) == 1:
            passed += 1
        else:
            failed += 1
            print(f"{name}: {len(found)} findings instead of 1: {list(found)}")
    found = tree(GOOD)
    if found:
        failed += 1
        print(f"good samples have findings: {list(found)}")
    else:
        passed += 1
    print(f"{passed} passed, {failed} failed")
    return failed == 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(0 if self_test() else 1)
    findings = check_tree(pathlib.Path(sys.argv[1]).resolve())
    for path, line, what in findings:
        print(f"{path}:{line}: {what}")
    print(f"{0 if findings else 1} passed, {1 if findings else 0} failed")
    sys.exit(1 if findings else 0)


main()
