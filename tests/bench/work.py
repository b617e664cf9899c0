"""Reloads of a library, and what agents do: steps, operations, calls, objects."""
import json
import os
import pathlib
import re
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import time

from bench import (CLIENT_CORE, QUIET_TIME, ROOT, SERVER_CORE, Server, affordable_agents, figures, hearth,
                   live_agents, load, median_ratio, open_socket, row, rpc)


class Calls:
    """One call after the other on one socket: when each was answered, how long it took, and what
    the answer was."""

    def __init__(self, selector, port, path, method):
        text = f'{{"type":"rpc","id":"1","method":"{method}","args":[]}}'.encode()
        self.frame = bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text  # a mask of zeros
        self.socket = open_socket(port, path)
        self.received = bytearray()
        self.answers = []  # (time, seconds, result)
        selector.register(self.socket, selectors.EVENT_READ, self)
        self.ask()

    def ask(self):
        self.asked = time.monotonic()
        self.socket.sendall(self.frame)

    def read(self):
        self.received += self.socket.recv(65536)
        if b'"type":"rpc"' not in self.received or not self.received.endswith(b"}"):
            return
        result = re.search(rb'"result":("[^"]*"|[^,}]*)', bytes(self.received))
        now = time.monotonic()
        self.answers.append((now, now - self.asked, result.group(1).decode() if result else ""))
        self.received.clear()
        self.ask()

    def milliseconds(self, percent, begin, end):
        took = sorted(seconds for at, seconds, _ in self.answers if begin <= at <= end)
        return 1000 * took[min(len(took) - 1, len(took) * percent // 100)] if took else float("nan")


def run_until(selector, condition, what, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what} did not happen within {seconds} s")
        for key, _ in selector.select(timeout=0.01):
            key.data.read()


def wake(port, names):
    """A request to each: it has no answer worth reading, and the agent is live then."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        reader = connection.makefile("rb")
        for name in names:
            connection.sendall(f"GET /agents/versioned/{name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            length = 0
            while (line := reader.readline()) != b"\r\n":
                if not line:
                    sys.exit("the server closed the connection")
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            reader.read(length)


def reload(build, directory, rounds, seconds, most_agents):
    """From the rename of a new library to answers by its code, with more and more live agents of
    the class."""
    directory = pathlib.Path(directory)
    versions = {v: build / f"tests/agents/versioned-{v}.so" for v in "12"}
    for agents in sorted({min(n, most_agents, affordable_agents()) for n in (1, 100, 10_000)}):
        home = directory / str(agents)
        plugins = home / "plugins"
        (home / "classes").mkdir(parents=True)
        plugins.mkdir()
        shutil.copy(build / "plugins/counter.so", plugins)
        shutil.copy(versions["1"], plugins / "versioned.so")
        (home / "classes/versioned.yaml").write_text("class: Versioned\nidle_timeout: 1h\n")
        config = home / "hearth.yaml"
        config.write_text(f"classes: classes\nlimits:\n  max_connections: 100\n  max_live_agents: {agents + 100}\n")
        ours = Server([build / "host/hearth", "serve", "--listen", "127.0.0.1:0", "--data", "data", "--plugins",
                       plugins, "--config", config, "--shards", "1"], home)
        selector = selectors.DefaultSelector()
        try:
            watcher = Calls(selector, ours.port, "/agents/versioned/agent0", "version")
            neighbour = Calls(selector, ours.port, "/agents/counter/neighbour", "increment")
            first, whole, before, during = [], [], [], []
            for number in range(1, rounds + 1):
                wake(ours.port, (f"agent{i}" for i in range(agents)))
                if (live := live_agents(ours.port, "versioned")) < agents:
                    sys.exit(f"{live} of {agents} agents are live; see {ours.log.name}")
                quiet = time.monotonic() + 1
                run_until(selector, lambda: time.monotonic() > quiet, "a second")  # what waking them has left
                start = time.monotonic()
                run_until(selector, lambda: time.monotonic() > start + seconds, "the time before")

                version = "12"[number % 2]
                shutil.copy(versions[version], plugins / ".new")
                moved = time.monotonic()
                os.rename(plugins / ".new", plugins / "versioned.so")
                new = f'"{version}.0.0"'
                run_until(selector, lambda: watcher.answers[-1][2] == new, "an answer by the new version")
                first.append(watcher.answers[-1][0] - moved)
                run_until(selector, lambda: ours.count_in_log('"reload.done"') == number, "the end of the reload")
                done = time.monotonic()
                whole.append(done - moved)
                before.append([neighbour.milliseconds(p, start, moved) for p in (50, 99, 100)])
                during.append([neighbour.milliseconds(p, moved + QUIET_TIME, done) for p in (50, 99, 100)])
            plural = "s" * (agents > 1)
            row(f"reload, {agents} live agent{plural}: mv to the first new answer",
                f"{1000 * statistics.median(first):.0f} ms",
                f"{1000 * QUIET_TIME:.0f} ms of it reload.quiet_time; at most {1000 * max(first):.0f}")
            row("    mv to the last agent off the old code", f"{1000 * statistics.median(whole):.0f} ms",
                f"at most {1000 * max(whole):.0f}")
            for name, figures_of in (("before", before), ("during", during)):
                p50, p99, most = (statistics.median(column) for column in zip(*figures_of))
                row(f"    another class's call {name}: p50, p99", f"{p50:.2f}, {p99:.2f} ms", f"longest {most:.1f}")
        finally:
            selector.close()
            ours.stop()


def steps(build, directory, rounds, seconds, node_folder):
    """A fiber that takes a checkpoint and sleeps 0 ms, again and again; beside it the same by hand
    in Node."""
    plugins = pathlib.Path(directory) / "plugins"
    plugins.mkdir(mode=0o755)
    shutil.copy(build / "tests/agents/steps-agent.so", plugins)
    ours = Server([build / "host/hearth", "serve", "--listen", "127.0.0.1:0", "--data", "data", "--plugins", plugins,
                   "--shards", "1", "--log-level", "warn"], directory)
    nodes = {}  # by what SQLite is asked to sync
    if shutil.which("node") and (node_folder / "node_modules/better-sqlite3").is_dir():
        nodes = {value: Server(["node", ROOT / "tests/bench/node_steps.mjs", node_folder, f"{value}.sqlite", value],
                               directory) for value in ("NORMAL", "OFF")}

    def rate_of(ask, count):
        begun = time.monotonic()
        ask(count)
        return count / (time.monotonic() - begun)

    def ask_node(value, count):
        with socket.create_connection(("127.0.0.1", nodes[value].port)) as connection:
            connection.sendall(f"GET /{count} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            while connection.recv(65536):
                pass

    with open_socket(ours.port, "/agents/steps-agent/bench") as connection:
        def ask_ours(count):
            text = f'{{"type":"rpc","id":"1","method":"walk","args":[{count}]}}'.encode()
            connection.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
            answer = b""
            while b'"type":"rpc"' not in answer:
                answer += connection.recv(4096)

        try:
            count = int(max(rate_of(ask_ours, 20_000), 1000) * seconds)
            rates = {who: [] for who in ("ours", *nodes)}
            for _ in range(rounds):
                for value in nodes:
                    rates[value].append(rate_of(lambda count: ask_node(value, count), count))
                rates["ours"].append(rate_of(ask_ours, count))
            row("checkpoint and sleep of 0 ms", f"{statistics.median(rates['ours']):.0f}",
                "/s" if nodes else "/s; --node names a folder with better-sqlite3")
            for value, goal in (("NORMAL", "at least 1.20"), ("OFF", "")):
                if value in nodes:
                    row(f"    rate over Node by hand, synchronous={value}",
                        f"{median_ratio(list(zip(rates['ours'], rates[value]))):.2f}", goal)
                    row("        Node (median)", f"{statistics.median(rates[value]):.0f}", "/s")
        finally:
            ours.stop()
            for node in nodes.values():
                node.stop()


def operations(build, directory, rounds):
    """Operations that do nothing outside, one after the other; beside them checkpoints of the same
    agent."""
    plugins = pathlib.Path(directory) / "plugins"
    plugins.mkdir(mode=0o755)
    shutil.copy(build / "tests/agents/steps-agent.so", plugins)
    server = Server([build / "host/hearth", "serve", "--listen", "127.0.0.1:0", "--data", "data", "--plugins", plugins,
                     "--shards", "1", "--log-level", "warn"], directory)
    count = 2000  # an agent's ledger has room for 100,000
    rates = {"operate": [], "walk": []}
    try:
        for turn in range(rounds):
            with open_socket(server.port, f"/agents/steps-agent/bench-{turn}") as connection:
                for method, found in rates.items():
                    commits = sum(value for name, value in figures(server.port).items() if "commits_total" in name)
                    begun = time.monotonic()
                    rpc(connection, method, [count])
                    found.append(count / (time.monotonic() - begun))
                    if method == "operate":
                        commits = sum(value for name, value in figures(server.port).items() if "commits_total" in name) - commits
                        committed = commits / count
        operated, walked = (statistics.median(found) for found in rates.values())
        row("operations that do nothing (median)", f"{operated:.0f}", "/s")
        row("    commits of one operation", f"{committed:.2f}", "at most 2")
        row("    checkpoints of the same agent (median)", f"{walked:.0f}", "/s")
    finally:
        server.stop()


def busy_threads(pid, work):
    """How many threads of a process have taken a fifth of the processor time that `work` cost."""
    def times():
        return {task.name: sum(map(int, (task / "stat").read_text().rsplit(")", 1)[1].split()[11:13]))
                for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}
    before = times()
    work()
    taken = [time_now - before.get(task, 0) for task, time_now in times().items()]
    return sum(1 for each in taken if each * 5 > sum(taken))


def calls(build, directory, rounds, seconds):
    """Two agents on two shards call each other, beside a WebSocket client that calls one."""
    plugins = pathlib.Path(directory) / "plugins"
    plugins.mkdir()
    shutil.copy(build / "tests/agents/calling-1.so", plugins)
    plugins.chmod(0o755)
    ours = Server([build / "host/hearth", "serve", "--listen", "127.0.0.1:0", "--data", "data", "--plugins", plugins,
                   "--shards", "2", "--log-level", "warn"], directory, f"{SERVER_CORE},{CLIENT_CORE}")
    frame = '{"type":"rpc","id":"{id}","method":"add","args":[1]}'
    try:
        path = "/agents/calling-agent/"
        one = open_socket(ours.port, path + "one")
        for number in range(64):
            name = f"other-{number}"
            rpc(one, "ask_often", ["calling-agent", name, 10])
            if busy_threads(ours.process.pid, lambda: rpc(one, "ask_often", ["calling-agent", name, 20_000])) == 2:
                break
        else:
            sys.exit("no two agents on two shards")
        other = open_socket(ours.port, path + name)
        began = time.monotonic()
        rpc(one, "ask_often", ["calling-agent", name, 50_000])
        rpc(other, "ask_often", ["calling-agent", "one", 50_000])
        rate = 100_000 / (time.monotonic() - began)
        one.close()
        other.close()
        client = statistics.median(load(build, ours.port, path + name, 1, seconds, "--frame", frame, "--expect",
                                        '"success":true')["rate"] for _ in range(rounds))
        row("calls between two agents on two shards, 100,000 in turn", f"{rate:.0f}", "/s")
        row("    the same call by a WebSocket client, in turn", f"{client:.0f}", "/s")
    finally:
        ours.stop()


def objects(build, directory, rounds, seconds):
    """Calls of an object over HTTP keep-alive, beside a bare HTTP echo and the same call over a
    WebSocket."""
    classes = pathlib.Path(directory) / "classes"
    classes.mkdir()
    (classes / "counter.yaml").write_text("class: counter\nobjects: true\n")
    config = pathlib.Path(directory) / "hearth.yaml"
    config.write_text("classes: classes\n")
    bare = Server([build / "tests/bench/bare_beast_http"], directory)
    ours = hearth(build, directory, "--config", config, "--log-level", "warn")

    def http_rate(port, path):
        output = subprocess.run(["taskset", "-c", CLIENT_CORE, build / "tests/bench/http_load", "--port", str(port),
                                 "--path", path, "--connections", "16", "--seconds", str(seconds)],
                                capture_output=True, text=True, check=True, timeout=60).stdout
        return json.loads(output)["rate"]

    try:
        for method, goal in (("get", "at least 0.60"), ("increment", "")):
            frame = f'{{"type":"rpc","id":"{{id}}","method":"{method}","args":[]}}'
            pairs, sockets = [], []
            for _ in range(rounds):
                b = http_rate(bare.port, "/")
                pairs.append((http_rate(ours.port, f"/objects/counter/bench/call/{method}"), b))
                sockets.append(load(build, ours.port, "/agents/counter/bench", 16, seconds, "--frame", frame,
                                    "--expect", '"success":true')["rate"])
            row(f"object call {method}, 16 connections: rate over bare HTTP echo", f"{median_ratio(pairs):.2f}", goal)
            row("    bare HTTP echo, calls, calls over a WebSocket (median)",
                f"{statistics.median(b for _, b in pairs):.0f}, {statistics.median(a for a, _ in pairs):.0f}, "
                f"{statistics.median(sockets):.0f}", "/s")
    finally:
        ours.stop()
        bare.stop()
