#include "runtime/agent_call_router.hpp"

#include "base/credit.hpp"
#include "base/mutex.hpp"
#include "runtime/call_sink.hpp"
#include "runtime/shard.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

class OutgoingCall;

// Connects the two ends of one call, which share it.
struct CallWire {
  explicit CallWire(ShardLoop& callers) : loop(callers) {}

  ShardLoop& loop;               // the caller's
  OutgoingCall* call = nullptr;  // null once the call is given up; only on the caller's shard
  std::atomic<bool> abandoned{false};
  std::atomic<bool> began{false};

  Mutex mutex;
  std::size_t unread GUARDED_BY(mutex) = 0;  // bytes of parts that the caller has not received
  std::vector<std::function<void()>> drained GUARDED_BY(mutex);  // several may wait at once

  // The caller has received this many more bytes.
  void taken(std::size_t bytes) {
    std::vector<std::function<void()>> notices;
    {
      const MutexLock lock(mutex);
      unread -= bytes;
      if (unread <= AgentCallRouter::kFewUnread) notices.swap(drained);
    }
    for (const auto& each : notices) each();
  }
  void abandon() {
    abandoned = true;
    std::vector<std::function<void()>> notices;
    {
      const MutexLock lock(mutex);
      notices.swap(drained);
    }
    for (const auto& each : notices) each();
  }
};

using Wire = std::shared_ptr<CallWire>;

// The caller's end.
class OutgoingCall final : public extensions::RemoteOperation {
 public:
  OutgoingCall(ShardLoop& loop, AgentCallPaths& paths, extensions::AgentCall call)
      : wire_(std::make_shared<CallWire>(loop)),
        paths_(paths),
        call_(std::move(call)),
        callee_{call_.agent_class, call_.name},
        method_(call_.method),
        credit_(call_.window) {
    wire_->call = this;
  }
  ~OutgoingCall() override {
    wire_->call = nullptr;
    wire_->abandon();
    stop_waiting();
  }

  void start(extensions::RemoteListener& listener) override;
  void credit(std::uint64_t bytes) override {
    raise_credit(credit_, bytes);
    if (parts_.empty()) return;
    wire_->loop.post([wire = wire_] {
      if (wire->call != nullptr) wire->call->tell();
    });
  }

  [[nodiscard]] std::optional<extensions::Wait> wait() const override {
    return extensions::Wait{.kind = extensions::WaitKind::kAgentCall,
                            .subject = callee_.agent_class + '/' + callee_.name,
                            .detail = method_};
  }

  // ---- from the callee's end, on the caller's shard ----
  void part(std::string body) {
    parts_.push_back(std::move(body));
    tell();
  }
  void end(Result<std::string> outcome) {
    if (end_) return;
    end_ = std::move(outcome);
    if (end_->has_error()) call_.span.fail(to_string(end_->error().code));
    call_.span.end();
    stop_waiting();
    tell();
  }

 private:
  void describe_span() {
    if (!call_.span.is_open()) return;
    call_.span.name(callee_.agent_class + '.' + method_);
    call_.span.set("hearth.callee.class", callee_.agent_class);
    call_.span.set("hearth.callee.name", callee_.name);
  }
  void fail(Error why);
  // Gives the listener what its credit allows. This object may be gone afterwards.
  void tell();
  void stop_waiting() {
    if (std::exchange(waits_, false))
      paths_.waits.remove(call_.origin->waiting, callee_, runs_alone_);
  }

  const Wire wire_;
  AgentCallPaths& paths_;
  extensions::AgentCall call_;
  storage::AgentKey callee_;  // until start(): as the caller has named it
  const std::string method_;
  bool waits_ = false;  // it is in paths_.waits
  bool runs_alone_ = false;
  extensions::RemoteListener* listener_ = nullptr;
  std::uint64_t credit_ = 0;
  std::deque<std::string> parts_;
  std::optional<Result<std::string>> end_;
};

// The callee's end.
class AgentCallSink final : public CallSink {
 public:
  explicit AgentCallSink(Wire wire) : wire_(std::move(wire)) {}
  ~AgentCallSink() override { end(Error{Errc::kClosing, "the agent left; try again"}); }

  void begun(CallId /*call*/, const extensions::Span& /*span*/, bool /*shows_failures*/) override {
    wire_->began = true;
  }
  [[nodiscard]] bool abandoned() const override { return wire_->abandoned; }

  void part(const ResponseHead& /*head*/, std::string_view body) override {
    {
      const MutexLock lock(wire_->mutex);
      wire_->unread += body.size();
      if (wire_->unread > AgentCallRouter::kMaxUnread) wire_->abandoned = true;
    }
    if (wire_->abandoned)
      return end(Error{Errc::kUnavailable, "the caller reads the answer too slowly"});
    wire_->loop.post([wire = wire_, text = std::string(body)]() mutable {
      if (wire->call != nullptr) wire->call->part(std::move(text));
    });
  }

