#!/usr/bin/env python3
"""Each mutant of tests/mutants/mutants.json can still be made, and names a test.

A mutant replaces a line of a source so that a promise is broken; tests/mutants/run shows that the
tests notice. Here: its name is unique, its anchor (`from`) stands exactly once in its file and
differs from `to`, and each part of its filter (`tests`) names a test in the sources of its program.

    mutants.py [ROOT]
    mutants.py --self-test
"""
import fnmatch
import json
import pathlib
import re
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)


class Mutant(NamedTuple):
    part: str
    name: str  # the promise that it breaks
    file: str
    anchor: str
    to: str
    program: str
    tests: str  # a filter of GoogleTest

    def made(self, text: str) -> str:
        """The text of its file with the mutant in it."""
        return text.replace(self.anchor, self.to)


def read(text: str) -> list[Mutant]:
    return [Mutant(part, row["name"], row["file"], row["from"], row["to"], row["program"], row["tests"])
            for part, rows in json.loads(text).items() for row in rows]


def known(root: pathlib.Path = ROOT) -> list[Mutant]:
    return read((root / "tests/mutants/mutants.json").read_text())


class Sources(NamedTuple):
    """The texts of a tree: of its code by path, of its tests by program."""
    code: dict[str, str]
    tests: dict[str, str]


def sources_of(root: pathlib.Path, mutants: list[Mutant]) -> Sources:
    code = {file.relative_to(root).as_posix(): file.read_text()
            for file in sorted((root / "host").rglob("*.?pp"))}
    tests = {program: "\n".join(file.read_text() for file in (root / "tests" / program.removesuffix("_tests")).rglob("*")
                                if file.suffix in (".cpp", ".hpp", ".json", ".inc"))
             for program in {mutant.program for mutant in mutants}}
    return Sources(code, tests)


def names_a_test(pattern: str, text: str) -> bool:
    """Whether this part of a filter, SUITE.NAME or INSTANCE/SUITE.NAME/PARAMETER, names a test."""
    suite, _, name = pattern.partition(".")
    name, _, parameter = name.partition("/")
    found = any(fnmatch.fnmatchcase(f"{test[1]}.{test[2]}", f"{suite.rpartition('/')[2]}.{name or '*'}")
                for test in TEST.finditer(text))
    # A parameter is a number, or a name whose words the tests' tables have.
    words = parameter.replace("*", "_").split("_")
    return found and (parameter.isdigit() or all(word in text for word in words))


def mistakes(mutants: list[Mutant], sources: Sources):
    names = [mutant.name for mutant in mutants]
    for mutant in mutants:
        if names.count(mutant.name) > 1:
            yield f"two mutants are called '{mutant.name}'"
        times = sources.code.get(mutant.file, "").count(mutant.anchor)
        if times != 1 or not mutant.anchor:
            elsewhere = [path for path, text in sources.code.items() if mutant.anchor in text and path != mutant.file]
            yield (f"'{mutant.name}': its anchor stands {times} times in {mutant.file}"
                   + (f" (and in {', '.join(elsewhere[:3])})" if elsewhere else "")
                   + f": find the line that keeps the promise now, and make `from` and `to` of it: {mutant.anchor}")
        if mutant.anchor == mutant.to:
            yield f"'{mutant.name}': it changes nothing"
        for pattern in mutant.tests.split(":"):
            if not names_a_test(pattern, sources.tests.get(mutant.program, "")):
                yield f"'{mutant.name}': {mutant.program} has no test {pattern}"


def self_test() -> None:
    text = "TEST(BeeTest, Flies) {}\nTEST_P(AntTest,\n       Walks) {}\nnames: {\"Uphill\"}"
    assert names_a_test("BeeTest.Flies", text) and names_a_test("BeeTest.*", text) and names_a_test("Be*.Fl*", text)
    assert names_a_test("Hill/AntTest.Walks/Uphill", text) and names_a_test("*/AntTest.Walks/0", text)
    assert names_a_test("*/AntTest.Walks/*", text) and names_a_test("*/AntTest.Walks/Uphill_*", text)
    assert not names_a_test("*/AntTest.Walks/Down_*", text) and not names_a_test("BeeTest.Walks", text) and not names_a_test("Hill/AntTest.Walks/Downhill", text)
    sources = Sources({"host/a.cpp": "once();\ntwice();\ntwice();\n", "host/b.cpp": "moved();\n"}, {"a_tests": text})
    good = Mutant("p", "one", "host/a.cpp", "once();", "", "a_tests", "BeeTest.Flies:*/AntTest.Walks/Uphill")
    assert list(mistakes([good], sources)) == []
    assert good.made(sources.code["host/a.cpp"]) == "\ntwice();\ntwice();\n"
    bad = {"two mutants": [good, good], "2 times": [good._replace(anchor="twice();")],
           "0 times in host/a.cpp (and in host/b.cpp)": [good._replace(anchor="moved();")],
           "0 times": [good._replace(file="host/none.cpp")], "times": [good._replace(anchor="")],
           "changes nothing": [good._replace(to=good.anchor)], "no test": [good._replace(tests="BeeTest.Swims")],
           "a_tests has no test": [good._replace(tests="BeeTest.Flies:AntTest.Flies")]}
    for why, mutants in bad.items():
        assert any(why in mistake for mistake in mistakes(mutants, sources)), why


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    mutants = known(root)
    found = list(mistakes(mutants, sources_of(root, mutants)))
    for mistake in found:
        print(f"tests/mutants/mutants.json: {mistake}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
