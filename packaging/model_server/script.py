"""What a request asks for, and which pieces of its script answer it."""
import json
import re

WAITS = {"stall", "hold", "pings"}
FAULTS = WAITS | {"status", "error", "cut"}
KINDS = FAULTS | {"text", "words", "reasoning", "call", "usage", "finish", "rate", "resume"}
GO_ON = "The answer above was cut off."  # how a request begins to ask for the rest of an answer
ERRORS = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class Refused(Exception):
    """The answer is this status and error."""

    def __init__(self, status, message, headers=(), **error):
        super().__init__(message)
        self.status, self.headers = status, dict(headers)
        self.error = {"type": ERRORS.get(status, "api_error"), "message": message} | error


class Asked:
    """What a request asks for: the text of its last user, the step, and what is there already."""

    def __init__(self, turns, calls, results):
        if missing := sorted(set(calls) - set(results)):
            raise Refused(400, f"No tool output found for function call {missing[0]}.")
        merged = []
        for role, text in turns:
            if merged and merged[-1][0] == role != "user":
                merged[-1][1] += text
            else:
                merged.append([role, text])
        if merged[-1][0] == "user" and merged[-1][1].startswith(GO_ON):
            merged.pop()
        users = [place for place, (role, _) in enumerate(merged) if role == "user"]
        if not users:
            raise Refused(400, "there is no message of a user")
        self.partial = merged[-1][1] if merged[-1][0] == "assistant" else ""
        self.user = merged[users[-1]][1]
        self.step = sum(role == "tool" for role, _ in merged[users[-1]:])
        self.tokens = sum(len(text.split()) for _, text in turns)

    def pieces(self, options):
        found = re.search(r"```(?:json)?\s*\n(.*?)```", self.user, re.DOTALL)
        try:
            steps = json.loads(found.group(1)) if found else options.script
        except ValueError as error:
            raise Refused(400, f"the script in the message is no JSON: {error}") from None
        steps = [steps] if steps and isinstance(steps[0], dict) else steps
        return steps[self.step] if self.step < len(steps) else [{"words": options.words}]

    def atoms(self, options):
        """The pieces behind the partial answer, texts word by word: [kind, value, piece, key]."""
        atoms, words = [], 0
        for place, piece in enumerate(self.pieces(options)):
            kind, key = next(iter(piece)), (self.user, self.step, place)
            value = piece[kind]
            if kind not in KINDS:
                raise Refused(400, f"there are no pieces of the kind {kind}")
            if kind == "words":
                kind, value = "text", " " * bool(words) + " ".join(f"word{words + i + 1}" for i in range(piece["words"]))
                words += piece["words"]
            is_text = kind in ("text", "reasoning")
            atoms += [[kind, word, piece, key] for word in (re.findall(r"\s*\S+(?:\s+$)?", value) if is_text else [value])]
        missing = self.partial
        while missing and atoms:
            kind, text = atoms.pop(0)[:2]
            if kind == "text" and text.startswith(missing) and text != missing:
                return [["text", text[len(missing):], {}, None], *atoms]
            if kind == "text" and not missing.startswith(text):
                break
            missing = missing[len(text):] if kind == "text" else missing
        if missing:
            raise Refused(400, f"what shall go on is not the beginning of this answer, from: {missing[:60]}")
        return atoms
