#include "base/error.hpp"

#include <cerrno>
#include <system_error>

namespace hearth {

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::kNotFound: return "not_found";
    case Errc::kConflict: return "conflict";
    case Errc::kInvalidArgument: return "invalid_argument";
    case Errc::kLimitExceeded: return "limit_exceeded";
    case Errc::kClosing: return "closing";
    case Errc::kUnavailable: return "unavailable";
    case Errc::kTimeout: return "timeout";
    case Errc::kCancelled: return "cancelled";
    case Errc::kForbidden: return "forbidden";
    case Errc::kUnsupported: return "unsupported";
    case Errc::kPlugin: return "plugin_error";
    case Errc::kInternal: return "internal";
    case Errc::kTooLarge: return "too_large";
    case Errc::kFinal: return "final";
    case Errc::kUnreadable: return "unreadable";
  }
  return "internal";
}

std::string system_text(int error) {
  return std::error_code(error, std::generic_category()).message();
}

bool is_out_of_room(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

}  // namespace hearth
