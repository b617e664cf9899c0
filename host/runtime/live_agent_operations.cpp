// Operations that an agent submits: see hearth/ext/sleep.h, offload.h and drain.h, and those that
// go on outside of it.
#include "extensions/call_rules.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <utility>

namespace hearth::runtime {
namespace {

Error too_many_jobs() {
  return Error{Errc::kLimitExceeded, "too many jobs wait"};
}

}  // namespace

Result<void> LiveAgent::may_submit() const {
  if (shutting()) return Error{Errc::kClosing, "the agent is being evicted"};
  if (!instance_)
    return Error{Errc::kForbidden, "operations begin after create, in START or later"};
  if (operations_.size() >= services_.limits().max_operations)
    return Error{Errc::kLimitExceeded, "too many operations in flight"};
  return {};
}

Result<OperationId> LiveAgent::submit(std::uint32_t operation, std::string_view request,
                                      std::uint64_t token) {
  if (const auto may = may_submit(); may.has_error()) return may.error();
  const auto read = extensions::read_operation(operation, request, class_->runs_jobs());
  if (read.has_error()) return read.error();
  const auto [id, entry] = operations_.emplace();
  entry.operation = operation;
  entry.token = token;
  entry.call = current_call_;
  entry.span = current_span_;
  Result<void> started;
  switch (read->kind) {
    case extensions::OperationKind::kSleep: start_sleep(id, read->number); break;
    case extensions::OperationKind::kOffload: started = start_job(id, read->number); break;
    case extensions::OperationKind::kDrain: started = start_drain(id, read->number); break;
  }
  if (started.has_error()) {
    operations_.erase(id);
    return started.error();
  }
  return id;
}

Result<OperationId> LiveAgent::submit(std::uint32_t operation,
                                      std::unique_ptr<extensions::RemoteOperation> remote,
                                      std::uint64_t token) {
  if (const auto may = may_submit(); may.has_error()) return may.error();
  if (phase_ == AgentPhase::kMigrating)
    return Error{Errc::kForbidden, "nothing leaves an agent while its data are migrated"};
  const auto [id, entry] = operations_.emplace();
  entry.operation = operation;
  entry.token = token;
  entry.call = current_call_;
  entry.span = current_span_;
  entry.answer = std::make_unique<RemoteAnswer>(*this, id);
  entry.remote = std::move(remote);
  outbox_.push(RemoteEffect{id});
  return id;
}

void LiveAgent::let_out(const RemoteEffect& effect) {
  Operation* const found = operations_.find(effect.operation);
  if (found != nullptr) found->remote->start(*found->answer);
}

Result<void> LiveAgent::credit(OperationId id, std::uint64_t bytes) {
  Operation* const found = operations_.find(id);
  if (found == nullptr || !found->notice.empty())
    return Error{Errc::kNotFound, "no such operation"};
  if (!found->remote) return Error{Errc::kUnsupported, "the operation has no parts"};
  found->remote->credit(bytes);
  return {};
}

void LiveAgent::RemoteAnswer::part(std::string body, std::uint32_t flags) {
  agent_.tell_remote(id_, std::move(body), false, flags);
}

void LiveAgent::RemoteAnswer::end(Result<std::string> outcome, std::uint32_t flags) {
  agent_.tell_remote(id_, outcome, true, flags);
}

void LiveAgent::tell_remote(OperationId id, const Result<std::string>& outcome, bool is_final,
                            std::uint32_t flags) {
  if (postpone([this, id, outcome, is_final, flags] { tell_remote(id, outcome, is_final, flags); }))
    return;
  Operation* const found = operations_.find(id);
  if (found == nullptr || shutting() || broken_ || !instance_) return;
  if (!found->notice.empty()) {
    if (!is_final) return;
    const std::string notice = std::move(found->notice);
    operations_.erase(id);
    return end_notice(notice, outcome, flags);
  }
  OperationResult result{.outcome = std::string_view(),
                         .operation = found->operation,
                         .token = found->token,
                         .is_final = is_final,
                         .flags = flags};
  if (outcome.has_error()) {
    result.outcome = outcome.error();
  } else {
    result.outcome = std::string_view(*outcome);
  }
  const CallId call = found->call;
  const Span span = found->span;
  if (is_final) operations_.erase(id);
  {
    Entry entry(*this, call, span);
    instance_->on_result(result);
  }
  leave();
}

void LiveAgent::start_sleep(OperationId id, std::uint64_t milliseconds) {
  ShardLoop& loop = services_.loop();
  auto wake = [self = self_, id] {
    if (*self != nullptr) (*self)->end_operation(id, std::string_view());
  };
  if (milliseconds == 0) {
    loop.post(std::move(wake));  // one that is cancelled meanwhile is not found
    return;
  }
  const SteadyTime due = loop.clock().steady_now() + std::chrono::milliseconds(milliseconds);
  operations_.find(id)->timer = loop.call_at(due, std::move(wake));
}

Result<void> LiveAgent::start_job(OperationId id, std::uint64_t job) {
  JobEffect effect{id, job, std::make_shared<std::atomic<bool>>(false)};
  operations_.find(id)->abandoned = effect.abandoned;
  // A migration may wait for a job, and commits nothing before it has ended.
  if (!outbox_.open() && phase_ != AgentPhase::kMigrating) {
    outbox_.push(std::move(effect));
  } else if (!queue_job(effect)) {
    return too_many_jobs();
  }
  return {};
}

Result<void> LiveAgent::start_drain(OperationId id, CallId call_id) {
  if (call_id == 0) {  // behind the answer of the turn, which is yet to come
    drains_after_turn_.push_back(id);
    return {};
  }
  const Call* call = calls_.find(call_id);
  if (call == nullptr || !call->sink) return Error{Errc::kNotFound, "no such call"};
  push_drain(DrainEffect{id, call->sink, call->connection});
  return {};
}

// Behind what it is about.
void LiveAgent::push_drain(DrainEffect effect) {
  if (outbox_.open()) {
    let_out(effect);
  } else {
    outbox_.push(std::move(effect));
  }
}

// What sockets have gathered leaves at the end of the turn, but an HTTP answer is posted first to
// the loop of its session, which may be this one: it leaves at the end of the next.
void LiveAgent::end_when_sent(OperationId id, int turns) {
  ShardLoop& loop = services_.loop();
  loop.turn_end().add(TurnEnd::Phase::kSend, [&loop, self = self_, id, turns](bool /*is_last*/) {
    loop.post([self, id, turns] {
      if (*self == nullptr) return;
      if (turns > 1) {
        (*self)->end_when_sent(id, turns - 1);
      } else {
        (*self)->end_operation(id, std::string_view());
      }
    });
    return true;
  });
}

void LiveAgent::let_out(const DrainEffect& drain) {
  if (!drain.sink) return end_when_sent(drain.operation, 2);
  const auto has_left = [](LiveAgent& agent, const std::weak_ptr<CallSink>& sink,
                           ConnectionId connection) {
    if (connection != 0 && agent.clients_.connection(connection) == nullptr) return true;
    const std::shared_ptr<CallSink> there = sink.lock();
    return there == nullptr || there->abandoned();
  };
  const std::weak_ptr<CallSink> sink = drain.sink;
  auto tell = [&loop = services_.loop(), self = self_, sink, id = drain.operation,
               connection = drain.connection, has_left] {
    loop.post([self, sink, id, connection, has_left] {
      if (*self == nullptr) return;
      Result<std::string_view> outcome = std::string_view();
      if (has_left(**self, sink, connection))
        outcome = Error{Errc::kNotFound, "the client has left"};
      (*self)->end_operation(id, outcome);
    });
  };
  if (has_left(*this, sink, drain.connection)) return tell();
  drain.sink->when_drained(std::move(tell));
}

bool LiveAgent::queue_job(const JobEffect& effect) {
  return services_.run_job(class_, effect.job, effect.abandoned,
                           [self = self_, id = effect.operation](const Result<void>& outcome) {
                             if (*self == nullptr) return;
                             Result<std::string_view> body = std::string_view();
                             if (outcome.has_error()) body = outcome.error();
                             (*self)->end_operation(id, body);
                           });
}

void LiveAgent::start_held_job(const JobEffect& effect) {
  if (queue_job(effect)) return;
  // It was accepted, so it must hear that it will not run.
  (void)class_->run_job(effect.job, true);
  services_.loop().post([self = self_, id = effect.operation] {
    if (*self != nullptr) (*self)->end_operation(id, too_many_jobs());
  });
}

void LiveAgent::end_operation(OperationId id, const Result<std::string_view>& outcome) {
  // (Only an error has a text; what succeeds has none that could be borrowed.)
  if (postpone([this, id, outcome] { end_operation(id, outcome); })) return;
  const Operation* found = operations_.find(id);
  if (found == nullptr || shutting() || broken_ || !instance_) return;
  const OperationResult result{outcome, found->operation, found->token};
  const CallId call = found->call;
  const Span span = found->span;
  operations_.erase(id);
  {
    Entry entry(*this, call, span);
    instance_->on_result(result);
  }
  leave();
}

Result<void> LiveAgent::cancel(OperationId id) {
  Operation* found = operations_.find(id);
  if (found == nullptr || !found->notice.empty())
    return Error{Errc::kNotFound, "no such operation"};
  services_.loop().cancel_timer(found->timer);
  if (found->abandoned) *found->abandoned = true;
  operations_.erase(id);
  return {};
}

void LiveAgent::abandon_operations() {
  operations_.for_each([this](OperationId, Operation& operation) {
    services_.loop().cancel_timer(operation.timer);
    if (operation.abandoned) *operation.abandoned = true;
    operation.remote.reset();
  });
}

}  // namespace hearth::runtime
