#pragma once
// One exchange: from its first URL, through redirects, to the end of the answer.

#include "net/credited_body.hpp"
#include "net/net_loop.hpp"
#include "net/outbound_target.hpp"
#include "net/outbound_transfer.hpp"
#include "net/trust_store.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace hearth::net {

// What the exchanges of one OutboundHttp share.
//
// Lifetime  Outlives them.
struct OutboundShare {
  asio::io_context& loop;
  NameResolver resolver;
  TrustStore trusted;
  CurlLoop curl;
  std::size_t running = 0;
};

// Each hop: check the URL, resolve, check the addresses, transfer. The listener is called only from
// tasks of the loop, and each call may destroy the exchange.
//
// Deadlines One timer is set to the earliest deadline. Bytes that arrive do not set it again; if it
//           fires too early, it is set again then.
class RunningExchange final : public OutboundExchange {
 public:
  // The request is valid, and the targets are its parsed URLs.
  RunningExchange(OutboundShare& share, OutboundRequest request, OutboundTarget target,
                  std::optional<OutboundTarget> proxy, OutboundListener& listener);
  ~RunningExchange() override;

  void credit(std::size_t bytes) override;
  void follow() override;
  [[nodiscard]] OutboundFailure::Phase phase() const override;

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Phase = OutboundFailure::Phase;

  void post(void (*task)(RunningExchange&));
  void begin_hop();
  void take_addresses(Result<std::vector<IpAddress>> found);
  void transfer(std::vector<IpAddress> addresses);
  void go_on();
  void finish_transfer();
  void redirect(const Result<OutboundTarget>& next);
  void end(std::optional<OutboundFailure> failure);

  [[nodiscard]] bool is_connected() const;
  [[nodiscard]] bool is_sent() const;
  [[nodiscard]] std::optional<Time> next_deadline() const;
  [[nodiscard]] std::optional<Time> idle_deadline() const;
  void set_timer();
  void ring();

  OutboundShare& share_;
  OutboundRequest request_;
  OutboundTarget target_;
  const std::optional<OutboundTarget> proxy_;
  OutboundListener& listener_;
  CreditedBody body_;

  NameQuery query_;                             // while a name is resolved
  std::unique_ptr<OutboundTransfer> transfer_;  // after that, until the end of the hop
  int redirects_ = 0;
  bool sent_before_ = false;  // in an earlier hop
  bool has_ended_ = false;

  NetTimer timer_;
  std::optional<Time> rings_at_;
  std::optional<Time> connect_deadline_;
  std::optional<Time> total_deadline_;
  Time credit_since_{};        // the idle time begins here if no byte has arrived since
  std::int64_t uploaded_ = 0;  // at the last check of the idle time

  // Null after the destructor. Shared with the loop's tasks.
  const std::shared_ptr<RunningExchange*> self_;
};

}  // namespace hearth::net
