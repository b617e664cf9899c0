#!/usr/bin/env python3
"""Natural mistakes of plugin authors: the first line that the compiler says of each must be ours,
with the way to mend it.

    mistakes.py INCLUDE_DIRECTORY CLANGXX
"""
import pathlib
import re
import subprocess
import sys
import tempfile

FIELDS = "list its members with HEARTH_FIELDS(a, b)"
FIBER = ("the function of a fiber takes hearth::FiberContext& (a reference): "
         "[this](hearth::FiberContext& fiber) { ... }")
NUMBER = "this option is a whole number: write 3, without quotes or a unit"
TIME = "this option is a time: write std::chrono::seconds(5) or, with std::chrono_literals, 5s or 100ms"
FLAG = "this option is true or false: write true, without quotes"
TEXT = 'this option is a text: write "order 1", or std::to_string(n) for a number'
POLICY = "this option is a policy: write hearth::FiberPolicy::kJoin, kReject, kReplace or kReplaceFailed"
REQUIRED = "a member in HEARTH_REQUIRED(a) is read only if HEARTH_FIELDS(a, b) lists it, too"
BOUND = ("SQL takes numbers, texts, bytes, Json, and a std::optional of one: write "
         "t.time_since_epoch().count() for a time, hearth::Json(v) for a struct")
UNIT = "a time has a unit: write std::chrono::seconds(60) or, with std::chrono_literals, 60s or 10min"

