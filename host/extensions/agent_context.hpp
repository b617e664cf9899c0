#pragma once
// The host's side of an extension sees an agent through this interface. The host of the agent
// implements it: a shard of the server, `hearth check`, or a test.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/interface.hpp"
#include "base/logger.hpp"
#include "extensions/agent_extension.hpp"
#include "extensions/agent_line.hpp"
#include "extensions/class_settings.hpp"
#include "extensions/client.hpp"
#include "extensions/open_span.hpp"
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

// The ways out of an agent besides its clients. Null: this host does not have that way.
struct OutwardPorts {
  HttpPort* http = nullptr;
  AgentRouter* agents = nullptr;
  SubAgents* sub_agents = nullptr;
  SpanSource* spans = nullptr;  // of what the agent causes

  [[nodiscard]] bool record_spans() const { return spans != nullptr && spans->log() != nullptr; }
  // A span below the one that this traceparent names; empty if it is not recorded.
  [[nodiscard]] OpenSpan open_span(std::string_view cause, SpanKind kind) const;
};

// Entries of the agents of one class in the audit log (hearth/ext/audit.h).
inline constexpr LogLimit kAuditLimit{.burst = 100, .per_second = 10};

// An HTTP request that an agent is answering.
struct RequestView {
  std::string_view target;
  const Headers* headers = nullptr;
  ResponseHead* response = nullptr;  // null after the first part has left: then it cannot change
  std::string_view claims = {};      // as Client::claims
  BodyReader* body = nullptr;        // null or empty: the body came whole, or is already read
};

// Data of an event that the host does not give to the agent's code.
struct CallOrigin {
  OriginPtr origin;               // null: the event came without one
  std::optional<SteadyTime> due;  // its deadline
  bool is_in_progress = false;
  bool holds_calls = false;  // other calls of the agent may have to wait for it: call_order.hpp
  bool runs_alone = false;   // all other calls have to
  // traceparent with the event's own span: the parent of all that the event causes. Empty: none.
  std::string trace{};
  std::string method{};  // the method that it calls, maybe cut; empty: none
};

// The events that an agent has accepted, and the operations that it has submitted.
//
// Threads, Re-entry  As AgentContext.
class CallPort : public Interface {
 public:
  // Ends the event. kNotFound: it was completed before, cancelled or timed out. Call 0 with an
  // error sets the text of the error that create() or a synchronous event is about to return.
  virtual Result<void> complete(CallId call, const Result<std::string_view>& outcome) = 0;
  virtual Result<void> emit(CallId call, std::string_view part) = 0;
  virtual Result<OperationId> submit(std::uint32_t operation, std::string_view request,
                                     std::uint64_t token) = 0;
  // As submit() above. `remote` is started when the earlier writes are durable. It belongs to the
  // operation, and the end of `remote` is the end of the operation.
  //   Failure   kForbidden while the agent migrates: its writes are not durable before the
  //             migration ends.
  virtual Result<OperationId> submit(std::uint32_t operation,
                                     std::unique_ptr<RemoteOperation> remote,
                                     std::uint64_t token) = 0;
  virtual Result<void> cancel(OperationId operation) = 0;
  // kNotFound: the operation has ended. kUnsupported: it has no parts.
  virtual Result<void> credit(OperationId operation, std::uint64_t bytes) = 0;
  // For an event that has ended only the trace, and only in the results of operations that the
  // event has begun, and of operations begun by those.
  [[nodiscard]] virtual CallOrigin origin(CallId call) = 0;
  // The trace of the agent's running code, as origin() gives it.
  [[nodiscard]] virtual std::string trace() const = 0;
  // The same as numbers, for code that may not allocate; none: it is not known.
  [[nodiscard]] virtual Span span() const { return {}; }
  // The event that the agent's code handles now, or the event that has begun the running code: call
  // and method, also after that event has ended.
  [[nodiscard]] virtual LineOrigin current() const { return {}; }
  // Whether a client that has left while the agent's code may still work for it was read-only.
  [[nodiscard]] virtual bool left_readonly(ConnectionId /*client*/) const { return false; }
  // kNotFound if `call` is no HTTP request in progress.
  virtual Result<RequestView> request(CallId call) = 0;
  // A piece of its body is about to reach the agent's code: the deadline of the event begins again.
  virtual void body_came(CallId /*call*/) {}
};

