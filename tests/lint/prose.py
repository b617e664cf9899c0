#!/usr/bin/env python3
"""Fails when a comment, a document or a message breaks a rule of plain English that a program can
see.

1. The subject is a thing in the program: no "who", "nobody", "he" and the like. A person may be
   "an operator who", "an author who": see PEOPLE. String literals of the host are looked at too:
   log messages, error texts, help.
2. A numbered promise (`//  P1 Name  text`) is one sentence. What explains it stands below the
   promises, in paragraphs of its own.

`--long` prints sentences of more than 30 words instead, and never fails: to look for what has to
be read twice.
"""
import pathlib
import re
import sys

FOLDERS = ["host", "plugin-api", "plugins", "tests", "config", "packaging", "clients"]
SOURCES = {".cpp", ".hpp", ".ipp", ".c", ".h", ".js", ".mjs", ".ts", ".rs"}
SCRIPTS = {".py", ".sh", ".cmake"}
MESSAGES = {".cpp", ".hpp"}  # in host: their string literals are prose
SKIPPED = {"node_modules", "build"}

WORDS = re.compile(
    r"\b(who|whoever|whom|whomever|nobody|somebody|everybody|anybody|someone|anyone|everyone|no one"
    r"|he|him|his|she)\b",
    re.IGNORECASE,
)
# People who use the server, not parts of it.
PEOPLE = re.compile(
    r"\b(administrators?|anyone|authors?|clients?|engineers?|operators?|people|persons?|readers?|users?)"
    r",? who\b",
    re.IGNORECASE,
)
PROMISE = re.compile(r"^//\s{1,3}(\[?[A-Z]+\d+[a-z]?\]?)\s+(\S.*)$")
# A comment, a character or a string literal: the first two may hold quotation marks.
TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|(?<!\w)'(?:[^'\\\n]|\\[^\n]{1,8}?)'"
    r'|R"(?P<mark>[^()\\\s]{0,16})\((?P<raw>.*?)\)(?P=mark)"|"(?P<plain>(?:[^"\\\n]|\\.)*)"',
    re.DOTALL,
)
INCLUDE = re.compile(r'^#include "[^"\n]*"', re.MULTILINE)
# A full stop, and a capital or a quoted word behind it. Not that of an abbreviation.
SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!etc)[.?!][\"`)]*\s+(?=[A-Z`\"(])")


def files(root: pathlib.Path) -> list[pathlib.Path]:
    found = list(root.glob("*.md"))
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            inside = path.relative_to(root).as_posix()
            if any(inside.startswith(each) or f"/{each}/" in f"/{inside}" for each in SKIPPED):
                continue
            if path.suffix in SOURCES | SCRIPTS | {".md"} and path.is_file():
                found.append(path)
    return found


def comments(path: pathlib.Path) -> list[tuple[int, str]]:
    """The lines of prose in it, each with its number."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.suffix == ".md":
        prose, is_code = [], False
        for number, line in enumerate(lines, 1):
            if line.lstrip().startswith("```"):
                is_code = not is_code
            elif not is_code:
                prose.append((number, re.sub(r"`[^`]*`", "", line)))
        return prose
    mark = "#" if path.suffix in SCRIPTS else "//"
    found, is_block = [], False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if is_block or text.startswith("/*"):
            is_block = "*/" not in text
            found.append((number, text))
        elif text.startswith(mark):
            found.append((number, text))
        elif f"  {mark} " in line:
            found.append((number, line.split(f"  {mark} ", 1)[1]))
    return found


def literals(text: str) -> list[tuple[int, str]]:
    """The string literals of C++ text, each with its line. Adjacent literals are one."""
    found: list[tuple[int, str]] = []
    end = 0
    text = INCLUDE.sub("#include", text)
    for token in TOKEN.finditer(text):
        literal = token["plain"] if token["raw"] is None else token["raw"]
        if literal is None:
            continue
        if found and end and not text[end : token.start()].strip():
            found[-1] = (found[-1][0], found[-1][1] + literal)
        else:
            found.append((text.count("\n", 0, token.start()) + 1, literal))
        end = token.end()
    return found


def messages(path: pathlib.Path, root: pathlib.Path) -> list[tuple[int, str]]:
    if path.suffix not in MESSAGES or path.relative_to(root).parts[0] != "host":
        return []
    return literals(path.read_text(encoding="utf-8"))


def words_about_people(path: pathlib.Path, root: pathlib.Path) -> list[str]:
    problems = []
    for number, text in comments(path) + messages(path, root):
        found = WORDS.search(PEOPLE.sub("", text))
        if found:
            problems.append(f'{path}:{number}: "{found.group()}": name the thing of the program')
    return problems


def promises(path: pathlib.Path) -> list[tuple[int, str, str]]:
    """Each numbered promise: its line, its number, its text."""
    found: list[tuple[int, str, str]] = []
    indent = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        begins = PROMISE.match(line)
        if begins:
            found.append((number, begins.group(1), begins.group(2)))
            indent = True
        elif indent and re.match(r"^//\s{4,}\S", line):
            at, name, text = found[-1]
            found[-1] = (at, name, text + " " + line.lstrip("/ "))
        else:
            indent = None
    return found


def long_promises(path: pathlib.Path) -> list[str]:
    if path.suffix not in SOURCES:
        return []
    return [
        f"{path}:{number}: promise {name} has {len(SENTENCE_END.findall(text)) + 1} sentences, not one"
        for number, name, text in promises(path)
        if SENTENCE_END.search(text)
    ]


def long_sentences(path: pathlib.Path, most: int = 30) -> list[str]:
    problems, start, text = [], 0, ""
    for number, line in comments(path) + [(0, "")]:
        line = re.sub(r"^(//|#|/?\*+/?|\|)+", "", line).strip()
        if text and (not line or number > start + 40):
            problems += [
                f"{path}:{start}: {len(sentence.split())} words: {sentence[:160]}"
                for sentence in SENTENCE_END.split(text)
                if len(sentence.split()) > most and "|" not in sentence
            ]
            text = ""
        if not text:
            start = number
        text = f"{text} {line}".strip()
    return problems


def self_test() -> None:
    here = pathlib.Path(__file__)
    assert PROMISE.match("//  P1 One index   What is due is near.")
    assert not PROMISE.match("//             P1 is no promise here.")
    assert SENTENCE_END.search("One. Two.") and not SENTENCE_END.search("One, e.g. this.")
    assert WORDS.search("told to whoever asks") and WORDS.search("Nobody waits")
    assert not WORDS.search(PEOPLE.sub("", "an operator who looks")) and not WORDS.search("the whole")
    assert comments(here)
    cpp = """f('"', 1'000);  // "no literal"
      g("a \\"user\\" "
        "who", R"x(raw "who")x");"""
    assert literals(cpp) == [(2, 'a \\"user\\" who'), (3, 'raw "who"')], literals(cpp)
    print("prose: the probes hold")


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        sys.exit(self_test())
    places = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    root = pathlib.Path(places[0] if places else ".")
    only = places[1:]
    chosen = [path for path in files(root) if not only or any(part in str(path) for part in only)]
    if "--long" in sys.argv:
        print("\n".join(line for path in chosen for line in long_sentences(path)))
        sys.exit(0)
    found = [line for path in chosen for line in words_about_people(path, root) + long_promises(path)]
    print("\n".join(found + [f"prose: {len(found)} to mend" if found else "prose: ok"]))
    sys.exit(1 if found else 0)
