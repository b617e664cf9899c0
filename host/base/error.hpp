#pragma once
// Errors an operation is *expected* to meet: absent rows, conflicts, limits, bad input, closing.
//
// Three channels, never mixed (host/README.md, "Failure"):
//   Result<T>      the caller is supposed to look: part of normal operation, tested at every call.
//   StorageError   the environment failed (I/O, corruption, disk full). Thrown; caught once, at the
//                  agent boundary, where it breaks the agent and evicts it. Nobody else catches.
//   HEARTH_ASSERT  this program is wrong. Prints why and aborts; durable state makes that cheap.

#include <boost/system/result.hpp>

#include <stdexcept>
#include <string>
#include <string_view>

namespace hearth {

// Values are shown to clients by name and cross the plugin ABI: append only, never renumber.
enum class Errc : int {
  kNotFound = 1,
  kConflict = 2,
  kInvalidArgument = 3,
  kLimitExceeded = 4,
  kClosing = 5,      // the agent or the server is going away; the same call may work again later
  kUnavailable = 6,  // cannot be served now: overloaded, start failed, class not loaded
  kTimeout = 7,
  kCancelled = 8,
  kForbidden = 9,
  kUnsupported = 10,
  kPlugin = 11,    // the plugin's own code failed; the message is the plugin's
  kInternal = 12,  // our fault; the message carries no internals
  kTooLarge = 13,  // past a limit by itself, whatever else there is; plugins get HEARTH_E_LIMIT
};

// Lower-case words, stable, safe to show to clients: "not_found".
std::string_view to_string(Errc code) noexcept;

// In a namespace of its own, for the linker: an author's test has the SDK's hearth::Error and, in
// the test host that it links (host/mock), this one.
inline namespace host {

// A code for programs and one sentence for people. The sentence is not stable.
struct Error {
  Errc code;
  std::string message;
};

}  // namespace host

// What the system says of an errno: "Permission denied".
[[nodiscard]] std::string system_text(int error);

// Whether an errno says that the disk is full, or a quota or a file's limit is reached: a state
// that may pass.
[[nodiscard]] bool is_out_of_room(int error);

// The disk or the database failed. `what()` says what was attempted, on what, and what the system
// said; it is for the log and never goes to a client.
class StorageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The same, because this process may open no more files: a state that passes once others have been
// closed.
class OutOfDescriptors : public StorageError {
 public:
  using StorageError::StorageError;
};

// The same, because the disk has no room: what was read is as good as ever, and writing may work
// again later.
class DiskFull : public StorageError {
 public:
  using StorageError::StorageError;
};

// boost::system::result asks how to throw when value() is called on an error.
[[noreturn]] inline void throw_exception_from_error(const Error& error,
                                                    const boost::source_location&) {
  throw std::logic_error("unchecked Result: " + error.message);
}

template <class T>
using Result = boost::system::result<T, Error>;

}  // namespace hearth
