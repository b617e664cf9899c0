// A test as authors write them, without a framework: archive.py builds it with either compiler.
//   archive_main        what an agent stores survives, its schedules run
//   archive_main keep   reads lent bytes after the host has taken them back

#include <hearth/testing/host.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

class Note : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Note>& m) {
    m.add("put", &Note::put);
    m.add("get", &Note::get);
    m.add("remind", &Note::remind);
    m.add("keep", &Note::keep);
    m.callback("wake", &Note::wake);
  }
  void put(const std::string& text) { kv().put("note", text); }
  std::string get() { return kv().get<std::string>("note").value_or("none"); }
  void remind() { schedule(hearth::Cron("0 9 * * *", "Europe/Berlin"), "wake"); }
  void wake(const hearth::Json& /*payload*/) { kv().put("note", "woken"); }
  // The first text is void when the second function is called.
  std::string keep() {
    const auto& tables = activation().tables();
    hearth_bytes text = {nullptr, 0};
    hearth_bytes again = {nullptr, 0};
    set_state("a text");
    tables.state->get(tables.host, activation().id(), &text);
    tables.state->get(tables.host, activation().id(), &again);
    return std::string(hearth::detail::view(text));
  }
};

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  ++failures;
}

}  // namespace

int main(int count, char** arguments) {
  hearth::testing::Host host;
  auto agent = host.create<Note>("n");
  if (count > 1 && std::string_view(arguments[1]) == "keep") {
    std::printf("%s\n", agent.call("keep").dump().c_str());
    return 0;
  }
  agent.call("put", "stored");
  agent.evict();
  expect(agent.call("get") == "stored", "a value survives an eviction");
  agent.call("remind");
  agent.kill();
  host.advance(std::chrono::hours(24));
  expect(agent.call("get") == "woken", "a schedule in a time zone runs after a kill");
  try {
    agent.call("no such method");
    expect(false, "an unknown method is an error");
  } catch (const hearth::testing::CallError& error) {
    expect(error.code() == HEARTH_E_NOT_FOUND, error.what());
  }
  return failures;
}
