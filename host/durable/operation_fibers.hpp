#pragma once
// The fibers that an agent's operations belong to.

#include "durable/fiber_runs.hpp"

#include <set>

namespace hearth::durable {

// The place of a fiber's work: below which outermost fiber, and where.
struct OperationScope {
  std::string root;  // the id of the outermost fiber
  std::string path;
  std::int64_t unkept = 0;  // the fiber's row, if the scope is to be stored with it; or 0
};

// Says which place the work of a fiber has, and whether this work may still run again.
//
// Threads, Durable, Failure   As Jobs. What it is given outlives it.
class OperationFibers {
 public:
  using Roots = std::set<std::string, std::less<>>;  // ids of outermost fibers

  OperationFibers(storage::AgentDatabase& database, const FiberRuns& fibers)
      : fibers_(fibers), jobs_(database) {}

  // Null: the fiber does not run.
  [[nodiscard]] const Job* find_running(FiberHandle fiber) const {
    return fibers_.find_running(fiber);
  }
  [[nodiscard]] OperationScope scope_of(const std::string& fiber, int depth = 0);
  // Stores the scope, so that it stays the same when the fibers above are removed.
  void keep(const OperationScope& scope);
  // Whether the fiber `root`, or one below it, may still run. True for nothing: no fiber.
  [[nodiscard]] bool may_go_on(const std::optional<std::string>& root);
  // `of_open`: roots_of_open().
  [[nodiscard]] bool may_go_on(const std::string& root, const Roots& of_open);
  // The outermost fibers above all unfinished fibers that have a parent.
  [[nodiscard]] Roots roots_of_open();
  // The same, also above dead and interrupted ones: an operator may let those run again.
  [[nodiscard]] Roots roots_of_needed();

 private:
  // `where`: see Jobs::each().
  [[nodiscard]] Roots roots_of(std::string_view where);

  const FiberRuns& fibers_;
  Jobs jobs_;
};

}  // namespace hearth::durable
