#!/usr/bin/env python3
"""clients/python, against a real server and against one that does what a test says.

    python_test.py SOURCES HEARTH SEED_COUNTER_LIBRARY SHIPPED_COUNTER SHIPPED_PAYMENTS
"""
import datetime
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import unittest

SOURCES, HEARTH, LIBRARY, COUNTER, PAYMENTS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:6])
sys.path.insert(0, str(SOURCES / "clients/python"))
import hearth_client  # noqa: E402
from hearth_client import Hearth, HearthError  # noqa: E402
from server import KEY, hearth  # noqa: E402

# As the page prints it on which the surface of `client.objects` was first told, imports apart.
PRINTED_FIRST = '''
client = AgentKernel()

# Call a method (auto-creates + auto-wakes)
result = client.objects.call("counter", "user-123", method="increment", args={"amount": 5})
print(result)  # {"value": 42}

# Get object status
info = client.objects.get("counter", "user-123")
print(info.status)       # "Active" | "Hibernating"
print(info.storage)      # {"count": 42, ...}

# List objects
items = client.objects.list(class_name="counter", status="Active")

# Delete object + storage
client.objects.delete("counter", "user-123")

# Set an alarm
client.objects.set_alarm(
    "counter", "user-123",
    method="reset",
    fire_at="2026-02-16T00:00:00Z",
)
'''


class AsPrinted(unittest.TestCase):
    """What documents print about objects, with the libraries that ship."""

    def test_the_python_of_its_readme(self):
        readme = (SOURCES / "clients/python/README.md").read_text()
        [snippet] = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
        expected = re.findall(r"print\(.*\)  # (.+)$", snippet, re.MULTILINE)
        self.assertEqual(len(expected), 3)
        out = []
        with hearth(HEARTH, COUNTER) as url:
            os.environ["HEARTH_URL"], os.environ["HEARTH_TOKEN"] = url, KEY
            exec(compile(snippet, "printed", "exec"), {"print": lambda *what: out.append(" ".join(map(str, what)))})
        listed = [line for line in out if line not in expected]
        self.assertEqual([line for line in out if line in expected], expected)
        self.assertRegex(listed[0], r"^ann 20\d\d-")

    def answer_to(self, url, command):
        """Of a printed command, as JSON."""
        command = command.replace("http://127.0.0.1:8787", url)
        return json.loads(subprocess.run(["bash", "-ec", command], check=True, timeout=30, text=True, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL).stdout)

    def test_the_commands_of_the_reference(self):
        """Calls of objects, and the answers that are printed below them."""
        reference = (SOURCES / "config/README.md").read_text()
        [base] = re.findall(r"^ {4}objects=(\S+)$", reference, re.MULTILINE)
        commands = re.findall(r"^ {4}(curl -X POST \$objects/\S+/call.*)\n(?: {4}# (\{.*\})$)?", reference, re.MULTILINE)
        self.assertEqual(len([answer for _, answer in commands if answer]), 4)
        others = [(COUNTER.parent / f"{name}.so", f"class: {name}\nobjects: true\n") for name in ("rate-limiter", "session-cache")]
        with hearth(HEARTH, COUNTER, others, keys="") as url:
            place = f"objects={url}{base.removeprefix('http://localhost:8787')}; "
            for command, answer in commands:
                given = self.answer_to(url, place + command)
                self.assertEqual(given, json.loads(answer) if answer else {**given, "success": True})

    def test_the_commands_of_the_first_page(self):
        readme = (SOURCES / "README.md").read_text()
        lines = re.findall(r"^ {4}(curl -X POST \S+/objects/(\w+)/.*)$", readme, re.MULTILINE)
        printed = {name: line for line, name in lines}
        [payments] = re.findall(r"^```yaml\n(# classes/payments.yaml.*?)^```$", readme, re.MULTILINE | re.DOTALL)
        provider = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
        threading.Thread(target=provider.serve_forever, daemon=True).start()
        self.addCleanup(provider.server_close)
        self.addCleanup(provider.shutdown)
        payments = payments.replace("http://127.0.0.1:9099", f"http://127.0.0.1:{provider.server_port}")
        with hearth(HEARTH, COUNTER, [(PAYMENTS, payments)], keys="") as url:
            self.assertEqual(self.answer_to(url, printed["counter"])["result"], 5)
            self.assertEqual(self.answer_to(url, printed["payments"])["result"]["status"], "charging")
            paid = Hearth(url).objects
            for _ in range(300):  # until the provider's answer is there
                payment = paid.call("payments", "shop", "payment", ["order-7"])
                if payment["status"] != "charging":
                    break
                time.sleep(0.1)
        self.assertEqual((payment["status"], payment["receipt"]), ("paid", "receipt of order-7"))


