// Agents that call each other and ask another server. Plugin "traced-agent", class Traced.
//
//   methods   forward(url): asks the agent "callee" to ask(url), and returns its answer
//             ask(url): a fiber with an operation, described as the call of a model, that sends one
//             request with the query `?secret=1`; returns the header `traceparent` that the other
//             server got, also when the fiber finds the operation done

#include <hearth/agent.hpp>

#include <string>
#include <utility>

class Traced : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Traced>& m) {
    m.add("forward", &Traced::forward);
    m.add("ask", &Traced::ask);
    m.fiber("asking", &Traced::asking);
    m.operation("model", {.effect = hearth::Effect::kRead,
                          .same = "the URL",
                          .interrupted = "asks again",
                          .upstream = "answers again",
                          .unknown = "cannot be: it only reads"});
  }

  hearth::Task<std::string> forward(std::string url) {
    hearth::AgentRef callee = agent("traced", "callee");
    co_return co_await callee.call<std::string>("ask", url);
  }

  hearth::Task<std::string> ask(std::string url) {
    co_return co_await run_fiber<std::string>("asking", std::move(url));
  }

 private:
  hearth::Task<std::string> asking(std::string url, hearth::FiberContext& /*fiber*/) {
    hearth::OperationCall call{.kind = "model", .args = url, .key = url};
    const auto run = [this, url](hearth::OperationAttempt attempt) {
      return request(std::move(attempt), url);
    };
    auto running = operation(std::move(call), run);
    co_return co_await std::move(running);
  }

  hearth::Task<std::string> request(hearth::OperationAttempt attempt, std::string url) {
    attempt.describe("chat m-1", {{"gen_ai.operation.name", "chat"},
                                  {"gen_ai.request.model", "m-1"},
                                  {"gen_ai.usage.input_tokens", 12}});
    hearth::FetchRequest asked{.url = url + "?secret=1", .op = attempt.id};
    auto response = co_await fetch(std::move(asked));
    const hearth::Json echo = co_await response.json();
    co_return echo.at("headers").value("traceparent", "");
  }
};

HEARTH_PLUGIN("traced-agent", "1.0.0", Traced)
