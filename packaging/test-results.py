#!/usr/bin/env python3
"""Reads what test programs have written: the XML of ctest or GoogleTest, or the output of Node's
test runner.

    test-results.py count FILE FAILURES
        prints how many passed and how many failed, and appends to FAILURES the end of what each
        failed test has printed
    test-results.py slowest N FILE...
        prints the N slowest tests of all these, one a line
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as tree
from collections.abc import Iterator

SHOWN_LINES = 40
NODE_TEST = re.compile(r"[✔✖] (?P<name>.*) \((?P<milliseconds>[0-9.]+)ms\)$")


def count(junit: str, failures: str) -> None:
    suite = tree.parse(junit).getroot()
    number = lambda name: int(suite.get(name) or 0)
    bad = number("failures") + number("errors")
    with open(failures, "a", encoding="utf-8") as out:
        for case in suite.iter("testcase"):
            failed = [found for kind in ("failure", "error") if (found := case.find(kind)) is not None]
            if failed:
                output = (case.findtext("system-out") or failed[0].text or "").splitlines()[-SHOWN_LINES:]
                print(f"\n--- {case.get('name')} ({suite.get('name')})", *output, sep="\n", file=out)
    print(number("tests") - bad - number("skipped") - number("disabled"), bad)


def durations(file: pathlib.Path) -> Iterator[tuple[float, str]]:
    """Seconds and name of each test. Of Node's tests only those without tests inside; those are
    indented."""
    if file.suffix == ".xml":
        for case in tree.parse(file).getroot().iter("testcase"):
            # ctest's name ends with a comment on the parameter, GoogleTest's lacks the suite.
            name = (case.get("name") or "").split("  # ")[0]
            suite = case.get("classname") or ""
            yield float(case.get("time") or 0), name if "/" in name or not suite else f"{suite}.{name}"
        return
    for line in file.read_text(encoding="utf-8").splitlines():
        if found := NODE_TEST.search(line):
            if line[: found.start()].endswith("  "):
                yield float(found["milliseconds"]) / 1000, found["name"]


def slowest(most: int, files: list[pathlib.Path]) -> None:
    timed = [(seconds, name, file.stem) for file in files for seconds, name in durations(file)]
    for seconds, name, run in sorted(timed, reverse=True)[:most]:
        print(f"{seconds:6.1f} s  {run:<20} {name}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["count", junit, failures]:
            count(junit, failures)
        case ["slowest", most, *files]:
            slowest(int(most), list(map(pathlib.Path, files)))
        case _:
            sys.exit(__doc__)