# name: (what the class has, what the first line says). `Point` is a struct without HEARTH_FIELDS.
MISTAKES = {
    "an argument without fields":
        ("int f(Point p) { return p.x; } METHOD", f"this type cannot be read from JSON: {FIELDS}"),
    "an argument in a vector":
        ("int f(std::vector<Point> p) { return p[0].x; } METHOD", f"this type cannot be read from JSON: {FIELDS}"),
    "a result without fields":
        ("Point f() { return {}; } METHOD", f"no JSON can be made of this type: {FIELDS}"),
    "a part of a stream without fields":
        ("void f(hearth::Stream& out) { out.send(Point()); } STREAM", f"no JSON can be made of this type: {FIELDS}"),
    "a field whose type has none":
        ("struct Box { Point p; HEARTH_FIELDS(p) }; Box f() { return {}; } METHOD",
         f"no JSON can be made of this type: {FIELDS}"),
    "a state without fields":
        ("int f() { return state<Point>().x; } METHOD", f"this type cannot be read from JSON: {FIELDS}"),
    "a frame without fields":
        ("void f() { broadcast(Point()); } METHOD", f"no JSON can be made of this type: {FIELDS}"),
    "a number in quotes as an option of a fiber":
        ('void f() { start_fiber("f", 1, {.max_retries = "3"}); } METHOD', NUMBER),
    "a number in quotes as an option of a fiber that is waited for":
        ('hearth::Task<void> f() { co_await run_fiber<int>("f", 1, {.max_retries = "3"}); } METHOD', NUMBER),
    "a time as the option that is a number":
        ('void f() { queue("f", 1, {.max_attempts = std::chrono::seconds(3)}); } METHOD', NUMBER),
    "a character as the option that is a number":
        ('void f() { start_fiber("f", 1, {.max_retries = \'3\'}); } METHOD', NUMBER),
    "a number as the option that is a time":
        ('void f() { start_fiber("f", 1, {.retry_delay = 5}); } METHOD', TIME),
    "a number as the key of a fiber":
        ('void f() { start_fiber("f", 1, {.key = 5}); } METHOD', TEXT),
    "a number as the id of a fiber":
        ('void f() { start_fiber("f", 1, {.id = 5}); } METHOD', TEXT),
    "a text as the option that is true or false":
        ('void f() { start_fiber("f", 1, {.keep_record = "yes"}); } METHOD', FLAG),
    "a number as the option that is true or false":
        ('void f() { start_fiber("f", 1, {.turn = 1}); } METHOD', FLAG),
    "a text as the policy of a fiber":
        ('void f() { start_fiber("f", 1, {.policy = "replace"}); } METHOD', POLICY),
    "a text as the time of a call":
        ('void f() { (void)agent("a", "b", {.timeout = "5s"}); } METHOD', TIME),
    "a schedule in no unit":
        ('void f() { schedule(60, "f", 1); } METHOD', UNIT),
    "a repeated schedule in no unit":
        ('void f() { schedule_every(60, "f"); } METHOD', UNIT),
    "a row without fields":
        ('int f() { return sql("SELECT 1").value<Point>().x; } METHOD',
         "a row is a std::tuple, the type of its one column, or a struct that lists its members with "
         "HEARTH_FIELDS(a, b)"),
    "an option of a type without fields":
        ("struct Options { Point p; HEARTH_FIELDS(p) }; explicit A(Options o) : o_(o) {} Options o_;",
         f"this type cannot be read from JSON: {FIELDS}"),
    "options that the constructor does not take":
        ("struct Options { int n = 0; HEARTH_FIELDS(n) }; explicit A(std::string) {}",
         "a class with a struct Options has a public constructor that takes one"),
    "a fiber's function without its context":
        ('hearth::Task<void> f() { co_await run_fiber("f", [] {}); } METHOD', FIBER),
    "a fiber's function that takes its context by value":
        ('void f() { start_fiber("f", [](hearth::FiberContext) {}); } METHOD', FIBER),
    "a continuation without its context":
        ("hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {"
         " continue_fiber(fiber, [] {}); return {}; }", FIBER),
    "a listed fiber without its context":
        ("int f(int n) { return n; } FIBER",
         "a fiber's function takes its input, if it has one, and then hearth::FiberContext& (a reference)"),
    "a listed fiber that keeps a reference to its input":
        ("hearth::Task<int> f(const std::string& s, hearth::FiberContext&) { co_return s.size(); } FIBER",
         "a fiber's function that returns a Task takes its input by value"),
    "a listed fiber whose input has no fields":
        ("void f(Point, hearth::FiberContext&) {} FIBER", f"this type cannot be read from JSON: {FIELDS}"),
    "a listed fiber whose result has no fields":
        ("Point f(hearth::FiberContext&) { return {}; } FIBER", f"the result of a fiber becomes JSON: {FIELDS}"),
    "a listed fiber that takes its context by value":
        ("void f(hearth::FiberContext) {} FIBER",
         "a fiber's function takes its input, if it has one, and then hearth::FiberContext& (a reference)"),
    "an input without fields":
        ('void f() { start_fiber("f", Point()); } METHOD', f"no JSON can be made of this type: {FIELDS}"),
    "an input without fields that is waited for":
        ('hearth::Task<void> f() { co_await run_fiber<int>("f", Point()); } METHOD',
         f"no JSON can be made of this type: {FIELDS}"),
    "a value that is awaited and cannot be kept":
        ('hearth::Task<void> f() { co_await run_fiber("f", [](hearth::FiberContext&) { return Point(); }); } METHOD',
         "what run_fiber() gives is kept as JSON and read back: give what JSON can hold, or "
         "list its members with HEARTH_FIELDS(a, b)"),
    "a value by key without fields":
        ('void f() { kv().put("p", Point()); } METHOD', f"no JSON can be made of this type: {FIELDS}"),
    "a payload of the queue without fields":
        ('void f() { queue("f", Point()); } METHOD', f"no JSON can be made of this type: {FIELDS}"),
    "a payload of the queue without fields, with a retry":
        ('void f() { queue("f", Point(), hearth::RetryOptions{.max_attempts = 5}); } METHOD',
         f"no JSON can be made of this type: {FIELDS}"),
    "a payload of a schedule without fields":
        ('void f() { schedule(std::chrono::hours(1), "f", Point()); } METHOD',
         f"no JSON can be made of this type: {FIELDS}"),
    "a payload of a repeated schedule without fields":
        ('void f() { schedule_every(std::chrono::hours(1), "f", Point()); } METHOD',
         f"no JSON can be made of this type: {FIELDS}"),
    "a result that is read as a type without fields":
        ('hearth::Task<void> f() { co_await run_fiber<Point>("f", 1); } METHOD',
         "run_fiber<T>(name, input): T is read from JSON"),
    "a required field that there is not":
        ("struct Box { int n = 0; HEARTH_FIELDS(n) HEARTH_REQUIRED(m) }; int f(Box b) { return b.n; } METHOD",
         "use of undeclared identifier 'm'"),
    "a required field that is not listed":
        ("struct Box { int n = 0; int m = 0; HEARTH_FIELDS(n) HEARTH_REQUIRED(m) }; int f(Box b) { return b.n; } METHOD",
         REQUIRED),
    "a required field of an input that is not listed":
        ("struct Box { int n = 0; int m = 0; HEARTH_FIELDS(n) HEARTH_REQUIRED(n, m) };"
         " void f(Box, hearth::FiberContext&) {} FIBER", REQUIRED),
    "a coroutine that takes a reference":
        ("hearth::Task<int> f(const std::string& s) { co_return s.size(); } METHOD",
         "a method that returns a Task takes its parameters by value, and texts as std::string"),
    "a coroutine that takes a view of a text":
        ("hearth::Task<int> f(std::string_view s) { co_return s.size(); } METHOD",
         "a method that returns a Task takes its parameters by value, and texts as std::string"),
    "a view of a text that is read":
        ('int f() { return kv().get<std::string_view>("k")->size(); } METHOD',
         "a std::string_view would refer to a text that is gone: read a std::string"),
    "a character as an argument":
        ("int f(char c) { return c; } METHOD", "JSON has no characters: take a std::string, or an int"),
    "a chat's tool that takes a reference across its waits":
        ("hearth::Task<int> g(const std::string& s) { co_return s.size(); } void f() { (void)hearth::chat::tools::"
         'member_tool("n", "d", hearth::Effect::kRead, *this, &A::g, {}); } METHOD',
         "a tool that returns a Task takes its input and ToolCall by value"),
    "a time that is bound to SQL":
        ('void f() { sql("INSERT INTO t VALUES (?)", hearth::Time()); } METHOD', BOUND),
    "a struct that is bound to SQL":
        ('void f() { sql("INSERT INTO t VALUES (?)", Point()); } METHOD', BOUND),
    "an effect without its answers":
        ('int f() { return 1; } static void methods(hearth::Methods<A>& m) { m.add("f", &A::f);'
         ' m.operation("charge", {.effect = hearth::Effect::kKeyed}); }',
         "an operation is listed with four answers: .same, .interrupted, .upstream and .unknown"),
    "a streaming method that is listed as a plain one":
        ("void f(hearth::Stream& out) { out.send(1); } METHOD",
         "stream() is for methods whose first parameter is hearth::Stream&, add() for all others"),
}

