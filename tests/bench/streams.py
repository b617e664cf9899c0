"""Many streams of server-sent events through one shard: their memory, and what other clients
notice."""
import json
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys

from bench import CLIENT_CORE, ROOT, Server, load, open_socket, row, send_call, wait_until

EVERY_MS = range(151, 250)  # between two events; node rings timers of one length together, so streams differ
EVENT_BYTES = 150
STREAMS_OF_AN_AGENT = 100
INCREMENT = '{"type":"rpc","id":"{id}","method":"increment","args":[]}'

MOST_KIB = 160    # of memory for a stream, see host/net/README.md
MOST_RATIO = 2.0  # of the p99 with streams to that without
NO_MATTER_MS = 25  # a check on a busy machine takes a p99 up to this, whatever the ratio is


def real_time():
    """A prefix that keeps other processes of the machine out of the measurement, if the system
    permits it."""
    command = ["chrt", "--fifo", "5"]
    permitted = shutil.which("chrt") and subprocess.run([*command, "true"], capture_output=True).returncode == 0
    return command if permitted else []


class Provider:
    """The provider of the tests, on the core of the load."""

    def __init__(self, directory):
        key, self.certificate = directory / "key.pem", directory / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-keyout", key, "-out", self.certificate], check=True, capture_output=True, timeout=60)
        self.process = subprocess.Popen(
            ["taskset", "-c", CLIENT_CORE, "node", ROOT / "tests/support/provider.mjs", self.certificate, key],
            stdout=subprocess.PIPE, text=True)
        ports = json.loads(self.process.stdout.readline())
        self.http, self.https = ports["http"], ports["https"]

    def open_streams(self):
        with socket.create_connection(("127.0.0.1", self.http)) as connection:
            connection.sendall(b"GET /stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            text = b""
            while part := connection.recv(65536):
                text += part
        return json.loads(text[text.index(b"{"):text.rindex(b"}") + 1])["streams"]

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)


class Listeners:
    """Agents that each read many streams to their end, for a client each."""

    def __init__(self, port, provider, agents, each, seconds):
        self.each = each
        self.events = 0
        self.connections = [open_socket(port, f"/agents/fetcher/{agent}") for agent in range(agents)]
        for connection in self.connections:
            connection.settimeout(120)
            for call in range(each):
                every = EVERY_MS[call % len(EVERY_MS)]
                events = max(1, round(seconds * 1000 / every))
                self.events += events
                send_call(connection, f"s{call}", "listen",
                          [f"https://localhost:{provider.https}/sse?events={events}&every_ms={every}"
                           f"&bytes={EVENT_BYTES}"])

    def lost(self):
        """How many events the agents have not told of; waits for the end of all streams."""
        told = 0
        for connection in self.connections:
            received = b""
            while received.count(b'"type":"rpc"') < self.each:
                part = connection.recv(65536)
                if not part:
                    break
                received += part
            told += sum(map(int, re.findall(rb'"result":(\d+)', received)))
            connection.close()
        return self.events - told


def serve(build, directory, certificate, under):
    (directory / "plugins").mkdir(mode=0o755)
    for library in ("tests/agents/fetch-agent.so", "plugins/counter.so"):
        shutil.copy(build / library, directory / "plugins")
    (directory / "classes").mkdir()
    (directory / "classes/fetcher.yaml").write_text(
        "class: Fetcher\negress: {allow: [localhost, 127.0.0.1, '::1'], limits: {concurrent: 2000}}\n")
    config = directory / "hearth.yaml"
    # The listeners' clients read nothing before the end, so they answer no pings.
    config.write_text(f"classes: classes\negress: {{ca_file: {certificate}}}\nlimits: {{ping_interval: 0s}}\n")
    return Server([*under, build / "host/hearth", "serve", "--listen", "127.0.0.1:0", "--data", "data", "--plugins",
                   directory / "plugins", "--config", config, "--shards", "1", "--log-level", "warn"], directory)


def streams(build, directory, count, seconds, check):
    """`count` streams of `seconds`, all at the same time, and a client of another class beside
    them."""
    directory = pathlib.Path(directory)
    provider = Provider(directory)
    under = [] if check else real_time()
    ours = serve(build, directory, provider.certificate, under)
    pause = min(10, seconds / 4)
    agents = -(-count // STREAMS_OF_AN_AGENT)
    each = count // agents
    count = each * agents

    def latency(time):
        return load(build, ours.port, "/agents/counter/neighbour", 1, time, "--frame", INCREMENT, "--expect",
                    '"success":true', under=under)["p99_ns"] / 1e6

    try:
        if Listeners(ours.port, provider, agents, 1, 0).lost():
            sys.exit("the first streams failed")
        quiet = [latency(pause)]
        before = ours.memory()
        listeners = Listeners(ours.port, provider, agents, each, seconds)
        wait_until(lambda: provider.open_streams() >= count, f"{count} streams at the same time")
        memory = (ours.memory() - before) / count / 1024
        busy = latency(max(seconds - 2 * pause, seconds / 2))
        if (still := provider.open_streams()) < count:
            sys.exit(f"only {still} streams were left when the calls were measured")
        if lost := listeners.lost():
            sys.exit(f"{lost} of {listeners.events} events did not come")
        quiet.append(latency(pause))
        ratio = busy / statistics.mean(quiet)
        row(f"memory of a stream, {count} streams of {seconds:g} s over TLS", f"{memory:.1f} KiB",
            f"at most {MOST_KIB}")
        row("    p99 of another class's calls over that without streams", f"{ratio:.2f}", f"at most {MOST_RATIO:g}")
        row("    p99 before, with streams, after", f"{quiet[0]:.2f}, {busy:.2f}, {quiet[1]:.2f} ms",
            f"{listeners.events / seconds:.0f} events a second")
        if check and (memory > MOST_KIB or (ratio > MOST_RATIO and busy > NO_MATTER_MS)):
            sys.exit("a bound is not kept")
    finally:
        ours.stop()
        provider.stop()