// Gets the changes of an agent's state.
//
// Threads, Re-entry  As AgentContext.
class StateWatchers : public Interface {
 public:
  // The agent's own code is about to replace the state. kLimitExceeded: its handlers do so in an
  // endless chain.
  virtual Result<void> may_change() = 0;
  // The state was replaced by the write of this number. `source`: the client that wrote it, and
  // gets no notice; 0: the agent. `json` is empty if there is no state any more.
  virtual void changed(ConnectionId source, std::string_view json, std::uint64_t write) = 0;
  // All writes after this one were rolled back.
  virtual void undone(std::uint64_t last_write) = 0;
};

// The phase of an agent's life.
enum class AgentPhase {
  kStarting,   // until START has succeeded
  kMigrating,  // its data move to another schema; no commit before the end
  kRunning,
  kClosing,  // its instance is being destroyed
};

// Threads    All members on the agent's shard, from inside a call into its code.
// Failure    A mistake of the caller is a Result. Members that touch storage may throw
//            StorageError: the host of the agent catches it, calls storage_failed() and answers
//            with an error.
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
    CallPort& calls;
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
  [[nodiscard]] CallPort& calls() const { return parts_.calls; }
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
  // The rules for the agent's requests now. Never null. They are not part of the settings that a
  // trial may take back: after a crash a way that the operator has closed must stay closed.
  [[nodiscard]] virtual EgressPtr egress() const;
  // Commits the writes of the turn. Throws StorageError if it cannot.
  virtual void commit_now() = 0;
  // The fiber with this id, which was being recovered, continues in this instance.
  virtual void fiber_continued(std::string_view id) = 0;
  // The effect with which the agent's class lists this kind of operations; absent: it does not.
  [[nodiscard]] virtual std::optional<durable::Effect> listed_effect(
      std::string_view kind) const = 0;
  // From now on the running code works for `fiber`, or, if that is 0, for the event `call`: see
  // hearth_fibers_v1::works_for. Does nothing where no crash is recorded.
  virtual void works_for(std::uint64_t /*fiber*/, CallId /*call*/) {}
  virtual Result<void> evict() = 0;
  virtual Result<void> destroy() = 0;
  virtual void log(LogLevel level, std::string_view text) = 0;
  // An event that the code has named: HEARTH_LOG_EVENT. Counted where there are metrics.
  virtual void count_event(std::string_view /*name*/) {}
  // Adds an entry of the agent to the audit log: a word, and a JSON object or nothing.
  // kLimitExceeded: its class has added too many.
  virtual Result<void> audit(std::string_view what, std::string_view detail) = 0;
  // The host has caught a StorageError: the agent is broken and will be evicted; nothing more
  // leaves it.
  virtual void storage_failed(std::string_view what) = 0;

  // Writes that are made now may never be committed.
  [[nodiscard]] bool in_transaction() const {
    return phase() == AgentPhase::kMigrating || extensions_.in_transaction();
  }
  // The reason why durable work may not be changed now, if there is one.
  [[nodiscard]] std::optional<Error> work_refusal() const;

  // ---- of the ABI's boundary, which alone reads and writes them ----
  // Why the last call for this agent failed, for a person.
  std::string last_error;
  // A text lent to the plugin by the last call that gave one (hearth/abi.h, "Memory").
  std::string lent_text;

 private:
  const Parts parts_;
  AgentExtensions extensions_{*this};
};

// Finds live agents by handle. The ABI's C functions start here.
class AgentDirectory : public Interface {
 public:
  enum class Lookup {
    kFound,
    kGone,
    kWrongThread,  // another thread, or this one outside a call into this instance
    kClosing,      // its instance is being destroyed
  };
  struct Found {
    Lookup lookup = Lookup::kGone;
    AgentContext* agent = nullptr;  // set if kFound or kClosing
  };
  // Any thread; kFound only on the agent's thread, from inside a call into its instance.
  virtual Found find(AgentHandle handle) = 0;

  // Any thread: on_result(post, token) follows soon, on the agent's thread. False if the handle
  // cannot exist; it may be true for an agent that is destroyed meanwhile.
  virtual bool post(AgentHandle handle, std::uint64_t token) = 0;
};

}  // namespace hearth::extensions
