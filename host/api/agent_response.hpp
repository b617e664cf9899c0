#pragma once
// The answer of an agent to an HTTP request, on its way back to the client.

#include "base/logger.hpp"
#include "net/http.hpp"
#include "runtime/call_sink.hpp"
#include "runtime/shard.hpp"

#include <memory>

namespace hearth::api {

// Makes the sink that answers `exchange`. An answer without parts leaves whole; one with parts is
// streamed. Status and headers are the agent's if it succeeded, and http_status() of the error if
// it failed.
//
// Failure   What went wrong inside the agent's code (kPlugin) is for its author: the runtime logs
//           it, and the client reads only that the agent failed. All other texts are meant for the
//           client. After the first part the client cannot be told: the connection is cut, so that
//           it sees that something is missing, and the text is logged (http.agent_failed).
//           A client that has left is noticed while an answer is streamed: then emit() says so to
//           the agent.
// Threads   The agent's loop, whichever loop the client is on.
// Lifetime  `logger` outlives the sink. Dropped without an answer, the client gets a 500.
[[nodiscard]] std::unique_ptr<runtime::CallSink> make_agent_response(
    std::shared_ptr<net::HttpExchange> exchange, storage::AgentKey agent, Logger& logger);

}  // namespace hearth::api
