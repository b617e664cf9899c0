// An agent that orders poems from a provider (tests/support/provider.mjs, /poems). Each poem is one
// operation, whose request is in the ledger. Plugin "poet-agent", class Poet, option `provider`:
// the provider's URL.
//
//   POST /?kind=keyed     begins a fiber with one operation of that kind. The kinds "request" and
//                         "resumed" are of class unsafe: one acts by its request, the other says
//                         how to ask for the rest of a poem
//   table poems           what came of it: the kind, the poem, and 'written', 'unknown' or 'failed'
//   log                   "the poem is over"

#include <hearth/agent.hpp>
#include <hearth/sse.hpp>

#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

class Poet : public hearth::Agent {
 public:
  struct Options {
    std::string provider;
    HEARTH_FIELDS(provider)
  };
  explicit Poet(Options options) : options_(std::move(options)) {
    sql("CREATE TABLE IF NOT EXISTS poems(kind TEXT PRIMARY KEY, poem TEXT, end TEXT NOT NULL)");
  }

  static void methods(hearth::Methods<Poet>& m) {
    using hearth::Effect;
    m.fiber("write", &Poet::write);
    hearth::OperationKind kind = {.effect = Effect::kKeyed,
                                  .same = "the fiber of the poem",
                                  .interrupted = "as the class of its effect says",
                                  .upstream = "writes one poem for a key if it is asked to",
                                  .unknown = "the work ends, and says so"};
    m.operation("keyed", kind);
    kind.effect = Effect::kUnsafe;
    m.operation("unsafe", kind);
    kind.acts_by_request = true;
    m.operation("request", kind);
    kind.acts_by_request = false;
    kind.resume = &go_on;
    m.operation("resumed", kind);
  }

  hearth::Task<hearth::Response> on_request(const hearth::Request& request) override {
    start_fiber("write", hearth::Json(request.query("kind").value_or("unsafe")));
    return hearth::Response(202);
  }

 private:
  static hearth::ResumedFetch go_on(const hearth::FetchRequest& request,
                                    const hearth::PartialAnswer& answer) {
    const hearth::WholeEvents whole = hearth::whole_events(answer.body);
    hearth::ResumedFetch rest = {.request = request, .from = whole.bytes};
    rest.request.method = "GET";
    if (!whole.last_id.empty()) rest.request.headers.emplace_back("Last-Event-ID", whole.last_id);
    return rest;
  }
  hearth::Task<std::string> order(hearth::OperationAttempt attempt, std::string path) {
    hearth::FetchRequest request{.method = "POST",
                                 .url = options_.provider + path,
                                 .headers = {{"X-Server-Pid", std::to_string(::getpid())}},
                                 .op = std::move(attempt.id)};
    auto response = co_await fetch(std::move(request));
    if (!response.ok())
      throw hearth::Error(HEARTH_E_BUSY, "status " + std::to_string(response.status()));
    hearth::SseReader lines(response);
    std::string poem;
    while (auto line = co_await lines.next()) poem += line->data + " ";
    co_return poem;
  }
  hearth::Task<void> write(std::string kind, hearth::FiberContext&) {
    const std::string path = kind == "keyed" ? "/poems?once" : "/poems";
    const auto act = [this, path](hearth::OperationAttempt attempt) {
      return order(std::move(attempt), path);
    };
    std::string poem;
    std::string end = "written";
    try {
      hearth::OperationCall call{.kind = kind};
      poem = co_await operation(std::move(call), act);
    } catch (const hearth::OperationUnknown& unknown) {
      end = "unknown";
      if (const auto part = partial_answer(unknown.id())) poem = part->body;
    } catch (const hearth::FetchError&) {
      end = "failed";
    }
    sql("INSERT OR REPLACE INTO poems VALUES(?, ?, ?)", kind, poem, end);
    co_await sleep(std::chrono::milliseconds(1));
    log.info("the poem is over");
  }

  Options options_;
};

HEARTH_PLUGIN("poet-agent", "1.0.0", Poet)
