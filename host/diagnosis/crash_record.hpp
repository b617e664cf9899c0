#pragma once
// What a process leaves behind when it crashes: a few lines of text that a signal handler can
// write.

#include "base/error.hpp"
#include "diagnosis/code_symbols.hpp"
#include "diagnosis/crash_stack.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::diagnosis {

// What there is to say about a crash. Texts are empty where nothing is known: outside of calls into
// libraries. In what concerns the whole library (while it is loaded or unloaded, or on a thread of
// its own) there is no agent.
// Text: std::string_view for who writes, std::string for who reads.
template <class Text>
struct CrashFacts {
  Text reason;  // "SIGSEGV", "exit": the library ended the process, "hung": its call did not return
  std::int64_t time_ms = 0;  // Unix
  std::int64_t pid = 0;
  Text library;  // its file
  Text sha256;   // of that file
  std::uint64_t generation = 0;
  Text agent_class;  // all of the library's, with commas between them, where it is about no agent
  Text agent;        // the beginning of its name
  std::uint64_t agent_digest = 0;          // RunningCall::agent_digest
  std::optional<std::int64_t> fiber = {};  // RunningCall::fiber
  Text call;                               // "message", "create", "offload"
  Text method = {};                // "increment", "POST", a callback; empty: the call says it all
  std::uint64_t event_number = 0;  // of the event, as `call` in the log; 0: none
  Text trace = {};                 // traceparent of that; empty: unknown
  std::int64_t running_ms = 0;     // since the call began
  Text stack = {};                 // join_stack() of the functions it was in; empty: unknown
};
using CrashReport = CrashFacts<std::string_view>;
using CrashRecord = CrashFacts<std::string>;

// The call of a crash outside of any call, in code of the library: on a thread that it has started,
// as a rule.
inline constexpr std::string_view kOwnThread = "own_thread";

// The reason of a call that did not return.
inline constexpr std::string_view kHung = "hung";

inline constexpr std::size_t kMaxCrashRecord = 8192;
inline constexpr std::size_t kMaxCrashFrame = 1200;

// Of the text of a stack.
inline constexpr std::size_t kMaxCrashStack = 4096;

// All that is in the file of one crash.
inline constexpr std::size_t kMaxCrashFile =
    kMaxCrashRecord + kMaxCrashFrames * kMaxCrashFrame + 2 * kMaxCrashStack;

// Puts the text into `buffer`, and returns the part of it that it fills. What does not fit is cut:
// texts at kMaxCrashText bytes. Control characters become '?'.
//   Safety   Async-signal-safe.
[[nodiscard]] std::string_view format_crash(const CrashReport& report,
                                            std::span<char, kMaxCrashRecord> buffer) noexcept;
inline constexpr std::size_t kMaxCrashText = 1024;

// One frame of the stack, with a line feed: what stands behind the text of format_crash, once for
// each frame. A handler writes these, because it cannot find the names that make the text of
// CrashFacts::stack.
//   Safety   Async-signal-safe.
[[nodiscard]] std::string_view format_frame(const CodePlaceView& frame,
                                            std::span<char, kMaxCrashFrame> buffer) noexcept;

// The line that format_crash makes of a stack with names, for a record that has only frames.
[[nodiscard]] std::string format_stack(std::string_view stack);

// One line for people, with a line feed: what format_crash says in a file, said on standard error.
//   Safety   Async-signal-safe.
[[nodiscard]] std::string_view describe_crash(const CrashReport& report,
                                              std::span<char, kMaxCrashRecord> buffer) noexcept;

// Reads what format_crash has made. Lines that it does not know are left alone; what is missing
// stays empty.
//   Failure  kInvalidArgument: this is no such text, or it ends before the reason.
[[nodiscard]] Result<CrashRecord> parse_crash(std::string_view text);

// The frames in the text, innermost first.
[[nodiscard]] std::vector<CodePlace> parse_frames(std::string_view text);

}  // namespace hearth::diagnosis
