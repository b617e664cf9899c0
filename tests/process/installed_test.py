#!/usr/bin/env python3
"""An installed server, asked for nothing: serves the libraries that were installed with it, from an
empty directory, and a directory `plugins` or one that is named goes first.

    installed_test.py BUILD_DIRECTORY

packaging/test runs it when only the target `shipped` is built, as after packaging/demo.
"""
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

PATIENCE_SECONDS = 30


def fail(text):
    sys.exit(f"installed_test: {text}")


@contextlib.contextmanager
def serving(hearth, directory, *arguments):
    """A server that was started in `directory`: its address, and a function that stops it and gives
    its log."""
    with open(directory / "log", "w+") as log:
        server = subprocess.Popen([hearth, "serve", "--listen", "127.0.0.1:0", *arguments], cwd=directory,
                                  stdout=subprocess.PIPE, stderr=log, text=True)

        def stop():
            if server.poll() is None:
                server.terminate()
            server.wait(PATIENCE_SECONDS)
            log.seek(0)
            return log.read()

        try:
            ready = server.stdout.readline()
            if "listening on " not in ready:
                fail(f"the server did not start:\n{stop()}")
            yield ready.split()[-1], stop
        finally:
            stop()
            server.stdout.close()


def increment(address):
    request = urllib.request.Request(f"http://{address}/agents/counter/first", method="POST")
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)


def main(build):
    with tempfile.TemporaryDirectory(prefix="hearth-installed-") as place:
        scratch = pathlib.Path(place)
        subprocess.run(["cmake", "--install", build, "--prefix", scratch / "usr"], check=True, stdout=subprocess.DEVNULL,
                       timeout=PATIENCE_SECONDS)
        hearth = scratch / "usr/bin/hearth"
        empty = scratch / "empty"
        empty.mkdir()
        with serving(hearth, empty) as (address, _):
            if increment(address) != {"count": 1}:
                fail("the bundled counter does not count")

        own = scratch / "own"
        (own / "plugins").mkdir(parents=True, mode=0o755)
        with serving(hearth, own) as (_, stop):
            log = stop()
            if "server.no_plugins" not in log or str(own / "plugins") not in log:
                fail(f"a directory `plugins` that is there is not the one that is served:\n{log}")

        named = scratch / "named"
        named.mkdir()
        (named / "hearth.yaml").write_text('plugins: ["elsewhere"]\n')
        for arguments in (("--plugins", "elsewhere"), ("--config", "hearth.yaml")):
            with serving(hearth, named, *arguments) as (_, stop):
                log = stop()
                if str(named / "elsewhere") not in log or "hearth new" not in log:
                    fail(f"{arguments}: a directory that is missing is not told, with what to do:\n{log}")
                if "class.served" in log:
                    fail(f"{arguments}: something else is served than what was named:\n{log}")


if __name__ == "__main__":
    main(*sys.argv[1:])
