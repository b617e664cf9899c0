#pragma once
// An agent of a check: what stands behind the host's table when a library is tried.

#include "base/error.hpp"
#include "base/stop_point.hpp"
#include "runtime/agent_host.hpp"
#include "runtime/class_settings.hpp"
#include "runtime/durable_work.hpp"
#include "storage/agent_database.hpp"
#include "storage/plugin_sql.hpp"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::plugins {

class CheckHost;

// One call that was given to the agent's code.
struct CheckCall {
  runtime::EventKind kind{};
  enum class State {
    kOffered,    // on_event runs
    kAccepted,   // it has returned OK
    kRefused,    // it has returned an error
    kCompleted,  // once
    kCancelled,  // on_cancel was called
  };
  State state = State::kOffered;
  bool ok = false;   // how it was completed
  Errc code{};       // if it was not ok
  std::string body;  // with which it was completed; the beginning of a long one
  std::unique_ptr<runtime::DueWork> work;  // set if it is durable work of the agent's own
};

// What submit() has taken.
struct CheckOperation {
  runtime::OperationId id = 0;
  std::uint32_t operation = 0;
  std::uint64_t token = 0;
  std::uint64_t job = 0;  // HEARTH_OP_OFFLOAD
};

// A state that the agent's code has set, and has not been told of yet.
struct ChangedState {
  std::string json;
  std::uint64_t write = 0;  // AgentDatabase::state_writes()
};

// Keeps its promises as runtime::LiveAgent does, over a database of its own and the same durable
// work, but sends nothing anywhere and waits for nothing: an operation ends when the check says so.
//
// Promises  Misbehaviour (completing twice, or what was refused) is reported to the CheckHost.
// Threads   The check's.
// Lifetime  The host outlives it.
class CheckAgent final : public runtime::AgentHost {
 public:
  // `database`: the file, which an earlier life may have written.
  CheckAgent(CheckHost& host, runtime::AgentHandle handle, storage::AgentKey key,
             const std::filesystem::path& database, bool has_offload);
  ~CheckAgent() override;

  // What an earlier life has left is due from now on. Once, before the first event.
  void load();

  // ---- for the check ----
  [[nodiscard]] std::map<runtime::CallId, CheckCall>& calls() { return calls_; }
  [[nodiscard]] runtime::CallId add_call(runtime::EventKind kind);
  [[nodiscard]] std::deque<CheckOperation>& operations() { return operations_; }
  [[nodiscard]] std::deque<ChangedState>& changed_states() { return changed_states_; }
  // Work of its own that begins now.
  [[nodiscard]] std::optional<runtime::DueWork> next_work();
  // The call of what next_work() gave is over.
  void work_ended(const CheckCall& call);
  runtime::Connection& add_connection(runtime::ConnectionId id);
  // What the running call has written is committed, as at the end of a turn.
  void end_turn();

  bool creating = false;    // submit() is forbidden
  bool destroying = false;  // functions answer CLOSING
  bool migrating = false;   // durable work cannot be changed, and nothing is committed
  bool wants_eviction = false;

