#!/usr/bin/env python3
"""Fails when a C or C++ file is not as clang-format 19 writes it. `--fix` writes it so."""
import pathlib
import subprocess
import sys

FOLDERS = ["host", "plugin-api", "plugins", "tests"]
# Not .h: the C interface is a specification, and its tables are aligned by hand.
SUFFIXES = {".cpp", ".hpp", ".ipp", ".c"}
# Written to be looked at by other lints, one pattern a line.
SKIPPED = {"node_modules", "coroutine_probes", "template"}


def files(root: pathlib.Path) -> list[str]:
    found = []
    for folder in FOLDERS:
        found += [
            str(path)
            for path in sorted((root / folder).rglob("*"))
            if path.suffix in SUFFIXES and not SKIPPED & set(path.parts)
        ]
    return found


if __name__ == "__main__":
    fix = "--fix" in sys.argv
    places = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    mode = ["-i"] if fix else ["--dry-run", "--Werror"]
    status = subprocess.run(["clang-format-19", *mode, *files(pathlib.Path(places[0] if places else "."))]).returncode
    if status == 0:
        print("format: ok")
    else:
        print("format: run tests/lint/format.py --fix")
    sys.exit(status)
