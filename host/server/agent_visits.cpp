#include "server/agent_visits.hpp"

#include "protocol/class_segment.hpp"

#include <future>
#include <memory>
#include <utility>

namespace hearth::server {
namespace {

// The result of a visit, for a thread that waits.
class AwaitedVisit final : public runtime::CallSink {
 public:
  explicit AwaitedVisit(std::function<void()> on_success) : on_success_(std::move(on_success)) {}
  ~AwaitedVisit() override {
    if (!is_told_) answer_.set_value(Error{Errc::kClosing, "the server is shutting down"});
  }
  [[nodiscard]] std::future<Result<std::string>> answer() { return answer_.get_future(); }
  void part(const runtime::ResponseHead& /*head*/, std::string_view /*body*/) override {}
  void finish(const runtime::ResponseHead& /*head*/,
              const Result<std::string_view>& outcome) override {
    is_told_ = true;
    if (outcome.has_error()) return answer_.set_value(outcome.error());
    if (on_success_) on_success_();
    answer_.set_value(std::string(*outcome));
  }

 private:
  std::function<void()> on_success_;
  std::promise<Result<std::string>> answer_;
  bool is_told_ = false;
};

}  // namespace

Result<std::string> visit_agent(runtime::Runtime& runtime, const storage::AgentKey& key,
                                std::function<Result<std::string>(extensions::AgentContext&)> work,
                                std::chrono::steady_clock::time_point until,
                                std::function<void()> on_success) {
  const unsigned index = runtime.shard_index(key);
  auto sink = std::make_shared<AwaitedVisit>(std::move(on_success));
  std::future<Result<std::string>> answer = sink->answer();
  runtime.loop(index).post([&shard = runtime.shard(index), key,
                            segment = protocol::kebab_case(key.agent_class), work = std::move(work),
                            sink = std::move(sink)]() mutable {
    shard.visit(key, segment, {.work = std::move(work), .sink = std::move(sink)});
  });
  if (answer.wait_until(until) == std::future_status::ready) return answer.get();
  return Error{Errc::kUnavailable,
               "the agent, or the event loop that it lives on, does not answer"};
}

}  // namespace hearth::server
