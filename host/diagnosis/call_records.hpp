#pragma once
// Records which call into a library each thread is in. The crash handler and the watchdog read it.
//
// State    The records have static storage, because a signal handler reaches nothing else. They
//          are private to call_records.cpp. A thread has a record from its first call until the
//          thread ends.
// Cost     Some ten nanoseconds a call, on a cache line of the thread's own. No lock, no
//          allocation.
// Bounded  512 threads at once. The calls of further threads are not recorded.

#include "base/work_mark.hpp"

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::diagnosis {

// Which class of which version of which library. Immutable.
// Lifetime  Must outlive the calls that name it. Its destructor waits for for_each_call().
class CallOwner {
 public:
  CallOwner(std::string library_file, std::string hash, std::uint64_t version,
            std::string class_name);
  ~CallOwner();
  CallOwner(const CallOwner&) = delete;
  CallOwner& operator=(const CallOwner&) = delete;

  const std::string library;  // the file in the plugin directory, not the private copy
  const std::string sha256;   // of the file's content; empty: unknown
  const std::uint64_t generation;
  const std::string agent_class;
};

// The beginning of the name of an agent or of a method, in the form in which it is published.
class AgentLabel {
 public:
  static constexpr std::size_t kBytes = 64;
  using Words = std::array<std::uint64_t, kBytes / sizeof(std::uint64_t)>;

  AgentLabel() = default;  // none
  // Keeps whole characters of UTF-8, as many as fit into kBytes.
  explicit AgentLabel(std::string_view name);
  // For an agent: the digest distinguishes names that begin with the same characters.
  static AgentLabel with_digest(std::string_view name);
  [[nodiscard]] const Words& words() const { return words_; }
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

 private:
  Words words_{};
  std::uint64_t digest_ = 0;
};

// The event that a call delivers, and the call's span in a trace.
struct CallEvent {
  std::uint64_t number = 0;  // as `call` in the log; 0: none
  std::array<std::uint64_t, 2> trace{};
  std::uint64_t span = 0;  // 0: none is known
  std::uint8_t flags = 0;
};

// The traceparent of `event`. Empty: no span is known.
//   Safety    Async-signal-safe.
using TraceText = std::array<char, 55>;
[[nodiscard]] std::string_view write_trace(const CallEvent& event, TraceText& into) noexcept;

struct CallSlot;

// Publishes that this thread is in a call, until the object is destroyed. A call inside another
// call is not published: the record keeps the outer call.
//   Threads   Any. works_for() only on the thread that made the object.
//   Lifetime  The characters of `call` live for ever. The owner outlives the object. The labels
//             are copied.
class CallScope {
 public:
  // `work`: as RunningCall::work.
  CallScope(const CallOwner& owner, std::string_view call, const AgentLabel& agent,
            const AgentLabel& method = {}, std::optional<WorkMark> work = {},
            const CallEvent& event = {}) noexcept;
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  // The code that runs from now on does this work.
  void works_for(std::optional<WorkMark> work) noexcept;

 private:
  CallSlot* slot_;  // null: nothing is published
};

// One call that has not returned.
struct RunningCall {
  const CallOwner* owner = nullptr;
  std::string_view call;  // "message", "create"
  std::array<char, AgentLabel::kBytes> agent_bytes{};
  std::array<char, AgentLabel::kBytes> method_bytes{};
  std::uint64_t agent_digest = 0;     // sha256_prefix() of its whole name; 0: unknown
  std::chrono::nanoseconds since{0};  // CLOCK_MONOTONIC, to some milliseconds
  std::uint64_t thread = 0;           // tells threads apart
  pid_t system_thread = 0;            // its number in the system
  std::uint64_t number = 0;           // tells the calls of a thread apart
  // The durable work that runs. Absent: unknown.
  std::optional<WorkMark> work;
  CallEvent event{};

  [[nodiscard]] std::string_view agent() const;  // empty: the call is for no agent
  // Which code of the class runs: "increment", "POST", a callback. Empty: `call` says it all.
  [[nodiscard]] std::string_view method() const;
};

// Writes the call that this thread is in into `into`. False: the thread is in no call.
//   Safety    Async-signal-safe. The owner is valid until the call returns.
bool find_running_call(RunningCall& into) noexcept;

// Whether this thread has ever made a call into a library. If not, it is a thread of a library or
// of the host that never runs a library's code.
//   Safety    Async-signal-safe.
[[nodiscard]] bool has_call_record() noexcept;

// Calls `look` for every call that runs now, on any thread. Owners are valid inside `look` only.
//   Threads   Any. While it runs, a thread that destroys a CallOwner waits. Calls do not wait.
void for_each_call(const std::function<void(const RunningCall&)>& look);

// The clock of RunningCall::since.
//   Safety    Async-signal-safe.
[[nodiscard]] std::chrono::nanoseconds call_clock() noexcept;

}  // namespace hearth::diagnosis
