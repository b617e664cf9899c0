#pragma once
// Which call into a library each thread is in right now: for the handler of a crash, and for who
// looks for calls that do not return.
//
// State    The records are the process's own: a signal handler can be handed nothing, and reaches
//          only what has static storage. They are private to call_records.cpp. A thread has a
//          record from its first call until it ends.
// Cost     Some ten nanoseconds a call, on a cache line of the thread's own: no lock, and nothing
//          is made.
// Bounded  512 threads at once. A thread beyond that is not seen.

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
// Lifetime  Outlives the calls that name it. Its destructor waits for for_each_call().
class CallOwner {
 public:
  CallOwner(std::string library_file, std::string hash, std::uint64_t version,
            std::string class_name);
  ~CallOwner();
  CallOwner(const CallOwner&) = delete;
  CallOwner& operator=(const CallOwner&) = delete;

  const std::string library;  // the file that the person knows
  const std::string sha256;   // of its content; empty: unknown
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
  // Of an agent: tells it from those whose names begin as its own.
  static AgentLabel with_digest(std::string_view name);
  [[nodiscard]] const Words& words() const { return words_; }
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

 private:
  Words words_{};
  std::uint64_t digest_ = 0;
};

// The event that a call is about, and its span of a trace.
struct CallEvent {
  std::uint64_t number = 0;  // as `call` in the log; 0: none
  std::array<std::uint64_t, 2> trace{};
  std::uint64_t span = 0;  // 0: none is known
  std::uint8_t flags = 0;
};

// The traceparent of it, or nothing.
//   Safety    Async-signal-safe.
using TraceText = std::array<char, 55>;
[[nodiscard]] std::string_view write_trace(const CallEvent& event, TraceText& into) noexcept;

struct CallSlot;

// Publishes that this thread is in a call, until it is destroyed. One inside another is not seen:
// the outer one is.
//   Threads   Any; works_for() the one that made it. The characters of `call` live for ever; the
//             owner outlives the object, the labels need not.
class CallScope {
 public:
  // `fiber`: as RunningCall::fiber.
  CallScope(const CallOwner& owner, std::string_view call, const AgentLabel& agent,
            const AgentLabel& method = {}, std::optional<std::int64_t> fiber = {},
            const CallEvent& event = {}) noexcept;
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  // What runs from now on is the work of this fiber.
  void works_for(std::optional<std::int64_t> fiber) noexcept;

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
  // The row of the fiber whose work runs, in the agent's database; 0: no fiber's; the largest: of
  // one of several (durable/fibers.hpp); nothing: the library has not told.
  std::optional<std::int64_t> fiber;
  CallEvent event{};

  [[nodiscard]] std::string_view agent() const;  // empty: the call is about none
  // What of the class runs: "increment", "POST", a callback; empty: the call says it all.
  [[nodiscard]] std::string_view method() const;
};

// The call that this thread is in. False: it is in none.
//   Safety    Async-signal-safe. The owner is valid until the call returns.
bool find_running_call(RunningCall& into) noexcept;

// Whether this thread has ever called into a library on the host's behalf. One that has not is no
// thread on which the host runs libraries' code.
//   Safety    Async-signal-safe.
[[nodiscard]] bool has_call_record() noexcept;

// Shows every call that runs now, of any thread. The owners are valid inside `look` only.
//   Threads   Any. Blocks whoever unloads a class meanwhile, and nobody who calls one.
void for_each_call(const std::function<void(const RunningCall&)>& look);

// The time that RunningCall::since is in.
//   Safety    Async-signal-safe.
[[nodiscard]] std::chrono::nanoseconds call_clock() noexcept;

}  // namespace hearth::diagnosis
