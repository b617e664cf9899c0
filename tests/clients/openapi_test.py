#!/usr/bin/env python3
"""Asks a real server for everything in its /openapi.json, and holds each answer against its schema.

    openapi_test.py HEARTH SEED_COUNTER_LIBRARY PAYMENTS_LIBRARY
"""
import contextlib
import http.server
import json
import pathlib
import re
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from server import ADMIN, KEY, PATIENCE_SECONDS, hearth

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}
SAID_ONLY = {"description", "format"}
# Schemas that name every member of their object.
WHOLE = {"Operation"}

# The requests, in this order: method, path, body, status. UUID, ALARM and OPERATION come from
# earlier answers; BACKUPS is a directory.
ASKED = [
    ("GET", "/", None, 200),
    ("GET", "/healthz", None, 200),
    ("GET", "/readyz", None, 200),
    ("GET", "/metrics", None, 200),
    ("GET", "/openapi.json", None, 200),
    ("POST", "/objects", {"class": "counter", "object_id": "a", "storage": {"note": 1}}, 201),
    ("POST", "/objects", {"class": "counter", "object_id": "a"}, 409),
    ("POST", "/objects/counter/a/call", {"method": "increment", "args": {"amount": 5}}, 200),
    ("POST", "/objects/counter/a/call/increment", {"amount": 5}, 200),
    ("POST", "/objects/counter/a/call/nothing", None, 404),
    ("POST", "/objects/nothing/a/call", {"method": "get"}, 404),
    ("GET", "/objects?class=counter&status=active&limit=1", None, 200),
    ("GET", "/objects?limit=0", None, 400),
    ("GET", "/objects/counter/a?limit=1", None, 200),
    ("GET", "/objects/UUID", None, 200),
    ("GET", "/objects/counter/nothing", None, 404),
    ("PATCH", "/objects/UUID", {"storage": {"note": None}}, 200),
    ("PATCH", "/objects/counter/a/storage", {"note": 2}, 200),
    ("POST", "/objects/counter/a/alarms", {"method": "reset", "delay_seconds": 3600}, 201),
    ("POST", "/objects/counter/a/alarms", {"method": "reset"}, 400),
    ("GET", "/objects/counter/a/alarms?limit=1", None, 200),
    ("GET", "/objects/counter/a/alarms?cursor=x", None, 400),
    ("DELETE", "/objects/counter/a/alarms/ALARM", None, 200),
    ("POST", "/objects/counter/a/checkpoint", None, 200),
    ("GET", "/admin/agents?class=counter", None, 200),
    ("GET", "/admin/agents/counter/a", None, 200),
    ("POST", "/admin/agents/counter/a/evict", None, 200),
    ("GET", "/admin/agents/counter/a/why", None, 200),
    ("GET", "/admin/stuck?class=counter&limit=5", None, 200),
    ("GET", "/admin/events?level=loud", None, 400),
    ("GET", "/admin/agents/counter/a/work?limit=5", None, 200),
    ("GET", "/admin/agents/counter/a/work?kind=turn", None, 200),
    ("GET", "/admin/chats?class=counter&limit=5", None, 200),
    ("GET", "/admin/agents/counter/a/work/fiber/nothing", None, 404),
    ("POST", "/admin/agents/counter/a/work/item/nothing/cancel", {"note": "x"}, 404),
    ("POST", "/admin/agents/counter/a/sql", {"sql": "select 1"}, 200),
    ("POST", "/admin/agents/counter/a/sql", {"sql": 1}, 400),
    ("GET", "/admin/backup", None, 200),
    ("DELETE", "/admin/backup", None, 404),
    ("POST", "/admin/backup", {"directory": "BACKUPS", "rate": 16384}, 200),
    ("DELETE", "/admin/backup", None, 200),
    ("POST", "/admin/backup", {"directory": "relative"}, 400),
    ("POST", "/admin/backup", {"directory": "BACKUPS", "rate": 1}, 400),
    ("POST", "/objects/counter/a/hibernate", None, 200),
    ("DELETE", "/objects/UUID", None, 200),
    ("POST", "/objects/counter/b/call/get", None, 200),
    ("DELETE", "/objects/counter/b", None, 200),
    ("POST", "/objects/counter/c/call/get", None, 200),
    ("DELETE", "/admin/agents/counter/c", None, 200),
    ("POST", "/admin/console/link", None, 200),
    ("GET", "/admin/plugins", None, 200),
    ("POST", "/admin/plugins/reload", {"class": "counter"}, 200),
    ("POST", "/admin/plugins/take-back", {"class": "counter"}, 409),
    ("GET", "/admin/generations", None, 200),
    ("GET", "/admin/classes", None, 200),
    ("GET", "/admin/classes/counter/methods", None, 200),
    ("GET", "/admin/quarantine", None, 200),
    ("POST", "/admin/quarantine/release", {"class": "counter"}, 404),
    ("GET", "/admin/audit?last=3", None, 200),
    ("GET", "/admin/operations?limit=5", None, 200),
    ("GET", "/admin/operations/counter/a/nothing", None, 404),
    ("POST", "/admin/operations/counter/a/nothing/resolve", {"outcome": "not_executed"}, 404),
    ("GET", "/admin/operations/payments/shop/OPERATION", None, 200),
    ("POST", "/admin/operations/payments/shop/OPERATION/resolve", {"outcome": "not_executed"}, 200),
    ("POST", "/objects/definitions", {"class": "other", "idle_timeout_seconds": 60}, 201),
    ("POST", "/objects/definitions", {"class": "other"}, 409),
    ("POST", "/objects/definitions", {"class": "other", "image": "node:22"}, 422),
    ("GET", "/objects/definitions", None, 200),
    ("GET", "/objects/definitions/other", None, 200),
    ("PUT", "/objects/definitions/other", {"class": "other"}, 200),
    ("DELETE", "/objects/definitions/other", None, 200),
    ("DELETE", "/objects/definitions/other", None, 404),
    ("GET", "/agents/counter", None, 200),
    ("POST", "/agents/nothing/a", None, 400),
    ("PUT", "/admin/plugins", None, 405),
]
# Paths below /agents that the server answers without an agent.
OF_THE_HOST = {"/agents/counter", "/agents/nothing/a"}
# A success of these cannot be had here: a class in quarantine has crashed the server, a stream of
# events has no end, no version is on trial, and no agent has work that stays
# (tests/process/operate_test.cpp has).
NO_SUCCESS = {
    ("get", "/admin/agents/{class}/{name}/work/{kind}/{id}"),
    ("post", "/admin/agents/{class}/{name}/work/{kind}/{id}/{action}"),
    ("get", "/admin/events"),
    ("post", "/admin/plugins/take-back"),
    ("post", "/admin/quarantine/release"),
}


