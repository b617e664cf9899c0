#!/usr/bin/env python3
"""The project that plugin-api/rust/README.md prints, made and served by the commands that it
prints: with cargo, and without.

    readme_test.py SOURCES HEARTH
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

PATIENCE_SECONDS = 120


def fences(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(script, place, environment):
    done = subprocess.run(["bash", "-e", "-c", script], cwd=place, env=environment, timeout=PATIENCE_SECONDS, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"readme_test: a command that the README prints does not work:\n{script}\n{done.stdout}")
    return done.stdout


def write(place, snippet):
    """A file whose name is in its first line."""
    name = re.match(r"(?:#|//) (\S+)", snippet).group(1)
    (place / name).parent.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(snippet)


def answer_of(serve, place, environment, path):
    """The answer to a request, from a server that the command starts, on a free port."""
    log = open(place / "log", "w+")
    with subprocess.Popen([*serve.split(), "--listen", "127.0.0.1:0"], cwd=place, env=environment, stdout=subprocess.PIPE,
                          stderr=log, text=True) as server:
        try:
            ready = server.stdout.readline()
            if "listening on " not in ready:
                log.seek(0)
                sys.exit(f"readme_test: the server did not start:\n{log.read()}")
            with urllib.request.urlopen(f"http://{ready.split()[-1]}{path}", timeout=30) as answer:
                return json.load(answer)
        finally:
            server.terminate()


def main(sources, hearth):
    text = (pathlib.Path(sources) / "plugin-api/rust/README.md").read_text()
    with tempfile.TemporaryDirectory(prefix="hearth-rust-") as scratch:
        place = pathlib.Path(scratch) / "greeter"
        (pathlib.Path(scratch) / "hearth").symlink_to(sources)  # where the printed Cargo.toml looks for it
        write(place, fences(text, "toml")[0])
        write(place, fences(text, "rust")[0])
        (place / "plugins").mkdir(mode=0o755)
        with_cargo, without_cargo = fences(text, "sh")
        # Debian's tools, and no registry.
        environment = {**os.environ, "PATH": f"{pathlib.Path(hearth).parent}:/usr/bin:/bin", "CARGO_HOME": f"{scratch}/cargo",
                       "CARGO_NET_OFFLINE": "true", "RUSTC": "/usr/bin/rustc", "HEARTH": f"{sources}/plugin-api/rust",
                       "CARGO_PROFILE_RELEASE_OPT_LEVEL": "0"}  # most of the time is the optimizer's
        for setting in ("RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "RUSTUP_TOOLCHAIN"):
            environment.pop(setting, None)

        *steps, serve = with_cargo.strip().splitlines()
        # One case of the check takes half of its time limit, whatever that is.
        told = run("\n".join(steps).replace("hearth check", "hearth check --time-limit 2s"), place, environment)
        if "greeter 1.0.0, classes Greeter" not in told or "1 warning" not in told:
            sys.exit(f"readme_test: hearth check says something else than E17:\n{told}")
        path = re.search(r"`curl http://127\.0\.0\.1:8787(\S+)`", text).group(1)
        state = answer_of(serve, place, environment, path)
        if state != {"greetings": 0}:
            sys.exit(f"readme_test: the new agent answers {state}")

        run(without_cargo, place, environment)
        run("hearth check --only T101 greeter.so", place, environment)


if __name__ == "__main__":
    main(*sys.argv[1:])
