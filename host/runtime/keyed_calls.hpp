#pragma once
// The calls with a key that are under way on one shard, waiting ones too.

#include "extensions/call_key.hpp"
#include "runtime/call_sink.hpp"
#include "storage/agent_key.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::runtime {

// Of an answer that was stored, and is given once more: "true".
inline constexpr std::string_view kReplayedHeader = "Idempotency-Replayed";

// What a caller is told of a call that runs, or waits.
inline constexpr std::string_view kCallUnderWay = "a call with this key is under way";

// The error of a caller that uses a key again for another call.
[[nodiscard]] Error key_of_another_call();

// Threads   The shard's.
// Lifetime  The sinks that it makes may outlive it.
class KeyedCalls {
 public:
  // The sink of a call whose end frees the key. If a call with this key is under way, `sink` is
  // told so (409, or 422 if the contents are others), and the result is null.
  [[nodiscard]] std::unique_ptr<CallSink> enter(const storage::AgentKey& agent,
                                                const extensions::CallKey& call,
                                                std::unique_ptr<CallSink> sink);

 private:
  using Place = std::pair<storage::AgentKey, std::string>;
  using Running = std::map<Place, std::string>;  // their fingerprints
  class Sink;

  std::shared_ptr<Running> running_ = std::make_shared<Running>();  // shared with the sinks
};

}  // namespace hearth::runtime
