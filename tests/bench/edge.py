"""Hostile clients in numbers, in processes of their own; beside them one honest client, before and
meanwhile.

As a program it is such a process: edge.py KIND PORT FIRST COUNT opens COUNT connections, says how
many, and holds them until its input ends.
"""
import json
import pathlib
import resource
import socket
import statistics
import subprocess
import sys
import time

from bench import CLIENT_CORE, gauge, hearth, live_agents, load, open_socket, row, upgrade, wait_until

A_PROCESS = 5000  # connections of one holder
CLIENT_MEMORY = 128  # MiB
ROOMS = 40  # of those that never read: each room tells all of its people of each newcomer

FLOOD = """
import socket, sys, time
port, what, until = int(sys.argv[1]), sys.argv[2], time.monotonic() + float(sys.argv[3])
served = refused = 0
while time.monotonic() < until:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5, source_address=("127.0.0.2", 0)) as connection:
            for i in range(1 if what == "connections" else 50):
                connection.sendall(f"POST /agents/counter/{what}{time.monotonic_ns()} HTTP/1.1\\r\\nHost: localhost\\r\\n"
                                   "Content-Length: 0\\r\\n\\r\\n".encode())
                if b" 200 " in connection.recv(4096)[:20]:
                    served += 1
                else:
                    refused += 1
    except OSError:
        refused += 1
print(served, refused)
"""


def open_one(kind, port, number):
    connection = socket.socket()
    if kind == "deaf":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port))
    if kind == "slow":
        connection.sendall(b"POST /agents/counter/slow HTTP/1.1\r\nHost: local"
                           + (b"host\r\nContent-Length: 100000\r\n\r\nx" if number % 2 else b""))
        return connection
    upgrade(connection, f"/agents/counter/idle{number}" if kind == "idle" else f"/agents/chat-room/room{number % ROOMS}")
    if not connection.recv(4096).startswith(b"HTTP/1.1 101"):
        sys.exit("a WebSocket was refused")
    return connection


def hold(kind, port, first, count):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    opened = [open_one(kind, port, number) for number in range(first, first + count)]
    print(len(opened), flush=True)
    sys.stdin.read()


class Held:
    """Connections of one kind, until the end of the `with`."""

    def __init__(self, kind, port, count):
        self.processes = [
            subprocess.Popen(["taskset", "-c", CLIENT_CORE, sys.executable, "-B", __file__, kind, str(port), str(first),
                              str(min(A_PROCESS, count - first))], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for first in range(0, count, A_PROCESS)]

    def __enter__(self):
        opened = [process.stdout.readline() for process in self.processes]
        if not all(opened):
            sys.exit("not all connections could be opened")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.stdin.close()
            process.wait(timeout=60)


def speak(port, room):
    """A megabyte for each in the room."""
    say = json.dumps({"type": "say", "text": "x" * 32768}).encode()
    with open_socket(port, room) as speaker:
        for _ in range(32):
            speaker.sendall(bytes([0x81, 0xFE]) + len(say).to_bytes(2, "big") + bytes(4) + say)
            received = b""
            while b"xxx" not in received:
                received = speaker.recv(65536)


def affordable_idle(wanted):
    """How many sockets the server can have beside its agents' files."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if limit >= wanted + 3500:
        return wanted
    row(f"    (the limit of open files, {limit}, allows {limit - 3500} idle sockets)", "")
    return limit - 3500


def edge(build, directory, rounds, seconds, idle):
    directory = pathlib.Path(directory)
    idle = affordable_idle(idle)
    classes = directory / "classes"
    classes.mkdir()
    (classes / "counter.yaml").write_text("class: Counter\nidle_timeout: 1s\n")
    (classes / "chat.yaml").write_text("class: ChatRoom\noptions: {max_message_length: 100000}\n")
    (directory / "hearth.yaml").write_text(
        f"classes: classes\nlimits: {{max_connections: {idle + 2500}, max_live_agents: 250, "
        f"client_memory: {CLIENT_MEMORY}MiB}}\n" 'address_limits: {exempt: ["127.0.0.1"]}\n')
    ours = hearth(build, directory, "--config", directory / "hearth.yaml", "--log-level", "warn")

    def p99():
        runs = [load(build, ours.port, "/agents/counter/honest", 1, seconds) for _ in range(rounds)]
        return statistics.median(each["p99_ns"] for each in runs) / 1000

    def told(name, busy):
        row(f"{name}: p99 of another client over calm", f"{busy / calm:.2f}",
            f"at most 2.00 ({calm:.0f}, {busy:.0f} us)")

    def memory_more(before):
        return (ours.memory() - before) / 2**20

    def gone(what):
        wait_until(lambda: gauge(ours.port, "hearth_sockets") <= 1, f"the end of {what}", 120)

    try:
        calm, before = p99(), ours.memory()
        with Held("idle", ours.port, idle):
            wait_until(lambda: gauge(ours.port, "hearth_connections") >= idle, "connections")
            wait_until(lambda: live_agents(ours.port, "Counter") == 0, "eviction", 120)
            told(f"{idle} idle WebSockets, agents evicted", p99())
            row("    memory of each", f"{memory_more(before) * 1024 / idle:.1f} KiB", "goal: under 16")
        gone("the idle sockets")

        before = ours.memory()
        with Held("deaf", ours.port, 2000):
            for number in range(ROOMS):
                speak(ours.port, f"/agents/chat-room/room{number}")
            told("2000 clients that never read", p99())
            row("    memory more than before, held for clients",
                f"{memory_more(before):.0f}, {gauge(ours.port, 'hearth_client_memory_bytes') / 2**20:.0f} MiB",
                f"limits.client_memory: {CLIENT_MEMORY} MiB")
            row("    of them still there", f"{gauge(ours.port, 'hearth_connections'):.0f}",
                "the others were given up (1013)")
        gone("those that never read")

        before, began = ours.memory(), time.monotonic()
        with Held("slow", ours.port, 1000):
            told("500 slow heads and 500 slow bodies", p99())
            row("    memory more than before", f"{memory_more(before):.1f} MiB")
            gone("the slow ones")
        row("    until the last is closed", f"{time.monotonic() - began:.1f} s",
            "handshake_timeout 10 s; two spans of 10 s")

        for what in ("connections", "names"):
            flood = subprocess.Popen(["nice", "-n", "19", "taskset", "-c", CLIENT_CORE, sys.executable, "-c", FLOOD,
                                      str(ours.port), what, str(rounds * (seconds + 0.7))],
                                     stdout=subprocess.PIPE, text=True)
            told(f"a flood of new {what} from one address", p99())
            served, refused = flood.communicate(timeout=60)[0].split()
            row("    of them served, refused", f"{served}, {refused}")
    finally:
        ours.stop()


if __name__ == "__main__":
    hold(sys.argv[1], *map(int, sys.argv[2:5]))
