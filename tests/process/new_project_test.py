#!/usr/bin/env python3
"""What `hearth new` writes: builds outside this tree, against the installed package and, by the
commands of README.md, against a build directory; passes its tests, also with AddressSanitizer (the
preset debug), exports what a library may, is served with its settings.

    new_project_test.py BUILD_DIRECTORY HEARTH CHECK_EXPORTS C_COMPILER CXX_COMPILER
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

NAME = "night-porter"
PATIENCE_SECONDS = 240
SOURCES = pathlib.Path(__file__).resolve().parents[2]


def run(*command, cwd=None):
    done = subprocess.run([str(part) for part in command], cwd=cwd, timeout=PATIENCE_SECONDS, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def answer_of(command, project, scratch, name, environment=None):
    """The answer of an agent of the class, from a server that the command starts in the project."""
    command = command + ["--listen", "127.0.0.1:0", "--data", scratch / "data"]
    log = open(scratch / "log", "w+")
    with subprocess.Popen(list(map(str, command)), cwd=project, env=environment, stdout=subprocess.PIPE, stderr=log,
                          text=True) as server:
        try:
            ready = server.stdout.readline()
            if "listening on " not in ready:
                log.seek(0)
                sys.exit(f"the server did not start:\n{log.read()}")
            address = ready.split()[-1]
            with urllib.request.urlopen(f"http://{address}/agents/{name}/first", timeout=30) as answer:
                state = json.load(answer)
        finally:
            server.terminate()
    log.seek(0)
    told = log.read()
    if not re.search(rf"class\.served.*classes/{name}\.yaml", told):
        sys.exit(f"the settings of the project are not used:\n{told}")
    return state


def printed_steps():
    """The commands of README.md for a class of one's own, line by line."""
    text = (SOURCES / "README.md").read_text()
    section = text.split("## A class of your own", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^    (\S.*)$", section, re.MULTILINE)


def follow_the_readme(build, scratch):
    """Pastes the commands, as they are printed, into one shell; the last one, which serves, gets a
    free port."""
    *steps, serve = printed_steps()
    steps = [step.replace("$PWD/build/release", str(build)) for step in steps]
    report = scratch / "where"
    environment = {**os.environ, "TMPDIR": str(scratch)}
    script = "\n".join([*steps, f'printf "%s\\n" "$PWD" "$PATH" >{report}'])
    done = subprocess.run(["bash", "-e"], input=script, cwd=SOURCES, env=environment, timeout=2 * PATIENCE_SECONDS, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"a command that README.md prints does not work:\n{done.stdout}")
    project, path = report.read_text().splitlines()
    environment["PATH"] = path
    if "hearth dev" not in serve:
        sys.exit(f"README.md ends the class of one's own with: {serve}")
    state = answer_of([pathlib.Path(build) / "bin/hearth", *serve.split("#")[0].split()[1:]], project, scratch, "greeter", environment)
    if state != {"greetings": 0}:
        sys.exit(f"the new agent answered {state}")


def test_with_sanitizers(project, scratch, c_compiler, cxx_compiler):
    """The commands of the project's README with the preset debug; of the build, what ctest
    needs."""
    tests = f"{NAME.replace('-', '_')}_tests"
    run("cmake", "--preset", "debug", f"-DCMAKE_PREFIX_PATH={scratch / 'installed'}", f"-DCMAKE_C_COMPILER={c_compiler}",
        f"-DCMAKE_CXX_COMPILER={cxx_compiler}", cwd=project)
    run("cmake", "--build", "--preset", "debug", "--target", tests, cwd=project)
    if b"__asan_init" not in (project / "build-debug" / tests).read_bytes():
        sys.exit("the preset debug builds tests without AddressSanitizer")
    print(run("ctest", "--preset", "debug", cwd=project))


def build_against_the_package(build, hearth, check_exports, c_compiler, cxx_compiler, scratch):
    project = scratch / "project"
    run("cmake", "--install", build, "--prefix", scratch / "installed", "--component", "sdk")
    print(run(hearth, "new", NAME, "--dir", project))
    run("cmake", "-S", project, "-B", project / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={scratch / 'installed'}",
        f"-DCMAKE_C_COMPILER={c_compiler}", f"-DCMAKE_CXX_COMPILER={cxx_compiler}")
    found = re.search(r"^Hearth_DIR:PATH=(.*)$", (project / "build/CMakeCache.txt").read_text(), re.MULTILINE).group(1)
    if not found.startswith(str(scratch)):
        sys.exit(f"the installed package was not taken, but {found}")
    run("cmake", "--build", project / "build", "--target", NAME)
    for made in (".gitignore", "build/compile_commands.json", f"build/CMakeFiles/{NAME}.dir/cmake_pch.hxx.pch"):
        if not (project / made).is_file():
            sys.exit(f"the project lacks {made}")
    if "/node_modules/" not in (project / ".gitignore").read_text().splitlines():
        sys.exit("git would take what `npm install` writes")  # README.md of the project says to
    test_with_sanitizers(project, scratch, c_compiler, cxx_compiler)
    print(run(sys.executable, check_exports, project / f"build/plugins/{NAME}.so"))
    run(hearth, "check", "--time-limit", "3s", project / f"build/plugins/{NAME}.so")
    state = answer_of([hearth, "serve", "--plugins", project / "build/plugins"], project, scratch, NAME)
    if state != {"greetings": 0}:
        sys.exit(f"the new agent answered {state}")


def main(build, hearth, check_exports, c_compiler, cxx_compiler):
    # On a short path of its own, as it would be elsewhere.
    with tempfile.TemporaryDirectory(prefix="hearth-new-") as place:
        scratch = pathlib.Path(place)
        build_against_the_package(build, hearth, check_exports, c_compiler, cxx_compiler, scratch)
        follow_the_readme(build, scratch)


if __name__ == "__main__":
    main(*sys.argv[1:])