def mistakes(value, schema, schemas, where="answer", whole=False):
    """What is wrong with a value. Knows the words of the schemas, and stops at others. `whole`: the
    schema names every member."""
    for word, wanted in schema.items():
        if word == "$ref":
            name = wanted.rsplit("/", 1)[1]
            yield from mistakes(value, schemas[name], schemas, where, name in WHOLE)
        elif word == "type":
            kinds = [wanted] if isinstance(wanted, str) else wanted
            fits = any(isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)) for kind in kinds)
            if not fits:
                yield f"{where}: {value!r} is not of type {wanted}"
        elif word == "const" and value != wanted or word == "enum" and value not in wanted:
            yield f"{where}: {value!r} is not {wanted!r}"
        elif word == "required" and isinstance(value, dict):
            yield from (f"{where}: {name} is missing" for name in wanted if name not in value)
        elif word == "properties" and isinstance(value, dict):
            for name, each in wanted.items():
                if name in value:
                    yield from mistakes(value[name], each, schemas, f"{where}.{name}", whole)
            if whole:
                yield from (f"{where}: {name} is not in the document" for name in value if name not in wanted)
        elif word == "items" and isinstance(value, list):
            for each in value:
                yield from mistakes(each, wanted, schemas, f"{where}[]")
        elif word not in SAID_ONLY | {"const", "enum", "required", "properties", "items"}:
            yield f"{where}: this test does not know the word {word}"


