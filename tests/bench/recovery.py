"""A `kill -9` under agents that each have a fiber in progress: until all fibers run again."""
import pathlib
import shutil
import statistics
import sys
import time

from bench import ROOT, Server, open_socket, row, rpc


def running(home):
    """How many fibers have begun to run: each adds a byte."""
    try:
        return (home / "running").stat().st_size
    except FileNotFoundError:
        return 0


def until_running(home, agents, what):
    deadline = time.monotonic() + 60
    while running(home) < agents:
        if time.monotonic() > deadline:
            log = (home / "stderr.log").read_text()[-500:]
            sys.exit(f"{running(home)} of {agents} fibers of {what} run after a minute: {log}")
        time.sleep(0.001)


class Side:
    """A server in a folder of its own, with a fiber in each of its agents."""

    def __init__(self, name, home, command, begin):
        self.name, self.home, self.command = name, home, command
        self.ready, self.whole, self.memory = [], [], []
        server = Server(command, home)
        try:
            begin(server)
        finally:
            server.kill()
        (home / "data").rename(home / "killed")

    def measure(self, agents):
        (self.home / "running").unlink()
        shutil.copytree(self.home / "killed", self.home / "data")
        began = time.monotonic()
        server = Server(self.command, self.home)
        try:
            self.ready.append(time.monotonic() - began)
            until_running(self.home, agents, self.name)
            self.whole.append(time.monotonic() - began)
            self.memory.append(server.memory())
        finally:
            server.kill()
        shutil.rmtree(self.home / "data")


def ours(build, directory, agents):
    home = directory / "ours"
    (home / "plugins").mkdir(parents=True)
    (home / "classes").mkdir()
    shutil.copy(build / "tests/agents/steps-agent.so", home / "plugins")
    (home / "classes/steps-agent.yaml").write_text("class: StepsAgent\nidle_timeout: 1h\n")
    (home / "hearth.yaml").write_text("classes: classes\n")
    command = [build / "host/hearth", "serve", "--listen", "127.0.0.1:0", "--data", "data", "--plugins", "plugins",
               "--config", "hearth.yaml", "--shards", "1", "--log-level", "warn"]
    idle = Server(command, home)
    memory = idle.memory()
    idle.stop()

    def begin(server):
        for number in range(agents):
            with open_socket(server.port, f"/agents/steps-agent/agent{number}") as connection:
                rpc(connection, "rest", [])
        until_running(home, agents, "Hearth")
    return Side("Hearth", home, command, begin), memory


def node(directory, agents, folder):
    home = directory / "node"
    home.mkdir()
    command = ["node", ROOT / "tests/bench/node_recovery.mjs", folder, home, str(agents)]
    return Side("Node", home, command, lambda server: until_running(home, agents, "Node"))


def recovery(build, directory, rounds, agents, node_folder):
    directory = pathlib.Path(directory)
    hearth, idle = ours(build, directory, agents)
    sides = [hearth]
    if (node_folder / "node_modules/better-sqlite3").is_dir():
        sides.append(node(directory, agents, node_folder))
    for _ in range(rounds):
        for side in sides:
            side.measure(agents)
    for side in sides:
        row(f"{side.name}: from its start until it is ready", f"{1000 * statistics.median(side.ready):.0f} ms")
        row(f"    until {agents} interrupted fibers run again", f"{1000 * statistics.median(side.whole):.0f} ms")
        row("    memory then", f"{statistics.median(side.memory) / 2**20:.0f} MiB")
    row("Hearth's memory of an agent with its fiber",
        f"{(statistics.median(hearth.memory) - idle) / agents / 1024:.1f} KiB")
    if len(sides) == 2:
        row("Hearth's time over Node's", f"{statistics.median(a / b for a, b in zip(hearth.whole, sides[1].whole)):.2f}",
            "at most 1")
    else:
        row("    (no node_modules/better-sqlite3: nothing to compare with)", "")
