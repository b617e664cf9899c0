"""The three dialects: what requests say, and the events of answers, as (name or None, data)."""
from script import Refused


def plain(content):
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content or [])


# Each gives [role, text] of the messages, the ids of the calls, and those of results. The results
# of one step are one "tool" or several in a row.

def of_responses(body):
    items = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    roles = {"function_call": "assistant", "function_call_output": "tool"}
    turns = [[item.get("role") or roles[item["type"]], plain(item.get("content"))] for item in items
             if "role" in item or item["type"] in roles]
    return turns, *([item["call_id"] for item in items if item.get("type") == kind] for kind in roles)


def of_chat(body):
    messages = body["messages"]
    return ([[message["role"], plain(message.get("content"))] for message in messages],
            [call["id"] for message in messages for call in message.get("tool_calls") or []],
            [message["tool_call_id"] for message in messages if message["role"] == "tool"])


def of_messages(body):
    if not body.get("max_tokens"):
        raise Refused(400, "max_tokens: Field required")
    turns, calls, results = [], [], []
    for message in body["messages"]:
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if not all(isinstance(block.get("input", {}), dict) for block in blocks):
            raise Refused(400, "tool_use.input: Input should be a valid dictionary")
        calls += [block["id"] for block in blocks if block["type"] == "tool_use"]
        given = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        results += given
        turns += [["tool", ""]] * bool(given)
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        # Several messages of the user in a row come as one.
        turns += [["user", text] for text in texts] if message["role"] == "user" else [["assistant", "".join(texts)]]
        if message["role"] == "user" and set(calls) - set(results):
            raise Refused(400, "tool_use ids were found without tool_result blocks immediately after")
    if turns[-1][0] == "assistant":
        raise Refused(400, "This model does not support assistant message prefill.")
    return turns, calls, results


