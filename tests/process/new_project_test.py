#!/usr/bin/env python3
"""What `hearth new` writes: builds against the installed package outside this tree, passes its tests, exports what a library
may, is served.

    new_project_test.py BUILD_DIRECTORY HEARTH CHECK_EXPORTS C_COMPILER CXX_COMPILER
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

NAME = "night-porter"
PATIENCE_SECONDS = 120


def run(*command, cwd=None):
    done = subprocess.run([str(part) for part in command], cwd=cwd, timeout=PATIENCE_SECONDS, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def serve_and_ask(hearth, project, scratch):
    """The answer of an agent of the new class, from a server that has nothing but the new library."""
    command = [hearth, "serve", "--listen", "127.0.0.1:0", "--data", scratch / "data", "--plugins", project / "build/plugins"]
    log = open(scratch / "log", "w+")
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=log, text=True) as server:
        try:
            ready = server.stdout.readline()
            if "listening on " not in ready:
                log.seek(0)
                sys.exit(f"the server did not start:\n{log.read()}")
            address = ready.split()[-1]
            with urllib.request.urlopen(f"http://{address}/agents/{NAME}/first", timeout=30) as answer:
                return json.load(answer)
        finally:
            server.terminate()


def main(build, hearth, check_exports, c_compiler, cxx_compiler):
    # On a short path of its own, as it would be elsewhere.
    with tempfile.TemporaryDirectory(prefix="hearth-new-") as place:
        scratch = pathlib.Path(place)
        project = scratch / "project"
        run("cmake", "--install", build, "--prefix", scratch / "installed", "--component", "sdk")
        print(run(hearth, "new", NAME, "--dir", project))
        run("cmake", "-S", project, "-B", project / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={scratch / 'installed'}",
            f"-DCMAKE_C_COMPILER={c_compiler}", f"-DCMAKE_CXX_COMPILER={cxx_compiler}")
        run("cmake", "--build", project / "build")
        tests = run("ctest", "--test-dir", project / "build", "--output-on-failure", "--no-tests=error")
        print(tests)
        print(run(sys.executable, check_exports, project / f"build/plugins/{NAME}.so"))
        state = serve_and_ask(hearth, project, scratch)
        if state != {"greetings": 0}:
            sys.exit(f"the new agent answered {state}")


if __name__ == "__main__":
    main(*sys.argv[1:])
