#!/usr/bin/env python3
"""Finds coroutine code that g++ 12 miscompiles. `--self-test` checks the lint against its probes.

Each bad probe crashes or does not compile with g++ 12.2; each good probe is the same thing written safely.
When the shipped compiler changes, run the probes first: if the bad ones pass, delete this lint.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def findings(files: list[str], flags: list[str]) -> list[str]:
    command = ["clang-query-19", "-f", str(HERE / "coroutines.query"), *files, *flags]
    run = subprocess.run(command, capture_output=True, text=True)
    if " error: " in run.stderr:  # what cannot be read has no findings, which must not look like good news
        sys.exit(run.stderr)
    output = run.stdout
    return [line for line in output.splitlines() if "binds here" in line and "enclosing" not in line]


def self_test() -> int:
    wrong = 0
    probes = sorted((HERE / "coroutine_probes").glob("*/*.cpp"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:  # each reading costs seconds
        results = list(pool.map(lambda probe: bool(findings([str(probe)], ["--", "-std=c++20"])), probes))
    for probe, found in zip(probes, results):
        if found != (probe.parent.name == "bad"):
            print(f"{probe.parent.name}/{probe.name}: {'flagged' if found else 'not flagged'}")
            wrong += 1
    print(f"{wrong} probes wrong")
    return 1 if wrong else 0


def check(build: pathlib.Path) -> int:
    files = {entry["file"] for entry in json.loads((build / "compile_commands.json").read_text())}
    # A file without a coroutine cannot write one wrongly, and reading it costs seconds.
    files = sorted(file for file in files if pathlib.Path(file).exists() and "co_await" in pathlib.Path(file).read_text())
    found = sorted(set(findings(files, ["-p", str(build)]))) if files else []
    print("\n".join(found) or f"coroutines: ok ({len(files)} files)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(self_test() if "--self-test" in sys.argv else check(pathlib.Path(sys.argv[1])))
