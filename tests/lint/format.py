#!/usr/bin/env python3
"""Fails when a C or C++ file is not as clang-format 19 writes it, or when a comment, a docstring or
a line of a document has more than 100 columns.

`--fix` writes it as clang-format does. Comments stay: their tables are aligned by hand.
"""
import ast
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
SCRIPT_COMMENT = re.compile(r"\s*(//|/?\*|#)")
# Their comments are looked at, not their layout.
SCRIPTS = {".cmake", ".h", ".js", ".mjs", ".py", ".rs", ".sh", ".ts", ".txt"}
TEXT_FOLDERS = [*FOLDERS, "clients", "config", "packaging"]


def texts(root: pathlib.Path) -> list[pathlib.Path]:
    """Documents and scripts."""
    found = list(root.glob("*.md"))
    for folder in TEXT_FOLDERS:
        found += [
            path
            for path in sorted((root / folder).rglob("*"))
            if path.suffix in SCRIPTS | {".md"}
            and not {"node_modules", "build"} & set(path.parts)
            and not re.search(r"tests/fuzz/seeds", path.as_posix())
        ]
    return found


def docstring_lines(text: str) -> set[int]:
    """The lines of the docstrings of a Python script."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node, clean=False) is not None:
                found |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return found


def wide_lines(path: pathlib.Path) -> list[int]:
    """Lines that are prose, too wide, and could be broken: no table, no code, no NOLINT, which a
    lint reads on one line."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    docstrings = docstring_lines(text) if path.suffix == ".py" else set()
    comment = COMMENT if path.suffix in SUFFIXES else SCRIPT_COMMENT
    found, is_code = [], False
    for number, line in enumerate(lines, 1):
        if path.suffix == ".md":
            fence = line.lstrip().startswith("```")
            is_code = is_code != fence
            prose = not is_code and not line.lstrip().startswith("|") and not line.startswith("    ")
        else:
            prose = comment.match(line) is not None or number in docstrings
        if prose and len(line) > 100 and "NOLINT" not in line:
            found.append(number)
    return found


if __name__ == "__main__":
    fix = "--fix" in sys.argv
    places = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    mode = ["-i"] if fix else ["--dry-run", "--Werror"]
    all_files = files(pathlib.Path(places[0] if places else "."))
    status = subprocess.run(["clang-format-19", *mode, *all_files]).returncode
    root = pathlib.Path(places[0] if places else ".")
    wide = [
        f"{path}:{number}: the line is more than 100 columns wide"
        for path in [pathlib.Path(file) for file in all_files] + texts(root)
        for number in wide_lines(path)
    ]
    if status:
        wide.append("format: run tests/lint/format.py --fix")
    print("\n".join(wide or ["format: ok"]))
    sys.exit(1 if status or wide else 0)
