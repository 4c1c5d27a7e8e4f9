#!/usr/bin/env python3
"""Instructions per row of each stage and shape, counted by callgrind, against bench/baseline.json.

    bench/callgrind.py [--build DIR] [--check | --write]

Each figure is the difference of two runs (twice the rows less once the rows), so that start-up does not count; the counts
repeat exactly for the same binary. --check: exit 1 when one has grown by more than 5 %. --write: make it the new baseline.
`convert` includes the decoding that feeds it.
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGES, SHAPES, BLOCKS, ROWS_PER_BLOCK, GROWTH = ("decode", "decode_tds", "convert", "hash", "encode", "encode_pg"), ("fixed", "text", "numeric", "nullable"), 8, 1024, 1.05


def count(build, stage, shape, blocks):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", str(build / "bench/row_costs"),
                               stage, shape, str(blocks)], capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"row_costs {stage} {shape}: {done.stderr[-2000:]}")
    return int(found.group(1))


def per_row(build, key):
    stage, shape = key
    more = count(build, stage, shape, 2 * BLOCKS) - count(build, stage, shape, BLOCKS)
    return round(more / (BLOCKS * ROWS_PER_BLOCK), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    file = ROOT / "bench/baseline.json"
    baseline = json.loads(file.read_text())["instructions_per_row"] if file.exists() else {}
    keys = [(stage, shape) for stage in STAGES for shape in SHAPES]
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(lambda key: per_row(args.build.resolve(), key), keys))
    grown = 0
    for (stage, shape), now in zip(keys, counts):
        before = baseline.get(stage, {}).get(shape)
        bad = before is None or now > before * GROWTH
        grown += bad
        print(f"{stage:<10} {shape:<9} {now:8.1f} instructions a row, baseline {before}{'  GROWN' if bad and args.check else ''}")
    if args.write:
        table = {}
        for (stage, shape), now in zip(keys, counts):
            table.setdefault(stage, {})[shape] = now
        file.write_text(json.dumps({"instructions_per_row": table}, indent=2) + "\n")
    if args.check:
        print(f"callgrind: {len(keys) - grown} passed, {grown} failed")
        return 1 if grown else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
