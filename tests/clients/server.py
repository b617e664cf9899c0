"""A server with objects of the class Counter (tests/agents/seed_counter.cpp), for a test in
Python."""
import contextlib
import pathlib
import re
import shutil
import subprocess
import tempfile

KEY = "0123456789abcdef-of-objects"
ADMIN = "0123456789abcdef-of-administrators"
PATIENCE_SECONDS = 30


KEYS = "objects: {token_file: key}\nadmin: {token_file: admin}\n"


@contextlib.contextmanager
def hearth(program, library, others=(), keys=KEYS):
    """Its URL. /objects asks for KEY, unless `keys` is empty. `others`: further libraries, each
    with the text of its class file."""
    with tempfile.TemporaryDirectory(prefix="hearth-client-") as scratch:
        directory = pathlib.Path(scratch)
        (directory / "plugins").mkdir()
        (directory / "classes").mkdir()
        shutil.copy(library, directory / "plugins/counter.so")
        (directory / "classes/counter.yaml").write_text("class: counter\nobjects: true\nlist_methods: true\n")
        for other, text in others:
            shutil.copy(other, directory / "plugins")
            (directory / "classes" / (other.stem + ".yaml")).write_text(text)
        for name, token in (("key", KEY), ("admin", ADMIN)):
            (directory / name).write_text(token + "\n")
            (directory / name).chmod(0o600)
        (directory / "hearth.yaml").write_text(f"listen: \"127.0.0.1:0\"\n{keys}")
        with (directory / "log").open("wb") as log:
            server = subprocess.Popen([program, "serve", "--config", "hearth.yaml"], cwd=directory,
                                      stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            found = re.search(r"listening on (\S+)", server.stdout.readline())
            assert found, (directory / "log").read_text()
            yield "http://" + found.group(1)
        finally:
            server.terminate()
            server.wait(PATIENCE_SECONDS)
            server.stdout.close()
