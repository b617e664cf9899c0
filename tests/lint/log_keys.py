#!/usr/bin/env python3
"""Each field of a log line has a key of its own, which is no part of the line.

A logger renames a second `event` to `event_2` (host/base/log_line.hpp); operators search for names
that say what they mean. Looks at the literal keys of each call that makes a line, in host/.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OF_THE_LINE = {"time", "level", "event"}
# The calls, and lists that begin with their keys. What follows is one bracket.
CALLS = re.compile(
    r"(?:logger\w*(?:\(\))?(?:\.|->)(?:write|record)(?:_limited)?|next_\.write\w*|write_line|"
    r"agent_line)(?=\()|std::vector<LogField> \w+ = (?=\{)")
KEY = re.compile(r'\{\s*"(\w+)",')


def bracket(text, start):
    """The text from the bracket at `start` to its end."""
    depth, at = 0, start
    while at < len(text):
        if text[at] == '"':
            at += 1
            while text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif text[at] in "({":
            depth += 1
        elif text[at] in ")}":
            depth -= 1
            if depth == 0:
                return text[start:at + 1]
        at += 1
    return text[start:]


def mistakes(text):
    """(line number, key) of each key that its line has twice."""
    for call in CALLS.finditer(text):
        seen = set(OF_THE_LINE)
        for key in KEY.findall(bracket(text, call.end())):
            if key in seen:
                yield text.count("\n", 0, call.start()) + 1, key
            seen.add(key)


def main():
    assert list(mistakes('logger_.write(kInfo, "x", {{"a", 1}, {"event", 2}, {"a", f("}")}});'))
    found = calls = 0
    for file in sorted((ROOT / "host").rglob("*.cpp")):
        text = file.read_text()
        calls += len(CALLS.findall(text))
        for line, key in mistakes(text):
            found += 1
            print(f"{file.relative_to(ROOT)}:{line}: a line has the key \"{key}\" twice")
    if calls < 100:
        sys.exit("log_keys.py does not find the calls any more")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
