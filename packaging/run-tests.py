#!/usr/bin/env python3
"""Runs the tests that ctest knows, many in one process: a process for each of 5,000 tests takes
longer than the tests.

    run-tests.py PRESET RESULTS.xml JOBS MOST [CTEST-ARGUMENT...]
    run-tests.py --self-test

JOBS processes run at a time, each with at most MOST tests of one program. The arguments choose
tests as ctest's do (-L, -LE, -R). Each failed test's output is printed. RESULTS.xml has what ctest
would write. If a program crashes or hangs, the test that ran fails, and so does each behind it,
which did not run. The status is 0 if all passed.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as tree
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILTER = "--gtest_filter="
BEGIN = re.compile(r"^\[ RUN      \] (\S+)$", re.MULTILINE)
# What XML 1.0 cannot hold.
NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# A hang ends after this, and a little for each test. Seconds.
PATIENCE, PATIENCE_A_TEST = 300, 5


class Test(NamedTuple):
    name: str  # ctest's
    command: list[str]
    properties: dict

    @property
    def own_name(self) -> str | None:
        """GoogleTest's."""
        return next((part[len(FILTER):] for part in self.command if part.startswith(FILTER)), None)


class Result(NamedTuple):
    name: str
    verdict: str  # run, fail, notrun
    seconds: float
    output: str


def known_tests(preset: str, arguments: list[str]) -> list[Test]:
    said = subprocess.run(["ctest", "--preset", preset, "--show-only=json-v1", *arguments], cwd=ROOT,
                          check=True, capture_output=True, text=True).stdout
    return [Test(test["name"], test.get("command", []), {entry["name"]: entry["value"] for entry in test["properties"]})
            for test in json.loads(said)["tests"]]


def groups(tests: list[Test], most: int) -> list[list[Test]]:
    """Neighbours that one program runs. A program that is not GoogleTest's is a group."""
    found: list[list[Test]] = []
    for test in tests:
        last = found[-1] if found else []
        if not (test.own_name and last and last[0].own_name and last[0].command[0] == test.command[0] and len(last) < most):
            found.append([])
        found[-1].append(test)
    return found


def preset_environment(preset: str) -> dict[str, str]:
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]
    return next(entry.get("environment", {}) for entry in presets if entry["name"] == preset)


def run(command: list[str], properties: dict, environment: dict[str, str], seconds: float) -> tuple[int | None, str]:
    """The status, None after a hang, and what it printed. All processes that it left are ended."""
    with tempfile.TemporaryFile() as output:
        try:
            program = subprocess.Popen(command, cwd=properties.get("WORKING_DIRECTORY"), stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output, env={**os.environ, **environment}, start_new_session=True)
        except OSError as error:
            return 127, str(error)
        try:
            status = program.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(program.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        program.wait()
        output.seek(0)
        return status, NO_XML.sub("?", output.read().decode("utf-8", "replace"))


def told(status: int | None) -> str:
    if status is None:
        return "the program hung"
    return f"the program ended with {signal.Signals(-status).name}" if status < 0 else f"the program ended with status {status}"


def judged(tests: list[Test], status: int | None, output: str, xml: pathlib.Path) -> list[Result]:
    """A verdict for each test of a GoogleTest program. After a crash there is no XML: then a test
    that another one follows in the output has ended well, or said that it failed."""
    begins = list(BEGIN.finditer(output))
    part = {begin[1]: output[begin.start():after.start() if after else len(output)]
            for begin, after in zip(begins, [*begins[1:], None])}
    done = {}
    for case in tree.parse(xml).getroot().iter("testcase") if xml.exists() and xml.stat().st_size else ():
        verdict = "fail" if case.find("failure") is not None else "notrun" if case.find("skipped") is not None else "run"
        done[f"{case.get('classname')}.{case.get('name')}"] = (verdict, float(case.get("time") or 0))
    if not done:
        for begin in begins[:-1]:
            done[begin[1]] = ("fail" if "[  FAILED  ]" in part[begin[1]] else "run", 0.0)
    results = []
    for test in tests:
        own = test.own_name or ""
        text = part.get(own, "")
        verdict, seconds = done.get(own, ("fail", 0.0))
        if own not in done:
            text += f"\n{told(status)}" if own in part else f"did not run: {told(status)}"
        results.append(Result(test.name, verdict, seconds, text))
    if status != 0 and all(result.verdict != "fail" for result in results):
        last = results.pop()
        results.append(Result(last.name, "fail", last.seconds, f"{output[-20000:]}\nall tests passed, but {told(status)}"))
    return results


def run_group(tests: list[Test], environment: dict[str, str], folder: pathlib.Path) -> list[Result]:
    first, began = tests[0], time.monotonic()
    if first.own_name is None:
        status, output = run(first.command, first.properties, environment, float(first.properties.get("TIMEOUT", PATIENCE)))
        wanted = first.properties.get("PASS_REGULAR_EXPRESSION")
        fine = any(re.search(pattern, output) for pattern in wanted) if wanted else status == 0
        text = output if fine else f"{output}\n{told(status)}"
        return [Result(first.name, "run" if fine else "fail", time.monotonic() - began, text)]
    with tempfile.TemporaryDirectory(dir=folder) as place:
        xml, flags = pathlib.Path(place, "results.xml"), pathlib.Path(place, "flags")
        # Thousands of names are longer than an argument may be.
        flags.write_text(f"{FILTER}{':'.join(test.own_name or '' for test in tests)}\n--gtest_output=xml:{xml}\n")
        status, output = run([first.command[0], f"--gtest_flagfile={flags}"], first.properties, environment,
                             PATIENCE + PATIENCE_A_TEST * len(tests))
        return judged(tests, status, output, xml)


def write(results: list[Result], file: pathlib.Path) -> None:
    count = lambda verdict: str(sum(result.verdict == verdict for result in results))
    root = tree.Element("testsuite", tests=str(len(results)), failures=count("fail"), skipped=count("notrun"), disabled="0")
    for result in results:
        case = tree.SubElement(root, "testcase", name=result.name, classname=result.name, time=f"{result.seconds:.3f}",
                               status=result.verdict)
        if result.verdict == "fail":
            tree.SubElement(case, "failure", message="")
        elif result.verdict == "notrun":
            tree.SubElement(case, "skipped", message="SKIP_REGULAR_EXPRESSION_MATCHED")
        tree.SubElement(case, "system-out").text = result.output if result.verdict == "fail" else ""
    tree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)


