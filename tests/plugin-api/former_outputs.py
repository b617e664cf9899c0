#!/usr/bin/env python3
"""A library whose target a project no longer has leaves the build with the next one; what others
put beside it stays.

    former_outputs.py HEARTH_PLUGIN_CMAKE C_COMPILER
"""
import pathlib
import subprocess
import sys
import tempfile

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(former LANGUAGES C)
add_library(Hearth::plugin_api INTERFACE IMPORTED)
include({module})
hearth_add_plugin(stays code.c)
hearth_add_plugin({name} code.c)
"""


def run(*command):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}")


def main(module, compiler):
    with tempfile.TemporaryDirectory(prefix="hearth-former-") as place:
        project = pathlib.Path(place)
        (project / "code.c").write_text("int hearth_agent_plugin(void) { return 0; }\n")
        plugins = project / "build/plugins"
        plugins.mkdir(parents=True)
        (plugins / "of-others.so").write_text("")
        for name in ("greeter", "porter"):
            (project / "CMakeLists.txt").write_text(PROJECT.format(module=module, name=name))
            if name == "greeter":
                run("cmake", "-S", place, "-B", f"{place}/build", "-G", "Ninja", f"-DCMAKE_C_COMPILER={compiler}")
            run("cmake", "--build", f"{place}/build", "--target", "hearth_dev")
            found = sorted(each.name for each in plugins.iterdir())
            wanted = sorted(["of-others.so", "stays.so", f"{name}.so"])
            if found != wanted:
                sys.exit(f"build/plugins has {found}, not {wanted}")


if __name__ == "__main__":
    main(*sys.argv[1:])
