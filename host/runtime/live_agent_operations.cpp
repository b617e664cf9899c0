// Operations of an agent: which ones it may submit, and how it gets their results. The rest is in
// agent_operations.hpp.
#include "extensions/call_rules.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <utility>

namespace hearth::runtime {

Result<void> LiveAgent::may_submit() const {
  if (shutting()) return Error{Errc::kClosing, "the agent is being evicted"};
  if (!instance_)
    return Error{Errc::kForbidden, "operations begin after create, in START or later"};
  if (operations_.size() >= services_.limits.max_operations)
    return Error{Errc::kLimitExceeded, "too many operations in flight"};
  return {};
}

Result<OperationId> LiveAgent::submit(std::uint32_t operation, std::string_view request,
                                      std::uint64_t token) {
  if (const auto may = may_submit(); may.has_error()) return may.error();
  const auto read = extensions::read_operation(operation, request, class_->runs_jobs());
  if (read.has_error()) return read.error();
  const AgentOperations::Submitted submitted{
      operation, token, code_.call(), code_.method(), code_.span(), code_.work(), cause_to_carry()};
  switch (read->kind) {
    case extensions::OperationKind::kSleep:
      return operations_.sleep(submitted, std::chrono::milliseconds(read->number));
    case extensions::OperationKind::kOffload:
      // A migration may wait for a job, and commits nothing before it has ended.
      return operations_.run_job(submitted, read->number, phase_ == AgentPhase::kMigrating);
    case extensions::OperationKind::kDrainClient:
      if (clients_.connection(read->number) == nullptr)
        return Error{Errc::kNotFound, "no such client"};
      return operations_.drain_client(submitted, read->number);
    case extensions::OperationKind::kDrain: break;
  }
  if (read->number == 0) return operations_.drain_turn(submitted);
  const Call* const call = calls_.find(read->number);
  if (call == nullptr || !call->sink) return Error{Errc::kNotFound, "no such call"};
  return operations_.drain(submitted, call->sink, call->connection);
}

Result<OperationId> LiveAgent::submit(std::uint32_t operation,
                                      std::unique_ptr<extensions::RemoteOperation> remote,
                                      std::uint64_t token) {
  if (const auto may = may_submit(); may.has_error()) return may.error();
  if (phase_ == AgentPhase::kMigrating)
    return Error{Errc::kForbidden, "nothing leaves an agent while its data are migrated"};
  return operations_.start({operation, token, code_.call(), code_.method(), code_.span(),
                            code_.work(), cause_to_carry()},
                           std::move(remote));
}

// A fiber outlives the handler that began it: its later changes do not count as the handler's.
std::shared_ptr<extensions::StateCause> LiveAgent::cause_to_carry() const {
  const bool is_durable = code_.work().value_or(WorkMark()) != WorkMark();
  return is_durable ? nullptr : state_cause_;
}

Result<void> LiveAgent::credit(OperationId operation, std::uint64_t bytes) {
  return operations_.credit(operation, bytes);
}

Result<void> LiveAgent::cancel(OperationId operation) {
  return operations_.cancel(operation);
}

// A job that was accepted and cannot run is called, so that it cleans up.
void LiveAgent::let_out(const JobEffect& job) {
  if (!operations_.let_out(job)) (void)class_->run_job(job.job, true, origin_of(job));
}

void LiveAgent::tell(OperationNews news) {
  if (shutting() || broken_ || !instance_) return;
  if (!news.notice.empty()) {
    news.ended.reset();
    return notice_ended(news);
  }
  const bool is_kept = guard([&] {
    if (news.remote != nullptr) news.remote->telling(news.outcome, news.is_final, news.flags);
  });
  if (!is_kept) return leave();
  news.ended.reset();  // the code may begin another operation in its place
  OperationResult result{.outcome = std::string_view(),
                         .operation = news.of.operation,
                         .token = news.of.token,
                         .is_final = news.is_final,
                         .flags = news.flags};
  if (news.outcome.has_error()) {
    result.outcome = news.outcome.error();
  } else {
    result.outcome = std::string_view(*news.outcome);
  }
  {
    const auto entry = enter_code(news.of.call, news.of.span, news.of.method);
    if (news.of.work) does(news.of.work);
    state_cause_ = news.of.state_cause;
    instance_->on_result(result);
  }
  state_cause_.reset();
  leave();
}

}  // namespace hearth::runtime
