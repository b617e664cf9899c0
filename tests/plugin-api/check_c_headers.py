#!/usr/bin/env python3
"""Compiles abi.h, json_rules.h and ext/*.h each by itself, with each compiler, in each language
version that they are for.

usage: check_c_headers.py INCLUDE_DIR COMPILER...

C11 and C17; with a C++ compiler C++11 to C++23.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-pedantic-errors", "-Wconversion", "-Wshadow", "-Werror"]


def run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return None if done.returncode == 0 else " ".join(command) + "\n" + done.stderr[:2000]


def jobs(include, compilers):
    headers = ["hearth/abi.h", "hearth/json_rules.h"] + [f"hearth/ext/{p.name}" for p in sorted((include / "hearth/ext").glob("*.h"))]
    for compiler in compilers:
        cpp = "++" in pathlib.Path(compiler).name
        language = "c++" if cpp else "c"
        for standard in ("c++11", "c++14", "c++17", "c++20", "c++2b") if cpp else ("c11", "c17"):
            for header in headers:
                text = f"#include <{header}>\n#include <{header}>\nint main(void);\n"
                yield [compiler, f"-std={standard}", *WARNINGS, f"-I{include}", "-fsyntax-only", "-x", language, "-"], text


def main():
    include, compilers = pathlib.Path(sys.argv[1]), [c for c in sys.argv[2:] if c and not c.endswith("NOTFOUND")]
    todo = list(jobs(include, compilers))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [p for p in pool.map(lambda job: run(*job), todo) if p]
    print("\n".join(problems))
    print(f"{len(todo)} compilations, {len(problems)} problems")
    return 1 if problems or not todo else 0


if __name__ == "__main__":
    sys.exit(main())
