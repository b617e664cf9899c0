#!/usr/bin/env python3
"""Compiles every header of plugin-api on its own, in each language version and with each compiler that it is for.

usage: check_headers.py INCLUDE_DIR c|cpp COMPILER...    (clang and gcc of the language)

c    abi.h and ext/*.h as C11 and C17; with the C++ drivers also as C++11 to C++23
cpp  the SDK's *.hpp as C++20, and what they may not include
"""
import concurrent.futures
import pathlib
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-pedantic-errors", "-Wconversion", "-Wshadow", "-Werror"]
BANNED = ("iostream", "regex")  # static constructors; unique symbols


def run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return None if done.returncode == 0 else " ".join(command) + "\n" + done.stderr[:2000]


def c_jobs(include, compilers):
    headers = ["hearth/abi.h"] + [f"hearth/ext/{p.name}" for p in sorted((include / "hearth/ext").glob("*.h"))]
    for compiler in compilers:
        cpp = "++" in pathlib.Path(compiler).name
        language = "c++" if cpp else "c"
        for standard in ("c++11", "c++14", "c++17", "c++20", "c++2b") if cpp else ("c11", "c17"):
            for header in headers:
                text = f"#include <{header}>\n#include <{header}>\nint main(void);\n"
                yield [compiler, f"-std={standard}", *WARNINGS, f"-I{include}", "-fsyntax-only", "-x", language, "-"], text


def cpp_jobs(include, compilers):
    for path in sorted((include / "hearth").rglob("*.hpp")):
        text = f"#include <{path.relative_to(include)}>\n"
        for compiler in compilers:
            yield [compiler, "-std=c++20", *WARNINGS, f"-I{include}", "-fsyntax-only", "-x", "c++", "-"], text


def banned_includes(include, compiler):
    done = subprocess.run([compiler, "-std=c++20", f"-I{include}", "-M", "-x", "c++", "-"],
                          input="#include <hearth/agent.hpp>\n", capture_output=True, text=True, check=True)
    names = {pathlib.Path(word).name for word in done.stdout.split()}
    return [f"hearth/agent.hpp includes <{name}>" for name in BANNED if name in names]


def main():
    include, kind, compilers = pathlib.Path(sys.argv[1]), sys.argv[2], [c for c in sys.argv[3:] if c and not c.endswith("NOTFOUND")]
    jobs = list((c_jobs if kind == "c" else cpp_jobs)(include, compilers))
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        problems = [p for p in pool.map(lambda job: run(*job), jobs) if p]
    if kind == "cpp":
        problems += banned_includes(include, compilers[0])
    print("\n".join(problems))
    print(f"{len(jobs)} compilations, {len(problems)} problems")
    return 1 if problems or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
