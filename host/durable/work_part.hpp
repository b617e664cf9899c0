#pragma once
// One kind of an agent's durable work, as DurableWork uses it.

#include "durable/wake.hpp"

namespace hearth::durable {

// How the agent's code has ended a try.
enum class TryOutcome {
  kDone,
  kFailed,
  kHopeless,   // failed, and no further try could end better
  kNeedsCode,  // this version of the class cannot do it
};

// Threads    The agent's shard.  Failure  StorageError.
class WorkPart {
 public:
  // Releases the database. Afterwards only wake() may be called.
  virtual void close() = 0;
  // The instance ends on purpose: interrupts the work in progress, which does not count as a try.
  virtual void interrupt_on_purpose() = 0;
  // True if some work would probably begin now.
  [[nodiscard]] virtual bool due() const = 0;
  // When the agent must be awake again for this kind.
  // needs_person: since load(), work of it has died or begun to wait for code.
  [[nodiscard]] virtual Wake wake() const = 0;

 protected:
  ~WorkPart() = default;
};

}  // namespace hearth::durable
