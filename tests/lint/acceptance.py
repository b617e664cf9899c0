#!/usr/bin/env python3
"""Fails when a number of the chat's acceptance has no row in tests/chat/acceptance.txt, or when a
test that a row names is not in the tree: acceptance.py ROOT
"""
import pathlib
import re
import sys

COUNT = 60


def known_tests(root):
    """Every Suite.Test, and "file.mjs: name" of every end-to-end test."""
    tests = set()
    for file in (root / "tests").rglob("*_test.cpp"):
        tests |= {".".join(pair) for pair in re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", file.read_text(), re.M)}
    for file in (root / "tests/e2e").glob("*.test.mjs"):
        tests |= {f"{file.name}: {name}" for name in re.findall(r'\btest\("([^"]+)"', file.read_text())}
    return tests


def faults(rows, tests):
    found = []
    numbers = []
    for row in rows:
        match = re.fullmatch(r"C(\d+) [^:!]+:(?P<named>[^!]*)(?:!(?P<missing>.+))?", row)
        if not match:
            found.append(f"no row: {row}")
            continue
        numbers.append(int(match[1]))
        # A name of a test may have a semicolon.
        named = [name.strip() for name in re.split(r"; (?=[\w-]+\.[\w-]+(?:$|[;:. ]))", match["named"]) if name.strip()]
        if not named and not match["missing"]:
            found.append(f"C{match[1]}: neither a test nor what is missing")
        for name in named:
            if not any(test == name or (".mjs: " in name and test.startswith(name)) for test in tests):
                found.append(f"C{match[1]}: there is no test {name}")
    if numbers != list(range(1, COUNT + 1)):
        found.append(f"the rows are not C1 to C{COUNT}: {numbers}")
    return found


def main():
    root = pathlib.Path(sys.argv[1])
    lines = (root / "tests/chat/acceptance.txt").read_text().splitlines()
    found = faults([line for line in lines if line and not line.startswith("#")], known_tests(root))
    print("\n".join(found) or "acceptance: ok")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
