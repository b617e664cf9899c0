#pragma once
// The interface through which hearth.fetch/1 makes HTTP requests to other servers.

#include "base/egress_rules.hpp"
#include "base/error.hpp"
#include "base/interface.hpp"
#include "extensions/class_settings.hpp"
#include "extensions/open_span.hpp"
#include "extensions/remote_operation.hpp"
#include "extensions/types.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace hearth::extensions {

// One request. FetchExtension has checked the method, the URL's scheme and the headers.
struct FetchRequest {
  std::string agent_class;  // counts against the limits of this class
  // The agent and the event that make the request, for the log (LineOrigin).
  std::string agent;
  CallId call = 0;
  std::string its_method;  // the method of the call
  std::string trace;
  OpenSpan span;
  std::string method;
  std::string url;
  Headers headers;
  std::string credential;  // its name; its header is in `secret_headers`; empty: none
  Headers secret_headers;  // only for the origin of `url`; in no log and no message
  std::string body;
  bool follow_redirects = false;
  bool http2 = false;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds idle_timeout{60'000};
  std::chrono::milliseconds total_timeout{0};          // 0: none
  std::uint64_t max_bytes = std::uint64_t{64} << 20U;  // of the decoded body
  std::uint64_t window = std::uint64_t{256} << 10U;    // the first credit
  std::string proxy;                                   // a URL; empty: none
  EgressLimits limits;                                 // of the class
  std::shared_ptr<const EgressRules> rules;            // the allowed destinations; not null
};

// The operation gives its listener the head as JSON, then the parts of the body, then the end. The
// flags are those of hearth/ext/fetch.h.
//
// Threads   The agent's shard.
// Lifetime  Outlives its operations.
class HttpPort : public Interface {
 public:
  // Whether a request needs the header of its credential. A host that sends nothing does not, and
  // accepts any name.
  [[nodiscard]] virtual bool wants_credentials() const { return true; }
  // The request leaves at RemoteOperation::start() or later. Rules and limits are checked by then.
  virtual Result<std::unique_ptr<RemoteOperation>> make(FetchRequest request) = 0;
};

}  // namespace hearth::extensions
