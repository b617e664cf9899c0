#include "api/sub_agent_gate.hpp"

#include "api/agent_socket.hpp"
#include "api/http_errors.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace hearth::api {
namespace {

constexpr unsigned kFirstRefusal = 400;
constexpr unsigned kFirstServerError = 500;
constexpr CloseCode kCloseForStatus = 4000;

// Whether the client should retry: the cause of the refusal is temporary.
bool may_pass(Errc code) {
  return code == Errc::kUnavailable || code == Errc::kClosing || code == Errc::kCancelled ||
         code == Errc::kTimeout || code == Errc::kLimitExceeded;
}

CloseCode close_code_of(unsigned status) {
  const bool is_clients = status >= kFirstRefusal && status < kFirstServerError;
  return is_clients ? static_cast<CloseCode>(kCloseForStatus + status) : kCloseInternalError;
}

std::optional<GateRefusal> refusal_of(const runtime::ResponseHead& head,
                                      const Result<std::string_view>& outcome,
                                      const FailureText& text) {
  GateRefusal refusal;
  if (outcome.has_error()) {
    const Error& error = outcome.error();
    const int status = http_status(error.code);
    refusal.answer = error_answer(status, to_string(error.code), text.of(error));
    refusal.close_code =
        may_pass(error.code) ? kCloseTryAgainLater : close_code_of(static_cast<unsigned>(status));
    return refusal;
  }
  if (head.status < kFirstRefusal) return std::nullopt;
  refusal.answer.status = static_cast<int>(head.status);
  for (const auto& [name, value] : head.headers) refusal.answer.headers.push_back({name, value});
  refusal.answer.body = *outcome;
  refusal.close_code = close_code_of(head.status);
  return refusal;
}

// The questions to all gates, and how many were asked. The sink of the open question keeps it
// alive.
class Questions final : public std::enable_shared_from_this<Questions> {
 public:
  using Decided = std::function<void(std::optional<GateRefusal>)>;

  Questions(runtime::Shard& shard, runtime::ShardLoop& loop, std::vector<Gate> gates,
            GateRequest request, Decided decided)
      : shard_(shard),
        loop_(loop),
        gates_(std::move(gates)),
        request_(std::move(request)),
        decided_(std::move(decided)) {}

  void ask() {
    if (asked_ == gates_.size()) return decided_(std::nullopt);
    const Gate& gate = gates_[asked_++];
    auto head = std::make_unique<runtime::RequestHead>();
    head->target = request_.target;
    head->headers = request_.headers;
    head->claims = request_.claims;
    shard_.ask_for_sub_agent(gate.above, gate.segment, gate.child, std::move(head),
                             std::make_unique<Answer>(shared_from_this()));
  }

 private:
  class Answer final : public runtime::CallSink {
   public:
    explicit Answer(std::shared_ptr<Questions> questions) : questions_(std::move(questions)) {}
    void begun(runtime::CallId /*call*/, const extensions::Span& span,
               bool shows_failures) override {
      text_.begun(span, shows_failures);
    }
    void part(const runtime::ResponseHead& /*head*/, std::string_view /*body*/) override {}
    void finish(const runtime::ResponseHead& head,
                const Result<std::string_view>& outcome) override {
      // Post it: a sink may not call back into the runtime.
      questions_->loop_.post([questions = questions_, refusal = refusal_of(head, outcome, text_)] {
        if (refusal) return questions->decided_(refusal);
        questions->ask();
      });
    }

   private:
    const std::shared_ptr<Questions> questions_;
    FailureText text_;
  };

  runtime::Shard& shard_;
  runtime::ShardLoop& loop_;
  const std::vector<Gate> gates_;
  const GateRequest request_;
  const Decided decided_;
  std::size_t asked_ = 0;
};

class GatedSocket final : public net::WebSocketListener {
 public:
  // Null while the agents are asked, and after a refusal.
  void let_in(std::shared_ptr<net::WebSocketListener> agent) { agent_ = std::move(agent); }
  [[nodiscard]] bool is_gone() const { return is_gone_; }

  void on_message(std::string_view payload, bool is_text) override {
    if (agent_) agent_->on_message(payload, is_text);
  }
  void on_close(CloseCode code, std::string_view reason, bool was_clean) override {
    is_gone_ = true;
    if (agent_) agent_->on_close(code, reason, was_clean);
  }

 private:
  std::shared_ptr<net::WebSocketListener> agent_;
  bool is_gone_ = false;
};

}  // namespace

void ask_gates(runtime::Shard& shard, runtime::ShardLoop& loop, std::vector<Gate> gates,
               GateRequest request, std::function<void(std::optional<GateRefusal>)> decided) {
  std::make_shared<Questions>(shard, loop, std::move(gates), std::move(request), std::move(decided))
      ->ask();
}

std::shared_ptr<net::WebSocketListener> open_gated_socket(
    runtime::Shard& shard, runtime::ShardLoop& loop, const std::shared_ptr<net::WebSocket>& socket,
    std::vector<Gate> gates, std::string segment, runtime::ConnectRequest request,
    std::function<bool()> is_withdrawn) {
  auto listener = std::make_shared<GatedSocket>();
  socket->pause_reading();
  GateRequest question{request.target, request.headers, request.claims};
  const storage::AgentKey key = gates.back().child;
  auto decided = [&shard, listener, socket, key, segment = std::move(segment),
                  request = std::move(request), is_withdrawn = std::move(is_withdrawn)](
                     const std::optional<GateRefusal>& refusal) mutable {  // called once
    if (listener->is_gone()) return;
    if (is_withdrawn()) {
      socket->resume_reading();
      socket->close(kCloseServiceRestart, kAccessChanged);
      return;
    }
    if (refusal) {
      socket->resume_reading();
      socket->close(refusal->close_code, "Sub-agent connection rejected (" +
                                             std::to_string(refusal->answer.status) + ")");
      return;
    }
    socket->resume_reading();  // first: the agent may pause it at once
    listener->let_in(open_agent_socket(shard, socket, key, segment, std::move(request)));
  };
  ask_gates(shard, loop, std::move(gates), std::move(question), std::move(decided));
  return listener;
}

bool makes_too_many(runtime::Shard& shard, const net::ClientAddress* address,
                    const storage::AgentKey& key) {
  if (address == nullptr) return false;
  try {
    return !shard.exists(key) && !address->may_make_agent();
  } catch (const StorageError&) {  // agent boundary
    return false;
  }
}

bool makes_too_many(runtime::Shard& shard, const net::ClientAddress* address,
                    const std::vector<Gate>& way, const storage::AgentKey& key) {
  return std::ranges::any_of(way,
                             [&shard, address](const Gate& gate) {
                               return makes_too_many(shard, address, gate.above);
                             }) ||
         makes_too_many(shard, address, key);
}

}  // namespace hearth::api
