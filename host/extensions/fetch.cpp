#include "extensions/fetch.hpp"

#include "base/escape.hpp"
#include "base/files.hpp"
#include "base/http_token.hpp"
#include "base/sha256.hpp"
#include "base/stop_point.hpp"
#include "extensions/abi_call.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/work_spans.hpp"
#include "json/json.hpp"
#include "json/json_text.hpp"
#include "storage/agent_database.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

namespace hearth::extensions {
namespace {

constexpr std::string_view kTraceHeader = "traceparent";  // W3C Trace Context
constexpr std::size_t kMostHeaders = 100;
constexpr std::size_t kMostUrlBytes = std::size_t{16} << 10U;
constexpr std::size_t kMostRequestHeadBytes = std::size_t{64} << 10U;

bool begins_with(std::string_view text, std::string_view prefix) {
  return equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

Error invalid(std::string text) {
  return Error{Errc::kInvalidArgument, std::move(text)};
}

Result<void> check_fetch_url(std::string_view url) {
  if (url.size() > kMostUrlBytes) return invalid("a URL has at most 16 KiB");
  if (!begins_with(url, "http://") && !begins_with(url, "https://"))
    return invalid("a URL begins with http:// or https://");
  if (std::ranges::any_of(url, [](char c) { return c <= ' ' || c == '\x7f'; }))
    return invalid("a URL has no spaces and no control characters: percent-encode them");
  const std::string_view rest = url.substr(url.find("//") + 2);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  if (authority.empty()) return invalid("the URL names no host");
  if (authority.find('@') != std::string_view::npos)
    return invalid("a URL has no user and password: use a credential or a header");
  return {};
}

Result<void> check_fetch(const FetchRequest& request) {
  if (!is_http_token(request.method) || is_forbidden_http_method(request.method))
    return invalid("the method is a name such as GET, and not CONNECT, TRACE or TRACK");
  if (const auto url = check_fetch_url(request.url); !url) return url.error();
  if (request.headers.size() > kMostHeaders) return invalid("a request has at most 100 headers");
  std::size_t bytes = 0;
  for (const auto& [name, value] : request.headers) {
    if (!is_http_token(name) || !is_http_field_value(value))
      return invalid("the header " + quote_text(name) + " has a character that no header may have");
    if (is_host_owned_request_header(name))
      return invalid("the host sets the header " + name + " itself");
    bytes += name.size() + value.size();
  }
  if (bytes > kMostRequestHeadBytes) return invalid("the headers have at most 64 KiB together");
  return {};
}

}  // namespace

// ---- what it does -------------------------------------------------------------------------------

Result<std::pair<std::string, std::string>> credential_header(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  std::string_view name = "Authorization";
  std::string value;
  const std::size_t colon = text.find(": ");
  if (colon != std::string_view::npos && is_http_token(text.substr(0, colon))) {
    name = text.substr(0, colon);
    value = text.substr(colon + 2);
  } else if (!text.empty() && text.find(' ') == std::string_view::npos) {
    value = "Bearer " + std::string(text);
  }
  if (value.empty() || !is_http_field_value(value) || is_host_owned_request_header(name))
    return invalid("holds no credential: one line, \"Name: value\" or a token without spaces");
  return std::pair(std::string(name), std::move(value));
}

// Old servers send bytes that are not UTF-8. They become U+FFFD, because the plugin gets JSON.
std::string fetch_head(unsigned status, std::string_view url, const Headers& headers,
                       bool until_close) {
  std::string json = R"({"status":)" + std::to_string(status) + R"(,"url":)";
  append_json_string(json, url);
  json += R"(,"headers":[)";
  for (const auto& [name, value] : headers) {
    json += json.back() == '[' ? "[" : ",[";
    append_json_string(json, name);
    json += ',';
    append_json_string(json, value);
    json += ']';
  }
  return json + (until_close ? R"(],"until_close":true})" : "]}");
}

Result<void> FetchExtension::add_credential(std::string_view name, FetchRequest& request) {
  const auto& secrets = egress_->secrets;
  const auto found = secrets.find(std::string(name));
  if (found == secrets.end())
    return Error{Errc::kNotFound, "the class has no credential " + quote_text(name)};
  const auto text = read_file(found->second, kMaxCredentialBytes);
  Result<std::pair<std::string, std::string>> header =
      text ? credential_header(*text) : text.error();
  if (header) {
    request.secret_headers.push_back(*std::move(header));
    return {};
  }
  const std::string which = "the credential " + quote_text(name);
  const std::string why = text ? show_name(found->second.native()) + " " + header.error().message
                               : header.error().message;
  agent_.log(LogLevel::kError, which + " cannot be used: " + why);
  return Error{Errc::kUnavailable, which + " cannot be used: the server's log says why"};
}

// ---- the request of an operation ----

namespace {

// Two requests are the same if these parts are equal. Their headers may differ.
std::string fingerprint_of(const FetchRequest& request) {
  return sha256_hex(
      dump_json(Json::array({request.method, request.url, sha256_hex(request.body)})));
}

// The value of the first header that has one of two names.
std::optional<std::string> header_in(const Json& head, std::string_view name,
                                     std::string_view other_name) {
  for (const Json& header : head.at("headers")) {
    const auto its_name = header.at(0).get<std::string>();
    if (equal_ignoring_case(its_name, name) || equal_ignoring_case(its_name, other_name))
      return header.at(1).get<std::string>();
  }
  return std::nullopt;
}

// The beginning of the Content-Range that answers a Range: "bytes 5-" for "bytes=5-". Absent: the
// Range does not begin at one place.
std::optional<std::string> beginning_of(std::string_view range) {
  const std::size_t equals = range.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view from = range.substr(equals + 1);
  const std::size_t digits = from.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || from[digits] != '-') return std::nullopt;
  if (from.find(',') != std::string_view::npos) return std::nullopt;
  return std::string(range.substr(0, equals)) + " " + std::string(from.substr(0, digits + 1));
}

// Whether an answer is the part that a Range asks for. A server without ranges sends the whole
// answer, which is not.
bool is_part(std::string_view range, const Json& head) {
  constexpr int kPartialContent = 206;
  if (head.at("status").get<int>() != kPartialContent) return false;
  const auto wanted = beginning_of(range);
  const auto given = header_in(head, "Content-Range", "Content-Range");
  return wanted && given && begins_with(*given, *wanted);
}

// Records the head, the parts and the end of the answer to an operation's request in the ledger.
class LedgerRequest final : public RemoteOperation {
 public:
  // `in_flight`: see durable::OperationRequests::dispatched(). `range`: the header Range, if the
  // request asks for the rest of an answer and has one.
  LedgerRequest(AgentContext& agent, std::string operation, std::unique_ptr<RemoteOperation> remote,
                std::shared_ptr<const void> in_flight, std::optional<std::string> range)
      : agent_(agent),
        operation_(std::move(operation)),
        remote_(std::move(remote)),
        in_flight_(std::move(in_flight)),
        range_(std::move(range)) {}

