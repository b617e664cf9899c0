// An agent that asks other servers. Plugin "fetch-agent", class Fetcher.
//
//   methods   get(url), get_with(url, credential, follow): {"status","body"} of the answer, or
//             {"code","phase","sent","text"} of a failure
//             write_and_get(url): the same, after a write of the state
//             chat(url, text): the texts of a streamed chat completion, as one
//             listen(url): how many events the stream has
//             run(url, steps): begins a fiber of that many chats, each with a key of its own, and
//             at the end a line of the log: "the run is over"
//             crash(): ends the process
//             transcript(): [{"step","text","attempts"}], as far as the run has come

#include <hearth/agent.hpp>

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

class Fetcher : public hearth::Agent {
 public:
  struct Order {
    std::string url;
    int steps = 1;
    HEARTH_FIELDS(url, steps)
  };
  struct Step {
    int step = 0;
    std::optional<std::string> text;
    int attempts = 0;
    HEARTH_FIELDS(step, text, attempts)
  };

  static void methods(hearth::Methods<Fetcher>& m) {
    m.add("get", &Fetcher::get);
    m.add("get_with", &Fetcher::get_with);
    m.add("write_and_get", &Fetcher::write_and_get);
    m.add("chat", &Fetcher::chat);
    m.add("listen", &Fetcher::listen);
    m.add("run", &Fetcher::run);
    m.add("transcript", &Fetcher::transcript);
    m.add("crash", &Fetcher::crash);
    m.fiber("run", &Fetcher::work);
  }

  Fetcher() {
    sql("CREATE TABLE IF NOT EXISTS transcript(step INTEGER PRIMARY KEY, text TEXT, "
        "attempts INTEGER NOT NULL)");
  }

  hearth::Task<hearth::Json> get(std::string url) { return ask({.url = std::move(url)}); }
  hearth::Task<hearth::Json> get_with(std::string url, std::string credential, bool follow) {
    return ask(
        {.url = std::move(url), .credential = std::move(credential), .follow_redirects = follow});
  }
  hearth::Task<hearth::Json> write_and_get(std::string url) {
    set_state(url);
    return ask({.url = std::move(url)});
  }

  hearth::Task<std::string> chat(std::string url, std::string text) {
    return complete(std::move(url), std::move(text), "chat");
  }

  hearth::Task<int> listen(std::string url) {
    auto response = co_await fetch(std::move(url));
    hearth::SseReader events(response);
    int count = 0;
    while (co_await events.next()) ++count;
    co_return count;
  }

  void run(const std::string& url, int steps) {
    static_cast<void>(start_fiber("run", Order{url, steps}));
  }
  void crash() { static_cast<void>(std::raise(SIGSEGV)); }
  std::vector<Step> transcript() {
    return sql("SELECT step, text, attempts FROM transcript ORDER BY step").rows<Step>();
  }

 private:
  hearth::Task<hearth::Json> ask(hearth::FetchRequest request) {
    try {
      auto response = co_await fetch(std::move(request));
      const std::string body = co_await response.text();
      co_return hearth::Json{{"status", response.status()}, {"body", body}};
    } catch (const hearth::FetchError& error) {
      co_return hearth::Json{{"code", error.code()},
                             {"phase", static_cast<int>(error.phase())},
                             {"sent", error.sent()},
                             {"text", error.what()}};
    }
  }

  hearth::Task<std::string> complete(std::string url, std::string text, std::string key) {
    hearth::Json message = {{"role", "user"}, {"content", std::move(text)}};
    hearth::FetchRequest request{.method = "POST",
                                 .url = std::move(url),
                                 .headers = {{"Idempotency-Key", std::move(key)}},
                                 .json = {{"stream", true}}};
    request.json["messages"].push_back(std::move(message));
    auto response = co_await fetch(std::move(request));
    if (!response.ok())
      throw hearth::Error(HEARTH_E_BUSY, "status " + std::to_string(response.status()));
    hearth::SseReader events(response);
    std::string all;
    while (auto event = co_await events.next()) {
      if (event->data == "[DONE]") co_return all;
      const hearth::Json chunk = hearth::parse_json(event->data);
      all += chunk.at("choices").at(0).at("delta").value("content", "");
    }
    throw hearth::Error(HEARTH_E_BUSY, "the stream has no end");
  }

  hearth::Task<void> work(Order order, hearth::FiberContext& fiber) {
    for (int step = fiber.snapshot<int>().value_or(0) + 1; step <= order.steps; ++step) {
      const std::string key = "step-" + std::to_string(step);
      sql("INSERT INTO transcript(step, attempts) VALUES(?, 1) "
          "ON CONFLICT(step) DO UPDATE SET attempts = attempts + 1",
          step);
      const std::string text = co_await complete(order.url, "this is " + key, key);
      sql("UPDATE transcript SET text = ? WHERE step = ?", text, step);
      fiber.stash(step);
    }
    log.info("the run is over");
  }
};

HEARTH_PLUGIN("fetch-agent", "1.0.0", Fetcher)
