// The agent class @CLASS@: clients reach one at /agents/@NAME@/ANY-NAME.
//
//   methods   greet(name = "world") -> "hello, world"; count_down(n) streams n, n-1, ... 1
//   frames    come back unchanged
//   HTTP      GET answers the state
//   state     {"greetings": the number of calls of greet}
//   options   greeting: the first word ("hello")

#include <hearth/agent.hpp>

#include <chrono>
#include <optional>
#include <string>

class @CLASS@ : public hearth::Agent {
 public:
  struct State {
    int greetings = 0;
    HEARTH_FIELDS(greetings)
  };
  // The `options` in classes/@NAME@.yaml.
  struct Options {
    std::string greeting = "hello";
    HEARTH_FIELDS(greeting)
  };
  explicit @CLASS@(Options options) : options_(std::move(options)) {}

  // The methods that clients may call.
  static void methods(hearth::Methods<@CLASS@>& m) {
    m.add("greet", &@CLASS@::greet);
    m.stream("count_down", &@CLASS@::count_down);
  }

  hearth::Json initial_state() override { return State(); }

  // The state is stored, and each change is sent to every client.
  std::string greet(std::optional<std::string> who) {
    State next = state<State>();
    ++next.greetings;
    set_state(next);
    return options_.greeting + ", " + who.value_or("world");
  }

  // While it sleeps, the agent handles other events.
  hearth::Task<void> count_down(hearth::Stream& out, int n) {
    for (; n > 0 && out.send(n); --n) co_await sleep(std::chrono::seconds(1));
  }

  hearth::Task<void> on_message(hearth::Connection client, hearth::Message message) override {
    client.send(message);
    return {};
  }

  hearth::Task<hearth::Response> on_request(const hearth::Request& request) override {
    if (request.method() != "GET") return hearth::Response(405);
    return hearth::Response::json(state());
  }

 private:
  Options options_;
};

HEARTH_PLUGIN("@NAME@", "0.1.0", @CLASS@)
