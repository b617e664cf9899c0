#!/usr/bin/env python3
"""Fails when the headers of the plugin ABI break a version that was released.

usage: frozen.py CLANG INCLUDE          compares plugin-api/include with each tests/abi/abi-1.*.txt
       frozen.py CLANG INCLUDE --write  adds the list of a new HEARTH_ABI_MINOR, with its release
       frozen.py CLANG --self-test      each break of a sample is found, each growth is allowed

A list has one line for each struct, member, enumerator, type and macro, as clang sees them. The
rules stand in hearth/abi.h, under "Versions".
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

LISTS = pathlib.Path(__file__).parent
MEMBER = re.compile(r"member (\w+)\.(\w+) at (\d+): ")
STRUCT = re.compile(r"struct (\w+): (\d+) bytes")
VALUE = re.compile(r"(?:number|define) (\w+) = (.*)")
# In a family each value has one name.
FAMILIES = ("HEARTH_EVENT_", "HEARTH_OP_", "HEARTH_E_", "HEARTH_EXT_")


def clang_says(clang, include, *options):
    paths = sorted(path.relative_to(include) for path in [include / "hearth/abi.h", *include.glob("hearth/ext/*.h")])
    text = "".join(f"#include <{path}>\n" for path in paths)
    command = [clang, "-std=c11", f"-I{include}", *options, "-x", "c", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def number_of(node):
    """The value of an enumerator; None if it is the one before it and 1."""
    values = (int(child["value"]) if "value" in child else number_of(child) for child in node.get("inner", []))
    return next((value for value in values if value is not None), None)


def offsets(text):
    """struct -> its size and the offsets of its members."""
    found = {}
    for part in text.split("*** Dumping AST Record Layout")[1:]:
        name, size = re.search(r"^ +0 \| struct (\w+)$", part, re.MULTILINE), re.search(r"\[sizeof=(\d+)", part)
        # What is indented further belongs to a member's own struct.
        members = re.findall(r"^ +(\d+) \|   (?! ).*?(\w+)$", part, re.MULTILINE)
        if name and size:
            found[name[1]] = int(size[1]), {member: int(offset) for offset, member in members}
    return found


def lines_of(clang, include):
    """What the headers define, a line each."""
    lines = []
    layouts = offsets(clang_says(clang, include, "-fsyntax-only", "-Xclang", "-fdump-record-layouts-complete"))
    for node in json.loads(clang_says(clang, include, "-fsyntax-only", "-Xclang", "-ast-dump=json"))["inner"]:
        name = node.get("name", "")
        if node["kind"] == "EnumDecl":
            value = -1
            for each in node.get("inner", []):
                if each["kind"] == "EnumConstantDecl":
                    given = number_of(each)
                    value = value + 1 if given is None else given
                    lines.append(f"number {each['name']} = {value}")
        elif not name.startswith("hearth_"):
            continue
        elif node["kind"] == "TypedefDecl":
            lines.append(f"type {name} = {node['type']['qualType']}")
        elif node["kind"] == "RecordDecl" and node.get("completeDefinition"):
            size, at = layouts[name]
            lines.append(f"struct {name}: {size} bytes")
            members = [each for each in node["inner"] if each["kind"] == "FieldDecl"]
            lines += [f"member {name}.{each['name']} at {at[each['name']]}: {each['type']['qualType']}" for each in members]
    # Not the version, nor the guards of the headers, which are empty.
    for name, parameters, value in re.findall(r"^#define (HEARTH_\w+)(\(.*?\))? (.+)$", clang_says(clang, include, "-E", "-dM"), re.MULTILINE):
        if name not in ("HEARTH_ABI_MAJOR", "HEARTH_ABI_MINOR"):
            lines.append(f"define {name}{parameters}" if parameters else f"define {name} = {value}")
    return lines


def problems(frozen, today):
    """What today's lines break of a list."""
    grows = {match[1] for match in map(MEMBER.match, frozen) if match and match[2] == "struct_size"}
    sizes = {match[1]: int(match[2]) for match in map(STRUCT.match, frozen) if match}
    now = {match[1]: int(match[2]) for match in map(STRUCT.match, today) if match}
    for line in frozen:
        match = STRUCT.match(line)
        if line not in today and not (match and match[1] in grows and now.get(match[1], 0) > sizes[match[1]]):
            yield f"{line}: was changed, moved or removed. What was released stays as it is: add something new beside it"
    for line in (line for line in today if line not in frozen):
        match = MEMBER.match(line)
        if match and match[1] in sizes and match[1] not in grows:
            yield f"{line}: is new in a struct without struct_size. Make a new struct, and a new extension for it"
        elif match and int(match[3]) < sizes.get(match[1], 0):
            yield f"{line}: is new within the {sizes[match[1]]} bytes of before. Put it behind them"
    values = collections.defaultdict(list)
    for match in filter(None, map(VALUE.match, today)):
        family = next((each for each in FAMILIES if match[1].startswith(each)), None)
        if family:
            values[family, match[2]].append(match[1])
    yield from (f"{' and '.join(names)} have the same value. Give the new one another" for names in values.values() if len(names) > 1)