class Dialect:
    """Puts the parts of an answer into events. A part: all neighbours of one kind, or a call."""

    def __init__(self, name, body, tokens):
        self.name, self.body, self.tokens = name, body, tokens
        self.kind, self.place, self.text, self.spoken, self.calls = None, -1, "", 0, 0
        self.status = "in_progress"

    def add(self, kind, text, call=None):
        events = []
        if kind != self.kind or call:
            events = self.close()
            self.kind, self.text, self.place, self.calls = kind, "", self.place + 1, self.calls + bool(call)
            events += self.open(call)
        self.spoken += 1
        for piece in (text[: len(text) // 2], text[len(text) // 2:]) if call else (text,):
            self.text += piece
            events += self.delta(piece)
        return events

    def close(self):
        events = self.shut() if self.kind else []
        self.kind = None
        return events

    def end(self, finish, usage):
        self.status = "incomplete" if finish else "completed"
        return self.close() + self.last(finish, usage.get("input", self.tokens), usage.get("output", self.spoken))


class Responses(Dialect):
    read, ping = staticmethod(of_responses), b": ping\n\n"
    SHAPES = {"text": ("message", "output_text", "content_part", "content", "content_index", "output_text"),
              "reasoning": ("reasoning", "reasoning_summary_text", "reasoning_summary_part", "summary", "summary_index", "summary_text"),
              "call": ("function_call", "function_call_arguments", "", "", "", "")}

    def __init__(self, *what):
        super().__init__(*what)
        self.number, self.output, self.more = -1, [], {}

    def event(self, kind, **data):
        self.number += 1
        return kind, {"type": kind, "sequence_number": self.number} | data

    def whole(self):
        return {"id": self.name, "object": "response", "status": self.status, "model": self.body.get("model"),
                "background": bool(self.body.get("background")), "output": self.output} | self.more

    def here(self, kind, **data):
        index = {self.shape[4]: 0} if self.shape[4] else {}
        return self.event("response." + kind, item_id=self.output[-1]["id"], output_index=self.place, **index, **data)

    def item(self, kind):
        return self.event("response.output_item." + kind, output_index=self.place, item=dict(self.output[-1]))

    def begin(self):
        return [self.event("response." + kind, response=self.whole()) for kind in ("created", "in_progress")]

    def open(self, call):
        self.shape = kind, _, part, parts, _, part_kind = self.SHAPES[self.kind]
        item = {"id": f"{kind}_{self.name}_{self.place}", "type": kind, "status": "in_progress"}
        item |= {"call_id": call[0], "name": call[1], "arguments": ""} if call else {parts: []}
        self.output.append(item | ({"role": "assistant"} if self.kind == "text" else {}))
        events = [self.item("added")]
        if not call:
            self.output[-1][parts] = [{"type": part_kind, "text": ""}]
            events.append(self.here(part + ".added", part={"type": part_kind, "text": ""}))
        return events

    def delta(self, text):
        if self.kind == "call":
            self.output[-1]["arguments"] = self.text
        else:
            self.output[-1][self.shape[3]][0]["text"] = self.text
        return [self.here(self.shape[1] + ".delta", delta=text)]

    def shut(self):
        item = self.output[-1]
        item["status"] = "completed"
        if self.kind == "reasoning" and "reasoning.encrypted_content" in (self.body.get("include") or []):
            item["encrypted_content"] = f"encrypted {item['id']}"
        events = [self.here(self.shape[1] + ".done", **{"arguments" if self.kind == "call" else "text": self.text})]
        if self.kind != "call":
            events.append(self.here(self.shape[2] + ".done", part=item[self.shape[3]][0]))
        return [*events, self.item("done")]

    def last(self, finish, read, made):
        self.more = {"usage": {"input_tokens": read, "output_tokens": made, "total_tokens": read + made}}
        if finish:
            self.more["incomplete_details"] = {"reason": "max_output_tokens" if finish == "length" else finish}
        return [self.event("response." + self.status, response=self.whole())]

    def fail(self, error):
        self.status, self.more = "failed", {"error": {"code": error["type"], "message": error["message"]}}
        return [self.event("error", code=error["type"], message=error["message"], param=None),
                self.event("response.failed", response=self.whole())]


class Chat(Dialect):
    read, ping = staticmethod(of_chat), b": ping\n\n"

    def chunk(self, delta, finish=None, **more):
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        return None, {"id": self.name, "object": "chat.completion.chunk", "model": self.body.get("model"), "choices": choices} | more

    def called(self, function, **more):
        return [self.chunk({"tool_calls": [{"index": self.calls - 1, "function": function} | more]})]

    def begin(self):
        return [self.chunk({"role": "assistant", "content": ""})]

    def open(self, call):
        return self.called({"name": call[1], "arguments": ""}, id=call[0], type="function") if call else []

    def delta(self, text):
        if self.kind == "call":
            return self.called({"arguments": text})
        return [self.chunk({"content" if self.kind == "text" else "reasoning_content": text})]

    def shut(self):
        return []

    def last(self, finish, read, made):
        events = [self.chunk({}, finish or ("tool_calls" if self.calls else "stop"))]
        if (self.body.get("stream_options") or {}).get("include_usage"):
            usage = {"prompt_tokens": read, "completion_tokens": made, "total_tokens": read + made}
            events.append(self.chunk(None, usage=usage))
        return [*events, (None, "[DONE]")]

    def fail(self, error):
        return [(None, {"error": error}), (None, "[DONE]")]


class Messages(Dialect):
    read, ping = staticmethod(of_messages), b'event: ping\ndata: {"type": "ping"}\n\n'
    NAMES = {"text": ("text", "text_delta"), "reasoning": ("thinking", "thinking_delta"), "call": ("partial_json", "input_json_delta")}

    def event(self, kind, **data):
        return kind, {"type": kind} | data

    def begin(self):
        return [self.event("message_start", message={
            "id": self.name, "type": "message", "role": "assistant", "content": [], "model": self.body.get("model"),
            "usage": {"input_tokens": self.tokens, "output_tokens": 0}})]

    def open(self, call):
        name = self.NAMES[self.kind][0]
        block = {"type": "tool_use", "id": call[0], "name": call[1], "input": {}} if call else {"type": name, name: ""}
        return [self.event("content_block_start", index=self.place, content_block=block)]

    def delta(self, text):
        name, kind = self.NAMES[self.kind]
        return [self.event("content_block_delta", index=self.place, delta={"type": kind, name: text})]

    def shut(self):
        signature = {"type": "signature_delta", "signature": f"signature {self.name} {self.place}"}
        signed = [self.event("content_block_delta", index=self.place, delta=signature)] if self.kind == "reasoning" else []
        return [*signed, self.event("content_block_stop", index=self.place)]

    def last(self, finish, read, made):
        reason = {"length": "max_tokens", None: "tool_use" if self.calls else "end_turn"}.get(finish, finish)
        return [self.event("message_delta", delta={"stop_reason": reason, "stop_sequence": None},
                           usage={"input_tokens": read, "output_tokens": made}), self.event("message_stop")]

    def fail(self, error):
        return [("error", {"type": "error", "error": error})]
