#pragma once
// The exceptions of the SDK. None of them ever crosses the ABI: each entry into a plugin turns an
// exception into a status and a text.

#include <hearth/abi.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace hearth {

// Thrown by an author to fail a call, a request or a hook with a chosen code. The text reaches the
// caller as it is. The text of any other exception, and of HEARTH_E_PLUGIN, reaches other agents
// and the log; clients read "the method failed" and the trace (the class's show_failures shows all).
//
//     throw hearth::Error(HEARTH_E_NOT_FOUND, "no such room");  // HTTP answers 404
class Error : public std::runtime_error {
 public:
  Error(hearth_status code, const std::string& text) : std::runtime_error(text), code_(code) {}

  // One of HEARTH_E_*.
  [[nodiscard]] hearth_status code() const noexcept { return code_; }

 private:
  hearth_status code_;
};

// A function of the host failed. If it leaves a handler, the caller gets its text with
// HEARTH_E_PLUGIN: its code is for the agent, not for the agent's caller. LIMIT and CONFLICT are
// the exceptions: a method that throws HostError(CONFLICT), such as for a key with another input,
// is answered with CONFLICT. CallError and FetchError are about other places, and a
// SqlError(CONFLICT) about a constraint of the agent's own tables, so they stay HEARTH_E_PLUGIN.
class HostError : public Error {
 public:
  using Error::Error;
};

// A statement failed. what() has only SQLite's text, so that a caller never reads the agent's SQL.
class SqlError : public HostError {
 public:
  SqlError(hearth_status code, const std::string& text, std::string sql)
      : HostError(code, text), sql_(std::move(sql)) {}

  // The text of the statement, as the author wrote it. Also logged when the error leaves a handler.
  [[nodiscard]] const std::string& sql() const noexcept { return sql_; }

 private:
  std::string sql_;
};

// "LIMIT" for HEARTH_E_LIMIT and so on; "error" for a code of a later version.
[[nodiscard]] inline std::string_view status_name(hearth_status status) noexcept {
  constexpr std::string_view kNames[] = {"OK",           "INVALID",   "NOMEM",    "UNSUPPORTED",
                                         "CANCELLED",    "TIMEOUT",   "CLOSING",  "GONE",
                                         "WRONG_THREAD", "PLUGIN",    "LIMIT",    "BUSY",
                                         "IO",           "NOT_FOUND", "CONFLICT", "FORBIDDEN"};
  if (status > 0 || status < HEARTH_E_FORBIDDEN) return "error";
  return kNames[-status];
}

}  // namespace hearth
