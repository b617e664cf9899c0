#!/usr/bin/env python3
"""Takes the code out of the comments of the SDK's headers, so that the build compiles it and a test
runs what uses the mock host.

    header_snippets.py SOURCES OUTPUT_DIRECTORY

Code in a comment is a block of lines that are indented by five spaces or more. It follows an empty
line of the comment, or one that ends with a colon and is indented less: text, pictures and the
lines below a label ("Failure   ...") do not look so. Each block has an entry in WRAPPERS or TESTS
with what it leaves out: "@" stands for the block. Where its parts need different places, "@1", "@2"
... are the parts: one begins after an empty line, and with a line that begins with "...". In code,
"..." is an empty statement. A block that begins with {" is JSON, and is parsed. A statement outside
of blocks is an error: nothing tries it.
"""
import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # no files beside the sources
from extract import check_answers

# Pictures, tables and texts that are laid out as code is.
NOT_CODE = {
    ("abi.h", "file found -> note read"),
    ("abi.h", "a library of   a host of 1.x"),
    ("ext/operations.h", "READ, IDEMPOTENT  RUN"),
    ("ext/operations.h", "operation <id> may have executed"),
}

def in_method(name, method, *members):
    """A wrapper: the block is the body of this method of an agent class."""
    lines = "".join(f"  {each}\n" for each in members)
    return f"\nclass {name} : public hearth::Agent {{\n{lines}  {method} {{\n@  }}\n}};"


WRAPPERS = {
    ("abi.h", "HEARTH_PLUGIN_NOTE"): "@",
    ("agent.hpp", "class Counter"): "@",
    ("agent_base.hpp", "transaction()"): in_method("Theatre", "void book()"),
    ("alarm.hpp", "set_alarm"): in_method("Biller", "void plan()"),
    ("callback.hpp", "m.callback"): """
class Reminder : public hearth::Agent {
  void remind_me(std::string text);
  void remind(const std::string& text);
@};""",
    ("error.hpp", "throw hearth::Error"): in_method("Hotel", "void enter()"),
    ("error.hpp", "throw hearth::Final"): in_method("Checkout", "void charge()"),
    ("fetch.hpp", "response.next()"): """
class Loader : public hearth::Agent {
  void use(const std::string& piece);
  hearth::Task<void> load() {
    auto response = co_await fetch("https://a.example/large");
@  }
};""",
    ("words.hpp", "kSizes"): """
enum class Size { kSmall, kLarge };
@
Size size_of(std::string_view word) { return hearth::find_word<Size>(kSizes, word); }""",
    ("keep_alive.hpp", "keep_alive()"): in_method("Waiter", "void wait()"),
    ("fetch.hpp", "hearth::FetchResponse page"): in_method(
        "Reader", "hearth::Task<void> read()", "void remember(std::string text);"),
    ("fiber.hpp", "m.fiber"): """
class Importer : public hearth::Agent {
  struct Order {
    int pages = 10;
    HEARTH_FIELDS(pages)
  };
  hearth::Task<std::string> fetch(int page);
@1
  hearth::Task<void> begin(Order order) {
@2@3  }
};""",
    ("fiber.hpp", "fiber.once"): in_method(
        "Answerer", "void work(std::string answer, hearth::FiberContext& fiber)"),
    ("fiber_calls.hpp", 'start_fiber("charge"'): """
class Till : public hearth::Agent {
  struct Order {
    std::string id;
    HEARTH_FIELDS(id)
  };
  struct Receipt {
    std::string number;
    HEARTH_FIELDS(number)
  };
  hearth::Task<Receipt> charge(Order order) {
@  }
};""",
    ("operations.hpp", 'm.operation("charge"'): """
class Shop : public hearth::Agent {
  struct Order {
    int cents = 0;
    HEARTH_FIELDS(cents)
  };
@};""",
    ("operations.hpp", "hearth::FetchRequest request"): """
class Payer : public hearth::Agent {
  hearth::Task<void> pay(hearth::OperationAttempt attempt) {
@    co_await fetch(std::move(request));
  }
};""",
    ("fiber_record.hpp", "settle_fiber"): """
using hearth::FiberOutcome;
class Settler : public hearth::Agent {
  hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
@    return {};
  }
};""",
    ("call.hpp", "co_await agent("): in_method(
        "Writer", "hearth::Task<void> write(hearth::Stream& out)", "hearth::Json mail;", "std::string prompt;"),
    ("fields.hpp", "struct Options"): "@",
    ("fields.hpp", "HEARTH_REQUIRED"): """
struct Input {
  std::string topic;
  int steps = 5;
@};""",
    ("http.hpp", "hearth::ResponseStream out"): in_method(
        "Lines", "hearth::Task<hearth::Response> on_request(const hearth::Request& request) override", "std::vector<std::string> lines;"),
    ("http.hpp", "request.next()"): in_method(
        "Archive", "hearth::Task<void> store(const hearth::Request& request)", "void write(const std::string& piece);"),
    ("kv.hpp", "kv().put"): """
using hearth::KvEntry;
class Drafts : public hearth::Agent {
  struct Draft {
    std::string text;
    HEARTH_FIELDS(text)
  };
  void edit() {
@  }
};""",
    ("method.hpp", "m.stream"): """
class Counter : public hearth::Agent {
  int increment(int by);
  int get();
  hearth::Task<void> count_to(hearth::Stream& out, int last);
  void tick();
  hearth::Task<void> import(hearth::Json order, hearth::FiberContext& fiber);
  static constexpr hearth::OperationKind kCharge = {hearth::Effect::kUnsafe, "a", "b", "c", "d"};
@};""",
    ("queue.hpp", 'queue("send_mail"'): in_method("Mailer", "void order()"),
    ("sse.hpp", "hearth::SseReader events"): """
class Listener : public hearth::Agent {
  void use(const std::string& data);
  hearth::Task<void> listen() {
    auto response = co_await fetch("https://a.example/events");
@  }
};""",
    ("schedule.hpp", "m.callback"): """
class Reminder : public hearth::Agent {
@1
  void plan() {
@2  }
};""",
    ("signal.hpp", "changed_.wait()"): """
class Counter : public hearth::Agent {
  std::vector<std::string> orders_;
  hearth::Signal changed_{*this};
  hearth::Task<void> wait() {
@1  }
  void order(std::string order) {
@2  }
};""",
    ("stream_log.hpp", "hearth::StreamReader reader"): """
class Teller : public hearth::Agent {
  void send(const hearth::StreamRow& row);
@1
  void tell(std::string id) {
@2  }
  hearth::Task<void> follow(std::string id, std::uint64_t seq) {
@3  }
};""",
    ("when_all.hpp", "price_at(shop)"): """
class Buyer : public hearth::Agent {
  hearth::Task<int> price_at(std::string shop);
  hearth::Task<std::string> load(std::string url);
  hearth::Task<int> count_left();
  hearth::Task<void> look(std::vector<std::string> shops, std::string url) {
@1@2    static_cast<void>(all.size() + page.size() + static_cast<std::size_t>(left));
  }
};""",
    ("sql.hpp", "INSERT INTO notes"): """
using hearth::Json;
class Notes : public hearth::Agent {
  void look(std::string text) {
@  }
};""",
    ("sse.hpp", "hearth::EventStream events"): """
using namespace std::chrono_literals;
class Talker : public hearth::Agent {
  std::string next_token();
  hearth::Task<hearth::Response> on_request(const hearth::Request& request) override {
@  }
};""",
    ("task.hpp", "slow_add"): """
class Adder : public hearth::Agent {
@};""",
}

