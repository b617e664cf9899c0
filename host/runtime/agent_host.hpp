#pragma once
// What an agent's code may ask of the host: the C++ form of the plugin ABI. LiveAgent implements
// it, the loader translates hearth/abi.h to it, and a test of the loader may fake it.

#include "base/error.hpp"
#include "base/logger.hpp"
#include "durable/managed_fibers.hpp"
#include "durable/queue.hpp"
#include "durable/schedules.hpp"
#include "runtime/connection.hpp"
#include "runtime/types.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth::storage {
class PluginSql;
}

namespace hearth::runtime {

// An HTTP request that an agent is answering.
struct RequestView {
  std::string_view target;
  const Headers* headers = nullptr;
  ResponseHead* response = nullptr;  // null once the first part has left: then it cannot change
};

// A fiber that was begun.
struct StartedFiber {
  std::uint64_t handle = 0;
  std::string id;
};

// Threads    All members on the agent's shard, from inside a call into its AgentInstance.
// Failure    Expected errors are Results. Members that touch storage may throw StorageError; the
//            caller (the ABI's boundary) catches it, calls storage_failed() and answers with an
//            error.
// Re-entry   No member calls the instance.
class AgentHost {
 public:
  AgentHost() = default;
  virtual ~AgentHost() = default;
  AgentHost(const AgentHost&) = delete;
  AgentHost& operator=(const AgentHost&) = delete;

  [[nodiscard]] virtual AgentHandle handle() const = 0;

  // ---- events and operations (hearth_host) ----
  // kNotFound: completed before, cancelled or timed out. Call 0 with an error: the text of the
  // error that create() or a synchronous event is about to return.
  virtual Result<void> complete(CallId call, const Result<std::string_view>& outcome) = 0;
  virtual Result<void> emit(CallId call, std::string_view part) = 0;
  virtual Result<OperationId> submit(std::uint32_t operation, std::string_view request,
                                     std::uint64_t token) = 0;
  virtual Result<void> cancel(OperationId operation) = 0;

  // ---- hearth.agent/1, hearth.log/1 ----
  virtual Result<void> evict() = 0;
  virtual Result<void> destroy() = 0;
  virtual void log(LogLevel level, std::string_view text) = 0;

  // ---- hearth.state/1 ----
  // The state (JSON), if there is one. Valid until the next set.
  virtual std::optional<std::string_view> state() = 0;
  // `json` is checked by this function. `on_behalf`: see ext/state.h.
  virtual Result<void> set_state(ConnectionId on_behalf, std::string_view json) = 0;
  virtual Result<void> set_default_state(std::string_view json) = 0;

  // ---- hearth.sql/1 ----
  virtual storage::PluginSql& sql() = 0;
  // Something threw StorageError: the agent is broken and will be evicted; nothing more leaves it.
  virtual void storage_failed(std::string_view what) = 0;

  // ---- hearth.connections/1 ----
  // Null if there is no such client of this agent. Fields may be read; change them through the
  // functions below.
  virtual Connection* find_connection(ConnectionId id) = 0;
  // The open connection that arrived after `after` (0: the first), with `tag` unless that is empty;
  // 0: no more.
  virtual ConnectionId next_connection(ConnectionId after, std::string_view tag) = 0;
  virtual Result<void> add_tag(ConnectionId id, std::string_view tag) = 0;
  virtual Result<void> set_flags(ConnectionId id, std::uint32_t flags) = 0;
  virtual Result<void> set_attachment(ConnectionId id, std::string_view bytes) = 0;
  virtual Result<void> send(ConnectionId id, FrameKind kind, std::string_view payload) = 0;
  virtual Result<void> broadcast(FrameKind kind, std::string_view payload, std::string_view tag,
                                 std::span<const ConnectionId> except) = 0;
  virtual Result<void> close(ConnectionId id, std::uint32_t code, std::string_view reason) = 0;

  // ---- hearth.keep_alive/1 ----
  virtual Result<void> acquire_keep_alive() = 0;
  virtual Result<void> release_keep_alive() = 0;