  void when_drained(std::function<void()> notice) override {
    {
      const MutexLock lock(wire_->mutex);
      if (!wire_->abandoned && wire_->unread > AgentCallRouter::kFewUnread)
        return wire_->drained.push_back(std::move(notice));
    }
    notice();
  }

  void finish(const ResponseHead& /*head*/, const Result<std::string_view>& outcome) override {
    if (outcome.has_error()) return end(outcome.error());
    end(std::string(*outcome));
  }

 private:
  void end(Result<std::string> outcome) {
    if (std::exchange(ended_, true)) return;
    wire_->loop.post([wire = wire_, told = std::move(outcome)] {
      if (wire->call != nullptr) wire->call->end(told);
    });
  }

  const Wire wire_;
  bool ended_ = false;
};

std::string shown(const storage::AgentKey& agent) {
  return agent.agent_class + " \"" + agent.name + "\"";
}

// Finds a class by its own name or its segment, not by an alias. Never null.
Result<std::shared_ptr<const ServedClass>> find_class(const ClassRegistry& classes,
                                                      std::string_view named) {
  auto served = classes.find(named);
  if (!served) served = classes.find_by_name(named);
  if (served) return served;
  if (classes.is_expected_name(named)) return Error{Errc::kUnavailable, "the class is not loaded"};
  return Error{Errc::kNotFound, "there is no class " + std::string(named)};
}

void OutgoingCall::start(extensions::RemoteListener& listener) {
  listener_ = &listener;
  describe_span();
  if (call_.origin->depth > extensions::kMaxCallDepth)
    return fail({Errc::kLimitExceeded, "more than " + std::to_string(extensions::kMaxCallDepth) +
                                           " calls between agents wait for each other"});
  const auto found = find_class(paths_.classes, call_.agent_class);
  if (!found) return fail(found.error());
  const auto& served = *found;
  callee_ = {std::string(served->agent_class->name()), std::move(call_.name)};
  if (served->settings.is_object && !callee_.is_sub_agent() && paths_.object_name) {
    auto name = paths_.object_name(callee_.name);
    if (!name) return fail(name.error());
    callee_.name = *std::move(name);
  }
  describe_span();
  const extensions::CallOrder order = served->call_order();
  if (order.holds_calls() && !call_.origin->waiting.empty()) {
    runs_alone_ = order.runs_alone(EventKind::kCall, call_.method);
    waits_ = paths_.waits.add(call_.origin->waiting, callee_, runs_alone_);
    if (!waits_) return fail({Errc::kConflict, "agent " + shown(callee_) + " waits for this call"});
  }
  auto incoming = std::make_shared<Shard::AgentCallIn>(
      Shard::AgentCallIn{.key = callee_,
                         .segment = served->segment,
                         .method = std::move(call_.method),
                         .arguments = std::move(call_.arguments),
                         .origin = call_.origin,
                         .timeout = call_.timeout,
                         .must_exist = call_.must_exist});
  paths_.post(callee_, [wire = wire_, incoming](Shard& shard) {
    const auto arrive = [wire, incoming, &shard] {
      shard.call(*incoming, std::make_unique<AgentCallSink>(wire));
    };
    if (incoming->origin->notification.empty()) return arrive();
    shard.pace(arrive);
  });
}

void OutgoingCall::fail(Error why) {
  wire_->loop.post([wire = wire_, why = std::move(why)] {
    if (wire->call != nullptr) wire->call->end(why);
  });
}

void OutgoingCall::tell() {
  const Wire wire = wire_;
  while (wire->call != nullptr && !parts_.empty() && credit_ > 0) {
    std::string part = std::move(parts_.front());
    parts_.pop_front();
    credit_ -= std::min<std::uint64_t>(credit_, part.size());
    wire->taken(part.size());
    listener_->part(std::move(part), 0);
  }
  if (wire->call == nullptr || !end_ || !parts_.empty()) return;
  const bool failed = end_->has_error();
  const std::uint32_t flags = failed && wire->began ? extensions::kCallBegan : 0U;
  wire->call = nullptr;
  listener_->end(*std::move(end_), flags);
}

}  // namespace

Result<std::string> AgentCallRouter::class_name(std::string_view named) const {
  const auto served = find_class(paths_.classes, named);
  if (!served) return served.error();
  return std::string((*served)->agent_class->name());
}

std::unique_ptr<extensions::RemoteOperation> AgentCallRouter::call(extensions::AgentCall call) {
  return std::make_unique<OutgoingCall>(loop_, paths_, std::move(call));
}

}  // namespace hearth::runtime
