#pragma once
// An agent of a mock host that is in memory: its instance over the server's extensions, and its
// calls and operations in progress.

#include "base/error.hpp"
#include "base/stop_point.hpp"
#include "durable/wake.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/call_order.hpp"
#include "extensions/call_rules.hpp"
#include "extensions/durable_work.hpp"
#include "mock/clients.hpp"
#include "mock/lent_bytes.hpp"
#include "mock/work_steps.hpp"
#include "mock/world.hpp"
#include "storage/agent_database.hpp"

#include <hearth/abi.h>
#include <hearth/ext/sql.h>
#include <hearth/testing/mock.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::mock {

using testing::detail::CallRecord;

// The parts that stay the same while an instance lives.
struct InstanceParts {
  World& world;
  const hearth_class& definition;
  const extensions::ClassSettings& settings;
  std::span<const std::string> exclusive;  // the methods that run alone, sorted
  const storage::AgentKey& key;
  const std::filesystem::path& file;
  Clients& clients;
  WorkSteps& steps;
  // A client (`source`; 0: the agent) has changed the state, and no rollback can undo that any
  // more.
  std::function<void(extensions::ConnectionId source, const std::string& json,
                     std::shared_ptr<unsigned> chain)>
      state_changed;
};

// Counts the changes in a row that handlers of STATE_CHANGED make.
using StateChain = std::shared_ptr<unsigned>;

// An event for the instance.
struct Incoming {
  extensions::EventKind kind{};
  extensions::ConnectionId connection = 0;
  std::string name{};
  std::string body{};
  std::uint32_t flags = 0;
  StateChain state_chain{};
  std::string target{};             // of a request
  extensions::Headers headers{};    // of a request
  std::string claims{};             // of a request
  extensions::BodyReader reader{};  // of a request whose body has not arrived
  extensions::OriginPtr origin{};   // null: the event came without one
  std::unique_ptr<extensions::DueWork> work{};
  std::shared_ptr<CallRecord> record{};  // null: the test does not need it
  // For a call by another agent. Like `then`, none of them may enter the instance.
  std::function<void()> begun{};
  std::function<void(std::string_view)> part{};
  std::function<bool()> abandoned{};  // no caller waits for the answer any more
  // The event has ended, or was refused. Runs inside a call into the instance: work that enters the
  // instance must wait.
  std::function<void(const Result<std::string_view>&)> then{};
};

