#include "runtime/agent_operations.hpp"

#include "runtime/call_sink.hpp"

#include <utility>

namespace hearth::runtime {
namespace {

Error too_many_jobs() {
  return Error{Errc::kLimitExceeded, "too many jobs wait"};
}

}  // namespace

AgentOperations::AgentOperations(Parts parts)
    : parts_(std::move(parts)), self_(std::make_shared<AgentOperations*>(this)) {}

AgentOperations::~AgentOperations() {
  *self_ = nullptr;
}

OperationId AgentOperations::begin(Operation operation) {
  const auto [id, entry] = operations_.emplace();
  entry = std::move(operation);
  return id;
}

// ---- sleep and jobs -----------------------------------------------------------------------------

OperationId AgentOperations::sleep(const Submitted& submitted, std::chrono::milliseconds time) {
  const OperationId id = begin({.submitted = submitted});
  auto wake = [self = self_, id] {
    if (*self != nullptr) (*self)->tell(id, std::string());
  };
  if (time.count() == 0) {
    parts_.loop.post(std::move(wake));  // an operation that is cancelled meanwhile is not found
  } else {
    operations_.find(id)->timer =
        parts_.loop.call_at(parts_.loop.clock().steady_now() + time, std::move(wake));
  }
  return id;
}

Result<OperationId> AgentOperations::run_offloaded(const Submitted& submitted, std::uint64_t job,
                                                   bool at_once) {
  const auto abandoned = std::make_shared<std::atomic<bool>>(false);
  const OperationId id = begin({.submitted = submitted, .abandoned = abandoned});
  const OffloadEffect effect{id, job, abandoned, submitted.work};
  if (!at_once && !parts_.outbox.open()) {
    parts_.outbox.push(effect);
  } else if (!queue_offloaded(effect)) {
    operations_.erase(id);
    return too_many_jobs();
  }
  return id;
}

bool AgentOperations::queue_offloaded(const OffloadEffect& job) {
  return parts_.run_offloaded(job, [self = self_, id = job.operation](const Result<void>& outcome) {
    if (*self == nullptr) return;
    Result<std::string> body = std::string();
    if (outcome.has_error()) body = outcome.error();
    (*self)->tell(id, std::move(body));
  });
}

bool AgentOperations::let_out(const OffloadEffect& job) {
  if (queue_offloaded(job)) return true;
  parts_.loop.post([self = self_, id = job.operation] {
    if (*self != nullptr) (*self)->tell(id, too_many_jobs());
  });
  return false;
}

// ---- drains -------------------------------------------------------------------------------------

OperationId AgentOperations::drain(const Submitted& submitted, std::shared_ptr<CallSink> sink,
                                   ConnectionId connection) {
  const OperationId id = begin({.submitted = submitted});
  push_drain(DrainEffect{id, std::move(sink), connection});
  return id;
}

// Ends behind the answer of the turn, which is yet to come.
OperationId AgentOperations::drain_turn(const Submitted& submitted) {
  const OperationId id = begin({.submitted = submitted});
  drains_after_turn_.push_back(id);
  return id;
}

void AgentOperations::end_turn() {
  for (const OperationId id : std::exchange(drains_after_turn_, {})) push_drain(DrainEffect{id});
}

// Behind the effects that it waits for.
void AgentOperations::push_drain(DrainEffect effect) {
  if (parts_.outbox.open()) {
    let_out(effect);
  } else {
    parts_.outbox.push(std::move(effect));
  }
}

// Output of sockets leaves at the end of the turn. But an HTTP answer is first posted to the loop
// of its session, which may be this loop: it leaves at the end of the next turn.
void AgentOperations::end_when_sent(OperationId id, int turns) {
  parts_.loop.turn_end().add(TurnEnd::Phase::kSend,
                             [&loop = parts_.loop, self = self_, id, turns](bool /*is_last*/) {
                               loop.post([self, id, turns] {
                                 if (*self == nullptr) return;
                                 if (turns > 1) {
                                   (*self)->end_when_sent(id, turns - 1);
                                 } else {
                                   (*self)->tell(id, std::string());
                                 }
                               });
                               return true;
                             });
}

void AgentOperations::let_out(const DrainEffect& drain) {
  const bool is_for_call = drain.sink != nullptr;
  if (!is_for_call && drain.connection == 0) return end_when_sent(drain.operation, 2);
  auto has_left = [&clients = parts_.connections, is_for_call,
                   sink = std::weak_ptr<CallSink>(drain.sink), connection = drain.connection] {
    if (connection != 0) {
      const Connection* const client = clients.find(connection);
      if (client == nullptr || client->closing || !client->port->is_open()) return true;
    }
    if (!is_for_call) return false;
    const std::shared_ptr<CallSink> there = sink.lock();
    return there == nullptr || there->abandoned();
  };
  auto tell = [&loop = parts_.loop, self = self_, has_left, id = drain.operation] {
    loop.post([self, has_left, id] {
      if (*self == nullptr) return;
      Result<std::string> outcome = std::string();
      if (has_left()) outcome = Error{Errc::kNotFound, "the client has left"};
      (*self)->tell(id, std::move(outcome));
    });
  };
  if (has_left()) return tell();
  if (is_for_call) return drain.sink->when_drained(std::move(tell));
  parts_.connections.find(drain.connection)->port->when_drained(std::move(tell));
}

// ---- operations outside of the agent ----

OperationId AgentOperations::start(const Submitted& submitted,
                                   std::unique_ptr<extensions::RemoteOperation> remote) {
  return begin_remote({.submitted = submitted, .remote = std::move(remote)});
}

void AgentOperations::send_notice(std::string notice,
                                  std::unique_ptr<extensions::RemoteOperation> remote) {
  (void)begin_remote({.notice = std::move(notice), .remote = std::move(remote)});
}

OperationId AgentOperations::begin_remote(Operation operation) {
  operation.began = parts_.loop.clock().steady_now();
  const OperationId id = begin(std::move(operation));
  operations_.find(id)->answer = std::make_unique<Answer>(*this, id);
  parts_.outbox.push(RemoteEffect{id});
  return id;
}

void AgentOperations::let_out(const RemoteEffect& remote) {
  Operation* const found = operations_.find(remote.operation);
  if (found != nullptr) found->remote->start(*found->answer);
}

Result<void> AgentOperations::credit(OperationId id, std::uint64_t bytes) {
  Operation* const found = operations_.find(id);
  if (found == nullptr || !found->notice.empty())
    return Error{Errc::kNotFound, "no such operation"};
  if (!found->remote) return Error{Errc::kUnsupported, "the operation has no parts"};
  found->remote->credit(bytes);
  return {};
}

void AgentOperations::Answer::part(std::string body, std::uint32_t flags) {
  operations_.tell(id_, std::move(body), false, flags);
}

void AgentOperations::Answer::end(Result<std::string> outcome, std::uint32_t flags) {
  operations_.tell(id_, std::move(outcome), true, flags);
}

// A notification is a row of the agent, which says what it waits for.
std::vector<extensions::Wait> AgentOperations::waits() {
  std::vector<extensions::Wait> all;
  operations_.for_each([&](OperationId /*id*/, const Operation& operation) {
    if (!operation.remote || !operation.notice.empty()) return;
    auto wait = operation.remote->wait();
    if (!wait) return;
    wait->since_ms = unix_millis_of(operation.began, parts_.loop.clock());
    all.push_back(*std::move(wait));
  });
  return all;
}

// ---- ends ---------------------------------------------------------------------------------------

void AgentOperations::tell(OperationId id, Result<std::string> outcome, bool is_final,
                           std::uint32_t flags) {
  if (parts_.loan.is_out()) {
    parts_.loan.postpone([this, id, outcome = std::move(outcome), is_final, flags] {
      tell(id, outcome, is_final, flags);
    });
    return;
  }
  Operation* const found = operations_.find(id);
  if (found == nullptr || (!is_final && !found->notice.empty())) return;
  OperationNews news{.of = found->submitted,
                     .notice = found->notice,
                     .outcome = std::move(outcome),
                     .is_final = is_final,
                     .flags = flags,
                     .remote = found->remote.get()};
  if (is_final) {
    news.listener = std::move(found->answer);
    news.ended = std::move(found->remote);
    operations_.erase(id);
  }
  parts_.tell(std::move(news));
}

Result<void> AgentOperations::cancel(OperationId id) {
  Operation* const found = operations_.find(id);
  if (found == nullptr || !found->notice.empty())
    return Error{Errc::kNotFound, "no such operation"};
  parts_.loop.cancel_timer(found->timer);
  if (found->abandoned) *found->abandoned = true;
  operations_.erase(id);
  return {};
}

void AgentOperations::abandon() {
  operations_.for_each([this](OperationId, Operation& operation) {
    parts_.loop.cancel_timer(operation.timer);
    if (operation.abandoned) *operation.abandoned = true;
    operation.remote.reset();
  });
}

}  // namespace hearth::runtime
