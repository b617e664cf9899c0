#pragma once
// A client of a test: how an agent sees it, and the receivers of answers.

#include "extensions/abi_status.hpp"
#include "runtime/call_sink.hpp"
#include "runtime/connection_port.hpp"

#include <hearth/testing/mock.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::testhost {

using testing::detail::CallRecord;
using testing::detail::ClientRecord;

// Before the JSON in the runtime's frames of the state, which are no frames of the agent's.
inline constexpr std::string_view kStateFrame = "\x01state ";

// Threads  The test's.
struct TestClient {
  std::shared_ptr<ClientRecord> seen;
  runtime::ConnectionId id = 0;
  std::vector<std::function<void()>> drained;  // called once it reads again
  // The agent has closed it: the runtime must be told.
  std::function<void(std::uint16_t code, const std::string& why)> closed;

  [[nodiscard]] bool is_held() const { return seen->open && seen->held; }
  void hold(bool hold) {
    seen->held = hold;
    if (hold) return;
    for (testing::ReceivedFrame& frame : std::exchange(seen->unread, {}))
      seen->received.push_back(std::move(frame));
    for (const auto& notice : std::exchange(drained, {})) notice();
  }
  void end(unsigned code, std::string why, bool clean) {
    seen->open = false;
    seen->close_code = code;
    seen->close_reason = std::move(why);
    seen->close_clean = clean;
    for (const auto& notice : std::exchange(drained, {})) notice();
  }
};

class TestPort final : public runtime::ConnectionPort {
 public:
  explicit TestPort(std::shared_ptr<TestClient> client) : client_(std::move(client)) {}

  void send(std::string_view payload, runtime::FrameKind kind) override {
    ClientRecord& seen = *client_->seen;
    if (!seen.open) return;
    if (payload.starts_with(kStateFrame)) return show_state(payload.substr(kStateFrame.size()));
    (seen.held ? seen.unread : seen.received)
        .push_back({std::string(payload), kind == runtime::FrameKind::kBinary});
  }
  void send_handshake(const runtime::Handshake& handshake) override {
    if (handshake.state) show_state(*handshake.state);
  }
  void close(std::uint16_t code, std::string_view reason) override {
    if (!client_->seen->open) return;
    client_->end(code, std::string(reason), true);
    if (client_->closed) client_->closed(code, std::string(reason));
  }
  void when_drained(std::function<void()> notice) override {
    if (!client_->is_held()) return notice();
    client_->drained.push_back(std::move(notice));
  }
  [[nodiscard]] bool is_open() const override { return client_->seen->open; }
  void set_reading(bool /*reading*/) override {}

 private:
  void show_state(std::string_view json) const {
    client_->seen->state.reset();
    if (!json.empty()) client_->seen->state = json;
  }

  const std::shared_ptr<TestClient> client_;
};

// Fills the record of an event.
class RecordSink final : public runtime::CallSink {
 public:
  // `client`: the one that waits for the answer; null: none. `process`: once it has expired, no
  // answer is noted any more.
  RecordSink(std::shared_ptr<CallRecord> record, std::shared_ptr<TestClient> client,
             std::weak_ptr<bool> process)
      : record_(std::move(record)), client_(std::move(client)), process_(std::move(process)) {}

  void begun(runtime::CallId call, const extensions::Span& /*span*/, bool /*shows*/) override {
    record_->id = call;
  }
  [[nodiscard]] bool abandoned() const override {
    return client_ != nullptr && !client_->seen->open;
  }
  void part(const runtime::ResponseHead& head, std::string_view body) override {
    note(head);
    record_->parts.emplace_back(body);
  }
  void when_drained(std::function<void()> notice) override {
    if (client_ == nullptr || !client_->is_held()) return notice();
    client_->drained.push_back(std::move(notice));
  }
  void finish(const runtime::ResponseHead& head, const Result<std::string_view>& outcome) override {
    if (record_->done || process_.expired()) return;
    note(head);
    record_->done = true;
    record_->status = outcome ? HEARTH_OK : extensions::to_status(outcome.error().code);
    record_->body = outcome ? std::string(*outcome) : outcome.error().message;
  }

 private:
  void note(const runtime::ResponseHead& head) const {
    record_->http_status = head.status;
    record_->response_headers = head.headers;
  }

  const std::shared_ptr<CallRecord> record_;
  const std::shared_ptr<TestClient> client_;
  const std::weak_ptr<bool> process_;
};

// Calls a function with the outcome.
class OutcomeSink final : public runtime::CallSink {
 public:
  using Then = std::function<void(const Result<std::string_view>& outcome)>;
  explicit OutcomeSink(Then then) : then_(std::move(then)) {}
  void part(const runtime::ResponseHead& /*head*/, std::string_view /*body*/) override {}
  void finish(const runtime::ResponseHead& /*head*/,
              const Result<std::string_view>& outcome) override {
    if (then_) then_(outcome);
  }

 private:
  const Then then_;
};

}  // namespace hearth::testhost