  // ---- hearth.fibers/1 ----
  virtual Result<StartedFiber> start_fiber(std::string_view name, std::string_view replaces) = 0;
  virtual Result<void> stash(std::uint64_t fiber, std::string_view json) = 0;
  virtual Result<void> finish_fiber(std::uint64_t fiber) = 0;
  // As finish_fiber, for work that has failed. `why` may be any bytes.
  virtual Result<void> fail_fiber(std::uint64_t fiber, std::string_view why) = 0;
  virtual Result<void> retry_fiber(std::string_view id) = 0;
  // A JSON array, as hearth/ext/fibers.h has it.
  virtual Result<std::string> list_dead_fibers(std::string_view after, std::size_t limit) = 0;

  // ---- hearth.schedule/1: records are JSON, as hearth/ext/schedule.h has them ----
  virtual Result<durable::Schedules::Created> create_schedule(
      const durable::ScheduleRequest& request) = 0;
  virtual Result<std::string> get_schedule(std::string_view id) = 0;
  virtual Result<std::string> list_schedules(const durable::ScheduleFilter& filter) = 0;
  virtual Result<void> cancel_schedule(std::string_view id) = 0;
  virtual Result<void> pause_schedule(std::string_view id, bool paused) = 0;
  virtual Result<void> retry_schedule(std::string_view id) = 0;

  // ---- hearth.queue/1: records are JSON, as hearth/ext/queue.h has them ----
  virtual Result<std::string> push_item(const durable::QueueRequest& request) = 0;
  virtual Result<std::string> get_item(std::string_view id) = 0;
  virtual Result<std::string> list_items(const durable::QueueFilter& filter) = 0;
  virtual Result<void> remove_item(std::string_view id) = 0;
  virtual Result<std::uint64_t> remove_items(const durable::QueueFilter& filter) = 0;
  virtual Result<void> retry_item(std::string_view id) = 0;

  // ---- hearth.managed_fibers/1: records are JSON, as hearth/ext/managed_fibers.h has them ----
  virtual Result<durable::ManagedFibers::Started> start_managed(
      const durable::ManagedRequest& request) = 0;
  virtual Result<std::uint64_t> resume_managed(std::string_view id) = 0;
  // The record, as it is then.
  virtual Result<std::string> settle_managed(std::uint64_t fiber, durable::FiberStatus status,
                                             std::string_view body) = 0;
  virtual Result<std::string> inspect_managed(std::string_view id, std::string_view key) = 0;
  virtual Result<std::string> list_managed(const durable::ManagedFilter& filter) = 0;
  virtual Result<void> cancel_managed(std::string_view id, std::string_view key,
                                      std::string_view reason) = 0;
  virtual Result<void> resolve_managed(std::string_view id, std::string_view outcome) = 0;
  virtual Result<void> retry_managed(std::string_view id) = 0;
  virtual Result<std::uint64_t> remove_managed(const durable::ManagedFilter& filter) = 0;

  // ---- hearth.http/1 ----
  // kNotFound if `call` is no HTTP request in progress.
  virtual Result<RequestView> request(CallId call) = 0;

  // Why the last call on behalf of this agent failed, for people. Written and read by the ABI's
  // boundary only, and kept here because it lives exactly as long as the agent.
  std::string last_error;
  // A text lent to the plugin by the last call that gave one (hearth/abi.h, "Memory"). Written by
  // the ABI only.
  std::string lent_text;
};

// Finds live agents by handle. The runtime implements it; the ABI's C functions start here.
class AgentDirectory {
 public:
  AgentDirectory() = default;
  virtual ~AgentDirectory() = default;
  AgentDirectory(const AgentDirectory&) = delete;
  AgentDirectory& operator=(const AgentDirectory&) = delete;

  enum class Lookup {
    kFound,
    kGone,
    kWrongThread,  // another thread, or this one outside a call into this agent's instance
    kClosing,      // its instance is being destroyed
  };
  struct Found {
    Lookup lookup = Lookup::kGone;
    AgentHost* host = nullptr;  // set if kFound or kClosing
  };
  // Any thread; kFound only on the agent's own, from inside a call into its instance.
  virtual Found find(AgentHandle handle) = 0;

  // Any thread: on_result(post, token) soon, on the agent's thread. False if the handle cannot
  // exist; an agent that is destroyed meanwhile is not reported.
  virtual bool post(AgentHandle handle, std::uint64_t token) = 0;
};

}  // namespace hearth::runtime
