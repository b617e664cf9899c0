#include "server/outbound_port.hpp"

#include "base/authority.hpp"
#include "base/credit.hpp"
#include "base/secret_mask.hpp"
#include "base/stop_point.hpp"
#include "extensions/agent_line.hpp"
#include "extensions/fetch.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::server {
namespace {

using Phase = net::OutboundFailure::Phase;

// Behind the text of a refusal by the rules.
constexpr std::string_view kHowToAllow =
    ": egress.allow of its class can allow it if egress.deny does not name it; a private address "
    "must be listed itself";

net::HttpHeaders outbound_headers(extensions::Headers headers) {
  net::HttpHeaders all;
  for (auto& [name, value] : headers) all.push_back({std::move(name), std::move(value)});
  return all;
}

net::OutboundRequest outbound_request(extensions::FetchRequest request) {
  net::OutboundRequest out;
  out.method = std::move(request.method);
  out.url = std::move(request.url);
  out.headers = outbound_headers(std::move(request.headers));
  out.secret_headers = outbound_headers(std::move(request.secret_headers));
  out.body = std::move(request.body);
  out.follow_redirects = request.follow_redirects;
  out.http2 = request.http2;
  out.proxy = std::move(request.proxy);
  out.connect_timeout = request.connect_timeout;
  out.idle_timeout = request.idle_timeout;
  out.total_timeout = request.total_timeout;
  out.max_body = request.max_bytes;
  out.credit = request.window;
  out.rules = std::move(request.rules);
  return out;
}

// A provider repeats the key alone, without "Bearer".
std::string_view key_of(const net::HttpHeaders& secret_headers) {
  if (secret_headers.empty()) return {};
  const std::string_view value = secret_headers.front().value;
  return value.substr(value.rfind(' ') + 1);
}

std::uint32_t abi_phase(Phase phase) {
  switch (phase) {
    case Phase::kRules: return HEARTH_FETCH_PHASE_RULES;
    case Phase::kResolve: return HEARTH_FETCH_PHASE_RESOLVE;
    case Phase::kConnect: return HEARTH_FETCH_PHASE_CONNECT;
    case Phase::kTls: return HEARTH_FETCH_PHASE_TLS;
    case Phase::kSend: return HEARTH_FETCH_PHASE_SEND;
    case Phase::kHeaders: return HEARTH_FETCH_PHASE_HEADERS;
    case Phase::kBody: return HEARTH_FETCH_PHASE_BODY;
  }
  return HEARTH_FETCH_PHASE_BODY;
}

std::string host_of(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t from = scheme == std::string::npos ? 0 : scheme + 3;
  return url.substr(from, std::min(url.find_first_of("/?#", from), url.size()) - from);
}

// Nothing of the request was sent.
net::OutboundFailure refused(const Error& error) {
  return {.code = error.code, .phase = Phase::kRules, .sent = false, .message = error.message};
}

// The answer is cut off.
net::OutboundFailure too_much(const Error& error) {
  return {.code = error.code, .phase = Phase::kBody, .sent = true, .message = error.message};
}

Counter& fetch_outcome(Metrics& metrics, const std::string& name, const char* outcome) {
  return metrics.counter("hearth_fetch_requests_total", "Requests of agents to other servers.",
                         {{"class", name}, {"outcome", outcome}});
}

Counter& fetch_bytes(Metrics& metrics, const std::string& name, const char* direction) {
  return metrics.counter("hearth_fetch_bytes_total",
                         "Bytes of the bodies of requests to other servers, and of their answers.",
                         {{"class", name}, {"direction", direction}});
}

}  // namespace

