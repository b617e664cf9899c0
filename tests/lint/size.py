#!/usr/bin/env python3
"""Prints how much C and C++ each folder of host/ has, and plugin-api/, plugins/ and tests/, beside
what it had at the commit BASE_COMMIT.

    size.py [ROOT]           the tree
    size.py --table COMMIT   the table of that commit, as BASE has it
    size.py --virtuals [ROOT]
                             the interfaces of host/, their pure virtual functions, what each hides
    size.py --classes [ROOT]
                             the classes of runtime/, durable/ and extensions/ with more than 40
                             members and functions together
    size.py --self-test      checks the counts themselves

code        lines without comments and blanks
lines       all lines
long files  over 300 lines; long functions: over 60

A line of more than 100 characters counts as if it were wrapped at 100.

What an interface hides is the first sentence of its comment, or of its header's. One without such a
sentence fails.
"""
import io
import pathlib
import re
import subprocess
import sys
import tarfile

SUFFIXES = (".cpp", ".hpp", ".h", ".c", ".ipp")
OTHERS = ("plugin-api", "plugins", "tests")
WIDTH = 100
LONG_FILE = 300
LONG_FUNCTION = 60
MOST_MEMBERS = 40
COLUMNS = ("code", "lines", "files", "long files", "long functions")

BASE_COMMIT = "683e5a5"
# --table 683e5a5
BASE = {
    "host/api": (4027, 5359, 51, 2, 2),
    "host/auth": (650, 842, 8, 0, 0),
    "host/base": (2244, 3156, 51, 0, 0),
    "host/cli": (2797, 3459, 37, 2, 0),
    "host/config": (3034, 3863, 31, 4, 2),
    "host/diagnosis": (1601, 2180, 19, 0, 0),
    "host/durable": (7339, 9604, 58, 10, 0),
    "host/extensions": (6453, 8404, 79, 7, 0),
    "host/json": (559, 741, 6, 1, 0),
    "host/mock": (2429, 2973, 21, 2, 0),
    "host/net": (6595, 8851, 79, 3, 1),
    "host/plugins/admission": (2401, 3115, 28, 2, 0),
    "host/plugins/check": (3426, 4175, 27, 3, 1),
    "host/plugins/generation": (858, 1109, 10, 0, 0),
    "host/plugins/versions": (4209, 5530, 38, 5, 0),
    "host/protocol": (658, 963, 16, 0, 0),
    "host/runtime": (9028, 12225, 119, 6, 0),
    "host/server": (4453, 5627, 49, 3, 1),
    "host/storage": (5136, 7119, 52, 5, 0),
    "host/telemetry": (598, 814, 6, 0, 0),
    "plugin-api": (9891, 14394, 120, 12, 0),
    "plugins": (1324, 1731, 9, 2, 0),
    "tests": (91481, 106197, 674, 91, 10),
}

TOKENS = re.compile(
    r'R"(?P<mark>[^()\\ ]{0,16})\((?s:.*?)\)(?P=mark)"'  # a raw text
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'"  # (10'000 is no character)
    r"|//[^\n]*|/\*(?s:.*?)\*/")


def without_comments(text):
    """The same lines."""
    def keep(match):
        token = match.group(0)
        return "\n" * token.count("\n") if token.startswith("/") else token
    return TOKENS.sub(keep, text)


def without_texts(code):
    def keep(match):
        return '""' + "\n" * match.group(0).count("\n")
    return TOKENS.sub(keep, code)


