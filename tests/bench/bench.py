"""What the measurements share: servers pinned to a core, load, clients, and rows of figures."""
import json
import os
import pathlib
import re
import resource
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER_CORE, CLIENT_CORE = "0", "1"
QUIET_TIME = 0.3  # the default of reload.quiet_time, in seconds: until then nothing happens to a new file


def affordable_agents():
    """How many live agents the limit of open files lets a server have: each takes two."""
    return (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 500) // 2


class Server:
    """A process that prints its address when it is ready, pinned to the server's core."""

    def __init__(self, command, cwd, cores=SERVER_CORE):
        self.log = open(pathlib.Path(cwd) / "stderr.log", "w+")
        self.process = subprocess.Popen(["taskset", "-c", cores, *map(str, command)], cwd=cwd,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        found = re.search(r"(\d+)\D*$", line)
        if not found:
            sys.exit(f"no address from {command[0]}: {line!r}; see {self.log.name}")
        self.port = int(found.group(1))

    def memory(self):
        """Private memory in bytes: what this process alone costs."""
        text = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return 1024 * sum(int(n) for n in re.findall(r"Private_(?:Clean|Dirty):\s+(\d+)", text))

    def processor_seconds(self):
        """What it has used of its core."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def count_in_log(self, text):
        return pathlib.Path(self.log.name).read_text().count(text)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.log.close()

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=30)
        self.log.close()


def load(build, port, path, depth, seconds, *more, under=()):
    """`under`: a command that runs the load, such as chrt."""
    output = subprocess.run(
        [*under, "taskset", "-c", CLIENT_CORE, build / "tests/bench/echo_load", "--port", str(port), "--path", path,
         "--depth", str(depth), "--seconds", str(seconds), "--warmup", "0.5", *more],
        capture_output=True, text=True, check=True, timeout=60).stdout
    return json.loads(output)


def hearth(build, directory, *more):
    return Server([build / "host/hearth", "serve", "--listen", "127.0.0.1:0", "--data", "data", "--plugins",
                   build / "plugins", "--shards", "1", *more], directory)


def median_ratio(pairs):
    return statistics.median(a / b for a, b in pairs)


def row(name, value, goal=""):
    print(f"{name:<58} {value:>16}   {goal}", flush=True)


def upgrade(connection, path, headers=""):
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                       f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
                       .encode())


def open_socket(port, path, source="127.0.0.1"):
    connection = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
    upgrade(connection, path)
    received = b""
    while b"cf_agent_mcp_servers" not in received:
        received += connection.recv(4096)
    return connection


def wait_until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what} did not happen within {seconds} s")
        time.sleep(0.05)


def send_call(connection, id, method, arguments):
    payload = json.dumps({"type": "rpc", "id": id, "method": method, "args": arguments}).encode()
    short = len(payload) < 126
    length = bytes([0x80 | len(payload)]) if short else bytes([0x80 | 126]) + len(payload).to_bytes(2, "big")
    connection.sendall(b"\x81" + length + bytes(4) + payload)


def rpc(connection, method, arguments):
    """Calls a method over a socket of open_socket(), and gives its result."""
    send_call(connection, "1", method, arguments)
    received = b""
    connection.settimeout(120)
    while not (found := re.search(rb'"type":"rpc".*?"result":(\d+)|"result":(\d+).*?"type":"rpc"', received)):
        part = connection.recv(65536)
        if not part or b'"success":false' in received:
            sys.exit(f"{method} failed: {received[-300:]!r}")
        received += part
    return int(found.group(1) or found.group(2))


def figures(port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = b""
        while part := connection.recv(65536):
            text += part
    return {name: float(value)
            for name, value in re.findall(r"^(hearth_(?:sync|commits)\S*) (\S+)$", text.decode(), re.M)}


def gauge(port, name):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = b""
        while part := connection.recv(65536):
            text += part
    found = re.search(rf"^{name} (\S+)$", text.decode(), re.M)
    return float(found.group(1)) if found else 0


def live_agents(port, agent_class):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = b""
        while part := connection.recv(65536):
            text += part
    found = re.search(rf'^hearth_live_agents{{class="{agent_class}"}} (\d+)', text.decode(), re.M | re.I)
    return int(found.group(1)) if found else 0
