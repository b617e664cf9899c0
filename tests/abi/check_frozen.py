#!/usr/bin/env python3
"""Fails when the plugin ABI of today breaks what was released.

usage: check_frozen.py CLANG FROZEN_INCLUDE TODAYS_INCLUDE
       check_frozen.py CLANG FROZEN_INCLUDE --self-test    breaks copies of the frozen headers, and finds each break

What a frozen header defines must still be there: structs with the same fields of the same types in the same order (more may follow),
enumerators and macros with the same values, types with the same meaning. A plugin that was compiled then goes on working now.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def all_headers(include):
    return ["hearth/abi.h"] + sorted(f"hearth/ext/{path.name}" for path in (include / "hearth/ext").glob("*.h"))


def compile_text(headers):
    return "".join(f"#include <{header}>\n" for header in headers)


def run_compiler(clang, include, headers, *options):
    done = subprocess.run([clang, "-std=c11", f"-I{include}", *options, "-x", "c", "-"],
                          input=compile_text(headers), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{include} does not compile:\n{done.stderr}")
    return done.stdout


def syntax_tree(clang, include, headers):
    return json.loads(run_compiler(clang, include, headers, "-fsyntax-only", "-Xclang", "-ast-dump=json"))


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


def entities(clang, include, headers):
    structs, enumerators, types = {}, {}, {}
    for node in syntax_tree(clang, include, headers)["inner"]:
        if node["kind"] == "RecordDecl" and is_ours(node) and node.get("completeDefinition"):
            structs[node["name"]] = [(field["name"], field["type"]["qualType"]) for field in node["inner"] if field["kind"] == "FieldDecl"]
        elif node["kind"] == "EnumDecl":
            value = -1
            for each in node.get("inner", []):
                if each["kind"] == "EnumConstantDecl":
                    given = constant(each)
                    value = value + 1 if given is None else given
                    enumerators[each["name"]] = value
        elif node["kind"] == "TypedefDecl" and is_ours(node):
            types[node["name"]] = node["type"]["qualType"]
    return structs, enumerators, types


def macros(clang, include, headers):
    text = run_compiler(clang, include, headers, "-E", "-dM")
    found = dict(re.findall(r"^#define (HEARTH_\w+) (.+)$", text, re.MULTILINE))
    # The guard of a header is nobody's business, and the version is there to grow.
    return {name: value for name, value in found.items() if name != "HEARTH_ABI_MINOR"}


def differences(clang, frozen, today):
    headers = all_headers(frozen)
    old_structs, old_enumerators, old_types = entities(clang, frozen, headers)
    new_structs, new_enumerators, new_types = entities(clang, today, headers)
    for name, fields in old_structs.items():
        now = new_structs.get(name, [])
        if now[:len(fields)] != fields:
            changed = next((old for old, new in zip(fields, now + [None] * len(fields)) if old != new), fields[0])
            yield f"struct {name}: the field {changed[0]} ({changed[1]}) was moved, changed or removed"
    for kind, old, new in (("enumerator", old_enumerators, new_enumerators), ("type", old_types, new_types),
                           ("macro", macros(clang, frozen, headers), macros(clang, today, headers))):
        for name, value in old.items():
            if new.get(name) != value:
                yield f"{kind} {name}: was {value}, is {new.get(name, 'gone')}"
    if not old_structs or not old_enumerators:
        yield f"nothing was found in {frozen}: is it the right directory?"


# What somebody might do to a header, and what must be said of it.
BREAKS = [
    ("abi.h", "HEARTH_CLOSE_WAS_CLEAN = 0x10000", "HEARTH_CLOSE_WAS_CLEAN = 0x20000", "HEARTH_CLOSE_WAS_CLEAN"),
    ("abi.h", "void (*destroy)(void *instance);", "void (*destroy)(const void *instance);", "field destroy"),
    ("abi.h", "#define HEARTH_ABI_MAJOR 1", "#define HEARTH_ABI_MAJOR 2", "HEARTH_ABI_MAJOR"),
    ("abi.h", "typedef uint64_t hearth_agent;", "typedef uint32_t hearth_agent;", "type hearth_agent"),
    ("ext/agent.h", '"hearth.agent/1"', '"hearth.agent/2"', "HEARTH_EXT_AGENT"),
]


def self_test(clang, frozen):
    problems = [f"unchanged headers: {problem}" for problem in differences(clang, frozen, frozen)]
    for header, old, new, said in BREAKS:
        with tempfile.TemporaryDirectory() as directory:
            copy = pathlib.Path(directory) / "include"
            shutil.copytree(frozen, copy)
            text = (copy / "hearth" / header).read_text()
            if old not in text:
                problems.append(f"{header} does not hold: {old}")
                continue
            (copy / "hearth" / header).write_text(text.replace(old, new))
            if not any(said in problem for problem in differences(clang, frozen, copy)):
                problems.append(f"not found: {new}")
    return problems


def main():
    if sys.argv[3] == "--self-test":
        problems = self_test(sys.argv[1], pathlib.Path(sys.argv[2]))
        print("\n".join(problems) or f"{len(BREAKS)} breaks found")
        return 1 if problems else 0
    clang, frozen, today = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    problems = list(differences(clang, frozen, today))
    for problem in problems:
        print(problem)
    print(f"abi: {len(problems)} broken promises")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
