#pragma once
// Which operation a request is about: when two requests are one operation, and the ids.

#include "base/random.hpp"
#include "durable/operation_fibers.hpp"
#include "durable/operation_table.hpp"

#include <set>

namespace hearth::durable {

struct IdentifiedOperation {
  OperationRow row;                       // the existing one, or a new one without a seq
  std::string arguments;                  // JSON, as stored
  std::optional<OperationScope> scope{};  // of the fiber that begins it
};

// Promises
//  P2 Same       An operation of a fiber has the same id in each run of the fiber's work.
//  P3 Conflict   A key with other arguments is kConflict.
//  P11 One agent's  No two agents give an operation the same id, whatever keys and fiber ids their
//                code chooses.
//
// P2: To find the id, equal operations are counted: those that completed in this run (use()), and
// those that a run had used when it wrote its checkpoint (checkpointed()).
// P3: 500 and 500.0 are one number, as far as integers are exact (2^53).
// P11: Also an agent that was destroyed and a later one of its name. A copied file gives its ids.
//
// On disk    `incarnation` of cf_agents_meta is a part of each id.
// Durable, Threads, Failure   As OperationTable. What it is given outlives it.
class OperationIdentity {
 public:
  OperationIdentity(OperationTable& table, OperationFibers& fibers, Random& random)
      : table_(table), fibers_(fibers), random_(random) {}

  // kInvalidArgument, kConflict. kNotFound: no operation has the id, or the fiber has ended.
  Result<IdentifiedOperation> identify(const OperationRequest& request);
  // Before the first row is stored: stores what its id is made of.
  void keep_incarnation();
  // The running fiber has used the row: the next equal request of this run is another operation.
  void use(FiberHandle fiber, std::string_view likeness, std::int64_t seq);
  // This fiber has written a checkpoint: the next run of its work begins after the operations that
  // this run has used.
  void checkpointed(std::string_view fiber);

 private:
  // Rows that a run of a fiber has used since its last checkpoint, by their likeness.
  using Used = std::map<std::string, std::set<std::int64_t>, std::less<>>;

  // The number of the next one among equal operations of the fiber's work, from 1.
  [[nodiscard]] std::int64_t next_n(std::string_view path, FiberHandle fiber,
                                    const std::string& likeness);
  // A random word that tells this agent from all others that ever have its class and name.
  [[nodiscard]] const std::string& incarnation();

  OperationTable& table_;
  OperationFibers& fibers_;
  Random& random_;
  std::string incarnation_;
  bool incarnation_is_kept_ = false;
  std::map<FiberHandle, Used> used_;
};

}  // namespace hearth::durable