  // ---- runtime::AgentHost ----
  [[nodiscard]] runtime::AgentHandle handle() const override { return handle_; }
  Result<void> complete(runtime::CallId call, const Result<std::string_view>& outcome) override;
  Result<void> emit(runtime::CallId call, std::string_view part) override;
  Result<runtime::OperationId> submit(std::uint32_t operation, std::string_view request,
                                      std::uint64_t token) override;
  Result<void> cancel(runtime::OperationId operation) override;
  Result<void> evict() override;
  Result<void> destroy() override;
  void log(LogLevel /*level*/, std::string_view /*text*/) override {}
  std::optional<std::string_view> state() override;
  Result<void> set_state(runtime::ConnectionId on_behalf, std::string_view json) override;
  Result<void> set_default_state(std::string_view json) override;
  storage::PluginSql& sql() override;
  void storage_failed(std::string_view what) override;
  runtime::Connection* find_connection(runtime::ConnectionId id) override;
  runtime::ConnectionId next_connection(runtime::ConnectionId after, std::string_view tag) override;
  Result<void> add_tag(runtime::ConnectionId id, std::string_view tag) override;
  Result<void> set_flags(runtime::ConnectionId id, std::uint32_t flags) override;
  Result<void> set_attachment(runtime::ConnectionId id, std::string_view bytes) override;
  Result<void> send(runtime::ConnectionId id, runtime::FrameKind kind,
                    std::string_view payload) override;
  Result<void> broadcast(runtime::FrameKind kind, std::string_view payload, std::string_view tag,
                         std::span<const runtime::ConnectionId> except) override;
  Result<void> close(runtime::ConnectionId id, std::uint32_t code,
                     std::string_view reason) override;
  Result<void> acquire_keep_alive() override;
  Result<void> release_keep_alive() override;
  Result<runtime::StartedFiber> start_fiber(std::string_view name,
                                            std::string_view replaces) override;
  Result<void> stash(std::uint64_t fiber, std::string_view json) override;
  Result<void> finish_fiber(std::uint64_t fiber) override;
  Result<void> fail_fiber(std::uint64_t fiber, std::string_view why) override;
  Result<void> retry_fiber(std::string_view id) override;
  Result<std::string> list_dead_fibers(std::string_view after, std::size_t limit) override;
  Result<durable::Schedules::Created> create_schedule(
      const durable::ScheduleRequest& request) override;
  Result<std::string> get_schedule(std::string_view id) override;
  Result<std::string> list_schedules(const durable::ScheduleFilter& filter) override;
  Result<void> cancel_schedule(std::string_view id) override;
  Result<void> pause_schedule(std::string_view id, bool paused) override;
  Result<void> retry_schedule(std::string_view id) override;
  Result<std::string> push_item(const durable::QueueRequest& request) override;
  Result<std::string> get_item(std::string_view id) override;
  Result<std::string> list_items(const durable::QueueFilter& filter) override;
  Result<void> remove_item(std::string_view id) override;
  Result<std::uint64_t> remove_items(const durable::QueueFilter& filter) override;
  Result<void> retry_item(std::string_view id) override;
  Result<durable::ManagedFibers::Started> start_managed(
      const durable::ManagedRequest& request) override;
  Result<std::uint64_t> resume_managed(std::string_view id) override;
  Result<std::string> settle_managed(std::uint64_t fiber, durable::FiberStatus status,
                                     std::string_view body) override;
  Result<std::string> inspect_managed(std::string_view id, std::string_view key) override;
  Result<std::string> list_managed(const durable::ManagedFilter& filter) override;
  Result<void> cancel_managed(std::string_view id, std::string_view key,
                              std::string_view reason) override;
  Result<void> resolve_managed(std::string_view id, std::string_view outcome) override;
  Result<void> retry_managed(std::string_view id) override;
  Result<std::uint64_t> remove_managed(const durable::ManagedFilter& filter) override;
  Result<runtime::RequestView> request(runtime::CallId call) override;

 private:
  // Why durable work cannot be changed now, if so.
  [[nodiscard]] std::optional<Error> work_refusal() const;
  void state_undone(std::uint64_t last_write);
  [[nodiscard]] bool in_transaction() const { return sql_ && sql_->has_savepoints(); }

  CheckHost& host_;
  const runtime::AgentHandle handle_;
  const storage::AgentKey key_;
  const bool has_offload_;
  bool broken_ = false;  // its storage does not work any more
  runtime::ClassSettings settings_;
  storage::AgentDatabase database_;
  std::optional<storage::PluginSql> sql_;  // made when first asked for
  StopPointsAtCommit stops_;
  runtime::DurableWork work_;
  std::optional<std::string> state_;
  std::optional<std::string> default_state_;
  std::deque<ChangedState> changed_states_;
  std::map<runtime::ConnectionId, runtime::Connection> connections_;
  std::map<runtime::CallId, CheckCall> calls_;
  std::deque<CheckOperation> operations_;
  runtime::ResponseHead response_;
  runtime::Headers request_headers_;
  std::uint64_t keep_alive_ = 0;
};

}  // namespace hearth::plugins