# Run by a test, with an agent as the code expects it.
TESTS = {
    ("testing/host.hpp", "host.create<Counter>"): """
class Counter : public hearth::Agent {
 public:
  struct Options {
    int start = 0;
    HEARTH_FIELDS(start)
  };
  explicit Counter(Options options) : options_(options) {}
  static void methods(hearth::Methods<Counter>& m) {
    m.add("increment", &Counter::increment);
    m.add("get", &Counter::get);
    m.add("slow", &Counter::slow);
  }
  hearth::Json initial_state() override { return options_.start; }
  void on_connecting(hearth::Connecting& client) override { client.set_no_protocol(); }
  hearth::Task<void> on_message(hearth::Connection from, hearth::Message message) override {
    from.send(message);
    return {};
  }
  int increment(int by) {
    set_state(get() + by);
    return get();
  }
  int get() { return state().get<int>(); }
  hearth::Task<std::string> slow(int ms) {
    co_await sleep(std::chrono::milliseconds(ms));
    co_return "done";
  }

 private:
  Options options_;
};

TEST(HeaderSnippetTest, TheMockHostDoesWhatItsHeaderShows) {
@}""",
    ("testing/host.hpp", "host.on_fetch"): """
using hearth::testing::FetchReply;
using hearth::testing::SentRequest;
class Reader : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Reader>& m) { m.add("read", &Reader::read); }
  hearth::Task<std::string> read() {
    auto page = co_await fetch("https://a.example/page");
    const std::string text = co_await page.text();
    co_return std::to_string(page.status()) + " " + text;
  }
};

TEST(HeaderSnippetTest, RequestsAreAnsweredAsTheHeaderShows) {
  hearth::testing::Host host;
@  auto call = host.create<Reader>("a").start("read");
  host.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(call.value(), "404 no https://a.example/page");
}""",
}

