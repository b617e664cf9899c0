#!/usr/bin/env python3
"""packaging/model_server speaks its three dialects.

    model_server_test.py SOURCES
"""
import http.client
import json
import pathlib
import re
import subprocess
import sys
import unittest

SOURCES = pathlib.Path(sys.argv[1]).resolve()
PATIENCE_SECONDS = 20
KEY = "a-key-of-a-provider"
CALL = {"call": "add", "input": {"a": 1}, "id": "c1"}


class Model:
    """The server, and a client of it."""

    def __init__(self, *options):
        self.process = subprocess.Popen(
            [sys.executable, SOURCES / "packaging/model_server", "--rate", "0", "--key", KEY, *options],
            stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)
        self.process.stdout.close()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        connection.request(method, path, json.dumps(body) if body else None, {"Authorization": f"Bearer {KEY}"})
        return connection, connection.getresponse()

    def json(self, method, path, body=None):
        connection, response = self.ask(method, path, body)
        try:
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def journal(self):
        connection, response = self.ask("GET", "/journal")
        lines = response.read().decode().splitlines()
        connection.close()
        return [json.loads(line) for line in lines]

    def until(self, event, path):
        """Waits for this event of the last request for this path."""
        for _ in range(2_000):
            lines = self.journal()
            number = [line["request"] for line in lines if line.get("path") == path][-1]
            if found := [line for line in lines if line["request"] == number and line["event"] == event]:
                return found[0]
        raise AssertionError(f"no {event} of {path}: {lines[-5:]}")


def read_event(response):
    """(name or None, data); nothing at the end."""
    name = None
    while line := response.readline().decode().rstrip("\n"):
        if line.startswith("event: "):
            name = line[7:]
        if line.startswith("data: "):
            text = line[6:]
            response.readline()
            return name, (text if text == "[DONE]" else json.loads(text))
    return None


def read_events(response):
    events = []
    while event := read_event(response):
        events.append(event)
    return events


# ---- the same request and the same answer, in each dialect

class Responses:
    partial = "word1 word2 wor"
    path = "/v1/responses"

    def body(self, script, then="", **more):
        user = {"role": "user", "content": [{"type": "input_text", "text": script}]}
        call = [{"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"}]
        more_items = {"": [], "open call": call,
                      "results": [*call, {"type": "function_call_output", "call_id": "c1", "output": "2"}],
                      "go on": [{"role": "assistant", "content": [{"type": "output_text", "text": self.partial}]},
                                {"role": "user", "content": [{"type": "input_text", "text": GO_ON}]}]}[then]
        return {"model": "m", "stream": True, "input": [user, *more_items]} | more

    def shape(self, events):
        return [data["type"].removeprefix("response.") for _, data in events]

    def text(self, events):
        return "".join(data["delta"] for _, data in events if data["type"] == "response.output_text.delta")

    whole = ["created", "in_progress", "output_item.added", "reasoning_summary_part.added",
             "reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done",
             "output_item.done", "output_item.added", "content_part.added", "output_text.delta",
             "output_text.delta", "output_text.done", "content_part.done", "output_item.done",
             "output_item.added", "function_call_arguments.delta", "function_call_arguments.delta",
             "function_call_arguments.done", "output_item.done", "completed"]
    failed = ["created", "in_progress", "error", "failed"]

    def usage(self, events):
        usage = events[-1][1]["response"]["usage"]
        return usage["input_tokens"], usage["output_tokens"]


class Chat:
    partial = Responses.partial
    path = "/v1/chat/completions"

    def body(self, script, then="", **more):
        call = {"role": "assistant", "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]}
        more_messages = {"": [], "open call": [call],
                         "results": [call, {"role": "tool", "tool_call_id": "c1", "content": "2"}],
                         "go on": [{"role": "assistant", "content": self.partial}, {"role": "user", "content": GO_ON}],
                         "prefill": [{"role": "assistant", "content": self.partial}]}[then]
        return {"model": "m", "stream": True, "stream_options": {"include_usage": True},
                "messages": [{"role": "user", "content": script}, *more_messages]} | more

    def shape(self, events):
        def one(data):
            if data == "[DONE]" or not data.get("choices"):
                return data if data == "[DONE]" else next(name for name in ("error", "usage") if name in data)
            return data["choices"][0]["finish_reason"] or " ".join(data["choices"][0]["delta"])

        return [one(data) for _, data in events]

    def text(self, events):
        choices = [data["choices"][0] for _, data in events if data != "[DONE]" and data.get("choices")]
        return "".join(choice["delta"].get("content", "") for choice in choices)

    whole = ["role content", "reasoning_content", "content", "content", "tool_calls", "tool_calls", "tool_calls",
             "tool_calls", "usage", "[DONE]"]
    failed = ["role content", "error", "[DONE]"]

    def usage(self, events):
        usage = events[-2][1]["usage"]
        return usage["prompt_tokens"], usage["completion_tokens"]


class Messages:
    partial = Responses.partial
    path = "/v1/messages"

    def body(self, script, then="", **more):
        call = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {}}]}
        partial = {"role": "assistant", "content": [{"type": "text", "text": self.partial}]}
        more_messages = {"": [], "open call": [call, {"role": "user", "content": "and now?"}],
                         "results": [call, {"role": "user", "content": [
                             {"type": "tool_result", "tool_use_id": "c1", "content": "2"}]}],
                         "go on": [partial, {"role": "user", "content": [{"type": "text", "text": GO_ON}]}],
                         "prefill": [partial]}[then]
        return {"model": "m", "stream": True, "max_tokens": 9,
                "messages": [{"role": "user", "content": script}, *more_messages]} | more

    def shape(self, events):
        return [data.get("delta", {}).get("type") or data["type"] for _, data in events]

    def text(self, events):
        return "".join(data["delta"].get("text", "") for _, data in events if data["type"] == "content_block_delta")

    whole = ["message_start", "content_block_start", "thinking_delta", "signature_delta", "content_block_stop",
             "content_block_start", "text_delta", "text_delta", "content_block_stop",
             "content_block_start", "input_json_delta", "input_json_delta", "content_block_stop",
             "message_delta", "message_stop"]
    failed = ["message_start", "error"]

    def usage(self, events):
        usage = events[-2][1]["usage"]
        return usage["input_tokens"], usage["output_tokens"]