// It has no timeouts of events. StoredAgent decides when an instance comes and goes.
//
// Promises  One turn is one transaction: all writes of the code until it returns.
// Threads   The test's.
// Failure   runtime_error: the agent's storage has failed, or a rule of the ABI was broken.
class LiveInstance final : public extensions::AgentContext,
                           private extensions::AgentCalls,
                           private extensions::StateWatchers {
 public:
  explicit LiveInstance(InstanceParts parts);
  ~LiveInstance() override;

  // Makes the instance, and sends START. If the data do not have the schema version of the class,
  // MIGRATE comes first. Throws runtime_error: why it cannot start. A later failure calls
  // `give_up`.
  void start(std::function<void()> give_up);
  [[nodiscard]] bool started() const { return started_; }

  void deliver(Incoming event);
  // Delivers an event that has ended when ask() returns.
  Result<void> ask(extensions::EventKind kind, extensions::ConnectionId connection,
                   std::string_view name, std::string_view body);
  // Call it when the test has cancelled the call: ends the call with CANCELLED and calls
  // on_cancel().
  void abandon(extensions::CallId call);
  void deliver_post(std::uint64_t token);

  // For a new client: sends the frames about the agent's work that other clients got before, as far
  // as they still hold.
  void tell_what_it_missed(extensions::Client& client);

  // Takes one step that is due; false: no step is due.
  bool step();
  // The next moment in the future when a step is due.
  [[nodiscard]] std::optional<SteadyTime> next_due() const;
  // Commits writes that were made outside of a turn.
  void end_turn();

  // Destroys the instance. `on_purpose` (an eviction, not a kill): interruptions of the work in
  // progress do not count. Returns when the agent must wake again. After it only the destructor may
  // be called.
  durable::Wake end(bool on_purpose);

  [[nodiscard]] void* instance() const { return instance_; }
  [[nodiscard]] extensions::DurableWork& durable_work() { return work_; }
  [[nodiscard]] std::size_t unfinished() const { return calls_.size(); }
  // Whether the event runs a method that must wait for calls in progress.
  [[nodiscard]] bool holds_up(const Incoming& event) const;
  [[nodiscard]] extensions::CallOrder call_order() const {
    return {.serial = parts_.settings.serial_calls, .exclusive = parts_.exclusive};
  }
  [[nodiscard]] std::vector<std::shared_ptr<CallRecord>> open_records() const;
  [[nodiscard]] bool evict_requested() const { return evict_requested_; }
  [[nodiscard]] bool destroy_requested() const { return destroy_requested_; }
  [[nodiscard]] bool closing() const { return closing_; }

  // ---- around a function of the host that the agent's code calls
  void function_begins(hearth_statement statement);
  [[nodiscard]] hearth_bytes lend(std::string_view bytes, hearth_statement statement);
  void function_ends(hearth_statement statement);

  // ---- AgentContext ----
  [[nodiscard]] extensions::AgentPhase phase() const override;
  void commit_now() override;
  void fiber_continued(std::string_view id) override { work_.continued(id); }
  void works_for(std::uint64_t fiber, extensions::CallId /*call*/) override {
    works_for_fiber_ = fiber != 0 && work_.fibers().row_of(fiber) != durable::kNoFiber;
  }
  [[nodiscard]] std::optional<durable::Effect> listed_effect(std::string_view kind) const override;
  Result<void> evict() override;
  Result<void> destroy() override;
  void log(LogLevel level, std::string_view text) override {
    parts_.world.log.add(level, text);
    if (text.starts_with("misuse: ")) (closing_ ? parts_.world.misuse : misuse_) = text;
  }
  Result<void> audit(std::string_view what, std::string_view detail) override {
    parts_.world.log.add(LogLevel::kInfo, "audit " + std::string(what) +
                                              (detail.empty() ? "" : " " + std::string(detail)));
    return {};
  }
  void storage_failed(std::string_view what) override;

 private:
  // An operation outside of the agent, and its results that were not delivered yet.
  struct Remote final : extensions::RemoteListener {
    struct Told {
      Result<std::string> body;
      std::uint32_t flags = 0;  // flags of hearth_result
    };
    void part(std::string body, std::uint32_t flags) override;
    void end(Result<std::string> outcome, std::uint32_t flags) override;

    std::deque<Told> told;
    bool started = false;
    std::unique_ptr<extensions::RemoteOperation> operation;
  };
  struct Operation {
    std::uint32_t operation = 0;
    std::uint64_t token = 0;
    SteadyTime due{};                     // for a sleep
    extensions::ConnectionId client = 0;  // for a drain: the client that reads
    std::uint64_t job = 0;                // for an offload
    bool over = false;
    hearth_status status = HEARTH_OK;
    std::shared_ptr<Remote> remote{};
    std::string notice{};  // not empty: the id of a notification, which the host sends
    std::shared_ptr<extensions::StateCause> state_cause{};
  };
  struct Call {
    Incoming event;  // without its text
    extensions::ResponseHead head{};
    bool part_sent = false;
    bool runs_alone = false;  // extensions/call_order.hpp
  };
  struct Change {
    extensions::ConnectionId source = 0;
    std::string json;
    std::uint64_t write = 0;
    StateChain chain;
  };
  // Valid until the next call on the statement.
  struct StatementBytes {
    LentBytes bytes;
    std::size_t before = 0;
  };

  // AgentCalls
  Result<void> complete(extensions::CallId call, const Result<std::string_view>& outcome) override;
  Result<void> emit(extensions::CallId call, std::string_view part) override;
  Result<extensions::OperationId> submit(std::uint32_t operation, std::string_view request,
                                         std::uint64_t token) override;
  Result<extensions::OperationId> submit(std::uint32_t operation,
                                         std::unique_ptr<extensions::RemoteOperation> remote,
                                         std::uint64_t token) override;
  Result<void> cancel(extensions::OperationId operation) override;
  Result<void> credit(extensions::OperationId operation, std::uint64_t bytes) override;
  extensions::CallOrigin origin(extensions::CallId call) override;
  [[nodiscard]] std::string trace() const override { return {}; }  // a test has none
  Result<extensions::RequestView> request(extensions::CallId call) override;

  // StateWatchers
  Result<void> may_change() override;
  void changed(extensions::ConnectionId source, std::string_view json,
               std::uint64_t write) override;
  void undone(std::uint64_t last_write) override;

  void deliver_start();
  void deliver_migrate();
  void migrated(const Result<std::string_view>& outcome);
  void finish_migration();
  // Call it when START or MIGRATE has failed.
  void fail_start(std::string why);
  [[nodiscard]] std::uint32_t schema_of_class() const;
  // Delivers the event; gives the status of on_event.
  Result<void> enter(hearth_event event, std::string_view name, std::string_view body);
  void leave();
  void finish(extensions::CallId call, const Result<std::string_view>& outcome);
  void tell_changes();
  bool deliver_work();
  bool send_notice();
  bool run_job();
  [[nodiscard]] const Client* open_client(extensions::ConnectionId id) const;
  [[nodiscard]] bool is_held(extensions::ConnectionId client) const;
  bool start_remote();
  bool deliver_remote();
  bool deliver_result();
  void deliver_result(std::uint32_t operation, std::uint64_t token, hearth_status status,
                      std::string_view body = {}, std::uint32_t flags = HEARTH_RESULT_FINAL);
  hearth_status call_job(std::uint64_t job, std::uint32_t cancelled);

  const InstanceParts parts_;
  storage::AgentDatabase database_;
  StopPointsAtCommit stops_;
  extensions::DurableWork work_;
  void* instance_ = nullptr;
  bool started_ = false;
  bool migrating_ = false;
  bool closing_ = false;
  bool evict_requested_ = false;
  bool destroy_requested_ = false;
  std::string broken_;   // why its storage has failed
  std::string misuse_;   // misuse of the SDK by the agent's code: the test fails
  std::string refusal_;  // the text that create, or the handler of an event, gave with a failure
  std::function<void()> give_up_;
  std::optional<std::string> start_failure_;
  bool migrated_ = false;  // MIGRATE has ended well

  std::map<extensions::CallId, Call> calls_;
  extensions::CallId last_call_ = 0;
  std::map<extensions::OperationId, Operation> operations_;
  extensions::OperationId last_operation_ = 0;
  std::vector<Change> changes_;  // those that a rollback may still undo
  // The cause of the code that runs: the STATE_CHANGED in its handler, or the one that started the
  // work. Null: none.
  std::shared_ptr<extensions::StateCause> state_cause_;
  bool works_for_fiber_ = false;  // ... and not for the event that entered it

  LentBytes lent_;
  std::size_t lent_before_ = 0;
  std::map<hearth_statement, StatementBytes> statements_;
};

}  // namespace hearth::mock
