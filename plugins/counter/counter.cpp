// A counter that all its clients see: the smallest useful agent, and the one to copy first.
//
//   methods   increment(by = 1) -> new count, get(), reset(), echo(value), count_to(n, interval_ms)
//             streams 1..n
//   frames    a frame that is no frame of the protocol comes back unchanged
//   HTTP      GET answers {"count": n}; POST increments and answers the same
//   options   start: the count of a new counter (0)

#include <hearth/agent.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

class Counter : public hearth::Agent {
 public:
  // The `options` of config/classes/counter.yaml. A wrong type or an unknown key fails with its
  // name.
  struct Options {
    std::int64_t start = 0;
    HEARTH_FIELDS(start)
  };
  // A state with names and types. It is JSON to clients: {"count": 5}. They can write no other.
  struct State {
    std::int64_t count = 0;
    HEARTH_FIELDS(count)
  };

  explicit Counter(Options options) : start_(options.start) {}

  // The methods that clients may call, one line each. If a new version of this library cuts off a
  // method that only reads, the server runs it again. The texts describe the methods to callers.
  static void methods(hearth::Methods<Counter>& m) {
    m.add("increment", &Counter::increment, "Adds a number, or 1, and gives the new count.");
    m.add("get", &Counter::get, hearth::kReadOnly, "The count.");
    m.add("reset", &Counter::reset, "Sets the count to its start.");
    m.add("echo", &Counter::echo, hearth::kReadOnly, "Gives back its argument.");
    m.stream("count_to", &Counter::count_to, "Counts to N, with MS milliseconds between numbers.");
  }

  // Shown to clients until a state is set; not stored.
  hearth::Json initial_state() override { return State{start_}; }

  // An optional parameter may be left out. set_state stores the state and sends it to every client.
  std::int64_t increment(std::optional<std::int64_t> by) {
    State next = state<State>();
    if (__builtin_add_overflow(next.count, by.value_or(1), &next.count)) {
      throw hearth::Error(HEARTH_E_INVALID, "the count would overflow");
    }
    set_state(next);
    return next.count;
  }

  std::int64_t get() { return state<State>().count; }

  void reset() { set_state(State{start_}); }

  hearth::Json echo(hearth::Json value) { return value; }

  // A streaming method: each send() is one part of the answer, the returned value is the last.
  // While it sleeps, the agent handles other events.
  hearth::Task<int> count_to(hearth::Stream& out, int n, int interval_ms) {
    for (int i = 1; i <= n; ++i) {
      if (!out.send(i)) break;  // the client has left
      if (i < n) co_await sleep(std::chrono::milliseconds(interval_ms));
    }
    co_return n;
  }

  // It does not wait, so it is a plain function: `return {}` is a task that has ended.
  hearth::Task<void> on_message(hearth::Connection client, hearth::Message message) override {
    client.send(message);
    return {};
  }

  hearth::Task<hearth::Response> on_request(const hearth::Request& request) override {
    if (request.method() == "POST") {
      increment(1);
    } else if (request.method() != "GET") {
      hearth::Response refusal(405);
      refusal.add_header("Allow", "GET, POST");
      return refusal;
    }
    return hearth::Response::json(state<State>());
  }

 private:
  std::int64_t start_;
};

HEARTH_PLUGIN("counter", "1.0.0", Counter)