LINE = re.compile(r"^ *(?://|/\*+|\*(?!/))(?P<text>.*?)(?:\*/)?$")
# Signs of code, not prose: a call on an object with its semicolon, and words that begin a
# statement. Words in backquotes are prose.
STATEMENT = re.compile(r"^ .*(?:[\w)]\.\w+\(.*\);|\b(?:auto|const) \w+ = .*;|\bthrow .*\);|\b(?:while|for|if) \(.*\).*;|= \{.*\};)")
TEXT = re.compile(r" *(?:\S+ {2,})?(?=\S)")  # what is before the text of a line: spaces, and a label


def indent_of(line):
    return len(line) - len(line.lstrip(" "))


def blocks(text):
    """The blocks of code in the comments of a header."""
    found, block, before = [], [], None
    for line in [*text.splitlines(), ""]:
        comment = LINE.match(line)
        inside = comment.group("text").rstrip() if comment else None
        if inside and block and indent_of(inside) >= indent_of(block[0]):
            block.append(inside)
        elif inside == "" and block:
            block.append("")
        else:
            if block:
                code = [each[indent_of(block[0]):] for each in block]
                found.append("\n".join(code).strip("\n") + "\n")
                block = []
            after_colon = before and before.endswith(":") and indent_of(inside or "") > TEXT.match(before).end()
            if inside and indent_of(inside) >= 5 and (before == "" or after_colon):
                block.append(inside)
        before = inside
    return found


def stray_statements(text, code):
    """The lines of comments that have code, and are in no block."""
    in_blocks = {line.strip() for block in code for line in block.splitlines()}
    comments = [match.group("text") for match in map(LINE.match, text.splitlines()) if match]
    return [line.strip() for line in comments
            if line.strip() not in in_blocks and STATEMENT.search(re.sub(r"`[^`]*`", "", line))]


def parts(code):
    found = [[]]
    for line in code.splitlines():
        if not line or line.startswith("..."):
            found.append([])
        if line:
            found[-1].append(line)
    return ["\n".join(part) + "\n" for part in found if part]


def parse_all(text):
    """Values of JSON, one after the other."""
    while text := text.strip():
        text = text[json.JSONDecoder().raw_decode(text)[1]:]


def without_dots(code):
    return re.sub(r"(?<!\w)\.\.\.(?!\w)", "{}", code)


def wrapped(wrapper, code, where):
    if "@1" not in wrapper:
        return wrapper.replace("@", without_dots(code))
    pieces = parts(code)
    if len(pieces) != len(re.findall(r"@\d", wrapper)):
        sys.exit(f"header_snippets.py: {where} has {len(pieces)} parts")
    return re.sub(r"@(\d)", lambda match: without_dots(pieces[int(match.group(1)) - 1]), wrapper)


def extract(sources, output):
    output.mkdir(parents=True, exist_ok=True)
    include = sources / "plugin-api/include/hearth"
    fragments = ["// Written by header_snippets.py.\n#include <hearth/agent.hpp>\n"]
    tests = ["// Written by header_snippets.py.\n#include <hearth/testing/host.hpp>\n#include <gtest/gtest.h>\n"]
    used = set()
    for header in sorted([*include.rglob("*.hpp"), *include.rglob("*.h")]):
        name = str(header.relative_to(include))
        text = header.read_text()
        if stray := stray_statements(text, blocks(text)):
            sys.exit(f"header_snippets.py: {name} has code that nothing tries: {stray[0]}")
        for code in blocks(text):
            if code.startswith('{"'):
                parse_all(code)
                continue
            check_answers(f"header_snippets.py: a snippet of {name}", code)
            entries = [key for key in [*WRAPPERS, *TESTS, *NOT_CODE] if key[0] == name and key[1] in code]
            if len(entries) != 1:
                line = code.split("\n", 1)[0]
                sys.exit(f"header_snippets.py: {len(entries)} entries for this code of {name}: {line}")
            entry = entries[0]
            if entry in NOT_CODE:
                used.add(entry)
                continue
            target, table = (fragments, WRAPPERS) if entry in WRAPPERS else (tests, TESTS)
            target.append(f"namespace header_{len(used)} {{  // {name}\n{wrapped(table[entry], code, name).strip()}\n}}\n")
            used.add(entry)
    if missing := (WRAPPERS.keys() | TESTS.keys() | NOT_CODE) - used:
        sys.exit(f"header_snippets.py: code that is in no header any more: {sorted(missing)}")
    (output / "header_fragments.cpp").write_text("\n".join(fragments))
    (output / "header_snippet_test.cpp").write_text("\n".join(tests))


if __name__ == "__main__":
    extract(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
