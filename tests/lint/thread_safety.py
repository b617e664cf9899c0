#!/usr/bin/env python3
"""Fails when clang does not refuse what touches a guarded member without its mutex: each probe
bad_*.cpp must fail to compile because of that, right.cpp must compile. The compiler is the first
argument."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBES = ROOT / "tests/lint/thread_safety_probes"


def complaints(compiler: str, probe: pathlib.Path) -> str:
    flags = ["-std=c++20", "-Wthread-safety", "-Werror", "-fsyntax-only", f"-I{ROOT / 'host'}"]
    return subprocess.run([compiler, *flags, probe], capture_output=True, text=True).stderr


def main() -> int:
    wrong = []
    probes = sorted(PROBES.glob("*.cpp"))
    for probe in probes:
        said = complaints(sys.argv[1], probe)
        if probe.name == "right.cpp" and said:
            wrong.append(f"{probe.name} is refused:\n{said}")
        if probe.name != "right.cpp" and "-Wthread-safety" not in said:
            wrong.append(f"{probe.name} is not refused for its lock:\n{said}")
    print("\n".join(wrong) if wrong else f"thread_safety: ok, {len(probes)} probes")
    return 1 if wrong or len(probes) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
