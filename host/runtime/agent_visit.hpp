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

// A cold agent is opened for it: its database, and the host's halves of the extensions. No instance
// is made, so that no code of a library runs, nor need there be one: a class that is not served has
// the settings that are known of it (ClassRegistry::last_settings), and a file that is made then
// has no schema version of the class. A live agent is visited between two of its turns. One that is
// starting or leaving is visited once it is live or cold.
//
// What a visit writes is committed, and as durable as the class asks, before the sink is told.
struct AgentVisit {
  // On the agent's shard. May throw StorageError. Empty: the visit waits until the agent is cold,
  // or until the files of a destroyed one are gone, and does nothing.
  std::function<Result<std::string>(extensions::AgentContext&)> work;
  // Told the result. kUnavailable: the agent waits for room, or for the end of a trial on which it
  // has failed to start; it was destroyed and its files are still there; the server stops; or its
  // files cannot be opened now.
  std::shared_ptr<CallSink> sink;
  bool is_over = false;  // the sink was told

  void tell(const Result<std::string>& outcome) {
    is_over = true;
    if (outcome) return sink->finish({}, std::string_view(*outcome));
    sink->finish({}, outcome.error());
  }
};

}  // namespace hearth::runtime