# What authors write naturally, and compiles.
RIGHT = (
    "int f(int n) { return n; } METHOD",
    'void f() { broadcast({{"type", "x"}, {"n", 1}}); caller()->send({{"type", "x"}}); } METHOD',
    'hearth::Task<hearth::Json> f() { co_return {{"a", 1}}; } METHOD',
    'enum class E { kA }; hearth::Json f() { return {{"e", E::kA}}; } METHOD',
)

HEAD = "#include <string>\n#include <vector>\nstruct Point { int x = 0; };\nclass A : public hearth::Agent {\n public:\n"
TAIL = '\n};\nHEARTH_PLUGIN("a", "1.0.0", A)\n'
METHODS = "\n static void methods(hearth::Methods<A>& m) { m.%s(\"f\", &A::f); }"


def source_of(body):
    for word, call in (("METHOD", "add"), ("STREAM", "stream"), ("FIBER", "fiber")):
        body = body.replace(word, METHODS % call)
    chat = "#include <hearth/chat/tool.hpp>\n" if "hearth::chat::" in body else ""
    return chat + HEAD + body + TAIL


def first_line(compile_it, source):
    done = subprocess.run(compile_it, input=source, text=True, capture_output=True, timeout=120)
    if done.returncode == 0:
        return "nothing: it compiles"
    return re.search(r"error: (.*)", done.stderr).group(1)


def main(include_directory, clang):
    chat = pathlib.Path(include_directory).parent / "chat/include"
    flags = [clang, "-std=c++20", "-I", include_directory, "-I", chat, "-Wno-everything"]
    failures = []
    with tempfile.TemporaryDirectory(prefix="hearth-mistakes-") as place:
        headers = pathlib.Path(place) / "agent.pch"
        subprocess.run([*flags, "-fpch-instantiate-templates", "-x", "c++-header", pathlib.Path(include_directory) / "hearth/agent.hpp", "-o", headers],
                       check=True, timeout=300)
        compile_it = [*flags, "-include-pch", headers, "-fsyntax-only", "-x", "c++", "-"]
        for body in RIGHT:
            said = first_line(compile_it, source_of(body))
            if said != "nothing: it compiles":
                failures.append(f"what is right does not compile: {body}: {said}")
        for name, (body, wanted) in MISTAKES.items():
            said = first_line(compile_it, source_of(body))
            # With or without the requirement, as clang likes.
            if not re.fullmatch(r"(static assertion failed(?: due to requirement '.*')?: )?" + re.escape(wanted), said):
                failures.append(f"{name}\n    should say: {wanted}\n    says:       {said}")
    if failures:
        sys.exit("mistakes:\n  " + "\n  ".join(failures))
    print(f"mistakes: {len(MISTAKES)}, and each says how to mend it")


if __name__ == "__main__":
    main(*sys.argv[1:])
