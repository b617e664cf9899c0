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
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# The last one is a definition of the build; any value will do.
FLAGS = ["--", "-std=c++20", f"-I{ROOT}/plugin-api/include", f"-I{ROOT}/plugin-api/chat/include", f"-I{ROOT}/tests",
         f"-I{ROOT}/plugins", "-DHEARTH_NO_ENTRY", '-DVERSION="1"']
# Sources are read as one, since what they include costs more than they do: in one namespace, or
# each in its own.
TOGETHER = ["tests/plugin-api", "plugin-api/chat/src"]
EACH = ["plugins", "tests/agents"]


def findings(file: pathlib.Path, flags: list[str]) -> list[str]:
    command = ["clang-query-19", "-f", str(HERE / "coroutines.query"), str(file), *flags]
    run = subprocess.run(command, capture_output=True, text=True)
    if " error: " in run.stderr:  # what cannot be read has no findings, which must not look like good news
        sys.exit(run.stderr)
    output = run.stdout
    return [line for line in output.splitlines() if "binds here" in line and "enclosing" not in line]


def in_namespaces(files: list[pathlib.Path]) -> str:
    """One source of all files, whose headers stand before the namespaces."""
    headers = {line for file in files for line in re.findall(r"^#include <.*>", file.read_text(), re.M)}
    return "".join(f"{line}\n" for line in sorted(headers)) + "".join(
        f'namespace file_{number} {{\n#include "{file}"\n}}\n' for number, file in enumerate(files))


def self_test() -> int:
    wrong = 0
    folder = HERE / "coroutine_probes"
    probes = sorted(folder.glob("*/*.cpp"))
    with tempfile.TemporaryDirectory() as place:
        together = pathlib.Path(place, "probes.cpp")
        together.write_text(f'#include "{folder}/common.hpp"\n' + in_namespaces(probes))
        found = findings(together, ["--", "-std=c++20"])
    for probe in probes:
        flagged = any(line.startswith(f"{probe}:") for line in found)
        if flagged != (probe.parent.name == "bad"):
            print(f"{probe.parent.name}/{probe.name}: {'flagged' if flagged else 'not flagged'}")
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
        apart: list[pathlib.Path] = []
        for folder in EACH:
            files = with_coroutines(folder)
            # What declares in a header what it defines cannot do so in another namespace.
            alone = [file for file in files if re.search(r'^#include ".*hpp"', file.read_text(), re.M)]
            readings += alone
            apart += [file for file in files if file not in alone]
            count += len(files)
        readings.append(pathlib.Path(place, "apart.cpp"))
        readings[-1].write_text(in_namespaces(apart))
        found = {line for lines in pool.map(lambda file: findings(file, FLAGS), readings) for line in lines}
    print("\n".join(sorted(found)) or f"coroutines: ok ({count} files)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(self_test() if "--self-test" in sys.argv else check())
