#pragma once
// What a test agent asks of its host, in C++: the functions behind the ABI's functions.

#include "extensions/agent_context.hpp"
#include "extensions/call.hpp"
#include "extensions/connections.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/fibers.hpp"
#include "extensions/keep_alive.hpp"
#include "extensions/operations.hpp"
#include "extensions/queue.hpp"
#include "extensions/schedule.hpp"
#include "extensions/sql.hpp"
#include "extensions/state.hpp"
#include "extensions/sub_agents_port.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace hearth::testing {

// Lifetime  The agent outlives it.
class HostCalls {
 public:
  explicit HostCalls(extensions::AgentContext& agent) : agent_(agent) {}

  auto complete(extensions::CallId call, const Result<std::string_view>& outcome) {
    return agent_.calls().complete(call, outcome);
  }
  auto emit(extensions::CallId call, std::string_view part) {
    return agent_.calls().emit(call, part);
  }
  auto submit(std::uint32_t operation, std::string_view request, std::uint64_t token) {
    return agent_.calls().submit(operation, request, token);
  }
  auto submit(std::uint32_t operation, std::unique_ptr<extensions::RemoteOperation> remote,
              std::uint64_t token) {
    return agent_.calls().submit(operation, std::move(remote), token);
  }
  void body_came(extensions::CallId call) { agent_.calls().body_came(call); }
  [[nodiscard]] const storage::AgentKey& key() const { return agent_.key(); }
  [[nodiscard]] auto handle() const { return agent_.handle(); }
  [[nodiscard]] extensions::SubAgents& sub_agents() { return *agent_.ports().sub_agents; }
  auto credit(extensions::OperationId operation, std::uint64_t bytes) {
    return agent_.calls().credit(operation, bytes);
  }
  auto cancel(extensions::OperationId operation) { return agent_.calls().cancel(operation); }
  auto origin(extensions::CallId call) { return agent_.calls().origin(call); }
  auto request(extensions::CallId call) { return agent_.calls().request(call); }
  auto start_call(const extensions::CallRequest& request, std::uint64_t token) {
    return extensions::CallExtension(agent_).start(request, token);
  }
  auto notify(const extensions::CallRequest& request) {
    return extensions::CallExtension(agent_).notify(request);
  }
  auto caller(extensions::CallId call) { return extensions::CallExtension(agent_).caller(call); }
  auto notices(std::string_view after = {}, std::size_t limit = 100) {
    return agent_.work().notices().list(after, limit);
  }
  auto log(std::string_view text) { agent_.log(LogLevel::kInfo, text); }
  auto evict() { return agent_.evict(); }
  auto destroy() { return agent_.destroy(); }
  void storage_failed(std::string_view what) { agent_.storage_failed(what); }

  auto state() { return agent_.of<extensions::StateExtension>().get(); }
  auto set_state(extensions::ConnectionId on_behalf, std::string_view json) {
    return agent_.of<extensions::StateExtension>().set(on_behalf, json);
  }
  auto set_default_state(std::string_view json) {
    return agent_.of<extensions::StateExtension>().set_default(json);
  }
  auto& database() { return agent_.database(); }
  auto& sql() { return agent_.of<extensions::SqlExtension>().sql(); }

  extensions::Client* find_connection(extensions::ConnectionId id) {
    return agent_.clients().find(id);
  }
  auto next_connection(extensions::ConnectionId after, std::string_view tag) {
    return clients().next(after, tag);
  }
  auto add_tag(extensions::ConnectionId id, std::string_view tag) {
    return clients().add_tag(id, tag);
  }
  auto set_flags(extensions::ConnectionId id, std::uint32_t flags) {
    return clients().set_flags(id, flags);
  }
  auto set_attachment(extensions::ConnectionId id, std::string_view bytes) {
    return clients().set_attachment(id, bytes);
  }
  auto send(extensions::ConnectionId id, extensions::FrameKind kind, std::string_view payload) {
    return clients().send(id, kind, payload);
  }
  auto broadcast(extensions::FrameKind kind, std::string_view payload, std::string_view tag,
                 std::span<const extensions::ConnectionId> except) {
    return clients().broadcast(kind, payload, tag, except);
  }
  auto close(extensions::ConnectionId id, std::uint32_t code, std::string_view reason) {
    return clients().close(id, code, reason);
  }

  auto acquire_keep_alive() { return agent_.of<extensions::KeepAliveExtension>().acquire(); }
  auto release_keep_alive() { return agent_.of<extensions::KeepAliveExtension>().release(); }

  struct Fiber {
    std::uint64_t handle = 0;
    std::string id{};
  };
  // Begins a brief fiber, or goes on with the offered one of this id.
  Result<Fiber> start_fiber(std::string_view name, std::string_view offered = {}) {
    if (!offered.empty()) {
      const auto resumed = fibers().resume(offered);
      if (!resumed) return resumed.error();
      return Fiber{*resumed, std::string(offered)};
    }
    auto started = fibers().start({.name = name, .keeping = durable::FiberKeeping::kBrief});
    if (!started) return started.error();
    return Fiber{started->fiber, std::move(started->id)};
  }
  auto finish_fiber(std::uint64_t fiber) {
    return fibers().settle(fiber, durable::FiberStatus::kCompleted, "");
  }
  auto fail_fiber(std::uint64_t fiber, std::string_view why) {
    return fibers().settle(fiber, durable::FiberStatus::kError, why);
  }
  auto retry_fiber(std::string_view id) { return work().fibers().records().retry(id); }
  auto stash(std::uint64_t fiber, std::string_view json) { return fibers().stash(fiber, json); }

  auto create_schedule(const durable::ScheduleRequest& request) {
    return extensions::create_schedule(agent_, request);
  }
  auto get_schedule(std::string_view id) { return work().schedules().get(id); }
  auto cancel_schedule(std::string_view id) { return extensions::cancel_schedule(agent_, id); }

  auto begin_operation(const durable::OperationRequest& request, std::uint64_t token) {
    return extensions::OperationsExtension(agent_).begin(request, token);
  }

  auto push_item(const durable::QueueRequest& request) {
    return extensions::push_item(agent_, request);
  }
  auto list_items(const durable::QueueFilter& filter) { return work().queue().list(filter); }

  void works_for(std::uint64_t fiber, extensions::CallId call) { agent_.works_for(fiber, call); }

  auto start_managed(const durable::FiberRequest& request) { return fibers().start(request); }
  auto resume_managed(std::string_view id) { return fibers().resume(id); }
  auto settle_managed(std::uint64_t fiber, durable::FiberStatus status, std::string_view body) {
    return fibers().settle(fiber, status, body);
  }
  auto inspect_managed(std::string_view id, std::string_view key) {
    return work().fibers().records().inspect(id, key);
  }
  auto cancel_managed(std::string_view id, std::string_view key, std::string_view reason) {
    return fibers().cancel(id, key, reason);
  }
  auto resolve_managed(std::string_view id, std::string_view outcome) {
    return fibers().resolve(id, outcome);
  }
  auto retry_managed(std::string_view id) { return work().fibers().records().retry(id); }
  // For what no extension of a test's agent can ask for.
  extensions::DurableWork& work() { return agent_.work(); }

 private:
  extensions::ConnectionExtension& clients() {
    return agent_.of<extensions::ConnectionExtension>();
  }
  extensions::FiberExtension fibers() { return extensions::FiberExtension(agent_); }

  extensions::AgentContext& agent_;
};

}  // namespace hearth::testing
