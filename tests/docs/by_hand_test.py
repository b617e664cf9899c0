#!/usr/bin/env python3
"""The project that plugin-api/README.md writes by hand: CMake builds its three files as printed,
the command for those without CMake builds its source, and a server that was started as printed
serves it with its settings. In its place, `hearth check` says of a library with the mistake that
the guide shows what the guide prints.

    by_hand_test.py SOURCES BUILD_DIRECTORY FAULTY_LIBRARY
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PATIENCE_SECONDS = 120


def run(command, place, environment):
    done = subprocess.run(["bash", "-e", "-c", command], cwd=place, env=environment, timeout=PATIENCE_SECONDS, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"by_hand_test: {command}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def fence(text, language):
    """The first snippet in this language, and its file name, which is in its first line."""
    snippet = re.search(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL).group(1)
    return re.match(r"(?:#|//) (\S+)", snippet).group(1), snippet


def check_as_printed(text, place, environment, faulty):
    """The one fence of an unnamed terminal; "..." stands for any lines, and how many cases passed
    depends on the machine."""
    command, *printed = re.search(r"^```console\n\$ (.*?)^```$", text, re.MULTILINE | re.DOTALL).group(1).splitlines()
    shutil.copy(faulty, place / command.split()[-1])
    done = subprocess.run(command.split(), cwd=place, env=environment, timeout=PATIENCE_SECONDS, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    wanted = "\n".join(".*" if line.strip() == "..." else re.sub(r"\d+(?=\\ (failed|passed|skipped))", r"\\d+", re.escape(line))
                       for line in printed)
    if done.returncode != 1 or not re.fullmatch(wanted + "\n", done.stdout, re.DOTALL):
        sys.exit(f"by_hand_test: {command}: status {done.returncode}; it should print\n" + "\n".join(printed) +
                 f"\nand prints\n{done.stdout}")


def main(sources, build, faulty):
    text = (pathlib.Path(sources) / "plugin-api/README.md").read_text()
    with tempfile.TemporaryDirectory(prefix="hearth-by-hand-") as scratch:
        place = pathlib.Path(scratch)
        for language in ("cmake", "cpp", "yaml"):
            name, snippet = fence(text, language)
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_text(snippet)
        environment = {**os.environ, "PATH": f"{build}/bin:{os.environ['PATH']}"}
        with_cmake = re.search(r"^    (cmake -S .* && cmake --build build)$", text, re.MULTILINE).group(1)
        run(with_cmake, place, environment)
        os.remove(place / "build/plugins/night-watch.so")

        without_cmake = re.search(r"^    (clang\+\+-19 .*? name\.cpp .*?)$", text, re.MULTILINE | re.DOTALL).group(1)
        shutil.copy(pathlib.Path(sources) / "plugin-api/cmake/plugin.map", place)
        # Headers and archive are where the compiler looks once Hearth is installed.
        environment["CPATH"] = f"{sources}/plugin-api/include"
        environment["LIBRARY_PATH"] = f"{build}/plugin-api"
        run(without_cmake.replace("name.", "night_watch."), place, environment)
        os.rename(place / "night_watch.so", place / "build/plugins/night-watch.so")

        serve = re.search(r"^    (hearth serve --plugins build/plugins)$", text, re.MULTILINE).group(1)
        command = [*serve.split(), "--listen", "127.0.0.1:0"]
        with open(place / "log", "w+") as log, subprocess.Popen(command, cwd=place, env=environment, text=True, stderr=log,
                                                                stdout=subprocess.PIPE) as server:
            ready = server.stdout.readline()
            server.terminate()
            server.wait(PATIENCE_SECONDS)
            log.seek(0)
            told = log.read()
        served = [line for line in told.splitlines() if "class.served" in line and "NightWatch" in line]
        if "listening on" not in ready or not served or "classes/night-watch.yaml" not in served[0]:
            sys.exit(f"by_hand_test: it is not served with its settings:\n{told}")
        check_as_printed(text, place, environment, faulty)


if __name__ == "__main__":
    main(*sys.argv[1:])
