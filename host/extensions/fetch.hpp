#pragma once
// hearth.fetch/1: the host's side.

#include "base/egress_rules.hpp"
#include "base/error.hpp"
#include "durable/operations.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/http_port.hpp"

#include <hearth/ext/fetch.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::extensions {

inline constexpr std::size_t kMaxCredentialBytes = std::size_t{16} << 10U;

// The header in a credential's file: "Name: value", or a token alone, which becomes "Authorization:
// Bearer <token>". One line; a line feed at its end is ignored.
//   Failure   kInvalidArgument, whose message does not quote the text.
[[nodiscard]] Result<std::pair<std::string, std::string>> credential_header(std::string_view text);

// The head of an answer as JSON, as a port reports it. `until_close`: nothing but the end of the
// connection ends the body.
[[nodiscard]] std::string fetch_head(unsigned status, std::string_view url, const Headers& headers,
                                     bool until_close = false);
// ... and the flags of a failure. `phase`: HEARTH_FETCH_PHASE_*.
[[nodiscard]] constexpr std::uint32_t fetch_failure_flags(std::uint32_t phase, bool sent) noexcept {
  return (phase << 16U) | (sent ? std::uint32_t{HEARTH_FETCH_SENT} : 0);
}

// The operation of the ledger that a request belongs to.
struct FetchOperation {
  std::string id{};        // empty: none
  bool resumes = false;    // the request asks for the rest of a stored answer,
  std::uint64_t from = 0;  // of which the first `from` bytes stay
};

// HTTP requests of one agent. The HttpPort applies the limits.
//
// Threads, Failure  As AgentContext.
class FetchExtension final : public AgentExtension {
 public:
  explicit FetchExtension(AgentContext& agent) : agent_(agent) {}

  // Submits a request, which leaves when the turn is durable. Adds what the class's settings say:
  // limits, rules, proxy, and the header of `credential` (a name; empty: none), whose file is read
  // now.
  //   Failure   kUnsupported (this host makes no requests), kInvalidArgument (method, URL, header),
  //             kNotFound (no such credential), kUnavailable (its file), and the errors of
  //             CallPort::submit(). With an operation also the errors of
  //             durable::OperationRequests::may_send() and AgentContext::work_refusal().
  // With an operation: the ledger records the request as dispatched before it leaves, and then its
  // outcome. The header for the operation's key is added if the request does not have it.
  Result<OperationId> start(FetchRequest request, std::string_view credential, std::uint64_t token,
                            const FetchOperation& operation = {});

 private:
  // The result refers to both parameters.
  Result<durable::OperationSending> add_key(const FetchOperation& operation,
                                            const std::string& fingerprint, FetchRequest& request);
  // The request, ready to be sent.
  Result<std::unique_ptr<RemoteOperation>> make(FetchRequest request, std::string_view credential);
  Result<void> add_credential(std::string_view name, FetchRequest& request);

  AgentContext& agent_;
  EgressPtr egress_;                          // the class's, at the last request
  std::shared_ptr<const EgressRules> rules_;  // parsed from `egress_`
};

extern const hearth_fetch_v1 kFetchTable;

}  // namespace hearth::extensions
