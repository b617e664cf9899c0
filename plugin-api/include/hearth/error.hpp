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
// and the log; clients read "the method failed" and the trace (show_failures shows all).
//
//     throw hearth::Error(HEARTH_E_NOT_FOUND, "no such room");  // HTTP answers 404
class Error : public std::runtime_error {
 public:
  Error(hearth_status code, const std::string& text, bool is_final = false)
      : std::runtime_error(text), code_(code), is_final_(is_final) {}

  // One of HEARTH_E_*.
  [[nodiscard]] hearth_status code() const noexcept { return code_; }
  // No retry can end better, so none is made (see Final).
  [[nodiscard]] bool is_final() const noexcept { return is_final_; }

 private:
  hearth_status code_;
  bool is_final_;
};

// A failure that no retry mends: a card that was refused, an order that does not exist.
//
//     throw hearth::Final("the card was refused");
//     throw hearth::Final("no tokens are left today", "budget");
//
// Fibers, queue items, schedules, alarms and retry() make no other attempt. In the function of an
// operation it also says that the operation was certainly not executed (NotExecuted).
class Final : public Error {
 public:
  // `reason`: a word for programs, which the record of a fiber keeps beside the text; at most 256
  // bytes.
  explicit Final(const std::string& text, std::string reason = {})
      : Error(HEARTH_E_FINAL, text, true), reason_(std::move(reason)) {}
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  std::string reason_;
};

// This version of the code cannot read what an earlier version has stored. A fiber, a queue item or
// a schedule whose work throws it waits for another version, and a version that is on trial is
// charged. The SDK throws it for inputs, checkpoints, payloads and stored results.
class Unreadable : public Error {
 public:
  explicit Unreadable(const std::string& text) : Error(HEARTH_E_UNREADABLE, text) {}
};

// A function of the host failed. If it leaves a handler, the caller gets its text with
// HEARTH_E_PLUGIN: its code is for the agent, not for the agent's caller. LIMIT and CONFLICT are
// the exceptions: a method that throws HostError(CONFLICT), such as for a key with another input,
// is answered with CONFLICT. CallError and FetchError are about other places, and a
// SqlError(CONFLICT) about a constraint of the agent's own tables, so they stay HEARTH_E_PLUGIN.
//
// Final: INVALID, UNSUPPORTED, NOT_FOUND, FORBIDDEN and FINAL, and a limit of a day. Also as the
// answer to a call or a request (CallError, FetchError).
class HostError : public Error {
 public:
  HostError(hearth_status code, const std::string& text)
      : HostError(code, text,
                  code == HEARTH_E_INVALID || code == HEARTH_E_UNSUPPORTED ||
                      code == HEARTH_E_NOT_FOUND || code == HEARTH_E_FORBIDDEN ||
                      code == HEARTH_E_FINAL) {}
  HostError(hearth_status code, const std::string& text, bool is_final)
      : Error(code, text, is_final) {}
};

// A statement failed. what() has only SQLite's text, so that a caller never reads the agent's SQL.
// Not final.
class SqlError : public HostError {
 public:
  SqlError(hearth_status code, const std::string& text, std::string sql)
      : HostError(code, text, false), sql_(std::move(sql)) {}

  // The text of the statement, as the author wrote it. Also logged when the error leaves a handler.
  [[nodiscard]] const std::string& sql() const noexcept { return sql_; }

 private:
  std::string sql_;
};

// "LIMIT" for HEARTH_E_LIMIT and so on; "error" for a code of a later version.
[[nodiscard]] inline std::string_view status_name(hearth_status status) noexcept {
  constexpr std::string_view kNames[] = {
      "OK",      "INVALID",   "NOMEM",        "UNSUPPORTED", "CANCELLED", "TIMEOUT",
      "CLOSING", "GONE",      "WRONG_THREAD", "PLUGIN",      "LIMIT",     "BUSY",
      "IO",      "NOT_FOUND", "CONFLICT",     "FORBIDDEN",   "FINAL",     "UNREADABLE"};
  if (status > 0 || status < HEARTH_E_UNREADABLE) return "error";
  return kNames[-status];
}

}  // namespace hearth
