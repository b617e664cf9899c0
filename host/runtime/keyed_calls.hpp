#pragma once
// The calls with a key that wait or are in progress on one shard.

#include "extensions/types.hpp"
#include "runtime/call_sink.hpp"
#include "storage/agent_key.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::runtime {

// Header of a stored answer that is given again: "true".
inline constexpr std::string_view kReplayedHeader = "Idempotency-Replayed";

// The error for a caller that uses a key again for another call.
[[nodiscard]] Error key_of_another_call();

// Threads   The shard's.
// Lifetime  Its sinks may outlive it.
class KeyedCalls {
 public:
  // Returns a sink whose end frees the key. If a call with this key is in progress, returns null,
  // and `sink` gets 409, or 422 if the contents differ.
  [[nodiscard]] std::unique_ptr<CallSink> enter(const storage::AgentKey& agent,
                                                const extensions::CallKey& call,
                                                std::unique_ptr<CallSink> sink);

 private:
  using Place = std::pair<storage::AgentKey, std::string>;
  using Running = std::map<Place, std::string>;  // the calls' fingerprints
  class Sink;

  std::shared_ptr<Running> running_ = std::make_shared<Running>();  // shared with the sinks
};

}  // namespace hearth::runtime
