#include "extensions/abi_status.hpp"

#include <hearth/ext/call.h>

namespace hearth::extensions {

hearth_status to_status(Errc code, hearth_status missing) noexcept {
  switch (code) {
    case Errc::kNotFound: return missing;
    case Errc::kConflict: return HEARTH_E_CONFLICT;
    case Errc::kInvalidArgument: return HEARTH_E_INVALID;
    case Errc::kLimitExceeded:
    case Errc::kTooLarge: return HEARTH_E_LIMIT;
    case Errc::kClosing: return HEARTH_E_CLOSING;
    case Errc::kUnavailable: return HEARTH_E_BUSY;
    case Errc::kTimeout: return HEARTH_E_TIMEOUT;
    case Errc::kCancelled: return HEARTH_E_CANCELLED;
    case Errc::kForbidden: return HEARTH_E_FORBIDDEN;
    case Errc::kUnsupported: return HEARTH_E_UNSUPPORTED;
    case Errc::kPlugin: return HEARTH_E_PLUGIN;
    case Errc::kFinal: return HEARTH_E_FINAL;
    case Errc::kUnreadable: return HEARTH_E_UNREADABLE;
    case Errc::kInternal: return HEARTH_E_IO;
  }
  return HEARTH_E_IO;
}

hearth_status missing_of(std::uint32_t operation) noexcept {
  return operation == HEARTH_OP_CALL ? HEARTH_E_NOT_FOUND : HEARTH_E_GONE;
}

Errc to_errc(hearth_status status) noexcept {
  switch (status) {
    case HEARTH_E_INVALID: return Errc::kInvalidArgument;
    case HEARTH_E_NOMEM:
    case HEARTH_E_LIMIT: return Errc::kLimitExceeded;
    case HEARTH_E_UNSUPPORTED: return Errc::kUnsupported;
    case HEARTH_E_CANCELLED: return Errc::kCancelled;
    case HEARTH_E_TIMEOUT: return Errc::kTimeout;
    case HEARTH_E_CLOSING: return Errc::kClosing;
    case HEARTH_E_GONE:
    case HEARTH_E_NOT_FOUND: return Errc::kNotFound;
    case HEARTH_E_BUSY: return Errc::kUnavailable;
    case HEARTH_E_CONFLICT: return Errc::kConflict;
    case HEARTH_E_FORBIDDEN: return Errc::kForbidden;
    case HEARTH_E_FINAL: return Errc::kFinal;
    case HEARTH_E_UNREADABLE: return Errc::kUnreadable;
    default: return Errc::kPlugin;
  }
}

std::string status_name(hearth_status status) {
  switch (status) {
    case HEARTH_OK: return "HEARTH_OK";
    case HEARTH_ROW: return "HEARTH_ROW";
    case HEARTH_E_INVALID: return "HEARTH_E_INVALID";
    case HEARTH_E_NOMEM: return "HEARTH_E_NOMEM";
    case HEARTH_E_UNSUPPORTED: return "HEARTH_E_UNSUPPORTED";
    case HEARTH_E_CANCELLED: return "HEARTH_E_CANCELLED";
    case HEARTH_E_TIMEOUT: return "HEARTH_E_TIMEOUT";
    case HEARTH_E_CLOSING: return "HEARTH_E_CLOSING";
    case HEARTH_E_GONE: return "HEARTH_E_GONE";
    case HEARTH_E_WRONG_THREAD: return "HEARTH_E_WRONG_THREAD";
    case HEARTH_E_PLUGIN: return "HEARTH_E_PLUGIN";
    case HEARTH_E_LIMIT: return "HEARTH_E_LIMIT";
    case HEARTH_E_BUSY: return "HEARTH_E_BUSY";
    case HEARTH_E_IO: return "HEARTH_E_IO";
    case HEARTH_E_NOT_FOUND: return "HEARTH_E_NOT_FOUND";
    case HEARTH_E_CONFLICT: return "HEARTH_E_CONFLICT";
    case HEARTH_E_FORBIDDEN: return "HEARTH_E_FORBIDDEN";
    case HEARTH_E_FINAL: return "HEARTH_E_FINAL";
    case HEARTH_E_UNREADABLE: return "HEARTH_E_UNREADABLE";
    default: return "the unknown status " + std::to_string(status);
  }
}

}  // namespace hearth::extensions