def main(preset: str, file: pathlib.Path, jobs: int, most: int, arguments: list[str]) -> int:
    tests, environment, results, done = known_tests(preset, arguments), preset_environment(preset), [], 0
    if not tests:
        sys.exit(f"no tests for {' '.join(arguments)}")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(run_group, group, environment, file.parent): (group, time.monotonic())
                   for group in groups(tests, most)}
        for future in concurrent.futures.as_completed(running):
            group, found = running[future][0], future.result()
            results += found
            done += len(found)
            failed = [result for result in found if result.verdict == "fail"]
            what = group[0].name if len(group) == 1 else f"{group[0].name} and {len(group) - 1} more"
            print(f"{done:5} of {len(tests)}  {sum(result.seconds for result in found):6.1f} s  "
                  f"{f'{len(failed)} FAILED' if failed else 'ok'}  {what.split('  # ')[0]}", flush=True)
            for result in failed:
                print(f"--- {result.name}\n{result.output}", flush=True)
    write(results, file)
    return int(any(result.verdict == "fail" for result in results))


# ---- self-test -----------------------------------------------------------------------------------

OUTPUT = """[ RUN      ] A.Good
[       OK ] A.Good (1 ms)
[ RUN      ] A.Bad
1 is not 2
[  FAILED  ] A.Bad (1 ms)
[ RUN      ] A.Last
the last words
"""
XML = ('<testsuites><testsuite><testcase name="Good" classname="A" time="1"/><testcase name="Bad" classname="A" time="2">'
       '<failure/></testcase><testcase name="Last" classname="A"><skipped/></testcase></testsuite></testsuites>')


def self_test() -> None:
    tests = [Test(f"net/A.{name}", ["a", f"{FILTER}A.{name}"], {}) for name in ("Good", "Bad", "Last", "Never")]
    other = Test("docs/python", ["python3"], {})
    assert groups([*tests, other], 3) == [tests[:3], tests[3:], [other]]
    with tempfile.TemporaryDirectory() as place:
        xml = pathlib.Path(place, "results.xml")
        # What is in no result did not run: here the program crashed, and there is no XML.
        for status, word in ((-11, "SIGSEGV"), (3, "status 3"), (None, "hung")):
            crashed = judged(tests, status, OUTPUT, xml)
            assert [result.verdict for result in crashed] == ["run", "fail", "fail", "fail"], crashed
            assert "1 is not 2" in crashed[1].output and word not in crashed[1].output
            assert "the last words" in crashed[2].output and word in crashed[2].output
            assert crashed[3].output == f"did not run: {told(status)}"
        xml.write_text(XML)
        ended = judged(tests[:3], 1, OUTPUT, xml)
        assert [(result.verdict, result.seconds) for result in ended] == [("run", 1), ("fail", 2), ("notrun", 0)], ended
        # A sanitizer's report at the end of the program, say of a leak.
        xml.write_text(XML.replace("<failure/>", ""))
        leaked = judged(tests[:3], 23, OUTPUT + "ERROR: LeakSanitizer", xml)
        assert leaked[2].verdict == "fail" and "LeakSanitizer" in leaked[2].output and "status 23" in leaked[2].output
        assert all(result.verdict != "fail" for result in judged(tests[:3], 0, OUTPUT, xml))
        file = pathlib.Path(place, "all.xml")
        write(crashed, file)
        root = tree.parse(file).getroot()
        assert (root.get("tests"), root.get("failures"), len(root.findall("testcase/failure"))) == ("4", "3", 3)
    for script, seconds, expected in (("echo hello", 9, (0, "hello\n")), ("exit 3", 9, (3, "")), ("sleep 60", 0.1, (None, ""))):
        assert run(["sh", "-c", script], {}, {}, seconds) == expected, script


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if len(sys.argv) < 5 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]))
