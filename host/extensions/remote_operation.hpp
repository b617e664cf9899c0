#pragma once
// An operation of an agent that goes on outside of it, and whose answer comes in parts: a request
// to another server, a call of another agent.

#include "base/error.hpp"

#include <cstdint>
#include <string>

namespace hearth::extensions {

// Who hears of it.
class RemoteListener {
 public:
  RemoteListener() = default;
  virtual ~RemoteListener() = default;
  RemoteListener(const RemoteListener&) = delete;
  RemoteListener& operator=(const RemoteListener&) = delete;

  // One part of the answer. `flags`: what the operation says of it, from bit 8 on
  // (hearth_result.flags).
  virtual void part(std::string body, std::uint32_t flags) = 0;
  // The end, after which nothing comes: the rest of the answer, or why there is none. The text of
  // the error is for the agent's code.
  virtual void end(Result<std::string> outcome, std::uint32_t flags) = 0;
};

// Promises
//  P1 Gate    Nothing of it leaves the agent before start().
//  P2 Later   The listener is called from the loop, never from inside start(), credit() or the
//             destructor.
//  P3 End     One end() follows start(), unless it is destroyed before.
//  P4 Credit  A part uses as much credit as it has bytes, and no part comes while none is left.
//
// Threads    The agent's shard.
// Lifetime   Its owner destroys it after end(), or before: that gives up on it. It may do so from
//            inside part() and end(). The listener lives at least as long.
class RemoteOperation {
 public:
  RemoteOperation() = default;
  virtual ~RemoteOperation() = default;
  RemoteOperation(const RemoteOperation&) = delete;
  RemoteOperation& operator=(const RemoteOperation&) = delete;

  // Once: all that the agent has written before is as durable as its class asks.
  virtual void start(RemoteListener& listener) = 0;
  // Also before start().
  virtual void credit(std::uint64_t bytes) = 0;
  // The agent's code is about to be told a part, or the end: in the turn in which it is. What is
  // written now commits with what the code makes of it.
  //   Failure   StorageError
  virtual void telling(const Result<std::string>& /*outcome*/, bool /*is_end*/,
                       std::uint32_t /*flags*/) {}
};

}  // namespace hearth::extensions
