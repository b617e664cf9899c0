#pragma once
// What the host's side of an extension knows of an agent, and may ask of whoever runs it: a shard
// of the server, `hearth check`, or a test.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/logger.hpp"
#include "extensions/agent_extension.hpp"
#include "extensions/agent_line.hpp"
#include "extensions/class_settings.hpp"
#include "extensions/client.hpp"
#include "extensions/origin.hpp"
#include "extensions/remote_operation.hpp"
#include "extensions/trace.hpp"
#include "extensions/types.hpp"
#include "storage/agent_key.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::storage {
class AgentDatabase;
}

namespace hearth::extensions {

class AgentRouter;
class DurableWork;
class HttpPort;
class SubAgents;

// The ways out of an agent that are not its clients. Null: this host has none of that kind.
struct OutwardPorts {
  HttpPort* http = nullptr;
  AgentRouter* agents = nullptr;
  SubAgents* sub_agents = nullptr;
};

// Entries of the agents of one class in the audit log (hearth/ext/audit.h).
inline constexpr LogLimit kAuditLimit{.burst = 100, .per_second = 10};

// An HTTP request that an agent is answering.
struct RequestView {
  std::string_view target;
  const Headers* headers = nullptr;
  ResponseHead* response = nullptr;  // null once the first part has left: then it cannot change
  std::string_view claims = {};      // as Client::claims
};

// What the host keeps of an event, and does not give to the agent's code.
struct CallOrigin {
  OriginPtr origin;               // null: none was given with it
  std::optional<SteadyTime> due;  // when its time is over
  bool is_in_progress = false;
  bool holds_calls = false;  // other calls of the agent may have to wait for it: call_order.hpp
  bool runs_alone = false;   // they do
  // traceparent with the event's own span: the parent of what the event makes others do. Empty:
  // none.
  std::string trace{};
  std::string method{};  // that it calls, or its beginning; empty: none
};

// The events that an agent has accepted, and the operations that it has submitted.
//
// Threads, Re-entry  As AgentContext.
class AgentCalls {
 public:
  AgentCalls() = default;
  virtual ~AgentCalls() = default;
  AgentCalls(const AgentCalls&) = delete;
  AgentCalls& operator=(const AgentCalls&) = delete;

  // kNotFound: completed before, cancelled or timed out. Call 0 with an error: the text of the
  // error that create() or a synchronous event is about to return.
  virtual Result<void> complete(CallId call, const Result<std::string_view>& outcome) = 0;
  virtual Result<void> emit(CallId call, std::string_view part) = 0;
  virtual Result<OperationId> submit(std::uint32_t operation, std::string_view request,
                                     std::uint64_t token) = 0;
  // As submit() of a request: `remote` is started once what was written before is durable. It goes
  // with the operation, whose end is its own.
  //   Failure   kForbidden while the agent migrates: what it has written is not durable before the
  //             end of that.
  virtual Result<OperationId> submit(std::uint32_t operation,
                                     std::unique_ptr<RemoteOperation> remote,
                                     std::uint64_t token) = 0;
  virtual Result<void> cancel(OperationId operation) = 0;
  // kNotFound: it has ended. kUnsupported: it has no parts.
  virtual Result<void> credit(OperationId operation, std::uint64_t bytes) = 0;
  // Of an event that is over only the trace, and that while what it has begun goes on: in the
  // results of its operations, and of theirs.
  [[nodiscard]] virtual CallOrigin origin(CallId call) = 0;
  // The trace that the agent's code is under now, as origin() gives it.
  [[nodiscard]] virtual std::string trace() const = 0;
  // The same as numbers, for whoever may not allocate; none: it is not known.
  [[nodiscard]] virtual Span span() const { return {}; }
  // The event that its code handles now, or that has begun what it does: call and method, also when
  // that is over.
  [[nodiscard]] virtual LineOrigin current() const { return {}; }
  // kNotFound if `call` is no HTTP request in progress.
  virtual Result<RequestView> request(CallId call) = 0;
};

// Who hears of an agent's state.
//
// Threads, Re-entry  As AgentContext.
class StateWatchers {
 public:
  StateWatchers() = default;
  virtual ~StateWatchers() = default;
  StateWatchers(const StateWatchers&) = delete;
  StateWatchers& operator=(const StateWatchers&) = delete;

