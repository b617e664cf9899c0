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

// The header that a credential's file stands for: "Name: value", or a token alone, which becomes
// "Authorization: Bearer <token>". One line; a line feed at its end does not count.
//   Failure   kInvalidArgument, which says nothing of the text.
[[nodiscard]] Result<std::pair<std::string, std::string>> credential_header(std::string_view text);

// What a port tells of an answer: its head as JSON.
[[nodiscard]] std::string fetch_head(unsigned status, std::string_view url, const Headers& headers);
// ... and the flags of a failure. `phase`: HEARTH_FETCH_PHASE_*.
[[nodiscard]] constexpr std::uint32_t fetch_failure_flags(std::uint32_t phase, bool sent) noexcept {
  return (phase << 16U) | (sent ? std::uint32_t{HEARTH_FETCH_SENT} : 0);
}

// The operation of the ledger whose request it is.
struct FetchOperation {
  std::string id{};        // empty: none
  bool resumes = false;    // it asks for the rest of a stored answer,
  std::uint64_t from = 0;  // which stays up to here
};

// HTTP requests of one agent. The port that it goes through keeps the limits.
//
// Threads, Failure  As AgentContext.
class FetchExtension final : public AgentExtension {
 public:
  explicit FetchExtension(AgentContext& agent) : agent_(agent) {}

  // Submits a request, which leaves once the turn is durable. Fills in what the class's settings
  // say: limits, rules, proxy, and the header of `credential` (a name; empty: none), whose file is
  // read now.
  //   Failure   kUnsupported (this host has no way out), kInvalidArgument (method, URL, header),
  //             kNotFound (no such credential), kUnavailable (its file), those of
  //             AgentCalls::submit(); with an operation also those of durable::Operations::
  //             may_send() and of AgentContext::work_refusal().
  // With an operation: the ledger says that the request was dispatched before it leaves, and gets
  // what comes of it. The header for the operation's key is added, if the request has none of that
  // name.
  Result<OperationId> start(FetchRequest request, std::string_view credential, std::uint64_t token,
                            const FetchOperation& operation = {});

 private:
  // What it gives refers to both.
  Result<durable::OperationSending> add_key(const FetchOperation& operation,
                                            const std::string& fingerprint, FetchRequest& request);
  // The request, ready to leave.
  Result<std::unique_ptr<RemoteOperation>> make(FetchRequest request, std::string_view credential);
  Result<void> add_credential(std::string_view name, FetchRequest& request);

  AgentContext& agent_;
  EgressPtr egress_;                          // of the class, when it last made a request
  std::shared_ptr<const EgressRules> rules_;  // of that
};

[[nodiscard]] const hearth_fetch_v1& fetch_extension() noexcept;

}  // namespace hearth::extensions
