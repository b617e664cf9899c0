#include "server/agent_visits.hpp"

#include "protocol/class_segment.hpp"

#include <future>
#include <utility>

namespace hearth::server {
namespace {

class VisitSink final : public runtime::CallSink {
 public:
  explicit VisitSink(Visited told) : told_(std::move(told)) {}
  ~VisitSink() override {
    if (told_) told_(Error{Errc::kClosing, "the server is shutting down"});
  }
  void part(const runtime::ResponseHead& /*head*/, std::string_view /*body*/) override {}
  void finish(const runtime::ResponseHead& /*head*/,
              const Result<std::string_view>& outcome) override {
    const auto told = std::exchange(told_, nullptr);
    if (outcome.has_error()) return told(outcome.error());
    told(std::string(*outcome));
  }

 private:
  Visited told_;
};

}  // namespace

std::shared_ptr<runtime::CallSink> visit_sink(Visited told) {
  return std::make_shared<VisitSink>(std::move(told));
}

void visit_agent(runtime::Runtime& runtime, const storage::AgentKey& key, VisitWork work,
                 Visited told) {
  const unsigned index = runtime.shard_index(key);
  runtime.loop(index).post([&shard = runtime.shard(index), key, work = std::move(work),
                            sink = visit_sink(std::move(told))] {
    shard.visit(key, protocol::kebab_case(key.agent_class), {.work = work, .sink = sink});
  });
}

Result<std::string> visit_agent(runtime::Runtime& runtime, const storage::AgentKey& key,
                                VisitWork work, std::chrono::steady_clock::time_point until,
                                std::function<void()> on_success) {
  // Shared: the shard may answer when the wait is over.
  const auto told = std::make_shared<std::promise<Result<std::string>>>();
  std::future<Result<std::string>> answer = told->get_future();
  visit_agent(runtime, key, std::move(work),
              [told, on_success = std::move(on_success)](const Result<std::string>& outcome) {
                if (outcome && on_success) on_success();
                told->set_value(outcome);
              });
  if (answer.wait_until(until) == std::future_status::ready) return answer.get();
  return Error{Errc::kUnavailable,
               "the agent, or the event loop that it lives on, does not answer"};
}

}  // namespace hearth::server
