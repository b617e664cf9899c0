#include "server/outbound_port.hpp"

#include "base/stop_point.hpp"
#include "extensions/fetch.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::server {
namespace {

using Phase = net::OutboundFailure::Phase;

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

// That nothing of the request was tried.
net::OutboundFailure refused(const Error& error) {
  return {.code = error.code, .phase = Phase::kRules, .sent = false, .message = error.message};
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
        class_(port.of_class(class_name_)),
        limits_(request.limits),
        request_(outbound_request(std::move(request))) {}
  ~Exchange() override {
    *self_ = nullptr;
    if (is_running_) leave(class_.cancelled);
  }

  void start(extensions::RemoteListener& listener) override {
    stop_point("fetch.start.committed");
    listener_ = &listener;
    ++class_.running;
    class_.in_flight.add(1);
    is_running_ = true;
    if (class_.running > limits_.concurrent) {
      return refuse_soon(Error{Errc::kLimitExceeded,
                               "egress.limits.concurrent is " + std::to_string(limits_.concurrent) +
                                   ": so many requests of the class are in progress on this shard; "
                                   "there is room when one of them ends"});
    }
    const auto later = [&loop = port_.parts_.loop, self = self_](const Result<void>& granted) {
      loop.post([self, granted] {
        if (*self != nullptr) (*self)->judged(granted);
      });
    };
    if (const auto granted = port_.parts_.budget.ask(class_name_, limits_, later)) judged(*granted);
  }

  void credit(std::uint64_t bytes) override {
    const std::uint64_t of_head = std::min(bytes, head_bytes_);
    head_bytes_ -= of_head;
    bytes -= of_head;
    if (exchange_) {
      exchange_->credit(bytes);
    } else {
      request_.credit += bytes;
    }
  }

 private:
  void judged(const Result<void>& granted) {
    if (!granted) return refuse_soon(granted.error());
    const std::uint64_t bytes = request_.body.size();
    if (const auto spent = spend(class_.sent_bytes, bytes); !spent)
      return refuse_soon(spent.error());
    auto started = port_.parts_.http.start(std::move(request_), *this);
    if (!started) return refuse_soon(started.error());
    exchange_ = *std::move(started);
  }

  Result<void> spend(Counter& counter, std::uint64_t bytes) {
    counter.add(bytes);
    return port_.parts_.budget.spend(class_name_, limits_, bytes);
  }

  // From the loop, as all that is told.
  void refuse_soon(const Error& error) {
    port_.parts_.loop.post([self = self_, failure = refused(error)] {
      if (*self != nullptr) (*self)->fail(failure);
    });
  }

  void on_head(net::OutboundHead head) override {
    extensions::Headers headers;
    for (net::HttpHeader& each : head.headers)
      headers.emplace_back(std::move(each.name), std::move(each.value));
    std::string json =
        extensions::fetch_head(static_cast<unsigned>(head.status), head.url, headers);
    head_bytes_ = json.size();
    listener_->part(std::move(json), HEARTH_FETCH_HEAD);
  }

  void on_body(std::string_view piece) override {
    const auto spent = spend(class_.received_bytes, piece.size());
    if (spent) return listener_->part(std::string(piece), 0);
    fail({.code = Errc::kLimitExceeded,
          .phase = Phase::kBody,
          .sent = true,
          .message = spent.error().message});
  }

  void on_end(std::optional<net::OutboundFailure> failure) override {
    if (failure) return fail(*failure);
    leave(class_.answered);
    listener_->end(std::string(), 0);
  }

  void fail(const net::OutboundFailure& failure) {
    exchange_.reset();
    const bool is_refused = failure.phase == Phase::kRules;
    leave(is_refused ? class_.refused : class_.failed);
    port_.parts_.logger.write_limited(is_refused ? LogLevel::kWarn : LogLevel::kInfo,
                                      is_refused ? "fetch.refused" : "fetch.failed",
                                      {class_name_, to_string(failure.code)},
                                      {{"class", class_name_},
                                       {"phase", to_string(failure.phase)},
                                       {"code", to_string(failure.code)},
                                       {"reason", failure.message}});
    const std::uint32_t flags =
        extensions::fetch_failure_flags(abi_phase(failure.phase), failure.sent);
    listener_->end(Error{failure.code, failure.message}, flags);
  }

  void leave(Counter& outcome) {
    is_running_ = false;
    outcome.add();
    --class_.running;
    class_.in_flight.add(-1);
  }

  OutboundPort& port_;
  const std::string class_name_;
  Class& class_;
  const extensions::EgressLimits limits_;
  net::OutboundRequest request_;  // until it runs
  extensions::RemoteListener* listener_ = nullptr;
  bool is_running_ = false;       // between start() and the end
  std::uint64_t head_bytes_ = 0;  // that the first credits pay for
  // What was posted finds null once it is gone.
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

}  // namespace hearth::server
