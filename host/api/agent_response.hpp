#pragma once
// The answer of an agent to an HTTP request, on its way back to the client.

#include "base/logger.hpp"
#include "net/http.hpp"
#include "runtime/call_sink.hpp"
#include "runtime/shard.hpp"

#include <memory>

namespace hearth::api {

// Makes the sink that answers `exchange`. An answer without parts leaves as a whole; one with parts
// is streamed. If the agent succeeded, status and headers are the agent's, else the status is
// http_status() of the error.
//
// Failure   The client reads what api/http_errors.hpp says. After the first part the client cannot
//           get a text: the connection is cut, so that the client sees that the answer is
//           incomplete, and the text is logged (http.agent_failed). If the client leaves while an
//           answer is streamed, emit() reports it to the agent.
// Threads   The agent's loop, whichever loop the client is on.
// Lifetime  `logger` outlives the sink. If the sink is dropped without an answer, the client gets a
//           500.
[[nodiscard]] std::unique_ptr<runtime::CallSink> make_agent_response(
    std::shared_ptr<net::HttpExchange> exchange, storage::AgentKey agent, Logger& logger);

}  // namespace hearth::api
