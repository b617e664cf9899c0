#include "api/agent_socket.hpp"

#include "api/http_errors.hpp"
#include "protocol/client_frame.hpp"
#include "protocol/server_frames.hpp"
#include "runtime/loop_timer.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hearth::api {
namespace {

using runtime::FrameKind;
using runtime::ResponseHead;

constexpr bool kIsText = true;

// The answer to one call. A sink is never used after the port of its connection is gone, and the
// port holds the socket. So a plain reference to the socket is enough.
class RpcAnswer final : public runtime::CallSink {
 public:
  RpcAnswer(net::WebSocket& socket, std::string_view id_json) : socket_(socket), id_(id_json) {}

  void begun(runtime::CallId /*call*/, const extensions::Span& span, bool shows_failures) override {
    text_.begun(span, shows_failures);
  }

  void part(const ResponseHead& /*head*/, std::string_view value) override {
    socket_.send(protocol::rpc_chunk_frame(id_, value), kIsText);
  }

  void when_drained(std::function<void()> notice) override {
    socket_.when_drained(std::move(notice));
  }

  void finish(const ResponseHead& /*head*/, const Result<std::string_view>& outcome) override {
    if (outcome.has_error()) {
      socket_.send(protocol::rpc_error_frame(id_, text_.of(outcome.error())), kIsText);
    } else if (outcome->empty()) {
      socket_.send(protocol::rpc_void_frame(id_), kIsText);
    } else {
      socket_.send(protocol::rpc_result_frame(id_, *outcome), kIsText);
    }
  }

 private:
  net::WebSocket& socket_;
  const std::string id_;  // JSON
  FailureText text_;
};

// The answer to a write of the state. Clients assume that a write succeeds, so only a refusal is
// answered. The agent sends the true state after it.
class StateAnswer final : public runtime::CallSink {
 public:
  // `problem`: why the state cannot be accepted, whatever the agent decides; empty: it can.
  StateAnswer(net::WebSocket& socket, std::string problem)
      : socket_(socket), problem_(std::move(problem)) {}

  void part(const ResponseHead& /*head*/, std::string_view /*value*/) override {}

  void finish(const ResponseHead& head, const Result<std::string_view>& outcome) override {
    if (outcome.has_value()) return;
    // The agent's own check may say kForbidden too, for a connection that is not read-only.
    const bool readonly = head.status == 403;
    std::string text(readonly ? protocol::kReadonlyConnection : protocol::kStateRejected);
    if (!readonly && !problem_.empty()) text += ": " + problem_;
    socket_.send(protocol::state_error_frame(text), kIsText);
  }

 private:
  net::WebSocket& socket_;
  const std::string problem_;
};

class SocketPort final : public runtime::ConnectionPort {
 public:
  explicit SocketPort(std::shared_ptr<net::WebSocket> socket) : socket_(std::move(socket)) {}

  void send(std::string_view payload, FrameKind kind) override {
    socket_->send(payload, kind == FrameKind::kText);
  }

  void send_shared(const SharedBytes& payload, FrameKind kind) override {
    socket_->send(payload, kind == FrameKind::kText);
  }

  void send_handshake(const runtime::Handshake& handshake) override {
    const auto follows =
        handshake.state ? protocol::StateFollows::kYes : protocol::StateFollows::kNo;
    if (handshake.identity) {
      socket_->send(
          protocol::identity_frame(handshake.agent_name, handshake.agent_segment, follows),
          kIsText);
    }
    // Right behind the identity that announces it: clients wait for this frame only.
    if (handshake.state) socket_->send(protocol::state_frame(*handshake.state), kIsText);
    socket_->send(protocol::mcp_servers_frame(), kIsText);
  }

  void close(std::uint16_t code, std::string_view reason) override { socket_->close(code, reason); }

  void when_drained(std::function<void()> notice) override {
    socket_->when_drained(std::move(notice));
  }
  [[nodiscard]] bool is_open() const override { return socket_->is_open(); }
  [[nodiscard]] std::size_t unsent_bytes() const override { return socket_->buffered(); }
  [[nodiscard]] std::optional<SteadyTime> behind_since() const override {
    return socket_->behind_since();
  }

  void set_reading(bool reading) override {
    if (reading) {
      socket_->resume_reading();
    } else {
      socket_->pause_reading();
    }
  }

 private:
  const std::shared_ptr<net::WebSocket> socket_;
};

class AgentSocket final : public net::WebSocketListener {
 public:
  // Both outlive the listener's last call: the network ensures that for the socket.
  AgentSocket(runtime::Shard& shard, net::WebSocket& socket) : shard_(shard), socket_(socket) {}

  void let_in(runtime::ConnectionId id) { id_ = id; }

  void on_message(std::string_view payload, bool is_text) override {
    if (!is_text) {
      shard_.message(id_, payload, FrameKind::kBinary);
      return;
    }
    std::string mended;
    const protocol::ClientFrame frame = protocol::classify_client_frame(payload, mended);
    if (const auto* call = std::get_if<protocol::RpcCall>(&frame)) {
      if (!call->problem.empty()) {
        socket_.send(protocol::rpc_error_frame(call->id_json, call->problem), kIsText);
        return;
      }
      shard_.call(id_, call->method, call->args_json,
                  std::make_unique<RpcAnswer>(socket_, call->id_json));
    } else if (const auto* write = std::get_if<protocol::StateWrite>(&frame)) {
      const bool can_be_taken = write->problem.empty();
      shard_.write_state(id_, can_be_taken ? write->state_json : std::string_view(),
                         std::make_unique<StateAnswer>(socket_, write->problem));
    } else {
      shard_.message(id_, payload, FrameKind::kText);
    }
  }

  void on_close(std::uint16_t code, std::string_view reason, bool was_clean) override {
    shard_.disconnected(id_, code, reason, was_clean);
  }

 private:
  runtime::Shard& shard_;
  net::WebSocket& socket_;
  runtime::ConnectionId id_ = 0;
};

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

// For a socket that was accepted only to be closed.
class RefusedSocket final : public net::WebSocketListener {
 public:
  void on_message(std::string_view /*payload*/, bool /*is_text*/) override {}
  void on_close(std::uint16_t /*code*/, std::string_view /*reason*/, bool /*was_clean*/) override {}
};

}  // namespace

std::shared_ptr<net::WebSocketListener> open_agent_socket(
    runtime::Shard& shard, const std::shared_ptr<net::WebSocket>& socket,
    const storage::AgentKey& key, std::string_view segment, runtime::ConnectRequest request) {
  auto listener = std::make_shared<AgentSocket>(shard, *socket);
  // The agent may greet or close the client within this call; nothing comes from the socket before
  // this function returns.
  listener->let_in(
      shard.connect(key, segment, std::move(request), std::make_unique<SocketPort>(socket)));
  return listener;
}

std::shared_ptr<net::WebSocketListener> refuse_socket(net::WebSocket& socket, CloseCode code,
                                                      std::string_view reason) {
  socket.close(code, reason);
  return std::make_shared<RefusedSocket>();
}

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
