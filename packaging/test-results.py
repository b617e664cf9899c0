#!/usr/bin/env python3
"""Reads what test programs have written: the XML of ctest or GoogleTest, or the output of Node's
test runner (FILE.log).

    test-results.py count FILE FAILURES FLAKY [AGAIN...]
        prints how many passed and how many failed, and how many of those that passed were flaky:
        failed in FILE and passed in one of AGAIN, where each ran alone. Appends to FAILURES the end
        of what each failed test has printed, and to FLAKY both outputs of each flaky test
    test-results.py again FILE MOST
        prints the failed tests of FILE that may run once more, one a line, MOST at most
    test-results.py slowest N FILE...
        prints the N slowest tests of all these, one a line
    test-results.py --self-test
"""
import itertools
import pathlib
import re
import sys
import tempfile
import xml.etree.ElementTree as tree
from collections.abc import Iterator
from typing import NamedTuple

SHOWN_LINES = 40
CTEST_LINE = re.compile(r"(?:(\d+): )?(.*)")
NODE_TEST = re.compile(r"(?P<mark>[✔✖]) (?P<name>.*) \((?P<milliseconds>[0-9.]+)ms\)$")

# A run that fails in one of these found a state that the next run may not find again.
NEVER_AGAIN = re.compile(r"^(fault|fuzz|lint)/|kill|power|fuzz|random|seed|chaos|crash|lost|loss", re.IGNORECASE)
# A sanitizer's report, a crash of the program or of a server, and data that is gone are no noise.
# Nor is a test that has killed a server: tests/support/server_process.cpp says so.
NO_NOISE = re.compile(r"Sanitizer|runtime error:|HEARTH_ASSERT|[Aa]ssertion .* failed|Segmentation|Subprocess aborted"
                      r"|server\.crashed|a server was killed|acknowledged|\blost\b")


class Case(NamedTuple):
    name: str
    failed: bool
    seconds: float
    output: str


def may_run_again(case: Case) -> bool:
    """A check has failed, as GoogleTest says at its end (a crash or a hang leaves no such line), or
    Node. Tests of other runners wait for nothing that is noisy."""
    said = "[  FAILED  ]" in case.output or "✖" in case.output
    return case.failed and said and not NEVER_AGAIN.search(case.name) and not NO_NOISE.search(case.output)


