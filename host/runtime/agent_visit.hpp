#pragma once
// What an administrator does with an agent's data, without the agent's code.

#include "base/error.hpp"
#include "runtime/call_sink.hpp"

#include <functional>
#include <memory>
#include <string>

namespace hearth::extensions {
class AgentContext;
}

namespace hearth::runtime {

// A cold agent is opened for the visit: its database, and the host's halves of the extensions. No
// instance is made, so no code of a library runs or is needed. If the class is not served, its last
// known settings apply (ClassRegistry::last_settings), and a new file has no schema version of the
// class.
//
// A live agent is visited between two of its turns. An agent that is starting or leaving is visited
// once it is live or cold.
//
// Writes of a visit are committed, and as durable as the class asks, before the sink gets the
// result.
struct AgentVisit {
  // Runs on the agent's shard. May throw StorageError. Empty: the visit only waits until the agent
  // is cold, or until the files of a destroyed agent are gone.
  std::function<Result<std::string>(extensions::AgentContext&)> work;
  // Gets the result. kUnavailable has several reasons. The agent waits for room, or for the trial
  // on which it failed to start. The agent was destroyed and its files are still there. Its files
  // cannot be opened now. The server stops.
  std::shared_ptr<CallSink> sink;
  bool is_over = false;  // the sink has the result

  void tell(const Result<std::string>& outcome) {
    is_over = true;
    sink->finish({}, outcome);
  }
};

}  // namespace hearth::runtime
