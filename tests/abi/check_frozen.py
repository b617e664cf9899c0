#!/usr/bin/env python3
"""Fails when the plugin ABI of today breaks what was released.

usage: check_frozen.py CLANG FROZEN_INCLUDE TODAYS_INCLUDE [--complete | --freeze]
         --complete   every header of today must be frozen too, so that none is left out
         --freeze     if nothing is broken, today's headers become the frozen ones
       check_frozen.py CLANG FROZEN_INCLUDE --self-test
         changes copies of the frozen headers: each break is found, and each change that the rules
         allow passes

What a frozen header defines must still be there: structs with the same fields of the same types at
the same offsets, enumerators and macros with the same values, types with the same meaning. A plugin
that was compiled then goes on working now.
"""
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Today's headers that --complete does not ask for, because no release has them yet.
NOT_RELEASED = {"hearth/ext/alarms.h", "hearth/ext/audit.h", "hearth/ext/call.h", "hearth/ext/connections_2.h", "hearth/ext/drain.h", "hearth/ext/fetch.h", "hearth/ext/fibers_2.h", "hearth/ext/kv.h",
                "hearth/ext/methods_2.h", "hearth/ext/operations.h", "hearth/ext/state_2.h", "hearth/ext/subagents.h"}

# Tables without struct_size that got more functions before any release had them, with the number of
# fields they had.
GREW_BEFORE_RELEASE = {("hearth_agent_v1", 1), ("hearth_fibers_v1", 4)}

# Within a family each number has one meaning, in all headers.
FAMILIES = ("HEARTH_EVENT_", "HEARTH_OP_", "HEARTH_E_")

KEEPS_ITS_PLACE = "(rule: a struct grows at its end only; its fields keep their names, types and offsets)"
NEW_VERSION = "(rule: a struct without struct_size never changes; what is new is a new version of the extension)"
KEEPS_ITS_MEANING = "(rule: names and numbers that were released keep their meaning)"


