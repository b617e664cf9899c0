#pragma once
// The record of a crash: a few lines of text that a signal handler can write.

#include "base/error.hpp"
#include "base/work_mark.hpp"
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

// The facts of a crash. Texts are empty where nothing is known: outside of calls into libraries.
// There is no agent if the crash concerns the whole library: during load or unload, or on a thread
// that the library has started.
// Text: std::string_view to write, std::string to read.
template <class Text>
struct CrashFacts {
  Text reason;  // "SIGSEGV"; "exit": the library called exit(); "hung": a call did not return
  std::int64_t time_ms = 0;  // Unix
  std::int64_t pid = 0;
  Text library;  // its file
  Text sha256;   // of that file
  std::uint64_t generation = 0;
  Text agent_class;  // without an agent: all classes of the library, with commas between them
  Text agent;        // the beginning of its name
  std::uint64_t agent_digest = 0;     // RunningCall::agent_digest
  std::optional<WorkMark> work = {};  // RunningCall::work
  Text call;                          // "message", "create", "offload"
  Text method = {};                   // "increment", "POST", a callback; empty: `call` says it all
  std::uint64_t event_number = 0;     // of the event, as `call` in the log; 0: none
  Text trace = {};                    // traceparent of the event; empty: unknown
  std::int64_t running_ms = 0;        // since the call began
  Text stack = {};                    // join_stack() of the functions of the call; empty: unknown
};
using CrashReport = CrashFacts<std::string_view>;
using CrashRecord = CrashFacts<std::string>;

// CrashFacts::call if code of the library crashed outside of any call: usually on a thread that the
// library has started.
inline constexpr std::string_view kOwnThread = "own_thread";

// CrashFacts::reason of a call that did not return.
inline constexpr std::string_view kHung = "hung";

inline constexpr std::size_t kMaxCrashRecord = 8192;
inline constexpr std::size_t kMaxCrashFrame = 1200;

// The text of a stack.
inline constexpr std::size_t kMaxCrashStack = 4096;

// The whole file of one crash.
inline constexpr std::size_t kMaxCrashFile =
    kMaxCrashRecord + kMaxCrashFrames * kMaxCrashFrame + 2 * kMaxCrashStack;

// Writes the text into `buffer`, and returns the part that it fills. Texts are cut at kMaxCrashText
// bytes. Control characters become '?'.
//   Safety   Async-signal-safe.
[[nodiscard]] std::string_view format_crash(const CrashReport& report,
                                            std::span<char, kMaxCrashRecord> buffer) noexcept;
inline constexpr std::size_t kMaxCrashText = 1024;

// One frame of the stack as a line, with a line feed. A handler writes one for each frame after the
// text of format_crash, because it cannot look up the names for CrashFacts::stack.
//   Safety   Async-signal-safe.
[[nodiscard]] std::string_view format_frame(const CodePlaceView& frame,
                                            std::span<char, kMaxCrashFrame> buffer) noexcept;

// The line that format_crash makes of CrashFacts::stack. It is added to a record that has only
// frames.
[[nodiscard]] std::string format_stack(std::string_view stack);

// One line for people, with a line feed, for standard error: the facts that format_crash writes.
//   Safety   Async-signal-safe.
[[nodiscard]] std::string_view describe_crash(const CrashReport& report,
                                              std::span<char, kMaxCrashRecord> buffer) noexcept;

// Reads a text of format_crash. Ignores unknown lines; missing fields stay empty.
//   Failure  kInvalidArgument: this is no such text, or it ends before the reason.
[[nodiscard]] Result<CrashRecord> parse_crash(std::string_view text);

// The frames in the text, innermost first.
[[nodiscard]] std::vector<CodePlace> parse_frames(std::string_view text);

}  // namespace hearth::diagnosis
