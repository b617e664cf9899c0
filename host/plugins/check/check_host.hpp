#pragma once
// The host of a check: the table of functions that a library gets. Every call is watched and can be
// made to fail.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "extensions/abi_host.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/durable_events.hpp"
#include "extensions/watched_tables.hpp"
#include "plugins/check/guarded_memory.hpp"

#include <hearth/abi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::plugins {

class CheckAgent;

// How a host differs from this server's.
struct HostVariant {
  std::uint32_t struct_size =
      sizeof(hearth_host);  // smaller: the table ends there, and must not be read beyond that
  std::uint16_t abi_minor = HEARTH_ABI_MINOR;
  std::set<std::string, std::less<>> hidden;  // extensions that it does not have
  bool has_extensions = true;                 // false: it has no extension
};

// A call to the host that fails on purpose.
struct HostFault {
  std::uint64_t at = 0;  // which call from now on: 1 is the next; 0: none
  hearth_status status = HEARTH_E_IO;
  bool submit_only = false;  // only submit() is counted and fails
};

// The ids and delays of a check, so that a seed repeats a failure.
class CheckRandom final : public Random {
 public:
  explicit CheckRandom(std::uint64_t seed) : engine_(seed) {}
  void fill(std::span<std::byte> out) override;

 private:
  Mutex mutex_;
  std::mt19937_64 engine_ GUARDED_BY(mutex_);
};

// Promises  Answers as the server's table does, for CheckAgents. blame() records calls that the
//           contract forbids: for an agent that is not running or is gone, from another thread, or
//           after deinit().
// Threads   One at a time. The table's functions, post() and blame(): any.
// Lifetime  It outlives the library that has its table.
class CheckHost final : public extensions::AgentDirectory, private extensions::AbiWatcher {
 public:
  // `memory` null: memory that is lent to the library is not guarded.
  CheckHost(std::string origin, HostVariant variant, GuardedMemory& table_memory,
            GuardedMemory* memory, std::uint64_t seed);
  ~CheckHost() override;

  [[nodiscard]] const hearth_host* table() const { return table_; }

  // ---- agents ----
  [[nodiscard]] extensions::AgentHandle next_handle() { return ++last_handle_; }
  void add(CheckAgent& agent);
  void remove(CheckAgent& agent);
  // Names the agent whose code runs on the calling thread until the next call; null: none.
  CheckAgent* set_running(CheckAgent* agent) {
    thread_ = std::this_thread::get_id();
    return std::exchange(running_, agent);
  }
  Found find(extensions::AgentHandle handle) override;
  bool post(extensions::AgentHandle handle, std::uint64_t token) override;
  [[nodiscard]] std::deque<std::pair<extensions::AgentHandle, std::uint64_t>> take_posts();

  // ---- what is watched ----
  void inject(HostFault fault);
  // How many calls since inject() could have failed by the fault.
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  // The function that failed by the fault; empty: none yet.
  [[nodiscard]] const std::string& faulted() const { return faulted_; }
  void close() { closed_ = true; }  // deinit() has returned
  void blame(std::string what);
  [[nodiscard]] std::vector<std::string> blamed() const;

  // The first failure of the check itself, or empty. What follows says nothing about the library.
  void note_failure(const std::string& what);
  [[nodiscard]] const std::string& failure() const { return failure_; }

  // For the arguments of on_event() and the like; null: they are not guarded.
  [[nodiscard]] GuardedMemory* memory() { return memory_; }

  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] extensions::DurableEvents& events() { return events_; }

 private:
  // AbiWatcher
  std::optional<hearth_status> enter(const extensions::AbiCall& call) override;
  // Replaces lent memory by a copy that is valid until the agent's code returns to the host.
  void lent(const extensions::AbiCall& call, hearth_bytes* bytes) override;
  [[nodiscard]] bool has_extension(std::string_view id) const override;
  [[nodiscard]] const extensions::AbiHost& abi() const override { return abi_; }

  void check_caller(const extensions::AbiCall& call);

  const HostVariant variant_;
  std::atomic<std::thread::id> thread_ = std::this_thread::get_id();  // where code runs
  SystemClock clock_;
  CheckRandom random_;
  std::unique_ptr<Logger> logger_;
  extensions::DurableLog events_;
  extensions::AbiHost abi_;
  GuardedMemory* const memory_;
  const hearth_host* table_ = nullptr;  // in table_memory

  std::map<extensions::AgentHandle, CheckAgent*> agents_;
  CheckAgent* running_ = nullptr;
  extensions::AgentHandle last_handle_ = 1000;
  HostFault fault_;
  std::uint64_t calls_ = 0;
  std::string faulted_;
  std::string failure_;
  std::atomic<bool> closed_ = false;

  mutable Mutex mutex_;
  std::deque<std::pair<extensions::AgentHandle, std::uint64_t>> posts_ GUARDED_BY(mutex_);
  std::vector<std::string> blamed_ GUARDED_BY(mutex_);
};

}  // namespace hearth::plugins
