#pragma once
// The operations of an agent that run in this instance, the requests that they send, and the
// stored answers.

#include "base/clock.hpp"
#include "durable/operation_answers.hpp"

#include <memory>

namespace hearth::durable {

// The row is as it was when the run began.
struct RunningOperation : OperationRow {
  FiberHandle fiber = 0;
  std::string key_header{};
  bool can_resume = false;
  bool is_anew = false;    // no earlier run may have acted
  bool is_probe = false;   // it asks the other side whether the operation was executed
  std::uint64_t wait = 0;  // see waits_for(); 0: none
  // ---- its request: see OperationRequests ----
  bool has_asked = false;  // may_send() has allowed one
  std::weak_ptr<const void> in_flight{};
  bool unsent = false;       // nothing of it has left, for certain
  bool is_repeated = false;  // an earlier request of the operation may have left
  bool resumes = false;      // it requests the rest of an answer
  bool is_broken = false;    // it has failed
  bool was_refused = false;  // its answer is not stored (any more)
  std::uint64_t received = 0;
  std::uint64_t kept = 0;
};

// Knows them by the numbers of their runs, which begin() gives, and by their ids. It reads and
// writes no rows.
//
// Threads    The agent's shard.
class RunningOperations {
 public:
  // Returns the number of the run.
  std::uint64_t add(RunningOperation running);
  // Removes the operation, which runs.
  RunningOperation take(std::uint64_t operation);
  // Null: it does not run.
  [[nodiscard]] RunningOperation* find(std::string_view id);
  // Empty: it does not run.
  [[nodiscard]] std::string id_of(std::uint64_t operation) const;
  [[nodiscard]] OperationState state_of(const OperationRow& row) const;
  [[nodiscard]] const std::map<std::uint64_t, RunningOperation>& all() const { return running_; }

  // A run that begin() allowed and that waits to begin will not begin. settle() follows.
  void never_begins(std::uint64_t operation);
  // The run begins when `wait`, an operation that the agent has submitted, has ended, and never if
  // `wait` is cancelled.
  void waits_for(std::uint64_t operation, std::uint64_t wait);
  void cancelled(std::uint64_t wait);
  // The agent has sent a fetch without `op`, a call or a notification. Any running operation may
  // have sent it: from now on an unsent request does not prove that its operation was not executed.
  void sent_elsewhere();

 private:
  std::map<std::uint64_t, RunningOperation> running_;
  std::map<std::string, std::uint64_t, std::less<>> ids_;
  std::uint64_t last_ = 0;
};

// Promises
//  P8 One request  may_send() rejects a second request of an operation if it could act a second
//                time, and any request while another one is in flight.
//  P10 Partial   Of the answer to a request, the first max_result_bytes are kept until the
//                operation is settled, or the answer is refused.
//
// P8: A request that resumes a stored answer is allowed with each effect. Other second requests:
//
//   effect              rejected
//   kRead, kIdempotent  never
//   kKeyed              with another fingerprint, or after the horizon
//   kProbe, kUnsafe     always
// P10: An answer is refused by drop_answer(), by kFailed unless its request has failed, and by the
// other side, which does not send the rest. Operations whose effect allows another run lose it, and
// begin it anew. The others keep it. An operation that has the beginning of a good answer, the rest
// of which can be requested, may run again, whatever its effect: one of a fiber, while the
// outermost fiber of its work or one below that is open.
//
// Durable, Threads, Failure   As OperationTable. What it is given outlives it.
class OperationRequests {
 public:
  OperationRequests(OperationTable& table, OperationAnswers& answers, RunningOperations& running,
                    const Clock& clock, const OperationSettings& settings)
      : table_(table), answers_(answers), running_(running), clock_(clock), settings_(settings) {}

  // Whether the operation may send this request. Returns the name of the header for its id.
  // kNotFound: it does not run. kConflict: P8, or there is no stored answer to resume.
  // kInvalidArgument: a probe runs.
  Result<std::string> may_send(const OperationSending& sending);
  // The request that may_send() allowed leaves with this turn. It is in flight as long as the
  // caller keeps the returned pointer.
  [[nodiscard]] std::shared_ptr<const void> dispatched(const OperationSending& sending);
  // The next members are about the request that was dispatched last, and come in this order.
  // Ignored if the operation does not run any more. `head`: JSON. `fits` false: this is not the
  // part of the answer that the request asked for.
  void answered(std::string_view id, std::int64_t status,
                const std::optional<std::string>& upstream_id, std::string_view head,
                bool fits = true);
  void received(std::string_view id, std::string_view piece);
  void answer_ended(std::string_view id);
  // The request has failed: the rest of its answer does not come.
  void broke_off(std::string_view id);
  // It has failed, and nothing of it has left.
  void not_sent(std::string_view id);
  // The request that may_send() allowed could not be made, so nothing was dispatched.
  void not_made(std::string_view id);

  // The stored answer is of no use (P10). kNotFound: the operation does not run.
  Result<void> drop_answer(std::string_view id);
  // The same, of an operation that has stored this request.
  void refuse(RunningOperation& running, DispatchedRequest request);
  // The stored answer. kNotFound: no operation has the id, or it has sent no request.
  Result<StoredAnswer> answer(std::string_view id);

 private:
  OperationTable& table_;
  OperationAnswers& answers_;
  RunningOperations& running_;
  const Clock& clock_;
  const OperationSettings& settings_;
};

}  // namespace hearth::durable
