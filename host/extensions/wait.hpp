#pragma once
// One thing that an agent waits for, as a value. server/why.hpp has the sentences.

#include <cstdint>
#include <optional>
#include <string>

namespace hearth::extensions {

// `subject` and `detail` of a Wait are what is said here; empty where nothing is said.
enum class WaitKind : std::uint8_t {
  // ---- in memory
  kLoop,       // its event loop does not answer. Whose code holds it up; its stack
  kCall,       // an event is in progress. The method; the stack, if it holds its loop up
  kStart,      // its instance is being made
  kEviction,   // it leaves memory. The reason
  kBehind,     // a client does not read. The connection; the bytes that wait for it
  kLent,       // another thread has its database
  kRequest,    // a request to another server. The host; its phase and bytes
  kAgentCall,  // a call of another agent. Class/name; the method
  // ---- on its way into memory
  kRoom,        // limits.max_live_agents, or descriptors
  kPermit,      // too many agents start at once. Why they start
  kTrial,       // it failed to start on a version under trial. The failure
  kOnTrial,     // it runs on code or settings under trial. Which of the two
  kNoClass,     // no class of this name is served. Why, if that is known
  kQuarantine,  // its class crashed the server too often. The class; the crash
  kRemoval,     // the files of a destroyed agent of this name are being removed
  // ---- durable work
  kRunning,       // a fiber runs. The fiber
  kRetry,         // a fiber waits for its next try. The fiber; the last error
  kLane,          // a fiber waits for others of its lane. The fiber; the lane
  kCode,          // a fiber waits for code that can read it. The fiber; what it cannot read
  kUnknown,       // an operation whose outcome is not known. The operation; its kind
  kBudget,        // a budget of operations is used up. Their kind
  kDeadFiber,     // a fiber has used up its tries. The fiber; the last error
  kDeadItem,      // so has an item of the queue. The callback; the last error
  kDeadSchedule,  // so has a schedule. As above
  kDeadNotice,    // so has a notification or an alarm. Class/name or the method; last error
  kNoCallback,    // a schedule or an item whose callback the class does not list. The callback
  kPaused,        // a schedule is paused. The schedule
  kItem,          // an item of the queue waits for its next try. The callback; the last error
  kSchedule,      // a schedule waits for its time. The callback
  kAlarm,         // an alarm waits for its time
  kPerson,        // its code says that it waits for a person. For what
  kApproval,      // a chat waits until a call of a tool is approved. The tool; the call
  kClientTool,    // a chat waits for a client that executes a tool. The tool; the call
  kMore,          // it has more work than is named
  kNotice,        // a notification to another agent is not delivered yet. Class/name; last error
};

struct Wait {
  WaitKind kind{};
  std::string subject{};
  std::string detail{};
  std::optional<std::int64_t> since_ms{};  // Unix time; nothing: not known
  // When it ends by itself; nothing: something else ends it.
  std::optional<std::int64_t> until_ms{};
  std::string id{};  // of a piece of work, for commands
};

}  // namespace hearth::extensions
