#include "net/outbound_exchange.hpp"

#include "net/outbound_failure.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace hearth::net {

RunningExchange::RunningExchange(OutboundShare& share, OutboundRequest request,
                                 OutboundTarget target, std::optional<OutboundTarget> proxy,
                                 OutboundListener& listener)
    : share_(share),
      request_(std::move(request)),
      target_(std::move(target)),
      proxy_(std::move(proxy)),
      listener_(listener),
      body_(request_.credit, request_.max_body),
      timer_(share.loop),
      self_(std::make_shared<RunningExchange*>(this)) {
  ++share_.running;
  if (request_.total_timeout.count() > 0)
    total_deadline_ = std::chrono::steady_clock::now() + request_.total_timeout;
  post([](RunningExchange& exchange) { exchange.begin_hop(); });
}

RunningExchange::~RunningExchange() {
  *self_ = nullptr;
  if (!has_ended_) --share_.running;
}

void RunningExchange::post(void (*task)(RunningExchange&)) {
  asio::post(share_.loop, [self = self_, task] {
    if (*self != nullptr) task(**self);
  });
}

void RunningExchange::credit(std::size_t bytes) {
  if (!body_.has_credit()) credit_since_ = std::chrono::steady_clock::now();
  body_.credit(bytes);
  post([](RunningExchange& exchange) { exchange.go_on(); });
}

void RunningExchange::follow() {
  post([](RunningExchange& exchange) {
    if (!exchange.has_ended_) exchange.begin_hop();
  });
}

void RunningExchange::begin_hop() {
  connect_deadline_ = std::chrono::steady_clock::now() + request_.connect_timeout;
  if (!request_.rules->may_ask(target_.host, target_.port))
    return end(rules_failure(sent_before_, target_));
  const std::string& host = proxy_ ? proxy_->host : target_.host;
  if (parse_ip_host(host)) return transfer({});
  query_ = share_.resolver(
      host, [this](Result<std::vector<IpAddress>> found) { take_addresses(std::move(found)); });
  set_timer();
}

void RunningExchange::take_addresses(Result<std::vector<IpAddress>> found) {
  query_.reset();
  if (!found)
    return end(OutboundFailure{Errc::kUnavailable, Phase::kResolve, sent_before_,
                               "the host's name cannot be resolved"});
  std::vector<IpAddress> addresses = std::move(found.value());
  if (!proxy_) {
    std::erase_if(addresses, [this](const IpAddress& address) {
      return !request_.rules->may_connect(address, target_.port);
    });
  }
  if (addresses.empty()) return end(rules_failure(sent_before_, target_));
  transfer(std::move(addresses));
}

void RunningExchange::transfer(std::vector<IpAddress> addresses) {
  uploaded_ = 0;
  transfer_ = std::make_unique<OutboundTransfer>(
      share_.curl, OutboundTransfer::Plan{.request = request_,
                                          .target = target_,
                                          .addresses = std::move(addresses),
                                          .proxy = proxy_ ? &*proxy_ : nullptr,
                                          .trusted = share_.trusted,
                                          .body = body_,
                                          .moved = [this] { go_on(); }});
  set_timer();
}

void RunningExchange::go_on() {
  if (has_ended_ || !transfer_) return;
  const std::shared_ptr<RunningExchange*> self = self_;
  if (std::optional<OutboundHead> head = transfer_->take_head()) {
    listener_.on_head(std::move(*head));
    if (*self == nullptr) return;
  }
  while (true) {
    while (const std::optional<std::string> piece = body_.take()) {
      listener_.on_body(*piece);
      if (*self == nullptr) return;
    }
    if (!transfer_->is_paused() || !body_.has_credit()) break;
    transfer_->resume();
  }
  if (transfer_->is_done() && body_.is_empty()) return finish_transfer();
  set_timer();
}

void RunningExchange::finish_transfer() {
  sent_before_ = is_sent();
  if (const std::optional<std::string>& location = transfer_->location()) {
    const Result<OutboundTarget> next = resolve_location(target_, *location);
    return redirect(next);
  }
  std::optional<OutboundFailure> failure = transfer_->failure();
  if (failure) failure->sent = sent_before_;
  end(std::move(failure));
}

void RunningExchange::redirect(const Result<OutboundTarget>& next) {
  if (redirects_++ == OutboundHttp::kMostRedirects)
    return end(OutboundFailure{Errc::kLimitExceeded, Phase::kHeaders, true,
                               "the host redirects too often"});
  const int status = transfer_->status();
  const std::uint64_t received = transfer_->dropped_bytes();
  transfer_.reset();
  connect_deadline_.reset();  // until the next hop begins
  if (!next)
    return end(OutboundFailure{Errc::kForbidden, Phase::kRules, true,
                               "the host redirects to a URL that cannot be followed"});
  if (const auto followed = follow_redirect(request_, status, next->has_origin_of(target_));
      !followed)
    return end(
        OutboundFailure{followed.error().code, Phase::kRules, true, followed.error().message});
  target_ = *next;
  set_timer();
  listener_.on_redirect({.received = received, .to_send = request_.body.size()}, *this);
}

void RunningExchange::end(std::optional<OutboundFailure> failure) {
  has_ended_ = true;
  --share_.running;
  query_.reset();
  transfer_.reset();
  timer_.cancel();
  listener_.on_end(std::move(failure));
}

// ---- deadlines ----------------------------------------------------------------------------------

bool RunningExchange::is_connected() const {
  return transfer_ && transfer_->is_sent();
}

bool RunningExchange::is_sent() const {
  return sent_before_ || is_connected();
}

OutboundFailure::Phase RunningExchange::phase() const {
  if (query_) return Phase::kResolve;
  return transfer_ ? transfer_->phase() : Phase::kConnect;
}

std::optional<RunningExchange::Time> RunningExchange::idle_deadline() const {
  if (!is_connected() || (transfer_->has_head() && !body_.has_credit())) return std::nullopt;
  return std::max(transfer_->last_activity(), credit_since_) + request_.idle_timeout;
}

std::optional<RunningExchange::Time> RunningExchange::next_deadline() const {
  std::optional<Time> next = is_connected() ? idle_deadline() : connect_deadline_;
  if (total_deadline_ && (!next || *total_deadline_ < *next)) next = total_deadline_;
  return next;
}

void RunningExchange::set_timer() {
  const std::optional<Time> next = next_deadline();
  if (!next || (rings_at_ && *rings_at_ <= *next)) return;
  rings_at_ = next;
  timer_.expires_at(*next);
  timer_.async_wait([self = self_](const boost::system::error_code& error) {
    if (!error && *self != nullptr) (*self)->ring();
  });
}

void RunningExchange::ring() {
  rings_at_.reset();
  if (has_ended_) return;
  const Time now = std::chrono::steady_clock::now();
  // Bytes that libcurl has sent meanwhile count as activity. libcurl does not report them by
  // itself.
  if (is_connected() && std::exchange(uploaded_, transfer_->bytes_uploaded()) != uploaded_)
    credit_since_ = now;
  const std::optional<Time> next = next_deadline();
  if (!next || *next > now) return set_timer();
  if (total_deadline_ && *total_deadline_ <= now)
    return end(OutboundFailure{Errc::kTimeout, phase(), is_sent(),
                               "the request was not answered within its time"});
  end(timeout_failure(phase(), is_sent()));
}

}  // namespace hearth::net