// One request. It waits for the budget, then runs.
class OutboundPort::Exchange final : public extensions::RemoteOperation,
                                     private net::OutboundListener {
 public:
  Exchange(OutboundPort& port, extensions::FetchRequest request)
      : port_(port),
        class_name_(std::move(request.agent_class)),
        agent_(std::move(request.agent)),
        call_(request.call),
        method_(std::move(request.its_method)),
        trace_(std::move(request.trace)),
        span_(std::move(request.span)),
        class_(port.of_class(class_name_)),
        limits_(request.limits),
        request_(outbound_request(std::move(request))),
        mask_(key_of(request_.secret_headers)),
        host_(host_of(request_.url)) {
    raise_credit(request_.credit, mask_.size());  // what waits in the mask gets no credit
    if (span_.is_open()) describe_span();
  }
  ~Exchange() override {
    *self_ = nullptr;
    if (is_running_) leave(class_.cancelled);
  }

  void start(extensions::RemoteListener& listener) override {
    stop_point("fetch.start.committed");
    listener_ = &listener;
    class_.in_flight.add(1);
    is_running_ = true;
    const auto entered = port_.parts_.budget.enter(class_name_, limits_);
    if (!entered) return refuse_soon(entered.error());
    has_place_ = true;
    ask(request_.body.size());
  }

  void credit(std::uint64_t bytes) override {
    const std::uint64_t of_head = std::min(bytes, head_bytes_);
    head_bytes_ -= of_head;
    bytes -= of_head;
    if (exchange_) {
      exchange_->credit(bytes);
    } else {
      raise_credit(request_.credit, bytes);
    }
  }

  [[nodiscard]] std::optional<extensions::Wait> wait() const override {
    const std::string phase =
        exchange_ ? "the phase is " + std::string(to_string(exchange_->phase())) + ", "
                  : "it waits for the budget of its class, ";
    return extensions::Wait{
        .kind = extensions::WaitKind::kRequest,
        .subject = host_,
        .detail = phase + std::to_string(received_) + " bytes of the answer are here"};
  }

 private:
  // Without the path and the query, which may hold secrets.
  void describe_span() {
    span_.name(request_.method);
    span_.set("hearth.agent.class", class_name_);
    span_.set("hearth.agent.name", agent_);
    span_.set("http.request.method", request_.method);
    const auto authority = parse_authority(host_);
    span_.set("server.address", authority ? authority->host : host_);
  }

  // For the first request, and for each request after a redirect.
  void ask(std::uint64_t body) {
    asked_body_ = body;
    asked_ = port_.parts_.loop.clock().wall_now();
    const auto later = [&parts = port_.parts_, self = self_, class_name = class_name_,
                        limits = limits_, body, asked = asked_](const Result<void>& granted) {
      parts.loop.post([&parts, self, class_name, limits, body, asked, granted] {
        if (*self != nullptr) {
          (*self)->judged(granted);
        } else if (granted) {  // cancelled meanwhile; nothing was sent
          parts.budget.give_back(class_name, limits, body, asked);
        }
      });
    };
    if (const auto granted = port_.parts_.budget.ask(class_name_, limits_, body, later))
      judged(*granted);
  }

  void judged(const Result<void>& granted) {
    if (!is_running_) {  // the deadline came first
      if (granted) give_back();
      return;
    }
    if (!granted) return refuse_soon(granted.error());
    if (!exchange_) {
      auto started = port_.parts_.start(std::move(request_), *this);
      if (!started) {
        give_back();
        return refuse_soon(started.error());
      }
      exchange_ = *std::move(started);
    } else {
      exchange_->follow();
    }
    class_.sent_bytes.add(asked_body_);
  }

  void give_back() { port_.parts_.budget.give_back(class_name_, limits_, asked_body_, asked_); }

  Result<void> receive(std::uint64_t bytes) {
    class_.received_bytes.add(bytes);
    received_ += bytes;
    return port_.parts_.budget.spend(class_name_, limits_, bytes);
  }

  // From the loop, like all results.
  void refuse_soon(const Error& error) {
    net::OutboundFailure failure = refused(error);
    failure.sent = exchange_ != nullptr;  // an exchange: a redirect was answered before
    port_.parts_.loop.post([self = self_, failure = std::move(failure)] {
      if (*self != nullptr && (*self)->is_running_) (*self)->fail(failure);
    });
  }

  void on_redirect(net::OutboundRedirect redirect, net::OutboundExchange& /*exchange*/) override {
    if (const auto received = receive(redirect.received); !received)
      return fail(too_much(received.error()));
    ask(redirect.to_send);
  }

  void on_head(net::OutboundHead head) override {
    span_.set("http.response.status_code", std::int64_t{head.status});
    if (head.status >= 400) span_.fail(std::to_string(head.status));
    extensions::Headers headers;
    for (net::HttpHeader& each : head.headers)
      headers.emplace_back(std::move(each.name), mask_.hide(std::move(each.value)));
    std::string json =
        extensions::fetch_head(static_cast<unsigned>(head.status), mask_.hide(std::move(head.url)),
                               headers, head.until_close);
    head_bytes_ = json.size();
    listener_->part(std::move(json), HEARTH_FETCH_HEAD);
  }

  void on_body(std::string_view piece) override {
    const auto received = receive(piece.size());
    if (!received) return fail(too_much(received.error()));
    std::string part = mask_.feed(piece);
    if (!part.empty()) listener_->part(std::move(part), 0);
  }

  void on_end(std::optional<net::OutboundFailure> failure) override {
    if (failure) {
      if (!failure->sent) give_back();
      return fail(*failure);
    }
    // After a failure it stays out: with the rest of a resumed answer it might be the key.
    const auto self = self_;
    if (std::string rest = mask_.end(); !rest.empty()) listener_->part(std::move(rest), 0);
    if (*self == nullptr) return;
    span_.end();
    leave(class_.answered);
    listener_->end(std::string(), 0);
  }

  void fail(net::OutboundFailure failure) {
    const bool is_of_day = failure.code == Errc::kTooLarge;  // EgressBudget
    if (is_of_day) failure.code = Errc::kLimitExceeded;
    exchange_.reset();
    const bool is_refused = failure.phase == Phase::kRules;
    const std::string refused_host = mask_.hide(std::move(failure.host));
    if (!refused_host.empty()) failure.message += kHowToAllow;
    span_.fail(to_string(failure.code));
    span_.end();
    leave(is_refused ? class_.refused : class_.failed);
    std::vector<LogField> line = extensions::agent_line({.agent_class = class_name_,
                                                         .agent = agent_,
                                                         .call = call_,
                                                         .method = method_,
                                                         .trace = trace_},
                                                        {{"phase", to_string(failure.phase)},
                                                         {"code", to_string(failure.code)},
                                                         {"reason", failure.message}});
    if (!refused_host.empty()) line.emplace_back("host", refused_host);
    port_.parts_.logger.write_limited(is_refused ? LogLevel::kWarn : LogLevel::kInfo,
                                      is_refused ? "fetch.refused" : "fetch.failed",
                                      {class_name_, to_string(failure.code)}, line);
    const std::uint32_t flags =
        extensions::fetch_failure_flags(abi_phase(failure.phase), failure.sent) |
        (is_of_day ? std::uint32_t{HEARTH_FETCH_OF_DAY} : 0);
    listener_->end(Error{failure.code, failure.message}, flags);
  }

  void leave(Counter& outcome) {
    is_running_ = false;
    outcome.add();
    if (has_place_) port_.parts_.budget.leave(class_name_);
    class_.in_flight.add(-1);
  }

  OutboundPort& port_;
  const std::string class_name_;
  const std::string agent_;
  const extensions::CallId call_;
  const std::string method_;
  const std::string trace_;
  extensions::OpenSpan span_;
  Class& class_;
  const extensions::EgressLimits limits_;
  net::OutboundRequest request_;  // moved from when it runs
  SecretMask mask_;               // of the answer
  const std::string host_;        // of the first request, with the port
  std::uint64_t received_ = 0;    // bytes of answers
  extensions::RemoteListener* listener_ = nullptr;
  bool is_running_ = false;       // between start() and the end
  bool has_place_ = false;        // enter() has succeeded, leave() is due
  std::uint64_t asked_body_ = 0;  // bytes of the body in the last ask()
  WallTime asked_{};              // when that was
  std::uint64_t head_bytes_ = 0;  // the first credits are used for these
  // Null for posted tasks once this object is gone.
  const std::shared_ptr<Exchange*> self_ = std::make_shared<Exchange*>(this);
  std::unique_ptr<net::OutboundExchange> exchange_;
};

