#!/usr/bin/env python3
"""A server that answers as a provider of models does, without a model: for tests, and to try a chat
without a key. It speaks three dialects, with real streams, on 127.0.0.1 only:

    POST /v1/responses           OpenAI's Responses. With `background` the answer goes on being made
                                 without a connection: GET /v1/responses/ID is the answer so far,
                                 GET .../ID?stream=true&starting_after=N the events after number N,
                                 POST .../ID/cancel ends it
    POST /v1/chat/completions    as OpenAI, vLLM, llama.cpp and Ollama have it
    POST /v1/messages            Anthropic's Messages
    GET  /journal                what happened, as JSON lines (below)
    POST /release/NAME           ends each "hold" of this name

A message is answered with "word1 word2 ...". It may contain a script instead, in a fenced block: a
JSON list of steps. The first step answers the message, the second one the results of the calls that
the first one made, and so on; further ones are answered with words. A step is a list of pieces,
each of a kind that its first member names:

    {"text": "Hello all"}                     one event for each word
    {"words": 20}                             the next 20 words of "word1 word2 ..."
    {"reasoning": "Let me see"}
    {"call": "NAME", "input": {}, "id": "x"}  a call of a tool; its id may be left out
    {"usage": {"input": 9, "output": 2}}      else it is counted: one token a word
    {"finish": "length"}                      else what ends an answer, or asks for results
    {"rate": 50}                              events a second from here on; 0: no waits
    {"resume": "refused"}                     or "gone": no stream, or nothing, of this ID
  faults:
    {"status": 429, "headers": {"retry-after": "1"}, "error": {"type": "...", "message": "..."}}
                                              instead of an answer; it must be the first piece
    {"error": {"type": "overloaded_error"}}   ends the answer with an event
    {"cut": true}                             ends the connection. "clean": as if it were the end
    {"stall": 2}                              seconds without an event
    {"pings": 2}                              seconds in which only pings come
    {"hold": "NAME"}                          waits for POST /release/NAME

The headers of an answer leave with its first piece. A fault happens once for the text of a message
and a step; "times" is another number, 0 means always. So the request that follows gets past it. One
that asks to go on (its last message is the cut answer, with or without a message that says so) gets
what is missing. As real providers do, the server refuses calls without a result and requests of a
wrong form.

The journal has one line each for the "request" (with its body up to 64 KiB, and its headers, but of
those with keys only the length), the "first" event, and the "end", "cut" or "disconnect" with the
number of events that were sent, or "refused" with the status. "made": an answer in the background
has ended.
"""
import argparse
import asyncio
import collections
import json
import re
import sys
import time
import urllib.parse

sys.dont_write_bytecode = True  # nothing is written beside the source
from dialects import Chat, Messages, Responses  # noqa: E402
from script import ERRORS, FAULTS, WAITS, Asked, Refused  # noqa: E402