[GO_ON] = ["".join(re.findall(r'"(.*?)"', text)) for text in
           re.findall(r"kGoOn =(.*?);", (SOURCES / "plugin-api/chat/include/hearth/chat/prompt.hpp").read_text(), re.DOTALL)]


def script(name, *steps):
    return f"{name}\n```json\n{json.dumps(steps)}\n```"


class EachDialect:
    """Of a test case with `dialect`."""

    @classmethod
    def setUpClass(cls):
        cls.model = Model("--words", "5")

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def events(self, dialect, *what, **more):
        connection, response = self.model.ask("POST", dialect.path, dialect.body(*what, **more))
        self.assertEqual(response.status, 200, response.read() if response.status != 200 else "")
        events = read_events(response)
        connection.close()
        self.assertEqual([name for name, data in events if data != "[DONE]" and data.get("type") not in (None, name)], [])
        return events

    def refusal(self, dialect, *what):
        return self.model.json("POST", dialect.path, dialect.body(*what))

    def test_a_message_without_a_script_is_answered_with_words(self):
        dialect = self.dialect()
        self.assertEqual(dialect.text(self.events(dialect, "hello")), "word1 word2 word3 word4 word5")

    def test_the_steps_of_a_script(self):
        said = script("steps", [{"reasoning": "Hm"}, {"words": 2}, CALL, {"usage": {"input": 7, "output": 3}}], [{"text": "Done"}])
        dialect = self.dialect()
        events = self.events(dialect, said)
        self.assertEqual(dialect.shape(events), dialect.whole)
        self.assertEqual(dialect.usage(events), (7, 3))
        self.assertEqual(dialect.text(self.events(dialect, said, "results")), "Done")

    def test_a_cut_answer_goes_on(self):
        dialect = self.dialect()
        self.assertEqual(dialect.text(self.events(dialect, "hello", "go on")), "d3 word4 word5")
        dialect.partial = "another text"
        self.assertEqual(self.refusal(dialect, "hello", "go on")[0], 400)

    def test_what_providers_refuse(self):
        dialect = self.dialect()
        self.assertEqual(self.refusal(dialect, "hello", "open call")[0], 400)
        self.assertEqual(self.refusal(dialect, script("unknown", [{"txet": "Hello"}]))[0], 400)
        self.assertEqual(self.refusal(dialect, "no JSON\n```json\n[\n```")[0], 400)
        connection = http.client.HTTPConnection("127.0.0.1", self.model.port)
        connection.request("POST", dialect.path, json.dumps(dialect.body("hello")), {"x-api-key": "wrong"})
        self.assertEqual(connection.getresponse().status, 401)
        connection.close()

    def test_faults_happen_once(self):
        dialect = self.dialect()
        said = script(dialect.path, [
            {"status": 429, "headers": {"Retry-After": "7"}, "error": {"type": "slow"}}, {"status": 529, "times": 2},
            {"words": 1}, {"cut": True}, {"words": 1}, {"cut": "clean"}, {"words": 1}, {"error": {"type": "overloaded_error"}}])
        connection, response = self.model.ask("POST", dialect.path, dialect.body(said))
        self.assertEqual((response.status, response.headers["Retry-After"]), (429, "7"))
        self.assertEqual(json.loads(response.read())["error"]["type"], "slow")
        connection.close()
        self.assertEqual([self.refusal(dialect, said)[0] for _ in range(2)], [529, 529])
        connection, response = self.model.ask("POST", dialect.path, dialect.body(said))
        with self.assertRaises((http.client.IncompleteRead, ConnectionResetError)):
            response.read()
        connection.close()
        dialect.partial = "word1"
        clean = self.events(dialect, said, "go on")
        self.assertEqual(dialect.text(clean), " word2")
        self.assertNotIn(dialect.whole[-1], dialect.shape(clean))
        dialect.partial = "word1 word2 word3"
        self.assertEqual(dialect.shape(self.events(dialect, said, "go on")), dialect.failed)

    def test_it_waits_until_it_is_told_and_a_client_may_go(self):
        dialect = self.dialect()
        name = dialect.path.replace("/", "-")
        said = script(name, [{"words": 1}, {"hold": name, "times": 2}, {"pings": 0.1}, {"words": 1}])
        connection, response = self.model.ask("POST", dialect.path, dialect.body(said))
        while "word1" not in json.dumps(read_event(response)):
            pass
        connection.sock.close()
        response.close()
        gone = self.model.until("disconnect", dialect.path)
        self.assertIn(gone["events"], (2, 3, 5))
        connection, response = self.model.ask("POST", dialect.path, dialect.body(said))
        self.assertEqual(self.model.json("POST", "/release/" + name), (200, {}))
        text = response.read()
        self.assertIn(b"ping", text)
        self.assertIn(b" word2", text)
        connection.close()

    def test_the_journal_has_no_key(self):
        dialect = self.dialect()
        self.events(dialect, "for the journal")
        lines = self.model.journal()
        self.assertNotIn(KEY, json.dumps(lines))
        asked = [line for line in lines if "for the journal" in json.dumps(line.get("body"))]
        events = [line["event"] for line in lines if line["request"] == asked[0]["request"]]
        self.assertEqual((len(asked), events), (1, ["request", "first", "end"]))


