#pragma once
// The operations of a live agent that are in progress: it waits for these, and for its calls.

#include "base/error.hpp"
#include "base/slot_map.hpp"
#include "extensions/call_rules.hpp"
#include "extensions/remote_operation.hpp"
#include "extensions/trace.hpp"
#include "extensions/wait.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/connections.hpp"
#include "runtime/loan.hpp"
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

// An operation as the agent's code submits it, with its call and trace.
struct SubmittedOperation {
  std::uint32_t operation = 0;
  std::uint64_t token = 0;
  CallId call = 0;
  std::string method = {};                                   // of that call, for the log
  extensions::Span span = {};                                // of the code that submitted it
  std::optional<WorkMark> work = {};                         // of that code; nothing: unknown
  std::shared_ptr<extensions::StateCause> state_cause = {};  // null: no STATE_CHANGED
};

// What becomes of an operation: a part of its answer, or its end.
struct OperationNews {
  SubmittedOperation of{};
  std::string notice{};                         // of a notification: its id
  Result<std::string> outcome = std::string();  // a body, or why it failed
  bool is_final = true;
  std::uint32_t flags = 0;
  // Null: not a remote operation. Otherwise telling() is called before the code hears the news.
  extensions::RemoteOperation* remote = nullptr;
  std::unique_ptr<extensions::RemoteListener> listener{};  // at its end: of `ended`
  std::unique_ptr<extensions::RemoteOperation> ended{};    // at its end: `remote`
};

// Promises
//  P1 Gate    What reaches the outside (a job, a remote operation) leaves through the outbox.
//  P2 Results Each operation has one final result, after its parts, unless it is cancelled or
//             abandoned.
//  P3 Later   No result comes from inside a function that begins an operation.
//  P4 Hidden  A notification belongs to the host: it can neither be cancelled nor given credit.
//  P5 Lent    While another thread has the agent's database, all news wait, in order.
//
// Bounded     By its agent: at most RuntimeLimits::max_operations are begun.
// Threads     The agent's shard.
// Lifetime    All parts outlive it. Tasks of the loop that run later find it gone.
class AgentOperations {
 public:
  struct Parts {
    ShardLoop& loop;
    Outbox& outbox;
    Connections& connections;
    Loan& loan;
    // Runs a job elsewhere, then `done` on this shard. False: too many jobs wait.
    std::function<bool(const OffloadEffect& job, std::function<void(Result<void>)> done)>
        run_offloaded;
    // For the agent's code, if it still hears. The operations may be gone afterwards.
    std::function<void(OperationNews news)> tell;
  };
  explicit AgentOperations(Parts parts);
  ~AgentOperations();
  AgentOperations(const AgentOperations&) = delete;
  AgentOperations& operator=(const AgentOperations&) = delete;

  using Submitted = SubmittedOperation;

  OperationId sleep(const Submitted& submitted, std::chrono::milliseconds time);
  // `at_once`: the job does not wait for earlier writes. kLimitExceeded: too many jobs wait.
  Result<OperationId> run_offloaded(const Submitted& submitted, std::uint64_t job, bool at_once);
  // Ends when the client of a call, or without a sink the client itself, has taken most of the
  // frames sent before: kNotFound if the client has left, or is being closed.
  OperationId drain(const Submitted& submitted, std::shared_ptr<CallSink> sink,
                    ConnectionId connection);
  // Ends when the answer of the current turn is on its way.
  OperationId drain_turn(const Submitted& submitted);
  OperationId start(const Submitted& submitted,
                    std::unique_ptr<extensions::RemoteOperation> remote);
  // Sends a notification. The agent's code gets nothing of the answer.
  void send_notice(std::string notice, std::unique_ptr<extensions::RemoteOperation> remote);

  Result<void> cancel(OperationId id);
  Result<void> credit(OperationId id, std::uint64_t bytes);

  // The instance has returned.
  void end_turn();
  // The instance goes: no result comes any more.
  void abandon();

  // From the outbox. Of a job, false: too many jobs wait. It was accepted, so the caller calls it
  // with `cancelled`, to clean up.
  [[nodiscard]] bool let_out(const OffloadEffect& job);
  void let_out(const DrainEffect& drain);
  void let_out(const RemoteEffect& remote);

  // What the remote operations wait for, with their times.
  [[nodiscard]] std::vector<extensions::Wait> waits();

  [[nodiscard]] bool empty() const { return operations_.empty(); }
  [[nodiscard]] std::size_t size() const { return operations_.size(); }

 private:
  // Passes on the results of a remote operation.
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
    SteadyTime began{};                              // of a remote operation
    TimerId timer = 0;                               // sleep
    std::shared_ptr<std::atomic<bool>> abandoned{};  // job: set when no waiter is left
    std::unique_ptr<Answer> answer{};                // remote operation
    std::unique_ptr<extensions::RemoteOperation> remote{};
  };

  OperationId begin(Operation operation);
  OperationId begin_remote(Operation operation);
  void push_drain(DrainEffect effect);
  void end_when_sent(OperationId id, int turns);
  bool queue_offloaded(const OffloadEffect& job);
  // Does nothing if the operation was cancelled.
  void tell(OperationId id, Result<std::string> outcome, bool is_final = true,
            std::uint32_t flags = 0);

  const Parts parts_;
  SlotMap<Operation> operations_;
  std::vector<OperationId> drains_after_turn_;  // submitted in the current turn
  std::shared_ptr<AgentOperations*> self_;      // tasks reach us through it; null after destruction
};

}  // namespace hearth::runtime
