#include "server/agent_visits.hpp"

#include "protocol/class_segment.hpp"
#include "server/shard_questions.hpp"

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
    shard.admin().visit(key, protocol::kebab_case(key.agent_class), {.work = work, .sink = sink});
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

Result<void> destroy_agent(runtime::Runtime& runtime, const storage::AgentKey& key,
                           std::chrono::milliseconds patience) {
  struct Tried {
    runtime::AgentState state{};  // before
    Result<void> done;
  };
  using runtime::AgentState;
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto tried = ask_home(runtime, key, patience, [key](runtime::Shard& shard) {
      const AgentState state = shard.admin().standing(key).state;
      return Tried{.state = state, .done = shard.admin().destroy(key)};
    });
    if (!tried) return no_loop();
    const bool is_on_its_way = tried->state == AgentState::kWaking ||
                               tried->state == AgentState::kLeaving ||
                               tried->state == AgentState::kEnding;
    if (tried->done || !is_on_its_way) return tried->done;
    // A visit takes place when it is live or cold.
    const auto looks = [](extensions::AgentContext&) -> Result<std::string> {
      return std::string();
    };
    if (!visit_agent(runtime, key, looks, until)) return tried->done;
  }
}

}  // namespace hearth::server
