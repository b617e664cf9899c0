#include "runtime/keyed_calls.hpp"

#include <functional>

namespace hearth::runtime {

Error key_of_another_call() {
  return Error{Errc::kInvalidArgument, "this key belongs to a call with other contents"};
}

// Forwards everything, and frees the key at the end.
class KeyedCalls::Sink final : public CallSink {
 public:
  Sink(std::shared_ptr<Running> running, Place place, std::unique_ptr<CallSink> to)
      : running_(std::move(running)), place_(std::move(place)), to_(std::move(to)) {}
  ~Sink() override { leave(); }

  void begun(CallId call, const extensions::Span& span, bool shows_failures) override {
    to_->begun(call, span, shows_failures);
  }
  [[nodiscard]] bool abandoned() const override { return to_->abandoned(); }
  void part(const ResponseHead& head, std::string_view body) override { to_->part(head, body); }
  void when_drained(std::function<void()> notice) override { to_->when_drained(std::move(notice)); }
  void finish(const ResponseHead& head, const Result<std::string_view>& outcome) override {
    leave();
    to_->finish(head, outcome);
  }

 private:
  void leave() {
    if (running_) running_->erase(place_);
    running_.reset();
  }

  std::shared_ptr<Running> running_;  // null: the call has ended
  const Place place_;
  const std::unique_ptr<CallSink> to_;
};

std::unique_ptr<CallSink> KeyedCalls::enter(const storage::AgentKey& agent,
                                            const extensions::CallKey& call,
                                            std::unique_ptr<CallSink> sink) {
  Place place{agent, call.key};
  const auto [at, is_new] = running_->try_emplace(place, call.fingerprint);
  if (is_new) return std::make_unique<Sink>(running_, std::move(place), std::move(sink));
  if (at->second == call.fingerprint) {
    sink->finish({423, {}}, Error{Errc::kConflict, "a call with this key is under way"});
  } else {
    sink->finish({422, {}}, key_of_another_call());
  }
  return nullptr;
}

}  // namespace hearth::runtime