  void start(RemoteListener& listener) override { remote_->start(listener); }
  void credit(std::uint64_t bytes) override { remote_->credit(bytes); }
  [[nodiscard]] std::optional<Wait> wait() const override { return remote_->wait(); }
  void telling(const Result<std::string>& outcome, bool is_end, std::uint32_t flags) override {
    durable::OperationRequests& requests = agent_.work().operations().requests();
    if (is_end) in_flight_.reset();  // the agent may send another request when it gets the end
    if (outcome.has_error()) {
      if ((flags & HEARTH_FETCH_SENT) == 0) {
        requests.not_sent(operation_);
      } else {
        requests.broke_off(operation_);
      }
    } else if (is_end) {
      requests.answer_ended(operation_);
    } else if ((flags & HEARTH_FETCH_HEAD) != 0) {
      const Json head = parse_json(*outcome).value();
      requests.answered(operation_, head.at("status").get<std::int64_t>(),
                        header_in(head, "Request-Id", "X-Request-Id"), *outcome,
                        !range_ || is_part(*range_, head));
      agent_.work().stop_at_commit("operation.answered.committed");
    } else {
      requests.received(operation_, *outcome);
      agent_.work().stop_at_commit("operation.part.committed");
    }
  }

 private:
  AgentContext& agent_;
  const std::string operation_;
  const std::unique_ptr<RemoteOperation> remote_;
  std::shared_ptr<const void> in_flight_;
  const std::optional<std::string> range_;
};

}  // namespace

Result<durable::OperationSending> FetchExtension::add_key(const FetchOperation& operation,
                                                          const std::string& fingerprint,
                                                          FetchRequest& request) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  durable::OperationSending sending;
  sending.id = operation.id;
  sending.fingerprint = fingerprint;
  sending.resumes = operation.resumes;
  sending.from = operation.from;
  const auto header = agent_.work().operations().requests().may_send(sending);
  if (!header) return header.error();
  if (find_header(request.headers, *header) == nullptr)
    request.headers.emplace_back(*header, operation.id);
  return sending;
}

