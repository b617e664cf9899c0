#pragma once
// Errors that an operation *expects*: absent rows, conflicts, limits, bad input, closing.
//
// Three channels, never mixed (host/README.md, "Failure"):
//   Result<T>      part of normal operation: every caller checks it.
//   StorageError   the environment failed (I/O, corruption, disk full). Thrown, and caught once, at
//                  the agent boundary, where it breaks the agent and evicts it. No other code
//                  catches it.
//   HEARTH_ASSERT  a bug in this program. Prints why and aborts; durable state survives that.

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
  kClosing = 5,      // the agent or the server is shutting down; a retry may work later
  kUnavailable = 6,  // cannot be served now: overloaded, start failed, class not loaded
  kTimeout = 7,
  kCancelled = 8,
  kForbidden = 9,
  kUnsupported = 10,
  kPlugin = 11,      // the plugin's own code failed; the message is the plugin's
  kInternal = 12,    // the server failed; the message holds no internals
  kTooLarge = 13,    // one item alone is above a limit; plugins get HEARTH_E_LIMIT
  kFinal = 14,       // as kPlugin, and no retry can end better
  kUnreadable = 15,  // the plugin's code cannot read what an earlier version of it has stored
};

// Lower-case words, stable, safe to show to clients: "not_found".
std::string_view to_string(Errc code) noexcept;

// In its own namespace, for the linker: an author's test links the SDK's hearth::Error and, in the
// test host (host/mock), this one.
inline namespace host {

// A code for programs and one sentence for people. The sentence is not stable.
struct Error {
  Errc code;
  std::string message;
};

}  // namespace host

// The system's text for an errno: "Permission denied".
[[nodiscard]] std::string system_text(int error);

// Whether an errno says that the disk is full, or that a quota or a file's limit is reached: a
// condition that may pass.
[[nodiscard]] bool is_out_of_room(int error);

// The disk or the database failed. `what()` says what was attempted, on what, and what the system
// said; it is for the log and never goes to a client.
class StorageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A StorageError because this process can open no more files. It passes when other files are
// closed.
class OutOfDescriptors : public StorageError {
 public:
  using StorageError::StorageError;
};

// A StorageError because the disk is full. Data that was read is still valid, and a later write may
// succeed.
class DiskFull : public StorageError {
 public:
  using StorageError::StorageError;
};

// boost::system::result calls this when value() is called on an error.
[[noreturn]] inline void throw_exception_from_error(const Error& error,
                                                    const boost::source_location&) {
  throw std::logic_error("unchecked Result: " + error.message);
}

template <class T>
using Result = boost::system::result<T, Error>;

}  // namespace hearth
