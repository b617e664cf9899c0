#pragma once
// The operations of a live agent that are in progress: what it waits for beside its calls.

#include "base/error.hpp"
#include "base/slot_map.hpp"
#include "extensions/call_rules.hpp"
#include "extensions/remote_operation.hpp"
#include "extensions/trace.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/outbox.hpp"
#include "runtime/shard_loop.hpp"
#include "runtime/types.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::runtime {

// What the agent's code says of an operation that it submits, and in which call and trace.
struct SubmittedOperation {
  std::uint32_t operation = 0;
  std::uint64_t token = 0;
  CallId call = 0;
  std::string method = {};                                   // of that, for the log
  extensions::Span span = {};                                // of what has submitted it
  std::optional<std::int64_t> fiber = {};                    // whose work it is: JobOrigin::fiber
  std::shared_ptr<extensions::StateCause> state_cause = {};  // null: no STATE_CHANGED
};

// What operations ask of their agent.
class OperationsOwner {
 public:
  OperationsOwner() = default;
  OperationsOwner(const OperationsOwner&) = delete;
  OperationsOwner& operator=(const OperationsOwner&) = delete;

  // Runs a job elsewhere, then `done` on this shard. False: too many wait.
  virtual bool queue_job(const JobEffect& job, std::function<void(Result<void>)> done) = 0;
  // Calls a job that will not run, so that it can clean up.
  virtual void drop_job(const JobEffect& job) = 0;
  [[nodiscard]] virtual bool has_client(ConnectionId id) const = 0;

  // While another thread has the agent's database: `step` is done when it is back. False: nobody
  // has it.
  virtual bool postpone(std::function<void()> step) = 0;
  // Whether the instance may be told of results. What it may not be told is dropped.
  [[nodiscard]] virtual bool hears_results() const = 0;
  // Has `write` write what an operation keeps of the result that follows, in the same turn. False:
  // the database has failed, and there is nobody to be told.
  virtual bool keep(const std::function<void()>& write) = 0;
  // Tells the instance. The operations may be gone afterwards.
  virtual void tell(const SubmittedOperation& of, const OperationResult& result) = 0;
  // A notification has been answered. The operations may be gone afterwards.
  virtual void notice_ended(const std::string& notice, const Result<std::string>& outcome,
                            std::uint32_t flags) = 0;

 protected:
  ~OperationsOwner() = default;
};

// Promises
//  P1 Gate     What reaches the outside (a job, a remote operation) leaves through the outbox.
//  P2 Results  Each operation has one final result, unless it is cancelled or abandoned. Parts come
//              before it.
//  P3 Later    No result comes from inside a function that begins an operation.
//  P4 Hidden   A notification is the host's: it can neither be cancelled nor given credit.
//
// Bounded     By its agent: at most RuntimeLimits::max_operations are begun.
// Threads     The agent's shard.
// Lifetime    All that it is given outlives it. Tasks of the loop that come later find it gone.
class AgentOperations {
 public:
  AgentOperations(OperationsOwner& owner, ShardLoop& loop, Outbox& outbox);
  ~AgentOperations();
  AgentOperations(const AgentOperations&) = delete;
  AgentOperations& operator=(const AgentOperations&) = delete;

  using Submitted = SubmittedOperation;

  OperationId sleep(const Submitted& submitted, std::chrono::milliseconds time);
  // `at_once`: it does not wait for what was written before. kLimitExceeded: too many jobs wait.
  Result<OperationId> run_job(const Submitted& submitted, std::uint64_t job, bool at_once);
  // Ends when the client of a call has taken what was sent before: kNotFound if it has left.
  OperationId drain(const Submitted& submitted, std::shared_ptr<CallSink> sink,
                    ConnectionId connection);
  // Ends when the answer of the turn that is on the stack is on its way.
  OperationId drain_turn(const Submitted& submitted);
  OperationId start(const Submitted& submitted,
                    std::unique_ptr<extensions::RemoteOperation> remote);
  // A notification, whose end is notice_ended().
  void send_notice(std::string notice, std::unique_ptr<extensions::RemoteOperation> remote);

  Result<void> cancel(OperationId id);
  Result<void> credit(OperationId id, std::uint64_t bytes);

  // The instance has returned.
  void end_turn();
  // The instance goes: no result comes any more.
  void abandon();

  // From the outbox.
  void let_out(const JobEffect& job);
  void let_out(const DrainEffect& drain);
  void let_out(const RemoteEffect& remote);
  // A job that will not leave is called all the same, to clean up.
  void discard(const JobEffect& job);

  [[nodiscard]] bool empty() const { return operations_.empty(); }
  [[nodiscard]] std::size_t size() const { return operations_.size(); }

 private:
  // Brings what a remote operation tells.
  class Answer final : public extensions::RemoteListener {
   public:
    Answer(AgentOperations& operations, OperationId id) : operations_(operations), id_(id) {}
    void part(std::string body, std::uint32_t flags) override;
    void end(Result<std::string> outcome, std::uint32_t flags) override;

   private:
    AgentOperations& operations_;  // it owns this
    const OperationId id_;
  };
  struct Operation {
    Submitted submitted{};
    std::string notice{};                            // the id of a notification
    TimerId timer = 0;                               // sleep
    std::shared_ptr<std::atomic<bool>> abandoned{};  // job: set when nobody waits
    std::unique_ptr<Answer> answer{};                // of a remote one
    std::unique_ptr<extensions::RemoteOperation> remote{};
  };

  OperationId begin(Operation operation);
  OperationId begin_remote(Operation operation);
  void push_drain(DrainEffect effect);
  void end_when_sent(OperationId id, int turns);
  bool queue_job(const JobEffect& job);
  [[nodiscard]] bool has_left(const std::weak_ptr<CallSink>& sink, ConnectionId connection) const;
  void end(OperationId id, const Result<std::string_view>& outcome);
  void tell_remote(OperationId id, const Result<std::string>& outcome, bool is_final,
                   std::uint32_t flags);

  OperationsOwner& owner_;
  ShardLoop& loop_;
  Outbox& outbox_;
  SlotMap<Operation> operations_;
  std::vector<OperationId> drains_after_turn_;  // submitted in the turn that is on the stack
  std::shared_ptr<AgentOperations*> self_;      // tasks reach us through it; null after destruction
};

}  // namespace hearth::runtime
