#!/usr/bin/env python3
"""The archives of the SDK and of the mock host link into tests of both compilers, under
AddressSanitizer too, and need nothing but SQLite and the date library.

    archive.py SDK MOCK_HOST INCLUDE_DIRECTORY CLANGXX GXX
"""
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).with_name("archive_main.cpp")
LIBRARIES = ["-lsqlite3", "-ldate-tz", "-lpthread"]
# Inline functions of headers that both sides include.
SHARED = re.compile(r"_ZN?K?6hearth(7testing|10event_rule|11kEventRules|13is_event_kind)")


def run(*command, may_fail=False):
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
    if done.returncode != 0 and not may_fail:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}")
    return done


def names_in(file):
    """What it defines for other objects, of what is ours."""
    lines = run("nm", "--defined-only", "--extern-only", file).stdout.splitlines()
    return {line.split()[-1] for line in lines if len(line.split()) == 3 and "6hearth" in line and not SHARED.match(line.split()[-1])}


def main(sdk, archive, include, clangxx, gxx):
    with tempfile.TemporaryDirectory() as place:
        scratch = pathlib.Path(place)
        for name, compiler in [("gcc", [gxx, "-O1"]), ("asan", [clangxx, "-O1", "-fsanitize=address"])]:
            flags = ["-std=c++20", f"-I{include}"]
            run(*compiler, *flags, "-c", SOURCE, "-o", scratch / f"{name}.o")
            twice = (names_in(scratch / f"{name}.o") | names_in(sdk)) & names_in(archive)
            if twice:
                sys.exit(f"{name}: the archive and the SDK both define {sorted(twice)[:20]}")
            run(*compiler, scratch / f"{name}.o", sdk, archive, *LIBRARIES, "-o", scratch / name)
            run(scratch / name)
        kept = run(scratch / "asan", "keep", may_fail=True)
        if kept.returncode == 0 or "heap-use-after-free" not in kept.stdout:
            sys.exit(f"a read of bytes that were taken back was not reported:\n{kept.stdout}")
        if "a text" in run(scratch / "gcc", "keep", may_fail=True).stdout:
            sys.exit("bytes that were taken back were not overwritten")
    print("archive: ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
