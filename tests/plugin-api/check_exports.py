#!/usr/bin/env python3
"""Each library exports hearth_plugin_v1 and nothing else, and has no unique symbols, text
relocations or executable stack.

usage: check_exports.py LIBRARY...
"""
import subprocess
import sys


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def problems_of(path):
    exported = [line.split()[-1] for line in output("nm", "-D", "--defined-only", path).splitlines() if line]
    if exported != ["hearth_plugin_v1"]:
        yield f"{path}: exports {exported[:5]}"
    dynamic = output("readelf", "-dW", path)
    for flag in ("TEXTREL", "STATIC_TLS", "NODELETE", "RPATH", "RUNPATH"):
        if flag in dynamic:
            yield f"{path}: {flag}"
    if "BIND_NOW" not in dynamic and "NOW" not in dynamic:
        yield f"{path}: binds lazily"
    for line in output("readelf", "-lW", path).splitlines():
        if "GNU_STACK" in line and "E" in line.split()[-2]:
            yield f"{path}: executable stack"
    imported = output("nm", "-D", "--undefined-only", path)
    for name in ("__cxa_thread_atexit", "pthread_key_create", "_exit", "signal", "sigaction"):
        if any(line.split()[-1].split("@")[0] == name for line in imported.splitlines() if line):
            yield f"{path}: imports {name}, which keeps it from being unloaded"


def main():
    problems = [p for path in sys.argv[1:] for p in problems_of(path)]
    print("\n".join(problems))
    print(f"{len(sys.argv) - 1} libraries, {len(problems)} problems")
    return 1 if problems or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