PING_SECONDS = 0.05
KEYS = {"authorization", "x-api-key", "api-key", "cookie"}
KEPT_BODY = 64 << 10
KEPT_ANSWERS = 5_000  # of those made in the background
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Answer:
    def __init__(self, server, dialect, atoms, in_background):
        self.server, self.dialect, self.atoms, self.in_background = server, dialect, atoms, in_background
        self.items, self.count = [], 0  # (number of the event or None, bytes or {"cut": how})
        self.news, self.has_ended = asyncio.Event(), False
        self.resume = next((value for kind, value, *_ in atoms if kind == "resume"), None)
        self.task = asyncio.create_task(self.make())

    def put(self, events):
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            named = f"event: {name}\n" if name else ""
            self.items.append((self.count, f"{named}data: {text}\n\n".encode()))
            self.count += 1
        self.news.set()

    def put_aside(self, item):
        self.items.append((None, item))
        self.news.set()

    async def make(self):
        try:
            await self.make_pieces()
        except asyncio.CancelledError:
            self.dialect.status = "cancelled"
        except Exception as error:  # noqa: BLE001: whatever is wrong in a script
            self.put(self.dialect.fail({"type": ERRORS[400], "message": f"the script: {error!r}"}))
        finally:
            self.has_ended = True
            self.news.set()

    async def make_pieces(self):
        now, settings, is_begun = time.monotonic, {"rate": self.server.options.rate}, False
        due = now()
        for number, (kind, value, piece, key) in enumerate([*self.atoms, ["end", None, {}, None]]):
            if kind in FAULTS and not self.server.happens(piece, key):
                continue
            if kind not in WAITS and not is_begun:
                is_begun = True
                self.put(self.dialect.begin())
            if kind in ("text", "reasoning", "call") and settings["rate"]:
                await asyncio.sleep(max(0, due - now()))
                due = max(due, now() - 1) + 1 / settings["rate"]
            if kind in ("text", "reasoning"):
                self.put(self.dialect.add(kind, value))
            elif kind == "call":
                call = piece.get("id", f"call_{self.dialect.name}_{number}"), value
                self.put(self.dialect.add(kind, json.dumps(piece.get("input", {})), call))
            elif kind in WAITS:
                await self.wait(kind, value)
                due = now()
            elif kind == "cut":
                self.put_aside({"cut": value})
                if not self.in_background:
                    return
            elif kind == "error":
                return self.put(self.dialect.fail({"type": "server_error", "message": "The model has failed."} | value))
            settings |= {name: piece[name] for name in ("finish", "usage", "rate") if name in piece}
        self.put(self.dialect.end(settings.get("finish"), settings.get("usage", {})))

    async def wait(self, kind, value):
        if kind == "hold":
            await self.server.holds[value].wait()
        if kind == "stall":
            await asyncio.sleep(value)
        until = time.monotonic() + value if kind == "pings" else 0
        while time.monotonic() < until:
            self.put_aside(self.dialect.ping)
            await asyncio.sleep(PING_SECONDS)


class Connection(asyncio.StreamReaderProtocol):
    """Cancels what is written to a client that has gone."""

    writing = None

    def eof_received(self):
        self.stop()
        super().eof_received()

    def connection_lost(self, error):
        self.stop()
        super().connection_lost(error)

    def stop(self):
        if self.writing:
            self.writing.cancel()
        self.writing = None