def node_outputs(file: pathlib.Path) -> list[str]:
    """What each of Node's test runners has written: ctest, which may run several at a time, puts
    the number of its test before each line."""
    outputs: dict[str, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        number, own = CTEST_LINE.fullmatch(line).groups("")
        outputs.setdefault(number, []).append(own)
    return ["\n".join(lines) + "\n" for lines in outputs.values()]


def node_cases(text: str) -> Iterator[Case]:
    """Only tests without tests inside: those are indented. A failure is told below its name in the
    list at the end, which repeats the names without indentation."""
    details = text.partition("failing tests:")[2]
    for line in text.partition("failing tests:")[0].splitlines():
        found = NODE_TEST.search(line)
        if found and line[: found.start()].endswith("  "):
            mark = f"✖ {found['name']} ("
            output = mark + details.partition(mark)[2].partition("\n\n")[0] if found["mark"] == "✖" else ""
            yield Case(found["name"], bool(output), float(found["milliseconds"]) / 1000, output)


def not_found(case: tree.Element) -> list[tree.Element]:
    """ctest reports a test whose program was not built as skipped. GoogleTest's own skips match a
    regular expression."""
    return [found for found in case.findall("skipped") if "Unable to find" in (found.get("message") or "")]


def cases(file: pathlib.Path) -> Iterator[Case]:
    if file.suffix == ".log":
        for text in node_outputs(file):
            yield from node_cases(text)
        return
    for case in tree.parse(file).getroot().iter("testcase"):
        failures = [found for kind in ("failure", "error") if (found := case.find(kind)) is not None] + not_found(case)
        # ctest's name has the suite, GoogleTest's has not.
        name, suite = case.get("name") or "", case.get("classname") or ""
        output = case.findtext("system-out") or (failures[0].text if failures else "") or ""
        yield Case(name if "/" in name or not suite else f"{suite}.{name}", bool(failures), float(case.get("time") or 0), output)


def total(file: pathlib.Path) -> tuple[int, int]:
    """How many passed and failed. Skipped tests count as neither."""
    if file.suffix == ".log":
        outputs = node_outputs(file)
        last = lambda word: sum(int((re.findall(rf"^.* {word} (\d+)$", text, re.MULTILINE) or ["0"])[-1])
                                for text in outputs)
        return last("pass"), last("fail")
    suite = tree.parse(file).getroot()
    number = lambda name: int(suite.get(name) or 0)
    bad, absent = number("failures") + number("errors"), sum(map(len, map(not_found, suite.iter("testcase"))))
    return number("tests") - bad - number("skipped") - number("disabled"), bad + absent


def ends(case: Case, told: str) -> list[str]:
    return [f"\n--- {case.name} ({told})", *case.output.splitlines()[-SHOWN_LINES:]]


def count(file: pathlib.Path, failures: pathlib.Path, flaky: pathlib.Path, again: list[pathlib.Path]) -> str:
    passed, failed = total(file)
    second = {case.name: case for other in again for case in cases(other)}
    noisy = 0
    for case in filter(lambda case: case.failed, cases(file)):
        repeated = second.get(case.name)
        excused = repeated is not None and not repeated.failed and may_run_again(case)
        noisy += excused
        with open(flaky if excused else failures, "a", encoding="utf-8") as out:
            print(*ends(case, f"FLAKY, failed in {file.stem}" if excused else file.stem), sep="\n", file=out)
            if excused:
                print(*ends(repeated, "FLAKY, passed alone"), sep="\n", file=out)
    return f"{passed + noisy} {failed - noisy} {noisy}"


def again(file: pathlib.Path, most: int) -> list[str]:
    return [case.name for case in cases(file) if may_run_again(case)][:most]


def slowest(most: int, files: list[pathlib.Path]) -> None:
    timed = [(case.seconds, case.name.split("  # ")[0], file.stem) for file in files for case in cases(file)]
    for seconds, name, run in sorted(timed, reverse=True)[:most]:
        print(f"{seconds:6.1f} s  {run:<20} {name}")


# ---- self-test -----------------------------------------------------------------------------------

CHECK_FAILED = "Expected equality\n[  FAILED  ] 1 test"
# Name, output, whether it may run again.
JUDGED = [
    ("net/RateTest.KeepsItsRate", CHECK_FAILED, True),
    ("scenarios/Jobs/ScenariosTest.Same/3  # GetParam() = (\"a.b\")", CHECK_FAILED, True),
    ("net/RateTest.EndsWithoutAWord", "[ RUN      ] RateTest", False),  # a crash or a hang
    ("net/RateTest.Reports", "ERROR: AddressSanitizer: heap-use-after-free\n" + CHECK_FAILED, False),
    ("net/RateTest.Races", "WARNING: ThreadSanitizer: data race\n" + CHECK_FAILED, False),
    ("process/ServerTest.Ends", '"event":"server.crashed_before"\n' + CHECK_FAILED, False),
    ("process/ServerTest.Counts", "3 acknowledged increments are missing\n" + CHECK_FAILED, False),
    ("process/KillTest.Fifty", CHECK_FAILED, False),
    ("process/SupervisedTest.GoesOn", CHECK_FAILED + "\na server was killed", False),
    ("storage/Seeds/PowerLossSeedsTest.Whole/0", CHECK_FAILED, False),
    ("durable/CountedJobsRandomTest.Steps", CHECK_FAILED, False),
    ("fault/ZooTest.Each", CHECK_FAILED, False),
    ("fuzz/SeedsTest.Each", CHECK_FAILED, False),
]
JUNIT = """<testsuite name="x" tests="4" failures="2" disabled="0" skipped="1">
<testcase name="net/A.B" classname="net/A.B" time="1" status="fail"><failure message=""/><system-out>{0}</system-out></testcase>
<testcase name="fault/A.B" classname="fault/A.B" time="2" status="fail"><failure message=""/><system-out>{0}</system-out></testcase>
<testcase name="net/C.D" classname="net/C.D" time="3" status="run"><system-out>ok</system-out></testcase>
</testsuite>"""
ALONE = '<testsuite tests="1"><testcase name="{0}" classname="{0}" time="1" status="run"><system-out>fine</system-out></testcase></testsuite>'
NODE = """▶ frames
  ✔ are read (12.5ms)
  ✖ keep their order (3ms)
✖ frames (20ms)
ℹ tests 2
ℹ pass 1
ℹ fail 1

✖ failing tests:

test at a.test.mjs:1:1
✖ keep their order (3ms)
  Error: 1 is not 2

"""


def self_test() -> None:
    for name, output, expected in JUDGED:
        assert may_run_again(Case(name, True, 0, output)) is expected, name
        assert not may_run_again(Case(name, False, 0, output)), name
    with tempfile.TemporaryDirectory() as place:
        run, failures, flaky = (pathlib.Path(place, name) for name in ("run.xml", "failures", "flaky"))
        run.write_text(JUNIT.format(CHECK_FAILED))
        assert again(run, 3) == ["net/A.B"] and not again(run, 0)
        assert count(run, failures, flaky, []) == "1 2 0" and not flaky.exists()
        alone = [pathlib.Path(place, f"alone-{index}.xml") for index in range(2)]
        for file, name in zip(alone, ("net/A.B", "fault/A.B")):
            file.write_text(ALONE.format(name))
        failures.unlink()
        # The second run of a test that kills excuses nothing.
        assert count(run, failures, flaky, alone) == "2 1 1"
        assert "fault/A.B" in failures.read_text() and "net/A.B" not in failures.read_text()
        assert "Expected equality" in flaky.read_text() and "fine" in flaky.read_text()
        alone[0].write_text(ALONE.format("net/A.B").replace("<system-out>", "<failure/><system-out>"))
        assert count(run, failures, flaky, alone) == "1 2 0"
        log = pathlib.Path(place, "npm.log")
        log.write_text(NODE, encoding="utf-8")
        assert again(log, 3) == ["keep their order"] and total(log) == (1, 1)
        assert "1 is not 2" in [case.output for case in cases(log)][1]
        # Two runners at a time, as ctest prints them.
        passes = "▶ page\n  ✔ is shown (5ms)\nℹ pass 1\nℹ fail 0\n"
        both = itertools.zip_longest(*([f"{number}: {line}\n" for line in text.splitlines()]
                                       for number, text in ((7, NODE), (8, passes))), fillvalue="")
        log.write_text("".join(map("".join, both)), encoding="utf-8")
        assert total(log) == (2, 1), total(log)
        assert [case.name for case in cases(log)] == ["are read", "keep their order", "is shown"]
        assert again(log, 3) == ["keep their order"]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["count", file, failures, flaky, *others]:
            print(count(pathlib.Path(file), pathlib.Path(failures), pathlib.Path(flaky), list(map(pathlib.Path, others))))
        case ["again", file, most]:
            print("".join(f"{name}\n" for name in again(pathlib.Path(file), int(most))), end="")
        case ["slowest", most, *files]:
            slowest(int(most), list(map(pathlib.Path, files)))
        case ["--self-test"]:
            self_test()
        case _:
            sys.exit(__doc__)
