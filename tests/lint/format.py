#!/usr/bin/env python3
"""Fails when a C or C++ file is not as clang-format 19 writes it, or has a comment of more than 100 columns.

`--fix` writes it as clang-format does. That leaves comments alone, whose tables are aligned by hand.
"""
import pathlib
import re
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


COMMENT = re.compile(r"\s*(//|/?\*)")


def wide_comments(file: str) -> list[str]:
    """Lines that are a comment, too wide, and could be broken: a lint reads NOLINT on one line."""
    lines = pathlib.Path(file).read_text(encoding="utf-8").splitlines()
    return [
        f"{file}:{number}: the comment is {len(line)} columns wide, at most 100"
        for number, line in enumerate(lines, 1)
        if len(line) > 100 and COMMENT.match(line) and "NOLINT" not in line
    ]


if __name__ == "__main__":
    fix = "--fix" in sys.argv
    places = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    mode = ["-i"] if fix else ["--dry-run", "--Werror"]
    all_files = files(pathlib.Path(places[0] if places else "."))
    status = subprocess.run(["clang-format-19", *mode, *all_files]).returncode
    own = [file for file in all_files if "tests/abi/" not in file]  # there is what others have built
    wide = [line for file in own for line in wide_comments(file)]
    print("\n".join(wide + ["format: run tests/lint/format.py --fix" if status else "format: ok"]))
    sys.exit(1 if status or wide else 0)
