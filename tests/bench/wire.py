"""Frames, TLS, open sockets and compressed messages."""
import json
import os
import pathlib
import socket
import ssl
import statistics
import subprocess
import sys
import time
import zlib

from bench import Server, gauge, hearth, live_agents, load, median_ratio, open_socket, row, upgrade, wait_until


def echo(build, directory, rounds, seconds):
    bare = Server([build / "tests/bench/bare_beast_echo"], directory)
    ours = hearth(build, directory, "--log-level", "warn")
    try:
        for depth, key, name, goal in ((64, "rate", "echo, depth 64: rate over bare Beast", "at least 0.80"),
                                       (1, "p50_ns", "echo, depth 1: p50 over bare Beast", "at most 1.10")):
            pairs = []
            for _ in range(rounds):
                b = load(build, bare.port, "/", depth, seconds)
                h = load(build, ours.port, "/agents/counter/bench", depth, seconds)
                pairs.append((h[key], b[key]))
            row(name, f"{median_ratio(pairs):.2f}", goal)
            unit = "frames/s" if key == "rate" else "ns"
            row("    bare Beast, Hearth (median)",
                f"{statistics.median(b for _, b in pairs):.0f}, {statistics.median(a for a, _ in pairs):.0f}", unit)
    finally:
        ours.stop()
        bare.stop()


def make_certificate(directory):
    """A certificate that signs itself, and its key: the files that a server file's `tls` names."""
    files = pathlib.Path(directory) / "certificate.pem", pathlib.Path(directory) / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-keyout", files[1], "-out", files[0]],
                   check=True, capture_output=True, timeout=60)
    files[1].chmod(0o600)
    return files


def tls_server(build, directory, *more):
    home = pathlib.Path(directory) / "tls"
    home.mkdir()
    certificate, key = make_certificate(home)
    (home / "hearth.yaml").write_text(f"tls: {{certificate: {certificate}, key: {key}}}\n")
    return hearth(build, home, "--config", home / "hearth.yaml", "--log-level", "warn", *more)


def tls(build, directory, rounds, seconds):
    """Echo over TLS beside plain TCP, handshakes a second, and the memory of a connection."""
    plain = hearth(build, directory, "--log-level", "warn")
    secure = tls_server(build, directory)
    path = "/agents/counter/bench"
    try:
        for depth, key, name, goal in ((64, "rate", "echo over TLS, depth 64: rate over plain", "at least 0.60"),
                                       (1, "p50_ns", "echo over TLS, depth 1: p50 over plain", "")):
            pairs = []
            for _ in range(rounds):
                p = load(build, plain.port, path, depth, seconds)
                s = load(build, secure.port, path, depth, seconds, "--tls", "yes")
                pairs.append((s[key], p[key]))
            row(name, f"{median_ratio(pairs):.2f}", goal)
            unit = "frames/s" if key == "rate" else "ns"
            row("    plain, TLS (median)",
                f"{statistics.median(b for _, b in pairs):.0f}, {statistics.median(a for a, _ in pairs):.0f}", unit)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

        def connect():
            return context.wrap_socket(socket.create_connection(("127.0.0.1", secure.port)))

        opened = [connect() for _ in range(50)]
        before, began = secure.memory(), time.monotonic()
        opened += [connect() for _ in range(500)]
        row("    handshakes in turn (P-256, TLS 1.3; the client's part included)",
            f"{500 / (time.monotonic() - began):.0f}", "/s")
        row("memory of an idle HTTP connection over TLS", f"{(secure.memory() - before) / 500 / 1024:.1f} KiB")
        for each in opened:
            each.close()
        opened = [socket.create_connection(("127.0.0.1", plain.port)) for _ in range(50)]
        wait_until(lambda: gauge(plain.port, "hearth_sockets") >= 50, "50 connections")
        before = plain.memory()
        opened += [socket.create_connection(("127.0.0.1", plain.port)) for _ in range(500)]
        wait_until(lambda: gauge(plain.port, "hearth_sockets") >= 550, "550 connections")
        row("    the same over plain TCP", f"{(plain.memory() - before) / 500 / 1024:.1f} KiB")
        for each in opened:
            each.close()
    finally:
        secure.stop()
        plain.stop()