def ask(url, method, path, body):
    key = KEY if path.startswith("/agents") else ADMIN
    request = urllib.request.Request(url + path, method=method, headers={"X-Api-Key": key})
    if body is not None:
        request.data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def operation_of(document, method, path):
    path = path.split("?")[0]
    for template, operations in document["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and method.lower() in operations:
            # A literal segment goes before a parameter, as in the server's table.
            if "{" not in template or path not in document["paths"]:
                return template, operations[method.lower()]
    return None, None


class BrokenProvider(http.server.BaseHTTPRequestHandler):
    """Of payments: nobody knows what its answer means."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(500)
        self.send_header("Request-Id", "request-1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def broken_provider():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), BrokenProvider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def leave_an_unknown_operation(url):
    """In the agent payments/shop, with a request."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    text = ""
    while '"unknown"' not in text:
        assert time.monotonic() < deadline, text
        text = ask(url, "POST", "/objects/payments/shop/call/charge", ["1", 500])[1]


def main(program, library, payments):
    found = []
    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(broken_provider())
        class_file = (f"class: payments\nobjects: true\noptions: {{provider: \"{provider}\", keys: ignored}}\n"
                      "egress: {allow: [127.0.0.1]}\n")
        backups = stack.enter_context(tempfile.TemporaryDirectory())
        url = stack.enter_context(hearth(program, library, [(payments, class_file)]))
        leave_an_unknown_operation(url)
        document = json.loads(ask(url, "GET", "/openapi.json", None)[1])
        schemas = document["components"]["schemas"]
        # A server that was built without npm.
        lacks_console = ask(url, "GET", "/console", None)[0] == 404
        known = {}
        succeeded = set()
        for method, path, body, status in ASKED:
            for word, value in known.items():
                path = path.replace(word, value)
            if lacks_console and path == "/admin/console/link":
                status = 404
            if body and body.get("directory") == "BACKUPS":
                body = {**body, "directory": backups}
            got, text = ask(url, method, path, body)
            asked = f"{method} {path}"
            if got != status:
                found.append(f"{asked}: {got} {text}")
                continue
            template, operation = operation_of(document, method, path)
            if operation is None:
                if status != 405:
                    found.append(f"{asked}: it is not in the document")
                continue
            answer = operation["responses"].get(str(status) if status < 400 else "default")
            if answer is None:
                found.append(f"{asked}: the document has no status {status}")
                continue
            if status < 400 or (lacks_console and path == "/admin/console/link"):
                succeeded.add((method.lower(), template))
            if "content" not in answer:
                if path in OF_THE_HOST:
                    found.append(f"{asked}: the document does not say what is answered")
                continue
            data = json.loads(text)
            schema = answer["content"]["application/json"]["schema"]
            found += [f"{asked}: {each}" for each in mistakes(data, schema, schemas)]
            if path == "/objects" and status == 201:
                known["UUID"] = data["data"]["id"]
            if path.endswith("/alarms") and status == 201:
                known["ALARM"] = data["data"]["id"]
            if template == "/admin/operations":
                known["OPERATION"] = data["operations"][0]["id"]
                if not data["operations"][0]["request"]:
                    found.append(f"{asked}: the operation has no request, so that this test does not see one")
        all_operations = {(method, path) for path, methods in document["paths"].items() for method in methods
                          if not path.startswith("/agents/")}
        found += [f"this test does not ask for {each}" for each in sorted(all_operations - succeeded - NO_SUCCESS)]
        wrong = {"x": [1, {"id": 2}]}
        if not list(mistakes(wrong, {"properties": {"x": {"items": {"type": "object", "required": ["id"]}}}}, {})):
            found.append("this test finds no mistakes")
        if not list(mistakes({"x": 1}, {"properties": {}}, {}, whole=True)):
            found.append("this test finds no members that are not in the document")
    if found:
        sys.exit("openapi_test: " + "\n".join(found))


if __name__ == "__main__":
    main(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:4]))