class Provider(http.server.BaseHTTPRequestHandler):
    """Of payments."""

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["order"]
        body = json.dumps({"receipt": f"receipt of {order}"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class WithAServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.url = cls.enterClassContext(hearth(HEARTH, LIBRARY))
        os.environ["HEARTH_URL"], os.environ["HEARTH_TOKEN"] = cls.url, KEY

    def printed(self, text, names):
        out = []
        exec(compile(text, "printed", "exec"), {**names, "print": lambda *what: out.append(what)})
        return out

    def test_what_was_printed_first_runs_imports_apart(self):
        Hearth().objects.call("counter", "user-123", "increment", {"amount": 37})
        out = self.printed(PRINTED_FIRST, {"AgentKernel": Hearth})
        self.assertEqual(out, [({"value": 42},), ("Active",), ({"count": 42},)])

    def test_ids_are_any_text_and_lists_have_pages(self):
        objects = Hearth().objects
        ids = ["a/b", "a b", "..%2F", "ü"]
        for each in ids:
            objects.call("counter", each, "increment", {"amount": 1})
        found = [each.object_id for each in objects.list("counter") if each.object_id in ids]
        self.assertEqual(sorted(found), sorted(ids))
        self.assertIsNone(objects.list("counter")[0].storage)
        self.assertEqual(objects.get("counter", "a/b").storage, {"count": 1})
        for each in ids:
            objects.delete("counter", each)
        with self.assertRaises(HearthError) as refused:
            objects.get("counter", "a/b")
        self.assertEqual((refused.exception.status, refused.exception.code), (404, "object_not_found"))

    def test_both_spellings_set_an_alarm(self):
        objects = Hearth().objects
        when = datetime.datetime(2999, 2, 16, tzinfo=datetime.timezone.utc)
        first = objects.set_alarm("counter", "alarmed", method="reset", fire_at=when)
        second = objects.setAlarm("counter", "alarmed", method="reset", fireAt="2999-02-16T00:00:00Z")
        self.assertEqual((first["replaced"], second["replaced"]), (False, True))
        self.assertEqual(first["fire_at"], second["fire_at"])
        with self.assertRaises(ValueError):
            objects.set_alarm("counter", "alarmed", "reset", fire_at=datetime.datetime(2999, 1, 1))

    def test_a_wrong_key_and_a_failing_method_are_told(self):
        for client, method, status, code in ((Hearth(token="wrong-" + KEY), "get", 401, "unauthorized"),
                                             (Hearth(), "fails", 400, "invalid_argument")):
            with self.assertRaises(HearthError) as refused:
                client.objects.call("counter", "a", method)
            self.assertEqual((refused.exception.status, refused.exception.code), (status, code))

    def test_one_call_for_the_same_key(self):
        objects = Hearth().objects
        for _ in range(2):
            value = objects.call("counter", "once", "increment", {"amount": 1}, idempotency_key="k")
            self.assertEqual(value, {"value": 1})


class Scripted(http.server.BaseHTTPRequestHandler):
    """Answers with what the server's `script` says, one entry a request: (status, body, headers),
    or None to cut the line."""

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        step = self.server.script.pop(0)
        self.close_connection = True
        if step is None:
            return
        status, body, headers = step
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    do_GET = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


def refusal(status, code, retryable, **headers):
    return status, {"success": False, "error": "x", "code": code, "retryable": retryable}, headers


BUSY = refusal(503, "sandbox_unavailable", True)
RUNNING = refusal(409, "call_in_progress", False)
DONE = (200, {"success": True, "data": 7, "result": 7}, {})


class WithAScript(unittest.TestCase):
    def setUp(self):
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Scripted)
        self.server.seen, self.server.script = [], []
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.waits = []
        sleep, hearth_client.time.sleep = hearth_client.time.sleep, self.waits.append
        self.addCleanup(setattr, hearth_client.time, "sleep", sleep)

    def client(self, script, **options):
        self.server.seen.clear()
        self.waits.clear()
        self.server.script = list(script)
        return Hearth(f"http://127.0.0.1:{self.server.server_port}/", "t", **options).objects

    def test_a_call_is_sent_again_with_its_key(self):
        proxy = (502, b"<html>", {})
        for script in ([None, DONE], [BUSY, DONE], [RUNNING, RUNNING, DONE], [proxy, BUSY, None, DONE]):
            self.assertEqual(self.client(script).call("counter", "a", "increment"), 7, script)
            self.assertEqual(len(self.server.seen), len(script))
            keys = {headers["Idempotency-Key"] for _, _, headers, _ in self.server.seen}
            self.assertEqual(len(keys), 1)
            self.assertEqual({headers["Authorization"] for _, _, headers, _ in self.server.seen}, {"Bearer t"})
            self.assertEqual(len({body for *_, body in self.server.seen}), 1)
        self.assertEqual(self.server.seen[0][1], "/objects/counter/a/call")

    def test_what_will_not_pass_is_told_at_once(self):
        for status, code in ((404, "invalid_method"), (422, "idempotency_key_reused"), (504, "call_timeout"),
                             (409, "call_interrupted"), (400, "invalid_argument"), (429, "limit_exceeded")):
            with self.assertRaises(HearthError) as refused:
                self.client([refusal(status, code, False)]).call("counter", "a", "increment")
            self.assertEqual((refused.exception.status, refused.exception.code), (status, code))

    def test_it_gives_up_and_waits_longer_each_time(self):
        with self.assertRaises(HearthError) as refused:
            self.client([BUSY] * 3, retries=2).call("counter", "a", "increment")
        self.assertEqual(refused.exception.code, "sandbox_unavailable")
        self.assertTrue(0.05 <= self.waits[0] <= 0.1 <= self.waits[1] <= 0.2, self.waits)
        with self.assertRaises(ConnectionError):
            self.client([None], retries=0).call("counter", "a", "increment")

    def test_it_waits_as_long_as_the_server_says(self):
        patient = {"Retry-After": "7"}
        busy = (503, {"error": "x", "code": "sandbox_unavailable", "retryable": True}, patient)
        self.client([busy, DONE]).call("counter", "a", "increment")
        self.assertEqual(self.waits, [7.0])

    def test_removals_and_alarms_are_sent_again_only_if_nothing_was_done(self):
        remove = lambda objects: objects.delete("counter", "a")
        alarm = lambda objects: objects.set_alarm("counter", "a", "reset", delay_seconds=0)
        for send in (remove, alarm):
            send(self.client([BUSY, refusal(429, "too_many", True), DONE]))
            self.assertEqual(len(self.server.seen), 3)
            with self.assertRaises(ConnectionError):
                send(self.client([None, DONE]))
            self.assertEqual(len(self.server.seen), 1)
            for script in ([(502, b"<html>", {}), DONE], [refusal(404, "object_not_found", False), DONE]):
                with self.assertRaises(HearthError):
                    send(self.client(script))
                self.assertEqual(len(self.server.seen), 1)

    def test_a_redirect_is_refused_and_takes_no_key_along(self):
        for status in (301, 302, 303, 307, 308):
            away = (status, b"", {"Location": f"http://127.0.0.1:{self.server.server_port}/elsewhere"})
            with self.assertRaises(HearthError) as refused:
                self.client([away, DONE]).get("counter", "a")
            self.assertEqual((refused.exception.status, refused.exception.code), (status, "http_error"))
            self.assertEqual(len(self.server.seen), 1)

    def test_pages_are_followed_to_the_end(self):
        def info(name, storage=None, after=None):
            return {"id": "u", "class": "counter", "object_id": name, "status": "Active", "sandbox_name": "",
                    "created_at": "", "last_active": "", "storage": storage, "storage_next": after}
        pages = [(200, {"data": [info("a")], "next": "c&d"}, {}), (200, {"data": [], "next": "e"}, {}),
                 (200, {"data": [info("b")], "next": None}, {})]
        self.assertEqual([each.object_id for each in self.client(pages).list()], ["a", "b"])
        self.assertIn("cursor=c%26d", self.server.seen[1][1])
        parts = [(200, {"data": info("a", {"x": 1}, "x y")}, {}), (200, {"data": info("a", {"y": 2})}, {})]
        self.assertEqual(self.client(parts).get("counter", "a").storage, {"x": 1, "y": 2})
        self.assertIn("after=x+y", self.server.seen[1][1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