def minor_of(text):
    return int(re.search(r"#define HEARTH_ABI_MINOR (\d+)", text)[1])


def check(lists, today, minor):
    """All that is wrong; `lists` has the lines of each minor version that was released."""
    for released, frozen in sorted(lists.items()):
        yield from (f"abi-1.{released}.txt: {problem}" for problem in problems(frozen, today))
    if minor < max(lists):
        yield f"HEARTH_ABI_MINOR is {minor}, and 1.{max(lists)} was released"
    if minor in lists and len(today) > len(lists[minor]):
        new = next((line for line in today if line not in lists[minor]), "")
        yield f"{new}: is not in abi-1.{minor}.txt, which was released. Raise HEARTH_ABI_MINOR"


SAMPLE = """
#include <stdint.h>
#define HEARTH_SAMPLE_H
#define HEARTH_ABI_MINOR 0
#define HEARTH_EXT_CLOCK "hearth.clock/1"
#define HEARTH_EXT_LOG "hearth.log/1"
#define HEARTH_PHASE(flags) ((flags) >> 16)
typedef uint64_t hearth_agent;
enum { HEARTH_E_BUSY = -1, HEARTH_E_IO = -2 };
enum { HEARTH_EVENT_START = 1, HEARTH_EVENT_CALL };
typedef struct hearth_pair { int32_t first; int32_t second; } hearth_pair;
typedef struct hearth_table {
  uint32_t struct_size;
  uint32_t flags;
  void (*stop)(hearth_agent agent, uint32_t why);
  hearth_pair pair;
  uint32_t last;
} hearth_table;
"""
# An edit of the sample, and a part of what the check says about it; nothing: it is allowed.
EDITS = [
    ("  uint32_t last;\n", "", "hearth_table.last"),
    ("int32_t first; int32_t second;", "int32_t second; int32_t first;", "hearth_pair.first"),
    ("  uint32_t flags;", "  int32_t flags;", "hearth_table.flags"),
    ("  uint32_t flags;", "  uint64_t flags;", "hearth_table.flags"),
    ("  uint32_t flags;", "  uint32_t more;\n  uint32_t flags;", "hearth_table.flags"),
    ("  uint32_t flags;", "  uint32_t options;", "hearth_table.flags"),
    ("agent, uint32_t why", "agent, int32_t why", "hearth_table.stop"),
    ("uint32_t why", "uint32_t why, uint32_t more", "hearth_table.stop"),
    ("void (*stop)", "int32_t (*stop)", "hearth_table.stop"),
    ("  uint32_t last;", "  uint32_t last;\n  uint32_t in_padding;", "hearth_table.in_padding"),
    ("int32_t second;", "int32_t second; int32_t third;", "hearth_pair.third"),
    ("typedef struct hearth_table {", "typedef struct __attribute__((aligned(32))) hearth_pair2 { int x; } hearth_pair2;\ntypedef struct __attribute__((packed)) hearth_table {", "hearth_table"),
    ("HEARTH_E_IO = -2", "HEARTH_E_IO = -3", "HEARTH_E_IO"),
    ("HEARTH_E_IO = -2", "HEARTH_E_DISK = -2", "HEARTH_E_IO"),
    ("HEARTH_E_IO = -2", "HEARTH_E_IO = -2, HEARTH_E_MORE = -1", "HEARTH_E_BUSY and HEARTH_E_MORE"),
    ("HEARTH_EVENT_START = 1,", "HEARTH_EVENT_START = 1, HEARTH_EVENT_MORE,", "HEARTH_EVENT_CALL"),
    ('LOG "hearth.log/1"', 'LOG "hearth.log/2"', "HEARTH_EXT_LOG"),
    ('LOG "hearth.log/1"', 'LOG "hearth.clock/1"', "HEARTH_EXT_CLOCK"),
    ("#define HEARTH_EXT_LOG", "#define HEARTH_EXT_LINES", "HEARTH_EXT_LOG"),
    ("PHASE(flags) ((flags)", "PHASE(flags, bit) ((flags)", "HEARTH_PHASE"),
    ("uint64_t hearth_agent", "uint32_t hearth_agent", "hearth_agent"),
    ("MINOR 0", "MINOR 1", None),
    ("HEARTH_E_IO = -2", "HEARTH_E_IO = -2, HEARTH_E_MORE = -3", "Raise HEARTH_ABI_MINOR"),
    ("1, HEARTH_EVENT_CALL", "1, HEARTH_EVENT_CALL, HEARTH_EVENT_MORE", "Raise HEARTH_ABI_MINOR"),
    ("uint32_t why", "uint32_t reason", None),
    ("#define HEARTH_SAMPLE_H\n", "", None),
]
# The same with HEARTH_ABI_MINOR 1.
GROWTHS = [
    ("HEARTH_E_IO = -2", "HEARTH_E_IO = -2, HEARTH_E_MORE = -3", None),
    ("1, HEARTH_EVENT_CALL", "1, HEARTH_EVENT_CALL, HEARTH_EVENT_MORE", None),
    ("} hearth_table;", "  uint64_t more;\n} hearth_table;", None),
    ("} hearth_table;", "  uint64_t more;\n} hearth_table;\ntypedef struct hearth_new { int x; } hearth_new;", None),
    ("typedef uint64_t", "#define HEARTH_EXT_LOG_2 \"hearth.log/2\"\ntypedef uint64_t", None),
    ("  uint32_t last;\n", "  uint64_t more;\n", "hearth_table.last"),
]