Result<std::unique_ptr<RemoteOperation>> FetchExtension::make(FetchRequest request,
                                                              std::string_view credential) {
  HttpPort* const port = agent_.ports().http;
  if (port == nullptr)
    return Error{Errc::kUnsupported, "this host makes no requests to other servers"};
  if (const auto right = check_fetch(request); !right) return right.error();
  if (const EgressPtr egress = agent_.egress(); egress != egress_) {
    auto rules = EgressRules::parse(egress->allow, egress->deny);
    if (!rules) return rules.error();
    rules_ = std::make_shared<const EgressRules>(*std::move(rules));
    egress_ = egress;
  }
  request.credential = credential;
  if (!credential.empty() && port->wants_credentials()) {
    if (const auto added = add_credential(credential, request); !added) return added.error();
  }
  request.agent_class = agent_.key().agent_class;
  request.agent = agent_.key().name;
  request.proxy = egress_->proxy;
  request.limits = egress_->limits;
  request.http2 = request.http2 && egress_->http2;
  request.rules = rules_;
  return port->make(std::move(request));
}

Result<OperationId> FetchExtension::start(FetchRequest request, std::string_view credential,
                                          std::uint64_t token, const FetchOperation& operation) {
  std::optional<durable::OperationSending> sending;
  const std::string fingerprint = operation.id.empty() ? std::string() : fingerprint_of(request);
  if (!operation.id.empty()) {
    auto keyed = add_key(operation, fingerprint, request);
    if (!keyed) return keyed.error();
    sending = *std::move(keyed);
  }
  std::optional<std::string> range;
  if (const std::string* const it = find_header(request.headers, "Range");
      it != nullptr && operation.resumes)
    range = *it;
  auto remote = make(std::move(request), credential);
  if (!remote) {
    if (sending) agent_.work().operations().requests().not_made(operation.id);
    return remote.error();
  }
  if (!sending) {
    auto submitted = agent_.calls().submit(HEARTH_OP_FETCH, *std::move(remote), token);
    if (submitted) agent_.work().sent_elsewhere();
    return submitted;
  }
  durable::OperationRequests& requests = agent_.work().operations().requests();
  auto in_flight = requests.dispatched(*sending);
  stop_point("operation.dispatched.written");
  auto submitted = agent_.calls().submit(
      HEARTH_OP_FETCH,
      std::make_unique<LedgerRequest>(agent_, operation.id, *std::move(remote),
                                      std::move(in_flight), std::move(range)),
      token);
  if (submitted.has_error()) requests.not_sent(operation.id);
  return submitted;
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

// [["Accept","text/plain"], ...]; absent: it is something else.
std::optional<Headers> read_fetch_headers(std::string_view json) {
  Headers headers;
  if (json.empty()) return headers;
  const auto list = parse_json(json, 2);
  if (!list || !list->is_array()) return std::nullopt;
  for (const Json& each : *list) {
    if (!each.is_array() || each.size() != 2 || !each[0].is_string() || !each[1].is_string())
      return std::nullopt;
    headers.emplace_back(each[0].get<std::string>(), each[1].get<std::string>());
  }
  return headers;
}

std::chrono::milliseconds time_of(std::uint64_t ms, std::chrono::milliseconds by_default) {
  constexpr std::uint64_t kLongest = std::uint64_t{365} * 24 * 3600 * 1000;
  return ms == 0 ? by_default : std::chrono::milliseconds(std::min(ms, kLongest));
}

std::uint64_t bytes_or(std::uint64_t bytes, std::uint64_t by_default) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40U;
  return bytes == 0 ? by_default : std::min(bytes, kMost);
}

