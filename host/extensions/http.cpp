#include "extensions/http.hpp"

#include "base/http_token.hpp"
#include "extensions/abi_call.hpp"

#include <memory>
#include <string>
#include <utility>

namespace hearth::extensions {
namespace {

// Limits on the response's head (ext/http.h); clients and proxies still accept such a length.
constexpr std::size_t kMaxHeaders = 64;
constexpr std::size_t kMaxHeaderNameBytes = 256;
constexpr std::size_t kMaxHeaderValueBytes = std::size_t{8} << 10;

hearth_status request_target(AgentContext& it, std::uint64_t call, hearth_bytes* out) {
  const auto request = it.calls().request(call);
  if (!request) return fail(it, request.error(), HEARTH_E_GONE);
  if (out == nullptr) return no_place(it);
  *out = slice_of(request->target);
  return HEARTH_OK;
}

hearth_status request_header(AgentContext& it, std::uint64_t call, hearth_bytes name,
                             hearth_bytes* value) {
  const auto request = it.calls().request(call);
  if (!request) return fail(it, request.error(), HEARTH_E_GONE);
  const auto wanted = bytes_of(name);
  if (!wanted) return bad_slice(it);
  if (value == nullptr) return no_place(it);
  const std::string* const found = find_header(*request->headers, *wanted);
  if (found == nullptr) return HEARTH_E_NOT_FOUND;
  *value = slice_of(*found);
  return HEARTH_OK;
}

hearth_status request_header_at(AgentContext& it, std::uint64_t call, std::uint32_t index,
                                hearth_bytes* name, hearth_bytes* value) {
  const auto request = it.calls().request(call);
  if (!request) return fail(it, request.error(), HEARTH_E_GONE);
  if (name == nullptr || value == nullptr) return no_place(it);
  if (index >= request->headers->size()) return HEARTH_E_NOT_FOUND;
  const auto& [its_name, its_value] = (*request->headers)[index];
  *name = slice_of(its_name);
  *value = slice_of(its_value);
  return HEARTH_OK;
}

hearth_status too_late(AgentContext& agent) {
  return fail(agent, HEARTH_E_FORBIDDEN, "the head of the response has already left");
}

hearth_status set_status(AgentContext& it, std::uint64_t call, std::uint32_t status) {
  const auto request = it.calls().request(call);
  if (!request) return fail(it, request.error(), HEARTH_E_GONE);
  if (request->response == nullptr) return too_late(it);
  if (status < 200 || status > 599) {
    return fail(it, HEARTH_E_INVALID, "a response's status is 200 to 599");
  }
  request->response->status = status;
  return HEARTH_OK;
}

hearth_status add_header(AgentContext& it, std::uint64_t call, hearth_bytes name,
                         hearth_bytes value) {
  const auto request = it.calls().request(call);
  if (!request) return fail(it, request.error(), HEARTH_E_GONE);
  const auto its_name = bytes_of(name);
  const auto its_value = bytes_of(value);
  if (!its_name || !its_value) return bad_slice(it);
  if (request->response == nullptr) return too_late(it);
  if (its_name->size() > kMaxHeaderNameBytes || its_value->size() > kMaxHeaderValueBytes) {
    return fail(it, HEARTH_E_LIMIT, "a header is at most 256 bytes of name and 8 KiB of value");
  }
  if (!is_http_token(*its_name) || !is_http_field_value(*its_value)) {
    return fail(it, HEARTH_E_INVALID, "not a header's name and value");
  }
  if (is_host_owned_header(*its_name))
    return fail(it, HEARTH_E_INVALID, "the host sets this header itself");
  if (request->response->headers.size() >= kMaxHeaders) {
    return fail(it, HEARTH_E_LIMIT, "a response has at most 64 headers of the agent's own");
  }
  request->response->headers.emplace_back(*its_name, *its_value);
  return HEARTH_OK;
}

static_assert(kUnreadBody == HEARTH_REQUEST_UNREAD_BODY);

constexpr std::uint64_t kBodyWindow = std::uint64_t{256} << 10U;

// Each piece begins the deadline of its event again.
class TimedBody final : public RemoteOperation {
 public:
  TimedBody(AgentCalls& calls, CallId call, std::unique_ptr<RemoteOperation> body)
      : calls_(calls), call_(call), body_(std::move(body)) {}

  void start(RemoteListener& listener) override { body_->start(listener); }
  void credit(std::uint64_t bytes) override { body_->credit(bytes); }
  void telling(const Result<std::string>& /*outcome*/, bool /*is_end*/,
               std::uint32_t /*flags*/) override {
    calls_.body_came(call_);
  }

 private:
  AgentCalls& calls_;
  const CallId call_;
  const std::unique_ptr<RemoteOperation> body_;
};

hearth_status read_body(AgentContext& it, std::uint64_t call, std::uint64_t window,
                        std::uint64_t token, std::uint64_t* id) {
  const auto request = it.calls().request(call);
  if (!request) return fail(it, request.error(), HEARTH_E_GONE);
  if (id == nullptr) return no_place(it);
  if (request->body == nullptr || !*request->body)
    return fail(it, HEARTH_E_FORBIDDEN, "the body came whole, or is already read");
  auto body = (*request->body)(window == 0 ? kBodyWindow : window);
  const auto started = it.calls().submit(
      HEARTH_OP_BODY, std::make_unique<TimedBody>(it.calls(), call, std::move(body)), token);
  if (started) *request->body = nullptr;
  if (started) *id = *started;
  return status_of(it, started);
}

constexpr hearth_http_v1 kHttp = {.target = kDoor<request_target>,
                                  .header = kDoor<request_header>,
                                  .header_at = kDoor<request_header_at>,
                                  .set_status = kDoor<set_status>,
                                  .add_header = kDoor<add_header>,
                                  .read_body = kDoor<read_body>};

}  // namespace

const hearth_http_v1& http_extension() noexcept {
  return kHttp;
}

}  // namespace hearth::extensions