  // The agent's own code is about to replace the state. kLimitExceeded: it does so for ever.
  virtual Result<void> may_change() = 0;
  // The state was replaced, by its write of this number. `source`: the client that did it, and is
  // not told; 0: the agent. `json` is empty if there is none any more.
  virtual void changed(ConnectionId source, std::string_view json, std::uint64_t write) = 0;
  // Each write after this one was rolled back.
  virtual void undone(std::uint64_t last_write) = 0;
};

// Where an agent is in its life.
enum class AgentPhase {
  kStarting,   // until START has succeeded
  kMigrating,  // its data are brought to another schema; nothing is committed before the end
  kRunning,
  kClosing,  // its instance is being destroyed
};

// Threads    All members on the agent's shard, from inside a call into its code.
// Failure    What a caller does wrong is a Result. Members that touch storage may throw
//            StorageError: whoever runs the agent's code catches it, calls storage_failed() and
//            answers with an error.
// Re-entry   No member calls the agent's code.
class AgentContext {
 public:
  // All of it outlives the agent's extensions.
  struct Parts {
    AgentHandle handle = 0;
    const storage::AgentKey& key;
    const ClassSettings& settings;
    storage::AgentDatabase& database;
    const Clock& clock;
    DurableWork& work;
    AgentCalls& calls;
    Clients& clients;
    StateWatchers& watchers;
    OutwardPorts ports = {};
  };
  explicit AgentContext(const Parts& parts) : parts_(parts) {}
  virtual ~AgentContext() = default;
  AgentContext(const AgentContext&) = delete;
  AgentContext& operator=(const AgentContext&) = delete;

  [[nodiscard]] AgentHandle handle() const { return parts_.handle; }
  [[nodiscard]] const storage::AgentKey& key() const { return parts_.key; }
  [[nodiscard]] const ClassSettings& settings() const { return parts_.settings; }
  [[nodiscard]] storage::AgentDatabase& database() const { return parts_.database; }
  [[nodiscard]] const Clock& clock() const { return parts_.clock; }
  [[nodiscard]] DurableWork& work() const { return parts_.work; }
  [[nodiscard]] AgentCalls& calls() const { return parts_.calls; }
  [[nodiscard]] Clients& clients() const { return parts_.clients; }
  [[nodiscard]] StateWatchers& watchers() const { return parts_.watchers; }
  [[nodiscard]] const OutwardPorts& ports() const { return parts_.ports; }
  [[nodiscard]] AgentExtensions& extensions() { return extensions_; }
  [[nodiscard]] const AgentExtensions& extensions() const { return extensions_; }
  template <class Extension>
  [[nodiscard]] Extension& of() {
    return extensions_.get<Extension>();
  }

  [[nodiscard]] virtual AgentPhase phase() const = 0;
  // Where its requests may go now. It is no part of the settings that a version is tried with: a
  // crash takes those back, and must not open a way that the operator has closed. Never null.
  [[nodiscard]] virtual EgressPtr egress() const;
  // Commits what the turn has written so far. Throws StorageError if it cannot.
  virtual void commit_now() = 0;
  // The fiber with this id, which was being recovered, goes on in this instance.
  virtual void fiber_continued(std::string_view id) = 0;
  // With which effect the agent's class lists this kind of operations; nothing: it does not.
  [[nodiscard]] virtual std::optional<durable::Effect> listed_effect(
      std::string_view kind) const = 0;
  // What runs from now on is the work of `fiber`, or, if that is 0, of the event `call`: see
  // hearth_fibers_v2::works_for. Nothing where no crash is recorded.
  virtual void works_for(std::uint64_t /*fiber*/, CallId /*call*/) {}
  virtual Result<void> evict() = 0;
  virtual Result<void> destroy() = 0;
  virtual void log(LogLevel level, std::string_view text) = 0;
  // An entry of the agent in the audit log: a word, and a JSON object or nothing.
  // kLimitExceeded: its class has added too many.
  virtual Result<void> audit(std::string_view what, std::string_view detail) = 0;
  // Something threw StorageError: the agent is broken and will be evicted; nothing more leaves it.
  virtual void storage_failed(std::string_view what) = 0;

  // What is written now may never be committed.
  [[nodiscard]] bool in_transaction() const {
    return phase() == AgentPhase::kMigrating || extensions_.in_transaction();
  }
  // Why durable work may not be changed now, if there is a reason.
  [[nodiscard]] std::optional<Error> work_refusal() const;

  // ---- of the ABI's boundary, which alone reads and writes them ----
  // Why the last call on behalf of this agent failed, for people.
  std::string last_error;
  // A text lent to the plugin by the last call that gave one (hearth/abi.h, "Memory").
  std::string lent_text;

 private:
  const Parts parts_;
  AgentExtensions extensions_{*this};
};

// Finds live agents by handle. The ABI's C functions start here.
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
    AgentContext* agent = nullptr;  // set if kFound or kClosing
  };
  // Any thread; kFound only on the agent's own, from inside a call into its instance.
  virtual Found find(AgentHandle handle) = 0;

  // Any thread: on_result(post, token) soon, on the agent's thread. False if the handle cannot
  // exist; an agent that is destroyed meanwhile is not reported.
  virtual bool post(AgentHandle handle, std::uint64_t token) = 0;
};

}  // namespace hearth::extensions