constexpr std::uint32_t kFetchFlags =
    HEARTH_FETCH_FOLLOW | HEARTH_FETCH_HTTP2 | HEARTH_FETCH_RESUME;

// The trace of the operation that it belongs to, or else of the event.
std::string above_request(const AgentContext& it, std::string_view operation,
                          const std::string& event) {
  auto* const spans = it.extensions().find<WorkSpans>();
  if (spans == nullptr || operation.empty()) return event;
  const Span span = spans->span_of(SpannedWork::kOperation, operation);
  return span.is_none() ? event : span.text();
}

Result<OperationId> start_fetch(AgentContext& it, const hearth_fetch_request& given,
                                std::uint64_t token) {
  if ((given.flags & ~kFetchFlags) != 0)
    return Error{Errc::kUnsupported, "the request has a flag that this server does not know"};
  const auto texts =
      texts_of({given.method, given.url, given.headers, given.credential, given.operation});
  const auto body = bytes_of(given.body);
  if (!texts || !body) return bad_slice();
  const auto& [method, url, headers_json, credential, operation] = *texts;
  const bool resumes = (given.flags & HEARTH_FETCH_RESUME) != 0;
  if ((resumes && operation.empty()) || (!resumes && given.resume_from != 0))
    return Error{Errc::kInvalidArgument, "only the request of an operation can resume"};
  auto headers = read_fetch_headers(headers_json);
  if (!headers)
    return Error{Errc::kInvalidArgument, R"(headers are JSON: [["name","value"], ...])"};
  CallOrigin event = it.calls().origin(given.call);
  if (event.trace.empty()) event.trace = it.calls().trace();
  FetchRequest request;
  request.span = it.ports().open_span(above_request(it, operation, event.trace), SpanKind::kClient);
  if (find_header(*headers, kTraceHeader) == nullptr) {
    const std::string trace = request.span.is_open() ? request.span.span().text() : event.trace;
    if (!trace.empty()) headers->emplace_back(kTraceHeader, trace);
  }
  request.call = given.call;
  request.its_method = std::move(event.method);
  request.trace = std::move(event.trace);
  request.method = method.empty() ? "GET" : method;
  request.url = url;
  request.headers = *std::move(headers);
  request.body = *body;
  request.follow_redirects = (given.flags & HEARTH_FETCH_FOLLOW) != 0;
  request.http2 = (given.flags & HEARTH_FETCH_HTTP2) != 0;
  request.connect_timeout = time_of(given.connect_timeout_ms, request.connect_timeout);
  request.idle_timeout = time_of(given.idle_timeout_ms, request.idle_timeout);
  request.total_timeout = time_of(given.total_timeout_ms, request.total_timeout);
  request.max_bytes = bytes_or(given.max_bytes, request.max_bytes);
  request.window = bytes_or(given.window, request.window);
  const FetchOperation its_operation = {
      .id = std::string(operation), .resumes = resumes, .from = given.resume_from};
  return it.of<FetchExtension>().start(std::move(request), credential, token, its_operation);
}

}  // namespace

constexpr hearth_fetch_v1 kFetchTable = {.start = kDoor<start_fetch>};

}  // namespace hearth::extensions
