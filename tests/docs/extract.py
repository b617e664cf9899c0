#!/usr/bin/env python3
"""Takes the snippets out of the documents, so that the build compiles them and tests run them as
they are printed.

    extract.py SOURCES OUTPUT_DIRECTORY

Writes whole programs under the names in WHOLE, and all fragments, each inside the class or function
that its text leaves out, into fragments.cpp; those that leave out nothing also into classes.inc. A
snippet in C++ or JavaScript that is in neither
table is an error: what is printed is tried.
"""
import pathlib
import re
import sys

DOCUMENTS = ("README.md", "plugin-api/README.md", "plugin-api/from-cloudflare.md", "plugin-api/chat/README.md")

# The first line of a snippet that contains this: the file that it becomes.
WHOLE = {
    ("README.md", "class Counter : public hearth::Agent {"): "counter.cpp",
    ("README.md", "// client.mjs"): "readme-client.mjs",
    ("plugin-api/README.md", "// greet.mjs"): "greet.mjs",
    ("plugin-api/README.md", "// night_watch.cpp"): "night_watch.cpp",
    ("plugin-api/README.md", "TEST(NightWatchTest"): "night_watch_test.cpp",
    ("plugin-api/README.md", "// east-gate.mjs"): "east-gate.mjs",
    ("plugin-api/README.md", "class Translator : public hearth::Agent {"): "translator.inc",
    ("plugin-api/README.md", "class Storyteller : public hearth::Agent {"): "storyteller.inc",
    ("plugin-api/chat/README.md", "class Support : public hearth::ChatAgent {"): "support.inc",
    ("plugin-api/chat/README.md", "class Upper : public hearth::chat::Provider {"): "upper.inc",
}

# What a fragment leaves out, around it.
FRAGMENTS = {
    ("README.md", "work(Order order, hearth::FiberContext& fiber)"): """
class Research : public hearth::Agent {
  struct Order {
    std::string topic;
    int steps = 5;
    HEARTH_FIELDS(topic, steps)
  };
  hearth::Task<void> one_step(Order order, int step);
@};""",
    ("README.md", "return ask_provider(order, attempt.id)"): """
class Payments : public hearth::Agent {
  struct Order {
    std::string id;
    int cents = 0;
    HEARTH_FIELDS(id, cents)
  };
  hearth::Task<hearth::Json> ask_provider(Order order, std::string key);
@};""",
    ("README.md", 'schedule(hearth::Cron("0 9'): """
class Mailer : public hearth::Agent {
  hearth::Task<void> charge(std::string order) {
@  }
};""",
    ("README.md", 'm.add("status"'): """
class Research : public hearth::Agent {
  std::string status(std::string run);
  static void methods(hearth::Methods<Research>& m) {
@  }
};""",
    ("plugin-api/from-cloudflare.md", "class Digest : public hearth::Agent {"): "@",
    ("plugin-api/README.md", "class Intake : public hearth::Agent {"): "@",
    ("plugin-api/README.md", "class Counting : public hearth::Agent {"): "@",
    ("plugin-api/README.md", "class Importer : public hearth::Agent {"): "@",
    ("plugin-api/README.md", "class Kitchen : public hearth::Agent {"): "@",
    ("plugin-api/README.md", "class Cashier : public hearth::Agent {"): "@",
    ("plugin-api/README.md", "void sold(std::string article, int left)"): """
class Bookkeeper : public hearth::Agent {
@  bool closed_ = false;
};""",
    ("plugin-api/README.md", "class Gardener : public hearth::Agent {"): "@",
    ("plugin-api/README.md", 'm.operation("charge"'): "@",
    ("plugin-api/README.md", "find_charge(hearth::OperationAttempt attempt)"): """
class Prober : public hearth::Agent {
  hearth::Task<std::optional<hearth::Json>> look_up(std::string id);
@};""",
    ("plugin-api/README.md", "class Inbox : public hearth::Agent {"): "@",
    ("plugin-api/README.md", "hearth::ResumedFetch rest_of("): "@",
    ("plugin-api/README.md", "charge(Order order)"): """
class Till : public hearth::Agent {
  struct Order {
    std::string id;
    HEARTH_FIELDS(id)
  };
@};""",
    ("plugin-api/README.md", "static constexpr unsigned schema_version"): "@};",
    ("plugin-api/README.md", 'm.add("prices", &Shop::prices'): """
class Shop : public hearth::Agent {
  hearth::Task<hearth::Json> order(std::string key);
  int prices();
  void tip();
@};""",
    ("plugin-api/README.md", "hearth::EventStream events(request)"): """
class Clock : public hearth::Agent {
@};""",
    ("plugin-api/README.md", 'request.method() != "DELETE"'): """
class Passing : public hearth::Agent {
@};""",
}

ANSWER_READ = re.compile(r"co_await \w+\.(?:json|text)(?:<[^>]*>)?\(\)")


def check_answers(where, text):
    """An error status has a body too: an example does not take it for the result."""
    if len(ANSWER_READ.findall(text)) > text.count(".ok()"):
        sys.exit(f"{where} reads an answer without a look at its status: ok()")


FENCE = re.compile(r"^```(cpp|js)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def find(table, document, text):
    found = [key for key in table if key[0] == document and key[1] in text]
    if len(found) > 1:
        sys.exit(f"extract.py: a snippet of {document} is in the table as {found}")
    return found[0] if found else None


def extract(sources, output):
    output.mkdir(parents=True, exist_ok=True)
    fragments = ["// Written by extract.py.\n#include <hearth/agent.hpp>\n\n#include <chrono>\n#include <deque>\n#include <string>\n"]
    classes = []
    used = set()
    for document in DOCUMENTS:
        for match in FENCE.finditer((sources / document).read_text()):
            text = match.group(2)
            check_answers(f"extract.py: a snippet of {document}", text)
            if whole := find(WHOLE, document, text):
                (output / WHOLE[whole]).write_text(text)
                used.add(whole)
            elif fragment := find(FRAGMENTS, document, text):
                body = FRAGMENTS[fragment].replace("@", text)
                fragments.append(f"namespace snippet_{len(used)} {{\n{body.strip()}\n}}\n")
                if FRAGMENTS[fragment] == "@" and "class " in text:
                    classes.append(text)
                used.add(fragment)
            else:
                line = text.split("\n", 1)[0]
                sys.exit(f"extract.py: no test runs this snippet of {document}: {line}")
    if missing := (WHOLE.keys() | FRAGMENTS.keys()) - used:
        sys.exit(f"extract.py: snippets that are in no document any more: {sorted(missing)}")
    (output / "fragments.cpp").write_text("\n".join(fragments))
    (output / "classes.inc").write_text("\n".join(classes))


if __name__ == "__main__":
    extract(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
