#!/usr/bin/env python3
"""Data of version 1.0: data_1.sql has a data directory as text. Today's server makes the same
tables and files, opens that directory, and goes on with the work in it.

    data_1_test.py BUILD_DIRECTORY          the test
    data_1_test.py BUILD_DIRECTORY --write  writes data_1.sql: only before a release

If a change of the tables has raised kDataFormat, they may have more than data_1.sql, and a
directory of format 1 has the same tables as a new one once it was opened.
host/storage/data_format.hpp has the rules.
"""
import hashlib
import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

from installed_test import serving

SOURCES = pathlib.Path(__file__).parents[2]
TEXT = pathlib.Path(__file__).with_name("data_1.sql")
PATIENCE_SECONDS = 60
sys.path.insert(0, str(SOURCES / "clients/python"))
from hearth_client import Hearth  # noqa: E402

TALKS = """class: talks
code: assistant
egress: {{allow: ["{model}"], limits: {{requests_per_minute: 10000}}}}
options: {{provider: chat-completions, base_url: "http://{model}/v1", model: m}}
"""


def expect(is_so, what):
    if not is_so:
        sys.exit(f"data_1_test: {what}")


def until(look, what):
    end = time.monotonic() + PATIENCE_SECONDS
    while not (seen := look()):
        expect(time.monotonic() < end, f"never: {what}")
        time.sleep(0.02)
    return seen