class Server:
    DIALECTS = {"/v1/responses": Responses, "/v1/chat/completions": Chat, "/v1/messages": Messages}

    def __init__(self, options):
        self.options, self.born, self.requests = options, f"{int(time.time()):x}", 0
        self.journal, self.happened = collections.deque(maxlen=100_000), collections.Counter()
        self.holds, self.kept = collections.defaultdict(asyncio.Event), {}

    def note(self, request, event, **more):
        line = json.dumps({"time": time.time(), "request": request, "event": event} | more)
        self.journal.append(line)
        if self.options.journal:
            print(line, file=self.options.journal, flush=True)

    def happens(self, piece, key):
        """Whether this fault happens now; each is counted."""
        self.happened[key] += 1
        return self.happened[key] <= (piece.get("times", 1) or float("inf"))

    async def connection(self, reader, writer):
        try:
            while await self.exchange(reader, writer):
                pass
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def exchange(self, reader, writer):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:-2])}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        try:
            return await self.answer(writer, method, urllib.parse.urlsplit(target), headers, raw)
        except Refused as error:
            refused = error
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            refused = Refused(400, f"wrong form: {error!r}")
        self.note(self.requests, "refused", status=refused.status)
        shape = {"type": "error"} if target.startswith("/v1/messages") else {}
        return self.send(writer, refused.status, shape | {"error": refused.error}, refused.headers)

    def send(self, writer, status, body, headers=()):
        text = (body if isinstance(body, str) else json.dumps(body)).encode()
        lines = {"Content-Type": "application/json", "Content-Length": len(text)} | dict(headers)
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"HTTP/1.1 {status} .\r\n{head}\r\n".encode() + text)
        return True

    async def answer(self, writer, method, target, headers, raw):
        if (method, target.path) == ("GET", "/journal"):
            return self.send(writer, 200, "".join(line + "\n" for line in self.journal))
        if method == "POST" and target.path.startswith("/release/"):
            self.holds[target.path.removeprefix("/release/")].set()
            return self.send(writer, 200, {})
        self.requests += 1
        number, body = self.requests, json.loads(raw) if raw else None
        shown = {name: f"({len(value)} characters)" if name in KEYS else value for name, value in headers.items()}
        self.note(number, "request", method=method, path=target.path, query=target.query, headers=shown,
                  body=body if len(raw) <= KEPT_BODY else {"bytes": len(raw)})
        key = headers.get("x-api-key", headers.get("authorization", "").removeprefix("Bearer "))
        if self.options.key and key != self.options.key:
            raise Refused(401, "Incorrect API key provided.")
        if method == "POST" and target.path in self.DIALECTS:
            return await self.begin(writer, number, self.DIALECTS[target.path], body)
        found = re.fullmatch(r"/v1/responses/(\w+)(/cancel)?", target.path)
        kept = self.kept.get(found and found.group(1))
        if not kept or kept.resume == "gone":
            raise Refused(404, f"There is nothing at {target.path}.")
        query = dict(urllib.parse.parse_qsl(target.query))
        if query.get("stream") == "true":
            if kept.resume == "refused":
                raise Refused(400, "This response cannot be streamed because it was not created with background=true.")
            return await self.follow(writer, number, kept, int(query.get("starting_after", -1)))
        if found.group(2) and not kept.has_ended:
            kept.task.cancel()
            await asyncio.wait([kept.task])
        return self.send(writer, 200, kept.dialect.whole())

    async def begin(self, writer, number, dialect, body):
        asked = Asked(*dialect.read(body))
        atoms = asked.atoms(self.options)
        while atoms and atoms[0][0] == "status":
            _, status, piece, key = atoms.pop(0)
            if self.happens(piece, key):
                raise Refused(status, **{"message": "as the script says", "headers": piece.get("headers", {})} | piece.get("error", {}))
        in_background = dialect is Responses and body.get("background") and body.get("store") is not False
        if not body.get("stream") and not in_background:
            raise Refused(400, "this server only streams")
        answer = Answer(self, dialect(f"resp_{self.born}_{number}", body, asked.tokens), atoms, in_background)
        if in_background:
            self.kept[answer.dialect.name] = answer
            if len(self.kept) > KEPT_ANSWERS:
                del self.kept[next(iter(self.kept))]
            answer.task.add_done_callback(lambda _: self.note(number, "made", events=answer.count, status=answer.dialect.status))
        if not body.get("stream"):
            return self.send(writer, 200, answer.dialect.whole())
        try:
            return await self.follow(writer, number, answer, -1, is_first=True)
        finally:
            if not in_background:
                answer.task.cancel()

    async def follow(self, writer, number, answer, after, is_first=False):
        connection, place, sent, head = writer.transport.get_protocol(), 0, 0, HEAD
        connection.writing = asyncio.current_task()
        try:
            if not is_first:
                writer.write(head)
                head = b""
            while place < len(answer.items) or not answer.has_ended:
                if place == len(answer.items):
                    answer.news.clear()
                    await answer.news.wait()
                    continue
                event, data = answer.items[place]
                place += 1
                if isinstance(data, dict):
                    if is_first:
                        self.note(number, "cut", events=sent)
                        writer.write(b"0\r\n\r\n") if data["cut"] == "clean" else writer.transport.abort()
                        return False
                elif event is None or event > after:
                    writer.write(b"%b%x\r\n%b\r\n" % (head, len(data), data))
                    head = b""
                    if event is not None and sent == 0:
                        self.note(number, "first")
                    sent += event is not None
                    await writer.drain()
            writer.write(head + b"0\r\n\r\n")
            self.note(number, "end", events=sent)
            connection.writing = None
            return True
        except (asyncio.CancelledError, ConnectionError):
            self.note(number, "disconnect", events=sent)
            raise


async def serve(options):
    server, loop = Server(options), asyncio.get_running_loop()

    def connected():
        return Connection(asyncio.StreamReader(limit=1 << 20), server.connection)

    listening = await loop.create_server(connected, "127.0.0.1", options.port, backlog=1024)
    print(f"listening on http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", flush=True)
    await listening.serve_forever()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0, the default: the system picks one; the first line of the output tells it")
    parser.add_argument("--words", type=int, default=20, help="of an answer without a script (default 20)")
    parser.add_argument("--rate", type=float, default=20, help="events a second of each answer (default 20); 0: no waits")
    parser.add_argument("--script", metavar="FILE", type=lambda name: json.load(open(name)), default=[],
                        help="the script for messages that have none")
    parser.add_argument("--journal", metavar="FILE", type=argparse.FileType("a"), help="is written to this file, too")
    parser.add_argument("--key", help="refuse requests without this key, as Bearer or x-api-key")
    try:
        asyncio.run(serve(parser.parse_args()))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