OutboundPort::Class::Class(Metrics& metrics, const std::string& name)
    : answered(fetch_outcome(metrics, name, "answered")),
      failed(fetch_outcome(metrics, name, "failed")),
      refused(fetch_outcome(metrics, name, "refused")),
      cancelled(fetch_outcome(metrics, name, "cancelled")),
      sent_bytes(fetch_bytes(metrics, name, "sent")),
      received_bytes(fetch_bytes(metrics, name, "received")),
      in_flight(metrics.gauge("hearth_fetch_in_flight",
                              "Requests to other servers that have not ended.",
                              {{"class", name}})) {}

OutboundPort::Class& OutboundPort::of_class(const std::string& name) {
  return classes_.try_emplace(name, parts_.metrics, name).first->second;
}

Result<std::unique_ptr<extensions::RemoteOperation>> OutboundPort::make(
    extensions::FetchRequest request) {
  return std::make_unique<Exchange>(*this, std::move(request));
}

std::shared_ptr<const EgressRules> everywhere() {
  const std::array<std::string, 3> all{"*", "0.0.0.0/0", "::/0"};
  auto rules = EgressRules::parse(all, {});
  return std::make_shared<const EgressRules>(rules ? *std::move(rules) : EgressRules());
}

Result<std::unique_ptr<WaysOut>> WaysOut::open(
    const std::filesystem::path& file, const config::ServerConfig& settings,
    std::span<const std::unique_ptr<runtime::AsioLoop>> loops, const Clock& clock, Random& random,
    Metrics& metrics, Logger& logger) {
  std::unique_ptr<WaysOut> ways;
  try {
    ways.reset(new WaysOut(file, clock, logger));
  } catch (const StorageError& failure) {  // start-up: the operator can do something about it
    return Error{Errc::kUnavailable,
                 "what classes have used of their limits, " + file.native() +
                     ", cannot be read: " + failure.what() +
                     ". Put it back from a backup, or remove it: then they begin anew"};
  }
  for (const auto& loop : loops) {
    auto made = net::OutboundHttp::make(loop->context(),
                                        {.max_exchanges = settings.egress.max_requests,
                                         .extra_ca_file = settings.egress.ca_file.native()});
    if (!made) return Error{made.error().code, "egress.ca_file: " + made.error().message};
    net::OutboundHttp& http = *ways->clients_.emplace_back(*std::move(made));
    ways->ports_.push_back(std::make_unique<OutboundPort>(OutboundPort::Parts{
        .loop = *loop,
        .start =
            [&http](net::OutboundRequest request, net::OutboundListener& listener) {
              return http.start(std::move(request), listener);
            },
        .budget = ways->budget_,
        .metrics = metrics,
        .logger = logger}));
  }
  if (!settings.tracing.endpoint.empty()) {
    auto started = SpanExporter::start({.settings = settings.tracing,
                                        .egress = settings.egress,
                                        .clock = clock,
                                        .random = random,
                                        .metrics = metrics,
                                        .logger = logger});
    if (!started) return started.error();
    ways->exporter_ = *std::move(started);
  }
  return ways;
}

}  // namespace hearth::server
