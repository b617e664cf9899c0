#include "durable/fiber_request.hpp"

#include "base/utf8.hpp"
#include "json/json_scanner.hpp"

#include <utility>

namespace hearth::durable {
namespace {

constexpr std::size_t kMaxLabelBytes = 256;  // of a name, an id and a key

Error bad_fiber(std::string why) {
  return Error{Errc::kInvalidArgument, std::move(why)};
}

// Checks a name, an id or a key. Empty is allowed: none.
Result<void> check_label(std::string_view what, std::string_view label) {
  if (label.empty()) return {};
  if (label.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos)
    return bad_fiber("a fiber's " + std::string(what) + " may not be blank");
  if (label.size() > kMaxLabelBytes || !is_valid_utf8(label) ||
      label.find('\0') != std::string_view::npos)
    return bad_fiber("a fiber's " + std::string(what) + " is 1 to 256 bytes of UTF-8");
  return {};
}

}  // namespace

Result<void> check_fiber_json(std::string_view what, std::string_view json, std::size_t max_bytes) {
  if (json.size() > max_bytes) {
    return Error{Errc::kLimitExceeded, "a fiber's " + std::string(what) + " is larger than " +
                                           std::to_string(max_bytes) + " bytes"};
  }
  if (!json.empty() && !is_json(json))
    return bad_fiber("a fiber's " + std::string(what) + " must be JSON");
  return {};
}

Result<RetryPolicy> retry_of(const FiberRequest& request) {
  constexpr RetryPolicy kDefaults{0, std::chrono::milliseconds(1'000),
                                  std::chrono::milliseconds(300'000)};
  return checked_retry(request.max_retries, request.retry_base_ms, request.retry_max_ms, kDefaults);
}

Result<void> check_fiber(const FiberRequest& request, std::size_t max_json_bytes) {
  if (request.policy > SettledKey::kReplaceFailed)
    return bad_fiber("there is no such policy for a settled fiber");
  if (request.name.empty()) return bad_fiber("a fiber's name is 1 to 256 bytes of UTF-8");
  for (const auto& checked : {check_label("name", request.name), check_label("id", request.id),
                              check_label("key", request.key), check_label("lane", request.lane),
                              check_fiber_json("input", request.input, max_json_bytes),
                              check_fiber_json("metadata", request.metadata, max_json_bytes)}) {
    if (checked.has_error()) return checked.error();
  }
  if (const auto retry = retry_of(request); retry.has_error()) return retry.error();
  if (request.is_turn && !request.parent.empty())
    return bad_fiber("a fiber that another one waits for is no turn of its own");
  if (!request.lane.empty() && !request.parent.empty())
    return bad_fiber("a fiber that another one waits for has no lane");
  return {};
}

std::string type_of(const FiberRequest& request) {
  const bool is_brief = request.keeping == FiberKeeping::kBrief;
  if (request.is_turn) return is_brief ? "turn" : "kept turn";
  return is_brief ? "brief" : "kept";
}

}  // namespace hearth::durable
