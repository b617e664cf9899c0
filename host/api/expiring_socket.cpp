#include "api/expiring_socket.hpp"

#include "base/close_codes.hpp"
#include "runtime/loop_timer.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace hearth::api {
namespace {

constexpr std::string_view kExpired = "the token has expired";

// A longer time would leave the bounds of the clock's arithmetic. A connection does not last that
// long.
constexpr std::int64_t kLongestMs = std::int64_t{1000} * 60 * 60 * 24 * 365 * 10;

class ExpiringSocket final : public net::WebSocketListener {
 public:
  ExpiringSocket(std::shared_ptr<net::WebSocketListener> listener, net::WebSocket& socket,
                 runtime::ShardLoop& loop, SteadyTime due)
      : listener_(std::move(listener)),
        timer_(loop, due, [&socket] { socket.close(kCloseUnauthorized, kExpired); }) {}

  void on_message(std::string_view payload, bool is_text) override {
    listener_->on_message(payload, is_text);
  }
  void on_close(CloseCode code, std::string_view reason, bool was_clean) override {
    timer_.cancel();
    listener_->on_close(code, reason, was_clean);
  }

 private:
  const std::shared_ptr<net::WebSocketListener> listener_;
  runtime::LoopTimer timer_;
};

}  // namespace

std::shared_ptr<net::WebSocketListener> close_when_expired(
    std::shared_ptr<net::WebSocketListener> listener, net::WebSocket& socket,
    runtime::ShardLoop& loop, std::int64_t ends_at) {
  if (listener == nullptr) return listener;
  const Clock& clock = loop.clock();
  const std::int64_t now_ms = unix_millis(clock.wall_now());
  const std::int64_t left = std::clamp<std::int64_t>(ends_at * 1000 - now_ms, 0, kLongestMs);
  const SteadyTime due = clock.steady_now() + std::chrono::milliseconds(left);
  return std::make_shared<ExpiringSocket>(std::move(listener), socket, loop, due);
}

}  // namespace hearth::api
