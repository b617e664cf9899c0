#pragma once
// One kind of an agent's durable work, as the whole of it sees each kind.

#include "durable/wake.hpp"

namespace hearth::durable {

// Threads    The agent's shard.  Failure  StorageError.
class WorkPart {
 public:
  // Gives up what holds the database; only wake() may be called afterwards.
  virtual void close() = 0;
  // The instance goes on purpose: what is in progress is interrupted, and that counts for nothing.
  virtual void interrupt_on_purpose() = 0;
  // True if something of it would probably begin now.
  [[nodiscard]] virtual bool due() const = 0;
  // When it must be awake again.
  [[nodiscard]] virtual Wake wake() const = 0;

 protected:
  ~WorkPart() = default;
};

}  // namespace hearth::durable
