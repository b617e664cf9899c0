#pragma once
// An operation of an agent that runs outside of it, and whose answer comes in parts: a request to
// another server, or a call of another agent.

#include "base/error.hpp"
#include "base/interface.hpp"
#include "extensions/wait.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hearth::extensions {

// Gets the parts and the end of the answer.
class RemoteListener : public Interface {
 public:
  // One part of the answer. `flags`: the operation's own, from bit 8 on (hearth_result.flags).
  virtual void part(std::string body, std::uint32_t flags) = 0;
  // The end: the rest of the answer, or the error. It is the last call. The text of the error is
  // for the agent's code.
  virtual void end(Result<std::string> outcome, std::uint32_t flags) = 0;
};

// Promises
//  P1 Gate    Nothing of the operation leaves the agent before start().
//  P2 Later   The listener is called from the loop, never from inside start(), credit() or the
//             destructor.
//  P3 End     One end() follows start(), except if the operation is destroyed before.
//  P4 Credit  A part uses as much credit as it has bytes, and no part comes while no credit is
//             left.
//
// Threads    The agent's shard.
// Lifetime   Its owner destroys it after end(), or earlier to abandon it. The owner may do so from
//            inside part() and end(). The listener lives at least as long.
class RemoteOperation : public Interface {
 public:
  // Called once, when all earlier writes of the agent are as durable as its class asks.
  virtual void start(RemoteListener& listener) = 0;
  // May also be called before start().
  virtual void credit(std::uint64_t bytes) = 0;
  // The agent's code is about to get a part, or the end, in the same turn. Writes of this call
  // commit with the writes of that code.
  //   Failure   StorageError
  virtual void telling(const Result<std::string>& /*outcome*/, bool /*is_end*/,
                       std::uint32_t /*flags*/) {}
  // What it waits for, for an administrator, without times. Nothing: nothing that is worth telling.
  [[nodiscard]] virtual std::optional<Wait> wait() const { return std::nullopt; }
};

// Makes the operation that reads the body of a request, with this first credit. Its parts have no
// flags. Call it once. Its errors: net/http.hpp, BodyPart.
using BodyReader = std::function<std::unique_ptr<RemoteOperation>(std::uint64_t window)>;

}  // namespace hearth::extensions
