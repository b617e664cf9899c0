#!/usr/bin/env python3
"""Finds coroutine code that g++ 12 miscompiles, in what it may build: the SDK, plugins, and the
tests of both. `--self-test` checks the lint against its probes.

Each bad probe crashes or does not compile with g++ 12.2; each good probe is the same thing written
safely. When the shipped compiler changes, run the probes first: if the bad ones pass, delete this
lint.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# The last one is a definition of the build; any value will do.
FLAGS = ["--", "-std=c++20", f"-I{ROOT}/plugin-api/include", f"-I{ROOT}/plugin-api/chat/include", f"-I{ROOT}/tests",
         f"-I{ROOT}/plugins", "-DHEARTH_NO_ENTRY", '-DVERSION="1"']
# Their sources may be read as one, which saves most of the time: their includes cost more than
# they do.
TOGETHER = ["tests/plugin-api", "plugin-api/chat/src"]
EACH = ["plugins", "tests/agents"]


def findings(file: pathlib.Path, flags: list[str]) -> list[str]:
    command = ["clang-query-19", "-f", str(HERE / "coroutines.query"), str(file), *flags]
    run = subprocess.run(command, capture_output=True, text=True)
    if " error: " in run.stderr:  # what cannot be read has no findings, which must not look like good news
        sys.exit(run.stderr)
    output = run.stdout
    return [line for line in output.splitlines() if "binds here" in line and "enclosing" not in line]


def self_test() -> int:
    wrong = 0
    probes = sorted((HERE / "coroutine_probes").glob("*/*.cpp"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:  # each reading costs seconds
        results = list(pool.map(lambda probe: bool(findings(probe, ["--", "-std=c++20"])), probes))
    for probe, found in zip(probes, results):
        if found != (probe.parent.name == "bad"):
            print(f"{probe.parent.name}/{probe.name}: {'flagged' if found else 'not flagged'}")
            wrong += 1
    print(f"{wrong} probes wrong")
    return 1 if wrong else 0


def with_coroutines(folder: str) -> list[pathlib.Path]:
    """A source without a coroutine cannot write one wrongly, and reading it costs seconds."""
    return sorted(file for file in (ROOT / folder).rglob("*.cpp") if "co_await" in file.read_text())


def check() -> int:
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        readings: list[pathlib.Path] = []
        count = 0
        for folder in TOGETHER:
            files = with_coroutines(folder)
            readings.append(pathlib.Path(place, folder.replace("/", "-") + ".cpp"))
            readings[-1].write_text("".join(f'#include "{file}"\n' for file in files))
            count += len(files)
        for folder in EACH:
            files = with_coroutines(folder)
            readings += files
            count += len(files)
        found = {line for lines in pool.map(lambda file: findings(file, FLAGS), readings) for line in lines}
    print("\n".join(sorted(found)) or f"coroutines: ok ({count} files)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(self_test() if "--self-test" in sys.argv else check())