class DoesNotCompile(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Field:
    name: str
    type: str
    offset: int


@dataclasses.dataclass(frozen=True)
class Struct:
    fields: list
    size: int


@dataclasses.dataclass(frozen=True)
class Interface:
    structs: dict
    enumerators: dict
    types: dict
    macros: dict
    function_macros: dict  # name -> parameters


def all_headers(include):
    return ["hearth/abi.h"] + sorted(f"hearth/ext/{path.name}" for path in (include / "hearth/ext").glob("*.h"))


def run_compiler(clang, include, headers, *options):
    text = "".join(f"#include <{header}>\n" for header in headers)
    done = subprocess.run([clang, "-std=c11", f"-I{include}", *options, "-x", "c", "-"], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise DoesNotCompile(f"{include} does not compile:\n{done.stderr}")
    return done.stdout


# ---- reading headers ----


def is_ours(node):
    return node.get("name", "").lower().startswith("hearth")


def constant(node):
    """The value of an enumerator's initializer, or None if it has none."""
    for child in node.get("inner", []):
        if "value" in child:
            return int(child["value"])
        found = constant(child)
        if found is not None:
            return found
    return None


def layouts(clang, include, headers):
    """struct -> its size and its fields' offsets."""
    found = {}
    text = run_compiler(clang, include, headers, "-fsyntax-only", "-Xclang", "-fdump-record-layouts-complete")
    for part in text.split("*** Dumping AST Record Layout")[1:]:
        name = re.search(r"^ +0 \| (?:struct|union) (\w+)$", part, re.MULTILINE)
        size = re.search(r"\[sizeof=(\d+)", part)
        # What is indented further belongs to a field's own struct.
        fields = re.findall(r"^ +(\d+) \|   (?! ).*?(\w+)$", part, re.MULTILINE)
        if name and size:
            found[name[1]] = int(size[1]), {field: int(offset) for offset, field in fields}
    return found


def read_interface(clang, include, headers):
    structs, enumerators, types = {}, {}, {}
    layout_of = layouts(clang, include, headers)
    tree = json.loads(run_compiler(clang, include, headers, "-fsyntax-only", "-Xclang", "-ast-dump=json"))
    for node in tree["inner"]:
        if node["kind"] == "RecordDecl" and is_ours(node) and node.get("completeDefinition"):
            size, offsets = layout_of[node["name"]]
            fields = [Field(field["name"], field["type"]["qualType"], offsets[field["name"]]) for field in node["inner"] if field["kind"] == "FieldDecl"]
            structs[node["name"]] = Struct(fields, size)
        elif node["kind"] == "EnumDecl":
            value = -1
            for each in node.get("inner", []):
                if each["kind"] == "EnumConstantDecl":
                    given = constant(each)
                    value = value + 1 if given is None else given
                    enumerators[each["name"]] = value
        elif node["kind"] == "TypedefDecl" and is_ours(node):
            types[node["name"]] = node["type"]["qualType"]
    text = run_compiler(clang, include, headers, "-E", "-dM")
    # The include guard of a header may change, and the version is there to grow.
    macros = {name: value for name, value in re.findall(r"^#define (HEARTH_\w+) (.+)$", text, re.MULTILINE) if name != "HEARTH_ABI_MINOR"}
    function_macros = dict(re.findall(r"^#define (HEARTH_\w+)\((.*?)\)", text, re.MULTILINE))
    return Interface(structs, enumerators, types, macros, function_macros)


# ---- comparing them ----


def struct_differences(name, old, new):
    if new is None:
        yield f"struct {name} is gone {KEEPS_ITS_MEANING}"
        return
    for index, field in enumerate(old.fields):
        if new.fields[index : index + 1] != [field]:
            yield f"struct {name}: the field {field.name} ({field.type}, at {field.offset}) was moved, changed or removed {KEEPS_ITS_PLACE}"
            return
    added = new.fields[len(old.fields) :]
    is_sized = any(field.name == "struct_size" for field in old.fields)
    if not added and new.size != old.size:
        yield f"struct {name}: it was {old.size} bytes, is {new.size} {KEEPS_ITS_PLACE}"
    elif added and not is_sized and (name, len(old.fields)) not in GREW_BEFORE_RELEASE:
        yield f"struct {name} has no struct_size and got the field {added[0].name} {NEW_VERSION}"
    elif added and added[0].offset < old.size:
        yield f"struct {name}: the field {added[0].name} lies within the {old.size} bytes of before, so that struct_size does not tell whether it is there"


def value_differences(kind, old, new):
    for name, value in old.items():
        if new.get(name) != value:
            yield f"{kind} {name}: was {value}, is {new.get(name, 'gone')} {KEEPS_ITS_MEANING}"


def double_meanings(interface):
    families = [{name: value for name, value in interface.enumerators.items() if name.startswith(family)} for family in FAMILIES]
    families.append({name: value for name, value in interface.macros.items() if name.startswith("HEARTH_EXT_")})
    for family in families:
        first = {}
        for name, value in family.items():
            if value in first:
                yield f"{name} and {first[value]} are both {value} {KEEPS_ITS_MEANING}"
            first.setdefault(value, name)


def differences(clang, frozen, today, complete=False):
    headers = all_headers(frozen)
    added = [header for header in all_headers(today) if header not in headers]
    try:
        old, new = read_interface(clang, frozen, headers), read_interface(clang, today, headers + added)
    except DoesNotCompile as problem:
        yield str(problem)
        return
    if not old.structs or not old.enumerators or not old.macros:
        yield f"nothing was found in {frozen}: is it the right directory?"
    for name, struct in old.structs.items():
        yield from struct_differences(name, struct, new.structs.get(name))
    yield from value_differences("enumerator", old.enumerators, new.enumerators)
    yield from value_differences("type", old.types, new.types)
    yield from value_differences("macro", old.macros, new.macros)
    yield from value_differences("parameters of macro", old.function_macros, new.function_macros)
    yield from double_meanings(new)
    for header in added:
        if complete and header not in NOT_RELEASED:
            yield f"{header} is under no check: freeze it (--freeze), or name it in NOT_RELEASED as long as no release has it"


# ---- testing that ----

# Edits of a header: the old text, the new text, and what the check must report. A new text of None
# removes the file; an old text of None adds it.
BREAKS = [
    # fields
    ("abi.h", "  uint64_t token;       /* as submitted or posted */\n", "", "struct hearth_result: the field token"),
    ("abi.h", "const void* ptr; /* may be null only if len is 0 */\n  size_t len;", "size_t len;\n  const void* ptr;", "struct hearth_bytes: the field ptr"),
    ("abi.h", "uint64_t deadline_ms;", "uint32_t deadline_ms;", "struct hearth_event: the field deadline_ms"),
    ("abi.h", "  uint32_t kind; ", "  uint32_t more;\n  uint32_t kind; ", "struct hearth_event: the field kind"),
    ("abi.h", "void (*destroy)(void* instance);", "void (*destroy)(const void* instance);", "struct hearth_class: the field destroy"),
    ("abi.h", "typedef struct hearth_result {", "typedef struct __attribute__((aligned(16))) hearth_result {", "struct hearth_result: it was 40 bytes, is 48"),
    ("abi.h", "typedef struct hearth_event {", "typedef struct __attribute__((packed)) hearth_event {\n  char more;", "struct hearth_event: the field struct_size"),
    ("ext/random.h", "void* out, size_t size", "size_t size, void* out", "struct hearth_random_v1: the field fill"),
    ("ext/managed_fibers.h", "  int64_t before_ms;", "  uint64_t before_ms;", "struct hearth_fiber_filter: the field before_ms"),
    ("ext/schedule.h", "uint32_t paused);", "int32_t paused);", "struct hearth_schedule_v1: the field pause"),
    ("ext/queue.h", "  hearth_bytes member;", "  hearth_bytes key;", "struct hearth_queue_filter: the field member"),
    ("ext/methods.h", "  uint32_t flags; ", "  uint64_t flags; ", "struct hearth_method: the field flags"),
    ("ext/schema.h", "  uint32_t version; ", "  uint64_t version; ", "struct hearth_schema_v1: the field version"),
    # tables without struct_size
    ("ext/sql.h", "} hearth_sql_v1;", "  void (*more)(void);\n} hearth_sql_v1;", "hearth_sql_v1 has no struct_size"),
    ("ext/fibers.h", "} hearth_fibers_v1;", "  void (*more)(void);\n} hearth_fibers_v1;", "hearth_fibers_v1 has no struct_size"),
    ("ext/methods.h", "} hearth_method;", "  uint64_t more;\n} hearth_method;", "hearth_method has no struct_size"),
    # numbers and names
    ("abi.h", "HEARTH_CLOSE_WAS_CLEAN = 0x10000", "HEARTH_CLOSE_WAS_CLEAN = 0x20000", "enumerator HEARTH_CLOSE_WAS_CLEAN"),
    ("abi.h", "HEARTH_EVENT_EVICT = 10", "HEARTH_EVENT_EVICT = 10, HEARTH_EVENT_MORE = 12", "are both 12"),
    ("ext/sql.h", "HEARTH_SQL_BLOB = 4,", "", "enumerator HEARTH_SQL_BLOB"),
    ("ext/schema.h", "HEARTH_EVENT_MIGRATE = 16", "HEARTH_EVENT_MIGRATE = 17", "enumerator HEARTH_EVENT_MIGRATE"),
    ("abi.h", "#define HEARTH_ABI_MAJOR 1", "#define HEARTH_ABI_MAJOR 2", "macro HEARTH_ABI_MAJOR"),
    ("abi.h", "typedef uint64_t hearth_agent;", "typedef uint32_t hearth_agent;", "type hearth_agent"),
    ("abi.h", "#define HEARTH_PLUGIN_NOTE(manifest) ", "#define HEARTH_PLUGIN_NOTE(manifest, more) ", "parameters of macro HEARTH_PLUGIN_NOTE"),
    ("ext/agent.h", '"hearth.agent/1"', '"hearth.agent/2"', "macro HEARTH_EXT_AGENT"),
    ("ext/schedule.h", '"hearth.schedule/1"', '"hearth.queue/1"', "HEARTH_EXT_SCHEDULE"),
    # headers
    ("ext/log.h", "", None, "does not compile"),
    ("abi.h", "#endif /* HEARTH_ABI_H */", "struct\n#endif", "does not compile"),
    ("ext/more.h", None, "#define HEARTH_EXT_MORE \"hearth.more/1\"\n", "ext/more.h is under no check"),
]

# What the rules allow.
GROWTHS = [
    ("abi.h", "} hearth_host;", "  void (*more)(void);\n} hearth_host;"),
    ("abi.h", "} hearth_class;", "  void (*more)(void);\n} hearth_class;"),
    ("abi.h", "} hearth_event;", "  uint64_t more;\n} hearth_event;"),
    ("ext/queue.h", "} hearth_queue_request;", "  uint64_t more;\n} hearth_queue_request;"),
    ("abi.h", "HEARTH_EVENT_EVICT = 10", "HEARTH_EVENT_EVICT = 10, HEARTH_EVENT_MORE = 99"),
    ("abi.h", "HEARTH_E_FORBIDDEN = -15", "HEARTH_E_FORBIDDEN = -15, HEARTH_E_MORE = -16"),
    ("abi.h", "#define HEARTH_ABI_MINOR 0", "#define HEARTH_ABI_MINOR 1"),
    ("ext/random.h", "void* out, size_t size", "void* bytes, size_t count"),
    ("ext/clock.h", "typedef struct hearth_clock_v1", "typedef struct more_v1 { int x; } more_v1;\ntypedef struct hearth_clock_v1"),
]


def changed_copy(frozen, directory, header, old, new):
    """A copy of the headers with one change; None if there is nothing to change."""
    copy = pathlib.Path(directory) / "include"
    shutil.copytree(frozen, copy)
    for path in copy.rglob("*.h"):
        # An author who changes a header also changes its static assertions.
        path.write_text(re.sub(r"^HEARTH_STATIC_ASSERT\(.*\n", "", path.read_text(), flags=re.MULTILINE))
    path = copy / "hearth" / header
    if old is None:
        path.write_text(new)
    elif old not in path.read_text():
        return None
    elif new is None:
        path.unlink()
    else:
        path.write_text(path.read_text().replace(old, new, 1))
    return copy


def self_test(clang, frozen):
    problems = [f"unchanged headers: {problem}" for problem in differences(clang, frozen, frozen, complete=True)]
    for header, old, new, said in BREAKS + [(*growth, None) for growth in GROWTHS]:
        with tempfile.TemporaryDirectory() as directory:
            copy = changed_copy(frozen, directory, header, old, new)
            if copy is None:
                problems.append(f"{header} does not hold: {old}")
                continue
            found = list(differences(clang, frozen, copy, complete=True))
            if said is None and found:
                problems.append(f"{header}: {new}: is allowed, but: {found}")
            elif said is not None and not any(said in problem for problem in found):
                problems.append(f"{header}: {new}: not found, but: {found}")
    # No struct of today ends in padding.
    padded = Struct([Field("struct_size", "uint32_t", 0), Field("pointer", "void *", 8), Field("flags", "uint32_t", 16)], 24)
    for offset, is_broken in ((20, True), (24, False)):
        grown = Struct(padded.fields + [Field("more", "uint32_t", offset)], 24 if is_broken else 32)
        if any("lies within" in problem for problem in struct_differences("padded", padded, grown)) != is_broken:
            problems.append(f"a field at {offset} after a struct of 24 bytes")
    return problems


def freeze(frozen, today):
    for header in all_headers(today):
        shutil.copy(today / header, frozen / header)


def main():
    clang, frozen = sys.argv[1], pathlib.Path(sys.argv[2])
    if sys.argv[3] == "--self-test":
        problems = self_test(clang, frozen)
        print("\n".join(problems) or f"{len(BREAKS)} breaks found, {len(GROWTHS)} growths allowed")
        return 1 if problems else 0
    today, options = pathlib.Path(sys.argv[3]), sys.argv[4:]
    problems = list(differences(clang, frozen, today, complete="--complete" in options))
    for problem in problems:
        print(problem)
    print(f"abi: {len(problems)} broken promises")
    if not problems and "--freeze" in options:
        freeze(frozen, today)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
