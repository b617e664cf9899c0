#include "base/http_token.hpp"
#include "extensions/abi_call.hpp"
#include "extensions/basics.hpp"

#include <memory>
#include <string>
#include <utility>

namespace hearth::extensions {
namespace {

// Limits on the response's head (ext/http.h); clients and proxies still accept such a length.
constexpr std::size_t kMaxHeaders = 64;
constexpr std::size_t kMaxHeaderNameBytes = 256;
constexpr std::size_t kMaxHeaderValueBytes = std::size_t{8} << 10;

void request_target(AgentContext& /*it*/, const RequestView& request, hearth_bytes& target) {
  target = slice_of(request.target);
}

hearth_status request_header(AgentContext& /*it*/, const RequestView& request, AnyBytes name,
                             hearth_bytes& value) {
  const std::string* const found = find_header(*request.headers, name.bytes);
  if (found == nullptr) return HEARTH_E_NOT_FOUND;
  value = slice_of(*found);
  return HEARTH_OK;
}

hearth_status request_header_at(AgentContext& /*it*/, const RequestView& request,
                                std::uint32_t index, hearth_bytes& name, hearth_bytes& value) {
  if (index >= request.headers->size()) return HEARTH_E_NOT_FOUND;
  const auto& [its_name, its_value] = (*request.headers)[index];
  name = slice_of(its_name);
  value = slice_of(its_value);
  return HEARTH_OK;
}

Error too_late() {
  return {Errc::kForbidden, "the head of the response has already left"};
}

Result<void> set_status(AgentContext& /*it*/, const RequestView& request, std::uint32_t status) {
  if (request.response == nullptr) return too_late();
  if (status < 200 || status > 599)
    return Error{Errc::kInvalidArgument, "a response's status is 200 to 599"};
  request.response->status = status;
  return {};
}

Result<void> add_header(AgentContext& /*it*/, const RequestView& request, AnyBytes name,
                        AnyBytes value) {
  if (request.response == nullptr) return too_late();
  if (name.bytes.size() > kMaxHeaderNameBytes || value.bytes.size() > kMaxHeaderValueBytes)
    return Error{Errc::kLimitExceeded, "a header is at most 256 bytes of name and 8 KiB of value"};
  if (!is_http_token(name.bytes) || !is_http_field_value(value.bytes))
    return Error{Errc::kInvalidArgument, "not a header's name and value"};
  if (is_host_owned_header(name.bytes))
    return Error{Errc::kInvalidArgument, "the host sets this header itself"};
  if (request.response->headers.size() >= kMaxHeaders)
    return Error{Errc::kLimitExceeded, "a response has at most 64 headers of the agent's own"};
  request.response->headers.emplace_back(name.bytes, value.bytes);
  return {};
}

static_assert(kUnreadBody == HEARTH_REQUEST_UNREAD_BODY);

constexpr std::uint64_t kBodyWindow = std::uint64_t{256} << 10U;

// Each piece begins the deadline of its event again.
class TimedBody final : public RemoteOperation {
 public:
  TimedBody(CallPort& calls, CallId call, std::unique_ptr<RemoteOperation> body)
      : calls_(calls), call_(call), body_(std::move(body)) {}

  void start(RemoteListener& listener) override { body_->start(listener); }
  void credit(std::uint64_t bytes) override { body_->credit(bytes); }
  void telling(const Result<std::string>& /*outcome*/, bool /*is_end*/,
               std::uint32_t /*flags*/) override {
    calls_.body_came(call_);
  }

 private:
  CallPort& calls_;
  const CallId call_;
  const std::unique_ptr<RemoteOperation> body_;
};

Result<OperationId> read_body(AgentContext& it, CallId call, std::uint64_t window,
                              std::uint64_t token) {
  const auto request = it.calls().request(call);
  if (!request) return request.error();
  if (request->body == nullptr || !*request->body)
    return Error{Errc::kForbidden, "the body came whole, or is already read"};
  auto body = (*request->body)(window == 0 ? kBodyWindow : window);
  auto started = it.calls().submit(
      HEARTH_OP_BODY, std::make_unique<TimedBody>(it.calls(), call, std::move(body)), token);
  if (started) *request->body = nullptr;
  return started;
}

}  // namespace

constexpr hearth_http_v1 kHttpTable = {.target = kGoneDoor<request_target>,
                                       .header = kGoneDoor<request_header>,
                                       .header_at = kGoneDoor<request_header_at>,
                                       .set_status = kGoneDoor<set_status>,
                                       .add_header = kGoneDoor<add_header>,
                                       .read_body = kGoneDoor<read_body>};

}  // namespace hearth::extensions