def rows_of(line):
    return max(1, -(-len(line.rstrip()) // WIDTH))


def function_lengths(text):
    """From the first line of each function to its last. (A lambda belongs to the function around
    it.)"""
    code = re.sub(r"^[ \t]*#.*?(?<!\\)$", "", text, flags=re.MULTILINE | re.DOTALL)
    header, depth, line, begun = "", 0, 1, None
    for character in code:
        if character == "\n":
            line += 1
        if character == "{":
            words = header.split()
            is_scope = not words or words[0] in ("namespace", "class", "struct", "enum", "union", "extern")
            if begun is None and ")" in header and not is_scope and words[-1] not in ("=", ",", "("):
                begun = (depth, line - header.lstrip().count("\n"))
            depth += 1
        elif character == "}":
            depth -= 1
            if begun is not None and depth == begun[0]:
                yield line - begun[1] + 1
                begun = None
        header = "" if character in "{};" else header + character


def count(text):
    """One row of the table: a file's."""
    code = without_comments(text)
    lines = sum(map(rows_of, text.splitlines()))
    functions = function_lengths(without_texts(code))
    return (sum(rows_of(line) for line in code.splitlines() if line.strip()), lines, 1, int(lines > LONG_FILE),
            sum(length > LONG_FUNCTION for length in functions))


def folder_of(path):
    parts = path.split("/")
    if parts[0] == "host" and len(parts) > 2:
        return "/".join(parts[:3] if parts[1] == "plugins" and len(parts) > 3 else parts[:2])
    return parts[0] if parts[0] in OTHERS else None


def table_of(files):
    """`files`: (path, text)."""
    table = {}
    for path, text in files:
        folder = folder_of(path)
        if folder is not None and path.endswith(SUFFIXES):
            table[folder] = tuple(map(sum, zip(table.get(folder, (0,) * len(COLUMNS)), count(text))))
    return table


def files_of_tree(root):
    for top in ("host", *OTHERS):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES and "node_modules" not in path.parts and path.is_file():
                yield str(path.relative_to(root)), path.read_text()


def files_of_commit(commit):
    archive = subprocess.run(["git", "archive", commit, "host", *OTHERS], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(SUFFIXES):
                yield member.name, tar.extractfile(member).read().decode()


LABEL = re.compile(r"// *[A-Z][\w, -]*? {2,}\S|// *Promises?$")
PURE = re.compile(r"\bvirtual\b[^;{}]*=\s*0\s*;")
CLASS = re.compile(r"^( *)(?:class|struct) (\w+)(?: final)?(?:\s*:[^;{]*)?\s*\{", re.MULTILINE)


def first_sentence(lines):
    """Of the comment that the lines begin with; a label such as "Threads  " has none."""
    text = ""
    for line in map(str.strip, lines):
        if not line.startswith("//") or (not text and LABEL.match(line)):
            break
        text += " " + line.lstrip("/ ")
    return re.split(r"(?<=[.])\s+(?=[A-Z`])|: |$", text.strip())[0]


def interfaces(text):
    """(name, number of pure virtual functions, what it hides) of each interface in a header."""
    head = text.partition("#pragma once\n")[2].splitlines()
    for match in CLASS.finditer(text):
        body = text[match.end():].partition(f"\n{match[1]}}};")[0]
        for inner in CLASS.finditer(body):  # one inside is an interface of its own
            if inner[1]:
                body = body.replace(body[inner.start():].partition(f"\n{inner[1]}}};")[0], "")
        number = len(PURE.findall(body))
        if number == 0:
            continue
        above = text[:match.start()].splitlines()
        begin = len(above)
        while begin > 0 and above[begin - 1].strip().startswith("//"):
            begin -= 1
        yield match[2], number, first_sentence(above[begin:]) or first_sentence(head)


def show_virtuals(root):
    found = [(path.relative_to(root), *each) for path in sorted((root / "host").rglob("*.hpp")) for each in interfaces(path.read_text())]
    for path, name, number, hides in found:
        print(f"{f'{path.parent}/{name}':34} {number:3}  {hides or 'NOTHING: say in a sentence above it what it hides'}")
    print(f"{len(found)} interfaces, {sum(each[2] for each in found)} pure virtual functions")
    return not all(each[3] for each in found)


HEAD = re.compile(r"(?<!enum )\b(?:class|struct) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?:\s*:[^;{(]*)?\s*\{")
TYPE = re.compile(r"^(?:template\s*<.*?>\s*)?(?:class|struct|enum|union)\b", re.DOTALL)
NO_MEMBER = ("using ", "friend ", "static_assert")


def members(text):
    """(name, number of members and functions) of each class in a header. A type inside counts for
    itself alone."""
    code = without_texts(without_comments(text))
    for match in HEAD.finditer(code):
        depth, number, statement, is_type = 1, 0, "", False
        for character in code[match.end():]:
            if character == "{":
                if depth == 1:
                    is_type = TYPE.match(re.sub(r"^\s*(?:\w+:\s*)*", "", statement)) is not None
                depth += 1
            elif character == "}":
                depth -= 1
                if depth == 0:
                    break
                if depth == 1 and not is_type and "(" in statement:  # a function with its body
                    number, statement = number + 1, ""
            elif character == ";" and depth == 1:
                words = re.sub(r"^\s*(?:\w+:(?!:)\s*)*", "", statement).strip()
                number += int(bool(words) and not is_type and not words.startswith(NO_MEMBER) and not TYPE.match(words))
                statement, is_type = "", False
            elif depth == 1:
                statement += character
        yield match[1], number


def show_classes(root):
    found = [(number, f"{path.parent.name}/{name}") for folder in ("runtime", "durable", "extensions")
             for path in sorted((root / "host" / folder).glob("*.hpp")) for name, number in members(path.read_text())]
    large = sorted((each for each in found if each[0] > MOST_MEMBERS), reverse=True)
    for number, name in large:
        print(f"{name:34} {number:4}")
    print(f"{len(large)} of {len(found)} classes have more than {MOST_MEMBERS} members and functions")


def show(table):
    host = tuple(map(sum, zip(*(row for folder, row in table.items() if folder.startswith("host/")))))
    base_host = tuple(map(sum, zip(*(row for folder, row in BASE.items() if folder.startswith("host/")))))
    rows = [(folder, table.get(folder), BASE.get(folder)) for folder in sorted({*table, *BASE})]
    rows.insert(sum(folder.startswith("host/") for folder, _, _ in rows), ("host", host, base_host))
    print(f"each: now, then at {BASE_COMMIT}")
    print(f"{'':25}" + "".join(f"{column:>17}" for column in COLUMNS))
    for folder, now, before in rows:
        nothing = (0,) * len(COLUMNS)
        pairs = zip(now or nothing, before or nothing)
        print(f"{folder:25}" + "".join(f"{new:>9}{old:>8}" for new, old in pairs))


def self_test():
    long_line = "int a = " + "1 + " * 40 + "1;"
    function = "int f(int a,\n      int b) {\n" + "  g(\"{\");  // {\n" * 58 + "}\n"
    cases = [
        ("", (0, 0, 1, 0, 0)),
        ("// why\n\nint a;  // what\n", (1, 3, 1, 0, 0)),
        ("/* one\n two */ int a;\n", (1, 2, 1, 0, 0)),
        ('const char* a = "// no comment";\nconst auto b = R"(/*\n\n)";  // */\n', (3, 4, 1, 0, 0)),
        ("constexpr int a = 10'000;  // it's\nint b;\n", (2, 2, 1, 0, 0)),
        (long_line + "\n", (2, 2, 1, 0, 0)),
        ("int a;\n" * 300, (300, 300, 1, 0, 0)),
        ("int a;\n" * 301, (301, 301, 1, 1, 0)),
        (function, (61, 61, 1, 0, 1)),
        (function.replace("  g(\"{\");  // {\n", "", 1), (60, 60, 1, 0, 0)),
        ("namespace a {\nstruct B {\n" + "  int f() { return 1; }\n" * 70 + "};\n}\n", (74, 74, 1, 0, 0)),
        ("B::B() : a_{1}, b_(2) {\n" + "  if (a) {\n  }\n" * 30 + "}\n", (62, 62, 1, 0, 1)),
        ("const int a[] = {\n" + "    f(1),\n" * 70 + "};\n", (72, 72, 1, 0, 0)),
    ]
    wrong = [(text, count(text), expected) for text, expected in cases if count(text) != expected]
    for text, found, expected in wrong:
        print(f"size: counts {found} instead of {expected}: {text[:60]!r}")
    folders = [folder_of(path) for path in ("host/a/b.cpp", "host/plugins/a/b.cpp", "tests/host/a.cpp", "x/a.c")]
    if folders != ["host/a", "host/plugins/a", "tests", None]:
        wrong.append(folders)
        print(f"size: the folders are {folders}")
    pure = "  virtual void a() = 0;\n"
    for text, expected in [
        (f"// Hides a. Well.\nclass A {{\n{pure}{pure}}};\n", [("A", 2, "Hides a.")]),
        (f"#pragma once\n// Hides: b.\n\n// Threads   All.\nclass B final : public A {{\n{pure}}};\n", [("B", 1, "Hides")]),
        (f"int a = 0;\nclass C {{\n{pure}}};\n", [("C", 1, "")]),
        (f"// D.\nclass D {{\n  // E.\n  class E {{\n  {pure}  }};\n{pure}}};\n", [("D", 1, "D."), ("E", 1, "E.")]),
        ("class F {\n  virtual int a() { return 0; }\n};\n", []),
    ]:
        if list(interfaces(text)) != expected:
            wrong.append(text)
            print(f"size: finds {list(interfaces(text))} instead of {expected}")
    for text, expected in [
        ("class A {\n public:\n  A() : a_{1} {}\n  int f() const { return a_; }\n  void g();\n\n private:\n  int a_ = 0;\n};\n", [("A", 4)]),
        ("struct B : A {\n  using A::A;\n  enum class C { kD, kE };\n  struct F {\n    int g;\n    int h;\n  };\n  F f{1, 2};\n};\n",
         [("B", 1), ("F", 2)]),
        ("class G;\nclass H final : public A {\n  friend class G;\n  std::map<int, int> a_;  // {;\n  class I;\n};\n", [("H", 1)]),
    ]:
        if list(members(text)) != expected:
            wrong.append(text)
            print(f"size: counts {list(members(text))} instead of {expected}")
    print("size: the self-test is ok" if not wrong else "size: the self-test failed")
    return bool(wrong)


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        sys.exit(self_test())
    if "--virtuals" in sys.argv:
        sys.exit(show_virtuals(pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".")))
    if "--classes" in sys.argv:
        sys.exit(show_classes(pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".")))
    if "--table" in sys.argv:
        for each, counts in sorted(table_of(files_of_commit(sys.argv[-1])).items()):
            print(f'    "{each}": {counts},')
    else:
        show(table_of(files_of_tree(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))))