class OfResponses(EachDialect, unittest.TestCase):
    dialect = Responses


class OfChat(EachDialect, unittest.TestCase):
    dialect = Chat

    def test_an_answer_at_the_end_goes_on(self):
        self.assertEqual(Chat().text(self.events(Chat(), "hello", "prefill")), "d3 word4 word5")


class OfMessages(EachDialect, unittest.TestCase):
    dialect = Messages

    def test_an_answer_at_the_end_is_refused(self):
        self.assertEqual(self.refusal(Messages(), "hello", "prefill")[0], 400)


class Background(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Model()

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def begin(self, name, *pieces):
        """Asks, reads the first word, and is gone: the id, and the number of the last event."""
        said = script(name, [{"words": 1}, {"hold": name}, {"words": 2}, *pieces])
        body = Responses().body(said, background=True, store=True)
        connection, response = self.model.ask("POST", Responses.path, body)
        _, created = read_event(response)
        last = created
        while last["type"] != "response.output_text.delta":
            _, last = read_event(response)
        connection.sock.close()
        response.close()
        self.model.until("disconnect", Responses.path)
        return created["response"]["id"], last["sequence_number"]

    def test_it_goes_on_without_a_connection(self):
        name, last = self.begin("alone")
        status, so_far = self.model.json("GET", f"/v1/responses/{name}")
        self.assertEqual((status, so_far["status"], so_far["output"][0]["content"][0]["text"]), (200, "in_progress", "word1"))
        self.model.json("POST", "/release/alone")
        self.assertEqual(self.model.until("made", Responses.path)["status"], "completed")
        connection, response = self.model.ask("GET", f"/v1/responses/{name}?stream=true&starting_after={last}")
        events = read_events(response)
        connection.close()
        self.assertEqual(Responses().text(events), " word2 word3")
        self.assertEqual([data["sequence_number"] for _, data in events], list(range(last + 1, last + 1 + len(events))))
        self.assertEqual(events[-1][1]["response"], self.model.json("GET", f"/v1/responses/{name}")[1])

    def test_it_can_be_stopped(self):
        name, last = self.begin("stopped")
        connection, response = self.model.ask("GET", f"/v1/responses/{name}?stream=true&starting_after={last}")
        for _ in range(2):
            status, body = self.model.json("POST", f"/v1/responses/{name}/cancel")
            self.assertEqual((status, body["status"]), (200, "cancelled"))
        self.assertEqual(read_events(response), [])
        connection.close()

    def test_it_may_refuse_the_rest(self):
        refused, _ = self.begin("refused", {"resume": "refused"})
        self.assertEqual(self.model.json("GET", f"/v1/responses/{refused}?stream=true")[0], 400)
        self.assertEqual(self.model.json("GET", f"/v1/responses/{refused}")[0], 200)
        gone, _ = self.begin("gone", {"resume": "gone"})
        self.assertEqual(self.model.json("GET", f"/v1/responses/{gone}")[0], 404)
        self.assertEqual(self.model.json("GET", "/v1/responses/resp_other")[0], 404)

    def test_many_at_once(self):
        body = Responses().body(script("many", [{"words": 1}, {"hold": "many", "times": 0}, {"words": 1}]))
        asked = [self.model.ask("POST", Responses.path, body) for _ in range(300)]
        for _, response in asked:
            read_event(response)
        self.model.json("POST", "/release/many")
        for connection, response in asked:
            self.assertTrue(response.read().endswith(b"\n\n"))
            connection.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