def sockets(build, directory, count):
    classes = pathlib.Path(directory) / "classes"
    classes.mkdir()
    (classes / "counter.yaml").write_text("class: Counter\nidle_timeout: 50ms\n")
    config = pathlib.Path(directory) / "hearth.yaml"
    config.write_text("classes: classes\nlimits:\n  max_connections: 10000\n")
    ours = hearth(build, directory, "--config", config, "--log-level", "debug")
    opened = []
    try:
        def connect(names):
            for name in names:
                opened.append(open_socket(ours.port, f"/agents/counter/{name}"))
            wait_until(lambda: ours.count_in_log('"agent.evicted"') >= len(opened), "eviction")

        connect([f"warm{i}" for i in range(50)])
        before = ours.memory()
        for start in range(0, count, 100):
            connect([f"socket{i}" for i in range(start, start + 100)])
        row(f"memory of an open socket, its agent evicted ({count} sockets)",
            f"{(ours.memory() - before) / count / 1024:.1f} KiB", "goal: under 16")
    finally:
        for each in opened:
            each.close()
        ours.stop()


COMPRESSION_BOUND = {"no_context_takeover": "goal: under 2", "context_takeover": "at most 52 on the account"}


def say(connection, is_packed):
    """A message of a chat client, compressed by itself or not at all (RFC 7692), and the room's
    answer to it."""
    payload = json.dumps({"type": "say", "text": os.urandom(300).hex()}).encode()
    if is_packed:
        packer = zlib.compressobj(1, zlib.DEFLATED, -12)
        payload = (packer.compress(payload) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    connection.sendall(bytes([0xC1 if is_packed else 0x81, 0xFE]) + len(payload).to_bytes(2, "big") + bytes(4) + payload)
    received, wanted = b"", bytes([0xC1 if is_packed else 0x81, 0x7E])
    while wanted not in received:  # a frame of so many bytes: the answer
        part = connection.recv(65536)
        if not part or part.startswith(b"\x88"):
            sys.exit(f"the server closed the connection: {part!r}")
        received += part


def deflate(build, directory, count):
    """What a WebSocket costs whose messages are compressed: its agent evicted, a message both ways
    before."""
    plain = None
    for setting in ("none", "no_context_takeover", "context_takeover"):
        home = pathlib.Path(directory) / setting
        (home / "classes").mkdir(parents=True)
        (home / "classes/chat.yaml").write_text("class: ChatRoom\nidle_timeout: 50ms\n")
        (home / "hearth.yaml").write_text(f"classes: classes\ncompression: {setting}\n")
        ours = hearth(build, home, "--config", home / "hearth.yaml", "--log-level", "debug")
        offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
        opened = []

        def connect(names):
            for name in names:
                opened.append(socket.create_connection(("127.0.0.1", ours.port)))
                upgrade(opened[-1], f"/agents/chat-room/{name}", offer if setting != "none" else "")
                received = b""
                while b"cf_agent_mcp_servers" not in received:
                    received += opened[-1].recv(4096)
                say(opened[-1], setting != "none")
            wait_until(lambda: live_agents(ours.port, "ChatRoom") == 0, "eviction")

        try:
            connect([f"warm{i}" for i in range(100)])
            before = ours.memory()
            for start in range(0, count, 50):  # so that few agents are live at a time
                connect([f"socket{i}" for i in range(start, start + 50)])
            each = (ours.memory() - before) / count / 1024
            row(f"memory of a WebSocket, compression: {setting}", f"{each:.1f} KiB",
                "" if plain is None else f"{each - plain:.1f} more; {COMPRESSION_BOUND[setting]}")
            plain = each if plain is None else plain
        finally:
            for connection in opened:
                connection.close()
            ours.stop()
