#pragma once
// How the runtime sees a class of agents. The loader implements it over the plugin ABI. Tests
// implement it in plain C++, and so test the whole runtime without a shared library.

#include "base/error.hpp"
#include "base/interface.hpp"
#include "base/work_mark.hpp"
#include "durable/operations.hpp"
#include "extensions/agent_context.hpp"
#include "runtime/event.hpp"
#include "runtime/types.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth::runtime {

// The end of an operation that the agent submitted, a part of its answer, or a post.
struct OperationResult {
  Result<std::string_view> outcome;  // a body, or why it failed
  std::uint32_t operation = 0;
  std::uint64_t token = 0;
  bool is_final = true;
  std::uint32_t flags = 0;  // from bit 8 on (hearth_result.flags)
};

// The origin of a job, for the crash record if the job crashes the process.
struct OffloadOrigin {
  std::string agent;               // the agent's name
  std::optional<WorkMark> work{};  // as AgentInstance::works_for()
};

// The code of one live agent.
//
// Threads    All members on the agent's shard, one at a time. Only works_for() may be called from
//            inside a call of the agent's context.
// Failure    Members do not throw.
// Lifetime   Destruction frees everything that the instance holds, suspended work too. It uses the
//            host only for logging and cancelling.
class AgentInstance : public Interface {
 public:
  // An error refuses the event: the instance will not complete it. The instance completes an
  // accepted event with a call id exactly once, through AgentCalls::complete.
  virtual Result<void> on_event(const AgentEvent& event) = 0;

  // The call is cancelled: no caller waits for its answer any more.
  virtual void on_cancel(CallId call) = 0;

  virtual void on_result(const OperationResult& result) = 0;

  // The work that the code does from now on, for the crash record. Nothing: unknown. May come from
  // inside one of the calls above.
  virtual void works_for(std::optional<WorkMark> /*work*/) {}
};

// Threads    create() on the shard of the agent; all others from any thread.
// Lifetime   Shared by the registry, every live agent of the class and every job it runs: the code
//            stays mapped while one of them lives.
class AgentClass : public Interface {
 public:
  // "ChatRoom"
  [[nodiscard]] virtual std::string_view name() const = 0;
  // The class of the library whose code it runs: mostly the class itself.
  [[nodiscard]] virtual std::string_view code() const { return name(); }
  // The author's version: "1.2.0"
  [[nodiscard]] virtual std::string_view version() const = 0;
  // The library that it comes from, for logs.
  [[nodiscard]] virtual std::string_view origin() const = 0;
  // Hash of the library's content, which tells versions apart; empty: unknown.
  [[nodiscard]] virtual std::string_view sha256() const { return {}; }
  // The version of the data that the class keeps in an agent's file; 0: none. If an agent's file
  // has a different version, the agent gets EventKind::kMigrate.
  [[nodiscard]] virtual std::uint32_t schema_version() const { return 0; }
  // The effect that the class lists for this kind of operations; nothing: the kind is not listed.
  [[nodiscard]] virtual std::optional<durable::Effect> listed_effect(
      std::string_view /*kind*/) const {
    return std::nullopt;
  }
  // A call of `method` that an eviction cuts off may be run again: the second run only does what
  // the first left undone.
  [[nodiscard]] virtual bool is_idempotent(std::string_view /*method*/) const { return false; }
  // A call of `method` changes nothing that outlives it: its answer need not be stored for a caller
  // that retries.
  [[nodiscard]] virtual bool is_read_only(std::string_view /*method*/) const { return false; }
  // The methods whose calls run alone (extensions/call_order.hpp), sorted.
  [[nodiscard]] virtual std::span<const std::string> exclusive_methods() const { return {}; }
  // The class's description of its methods for callers, as a JSON array; "[]": nothing. Unlisted
  // methods may exist.
  [[nodiscard]] virtual std::string_view methods() const { return "[]"; }
  // Wants EventKind::kStateCheck.
  [[nodiscard]] virtual bool checks_state() const = 0;
  // Wants EventKind::kStateChanged.
  [[nodiscard]] virtual bool watches_state() const = 0;
  // Takes requests whose body has not arrived (RequestHead::body).
  [[nodiscard]] virtual bool reads_bodies() const { return false; }

  // Makes the instance of the agent called `name`. `options`: JSON object. `host` outlives the
  // instance.
  virtual Result<std::unique_ptr<AgentInstance>> create(extensions::AgentContext& host,
                                                        std::string_view name,
                                                        std::string_view options) const = 0;

  // Runs a job of submit(offload); with `cancelled` only frees it. Any thread; may block.
  [[nodiscard]] virtual bool runs_jobs() const = 0;
  virtual Result<void> run_offloaded(std::uint64_t job, bool cancelled,
                                     const OffloadOrigin& origin) const = 0;
};

}  // namespace hearth::runtime