def self_test(clang):
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        include = pathlib.Path(directory)
        header = include / "hearth/abi.h"
        header.parent.mkdir()
        header.write_text(SAMPLE)
        frozen = lines_of(clang, include)
        next_version = SAMPLE.replace("MINOR 0", "MINOR 1")
        for base, edits in (SAMPLE, EDITS), (next_version, GROWTHS):
            for old, new, said in edits:
                assert base.count(old) == 1, old
                header.write_text(base.replace(old, new))
                found = list(check({0: frozen}, lines_of(clang, include), minor_of(header.read_text())))
                if not (any(said in problem for problem in found) if said else not found):
                    failed += 1
                    print(f"{new!r}: expected {said!r}, found {found}")
    if not any(check({0: [], 1: []}, [], 0)):
        failed += 1
        print("a version before the last one that was released: not found")
    print(f"{len(EDITS) + len(GROWTHS)} edits, {failed} wrong")
    return failed


def main():
    clang = sys.argv[1]
    if "--self-test" in sys.argv:
        sys.exit(1 if self_test(clang) else 0)
    include = pathlib.Path(sys.argv[2])
    today, minor = lines_of(clang, include), minor_of((include / "hearth/abi.h").read_text())
    if "--write" in sys.argv:
        with open(LISTS / f"abi-1.{minor}.txt", "x", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in today))
        return
    lists = {int(path.stem.split(".")[1]): path.read_text().splitlines() for path in LISTS.glob("abi-1.*.txt")}
    found = list(check(lists, today, minor))
    print("\n".join(found + [f"abi: {len(today)} lines, {len(found)} broken promises"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
