#!/usr/bin/env python3
"""Talks to an agent over a WebSocket and shows every frame. Needs only the standard library.

    demo-client.py HOST:PORT /agents/counter/first \\
        '{"type":"rpc","id":"1","method":"increment","args":[]}'
    demo-client.py --until TEXT HOST:PORT /agents/research/desk [FRAME...]
    demo-client.py --say TEXT HOST:PORT /agents/assistant/first
    demo-client.py --take-up HOST:PORT /agents/assistant/first

    --until TEXT    also waits for a frame that holds TEXT
    --then FRAME    sends this call when that frame has come, and waits for its answer
    --only TEXT     shows answers, and other frames only if they hold TEXT
    --say TEXT      says this to a chat, and shows the answer as it comes
    --take-up       shows the answer that a chat is making, or the last one

Real clients use the npm package `agents`; this one needs no installation.
"""
import argparse
import base64
import json
import os
import socket
import struct
import sys
import urllib.request

TEXT, CLOSE = 1, 8
DEADLINE_SECONDS = 10
MAX_SHOWN = 180


def receive_exactly(stream, count):
    data = stream.read(count)
    if len(data) != count:
        raise SystemExit("the server closed the connection")
    return data


def handshake(connection, stream, address, path):
    key = base64.b64encode(os.urandom(16)).decode()
    connection.sendall(
        f"GET {path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    status = stream.readline().decode().strip()
    if " 101 " not in status + " ":
        raise SystemExit(f"the server did not upgrade: {status}")
    while stream.readline().strip():
        pass


def send_frame(connection, opcode, payload):
    """One masked frame, as RFC 6455 section 5.2 asks of clients."""
    mask = os.urandom(4)
    size = len(payload)
    head = struct.pack("!BB", 0x80 | opcode, 0x80 | size) if size < 126 else struct.pack("!BBH", 0x80 | opcode, 0xFE, size)
    connection.sendall(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload)))


def receive_frame(stream):
    first, size = receive_exactly(stream, 2)
    if size == 126:
        (size,) = struct.unpack("!H", receive_exactly(stream, 2))
    elif size == 127:
        (size,) = struct.unpack("!Q", receive_exactly(stream, 8))
    return first & 0x0F, receive_exactly(stream, size)


def show(text):
    print(f"  server: {text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + '...'}", flush=True)


def chat(connection, stream, address, path, text):
    """Shows one answer, from its first word to its last frame."""
    def send(frame):
        send_frame(connection, TEXT, json.dumps(frame).encode())

    if text:
        message = {"id": "demo", "role": "user", "parts": [{"type": "text", "text": text}]}
        body = json.dumps({"messages": [message]})
        send({"type": "cf_agent_use_chat_request", "id": "demo", "init": {"method": "POST", "body": body}})
    else:
        send({"type": "cf_agent_stream_resume_request"})
    while True:
        opcode, payload = receive_frame(stream)
        frame = json.loads(payload) if opcode == TEXT else {}
        if frame.get("type") == "cf_agent_stream_resuming":
            send({"type": "cf_agent_stream_resume_ack", "id": frame["id"]})
        if frame.get("type") == "cf_agent_stream_resume_none":  # it is whole already
            with urllib.request.urlopen(f"http://{address}{path}/get-messages") as answer:
                last = json.load(answer)[-1]
            print("".join(part.get("text", "") for part in last["parts"]))
            return
        if frame.get("type") != "cf_agent_use_chat_response":
            continue
        if frame.get("error"):
            raise SystemExit(frame["body"])
        chunk = json.loads(frame["body"]) if frame["body"] else {}
        if chunk.get("type") == "text-delta":
            print(chunk["delta"], end="", flush=True)
        if frame["done"]:
            print(flush=True)
            return


def main(arguments):
    host, port = arguments.address.rsplit(":", 1)
    try:
        connection = socket.create_connection((host.strip("[]"), int(port)), timeout=DEADLINE_SECONDS)
    except OSError as error:
        raise SystemExit(f"no server answers at {arguments.address}: {error.strerror}") from None
    stream = connection.makefile("rb")
    handshake(connection, stream, arguments.address, arguments.path)
    if arguments.say or arguments.take_up:
        chat(connection, stream, arguments.address, arguments.path, arguments.say)
        return
    waiting = set()

    def call(frame):
        waiting.add(json.loads(frame)["id"])
        print(f"  client: {frame}", flush=True)
        send_frame(connection, TEXT, frame.encode())

    for frame in arguments.frames:
        call(frame)
    seen = not arguments.until
    while waiting or not seen:
        opcode, payload = receive_frame(stream)
        if opcode != TEXT:
            continue
        text = payload.decode()
        frame = json.loads(payload)
        is_answer = frame.get("type") == "rpc"
        if is_answer or not arguments.only or arguments.only in text:
            show(text)
        if is_answer and frame.get("done", True):
            waiting.discard(frame.get("id"))
        if not seen and arguments.until in text:
            seen = True
            if arguments.then:
                call(arguments.then)
    send_frame(connection, CLOSE, struct.pack("!H", 1000))
    connection.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--until", default="")
    parser.add_argument("--then", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--say", default="")
    parser.add_argument("--take-up", action="store_true")
    parser.add_argument("address")
    parser.add_argument("path")
    parser.add_argument("frames", nargs="*")
    given = parser.parse_args()
    if not given.until and not given.frames and not given.say and not given.take_up:
        parser.error("nothing to wait for: give a FRAME, or --until TEXT")
    main(given)