class Place:
    """A directory with what a server needs; its data is in `data`."""

    def __init__(self, build, directory, model):
        self.build, self.path, self.model = pathlib.Path(build).absolute(), directory, model
        self.data = directory / "data"
        for name in "plugins", "classes":
            (directory / name).mkdir(parents=True, mode=0o755)
        for library in "plugins/counter", "plugins/session-cache", "plugins/assistant", "tests/agents/durable-agent":
            shutil.copy(self.build / f"{library}.so", directory / "plugins")
        (directory / "classes/talks.yaml").write_text(TALKS.format(model=model))
        (directory / "hearth.yaml").write_text("classes: classes\nshards: 2\nobjects: {all_classes: true}\naudit: {keep: 87840h}\n")

    def serving(self):
        return serving(self.build / "bin/hearth", self.path, "--config", "hearth.yaml", "--plugins", "plugins")

    def hearth(self, *command):
        done = subprocess.run([self.build / "bin/hearth", *command, "--data", self.data, "--json"], text=True, capture_output=True, timeout=PATIENCE_SECONDS)
        expect(done.returncode == 0, f"{command}: {done.stderr}")
        return done.stdout

    def files(self):
        return sorted(path.relative_to(self.data).as_posix() for path in self.data.rglob("*") if path.is_file())

    def databases(self):
        return [name for name in self.files() if name.endswith(".db")]

    def open(self, name):
        return sqlite3.connect(f"file:{self.data / name}?mode=ro", uri=True)

    def format(self):
        return self.open("host.db").execute("PRAGMA user_version").fetchone()[0]

    def tables(self):
        """Each table, view, index and trigger, and what it is, with one blank between two words."""
        query = "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
        return {(name, what): " ".join(sql.split()) for name in self.databases() for what, sql in self.open(name).execute(query)}

    def columns(self):
        query = "SELECT t.name, c.name, c.type FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type IN ('table', 'view')"
        return {(name, *column) for name in self.databases() for column in self.open(name).execute(query)}

    def say(self, address, text):
        request = urllib.request.Request(f"http://{address}/agents/talks/d/chat", method="POST", data=json.dumps({"text": text}).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return answer.read().decode()


def agent_file(agent_class, name):
    digits = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"agents/{agent_class}/{digits[:2]}/{digits}.db"


def walked(call):
    return sum(entry.startswith("walk ") for entry in call("journal"))


def live(place):
    """Makes data of each kind, and ends while a fiber waits with a checkpoint."""
    with place.serving() as (address, _):
        objects = Hearth(f"http://{address}").objects

        def call(method, args=None):
            return objects.call("durable-agent", "c", method, args)

        objects.call("counter", "a", "increment", 41)
        objects.call("session-cache", "b", "set", ["draft", {"text": "Dear Ada"}, 3e8])
        call("begin", ["walk", "key", {"steps": 1000000, "ms": 30}])
        call("every", ["note", 2000000000, "ticked"])
        call("push", ["hopeless", "payload"])
        call("asks_person", ["the contract is signed"])
        expect("word1" in place.say(address, "Hello"), "the chat does not answer")
        until(lambda: walked(call) >= 2, "two steps of the fiber")
        until(lambda: "dead" in json.dumps(call("items")), "a dead letter")
        place.hearth("evict", "counter", "a")


def goes_on(place, steps):
    """The server opens the data, and goes on with the work in it."""
    with place.serving() as (address, _):
        objects = Hearth(f"http://{address}").objects

        def call(method, args=None):
            return objects.call("durable-agent", "c", method, args)

        expect(objects.call("counter", "a", "increment") == 42, "the counter's state is lost")
        expect(objects.call("session-cache", "b", "get", ["draft"]) == {"text": "Dear Ada"}, "a value by key is lost")
        until(lambda: walked(call) > steps, "the fiber goes on")
        journal = call("journal")
        expect(any(entry.startswith("offered walk ") for entry in journal), f"the fiber was not recovered: {journal}")
        expect(journal.count("walk 1") == 1, f"the fiber began again: {journal}")
        schedules, items = call("schedules"), json.dumps(call("items"))
        expect([each["callback"] for each in schedules] == ["note"], f"schedules: {schedules}")
        expect("hopeless" in items and "payload" in items, f"items of the queue: {items}")
        expect("the contract is signed" in place.hearth("why", "durable-agent/c"), "what waits for a person is lost")
        messages = place.hearth("sql", "talks/d", "select * from chat_messages")
        expect("Hello" in messages and "word1" in messages, f"messages of the chat: {messages}")
        expect("chat.model" in place.hearth("sql", "talks/d", "select * from cf_agents_operations"), "operations are lost")
        expect("word1" in place.say(address, "Again"), "the chat does not go on")
        expect("AdminEvicted" in place.hearth("audit"), "the audit log is lost")


def dump(place):
    """The data as text."""
    files = " ".join(name for name in place.files() if not name.endswith((".db", ".db-wal", ".db-shm")))
    parts = [f"-- files: {files}\n"]
    for name in place.databases():
        database = place.open(name)
        parts.append(f"-- {name}\nPRAGMA user_version={database.execute('PRAGMA user_version').fetchone()[0]};\n")
        parts += [f"{line}\n" for line in database.iterdump()]
    return "".join(parts).replace(str(place.path), "/srv/hearth")


def restore(place, text):
    """The files of a dump, and the names of those that are not in it."""
    head, *parts = re.split(r"^-- (?=\S+\.db$)", text, flags=re.MULTILINE)
    for part in parts:
        name, sql = part.split("\n", 1)
        (place.data / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        database = sqlite3.connect(place.data / name)
        database.executescript(sql)
        database.close()
    return head.removeprefix("-- files: ").split()


def main(build, *options):
    with tempfile.TemporaryDirectory(prefix="hearth-data-1-") as directory:
        scratch = pathlib.Path(directory)
        model = subprocess.Popen([sys.executable, SOURCES / "packaging/model_server"], stdout=subprocess.PIPE, text=True)
        try:
            address = model.stdout.readline().strip().rsplit("/", 1)[1]
            fresh = Place(build, scratch / "fresh", address)
            live(fresh)
            if "--write" in options:
                TEXT.write_text(dump(fresh))
                return
            old = Place(build, scratch / "old", address)
            others = restore(old, TEXT.read_text())
            expect(old.databases() == fresh.databases(), f"databases: {old.databases()}, today {fresh.databases()}")
            missing = set(others) - set(fresh.files())
            expect(not missing, f"files that are not made any more: {missing}")
            if fresh.format() == 1:
                there, now = old.tables(), fresh.tables()
                changed = {key: (there.get(key), now.get(key)) for key in there.keys() | now.keys() if there.get(key) != now.get(key)}
                expect(not changed, f"raise kDataFormat: tables were changed: {changed}")
            gone = old.columns() - fresh.columns()
            expect(not gone, f"columns that are gone: {gone}")
            goes_on(old, walked(lambda _: [row[0] for row in old.open(agent_file("DurableAgent", "c")).execute("SELECT entry FROM journal")]))
            different = old.columns() ^ fresh.columns()
            expect(not different, f"columns of data that was brought forward and of new data differ: {different}")
        finally:
            model.terminate()
            model.wait()
            model.stdout.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
