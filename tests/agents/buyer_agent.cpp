// An agent that pays: each order is one operation at a provider (tests/support/provider.mjs,
// /charges). Plugin "buyer-agent", class Buyer, option `provider`: its URL.
//
//   POST /?kind=keyed     begins a fiber with one operation of that kind. The kind "request" is of
//                         class unsafe, and acts by its request
//   table orders          what came of it: the kind, and 'paid' or 'unknown'
//   log                   "the order is over"

#include <hearth/agent.hpp>

#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

class Buyer : public hearth::Agent {
 public:
  struct Options {
    std::string provider;
    HEARTH_FIELDS(provider)
  };
  explicit Buyer(Options options) : options_(std::move(options)) {
    sql("CREATE TABLE IF NOT EXISTS orders(kind TEXT PRIMARY KEY, end TEXT NOT NULL)");
  }

  static void methods(hearth::Methods<Buyer>& m) {
    using hearth::Effect;
    m.fiber("order", &Buyer::order);
    for (const auto& [name, effect] :
         {std::pair("read", Effect::kRead), std::pair("idempotent", Effect::kIdempotent),
          std::pair("keyed", Effect::kKeyed), std::pair("probe", Effect::kProbe),
          std::pair("unsafe", Effect::kUnsafe), std::pair("request", Effect::kUnsafe)}) {
      m.operation(name, {.effect = effect,
                         .same = "the fiber of the order",
                         .interrupted = "as the class of its effect says",
                         .upstream = "charges once for a key if it is asked to, else again",
                         .unknown = "the order ends, and says so",
                         .acts_by_request = std::string_view(name) == "request"});
    }
  }

  hearth::Task<hearth::Response> on_request(const hearth::Request& request) override {
    start_fiber("order", hearth::Json(request.query("kind").value_or("unsafe")));
    return hearth::Response(202);
  }

 private:
  static constexpr std::chrono::milliseconds kSettlesWithin{20};

  hearth::Task<hearth::FetchResponse> ask(std::string method, std::string path, std::string key,
                                          std::string op = {}) {
    hearth::FetchRequest request{.method = std::move(method),
                                 .url = options_.provider + path,
                                 .headers = {{"Idempotency-Key", std::move(key)},
                                             {"X-Server-Pid", std::to_string(::getpid())}},
                                 .op = std::move(op)};
    co_return co_await fetch(std::move(request));
  }
  hearth::Task<hearth::Json> charge(hearth::OperationAttempt attempt, std::string path,
                                    bool in_ledger) {
    auto response =
        co_await ask("POST", std::move(path), attempt.id, in_ledger ? attempt.id : std::string());
    if (!response.ok()) throw status_error(response.status());
    co_return co_await response.json();
  }
  // What the provider has not done when it is asked first may be done late.
  hearth::Task<hearth::Probed> probe(hearth::OperationAttempt attempt) {
    auto response = co_await ask("GET", "/charges", attempt.id);
    if (response.status() == 404) {
      co_await sleep(kSettlesWithin);
      response = co_await ask("GET", "/charges", attempt.id);
    }
    if (response.status() == 404) co_return hearth::Probed::not_executed();
    if (!response.ok()) throw status_error(response.status());
    hearth::Json receipt = co_await response.json();
    co_return hearth::Probed::completed(std::move(receipt));
  }
  static hearth::Error status_error(unsigned status) {
    return {HEARTH_E_BUSY, "the answer has status " + std::to_string(status)};
  }
  hearth::Task<void> order(std::string kind, hearth::FiberContext&) {
    const std::string path = kind == "keyed" ? "/charges?once" : "/charges";
    const auto pay = [this, path, in_ledger = kind == "request"](hearth::OperationAttempt attempt) {
      return charge(std::move(attempt), path, in_ledger);
    };
    const auto look = [this](hearth::OperationAttempt attempt) {
      return probe(std::move(attempt));
    };
    std::string end = "paid";
    try {
      hearth::OperationCall call{.kind = kind, .args = {{"cents", 500}}};
      co_await operation(std::move(call), pay, look);
    } catch (const hearth::OperationUnknown&) {
      end = "unknown";
    }
    sql("INSERT OR REPLACE INTO orders VALUES(?, ?)", kind, end);
    // Else a busy server commits the end of the fiber together with that of the operation, and a
    // kill right behind that commit leaves nothing to recover.
    co_await sleep(std::chrono::milliseconds(50));
    log.info("the order is over");
  }

  Options options_;
};

HEARTH_PLUGIN("buyer-agent", "1.0.0", Buyer)
