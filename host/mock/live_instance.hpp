#pragma once
// An agent of a mock host that is in memory: its instance over the server's extensions, and what is
// in progress.

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

// What does not change while an instance lives.
struct InstanceParts {
  World& world;
  const hearth_class& definition;
  const extensions::ClassSettings& settings;
  std::span<const std::string> exclusive;  // the methods that run alone, sorted
  const storage::AgentKey& key;
  const std::filesystem::path& file;
  Clients& clients;
  WorkSteps& steps;
  // The state was changed by a client (0: the agent), and nothing takes that back any more.
  std::function<void(extensions::ConnectionId source, const std::string& json,
                     std::shared_ptr<unsigned> chain)>
      state_changed;
};

// Counts what handlers of STATE_CHANGED change in a row.
using StateChain = std::shared_ptr<unsigned>;

// An event for the instance.
struct Incoming {
  extensions::EventKind kind{};
  extensions::ConnectionId connection = 0;
  std::string name{};
  std::string body{};
  std::uint32_t flags = 0;
  StateChain state_chain{};
  std::string target{};            // of a request
  extensions::Headers headers{};   // of a request
  std::string claims{};            // of a request
  extensions::OriginPtr origin{};  // null: none was given with it
  std::unique_ptr<extensions::DueWork> work{};
  std::shared_ptr<CallRecord> record{};  // null: the test does not ask for it
  // Of a call by another agent. As `then`, none of them may enter the instance.
  std::function<void()> begun{};
  std::function<void(std::string_view)> part{};
  std::function<bool()> abandoned{};  // nobody listens any more
  // It is over, or was refused. Runs inside a call into the instance: what enters it must wait.
  std::function<void(const Result<std::string_view>&)> then{};
};

// It knows no time-outs of events. StoredAgent decides when an instance comes and goes.
//
// Promises  A turn, all that the code writes until it returns, is one transaction.
// Threads   The test's.
// Failure   runtime_error: the agent's storage has failed, or a rule of the ABI was broken.
class LiveInstance final : public extensions::AgentContext,
                           private extensions::AgentCalls,
                           private extensions::StateWatchers {
 public:
  explicit LiveInstance(InstanceParts parts);
  ~LiveInstance() override;

  // Makes the instance, and sends START when its data have the schema version of its class: MIGRATE
  // comes before. Throws runtime_error: why it cannot start. `give_up` is called if it fails later.
  void start(std::function<void()> give_up);
  [[nodiscard]] bool started() const { return started_; }

  void deliver(Incoming event);
  // An event that is over when it returns.
  Result<void> ask(extensions::EventKind kind, extensions::ConnectionId connection,
                   std::string_view name, std::string_view body);
  // The test has cancelled the call: ends it with CANCELLED and calls on_cancel().
  void abandon(extensions::CallId call);
  void deliver_post(std::uint64_t token);

  // A client has just come: what others were told of the agent's work before, and still holds.
  void tell_what_it_missed(extensions::Client& client);

  // Does one thing that is due; false: nothing is.
  bool step();
  // When something is due next, if it is not due already.
  [[nodiscard]] std::optional<SteadyTime> next_due() const;
  // Commits what was written outside of a turn.
  void end_turn();

  // Destroys the instance. On purpose (an eviction, no kill): what runs was interrupted for
  // nothing. Gives when the agent must be awake again. Nothing else may follow but the destructor.
  durable::Wake end(bool on_purpose);

  [[nodiscard]] void* instance() const { return instance_; }
  [[nodiscard]] extensions::DurableWork& durable_work() { return work_; }
  [[nodiscard]] std::size_t unfinished() const { return calls_.size(); }
  // Whether an event that runs a method has to wait for what is in progress.
  [[nodiscard]] bool holds_up(const Incoming& event) const;
  [[nodiscard]] extensions::CallOrder call_order() const {
    return {.serial = parts_.settings.serial_calls, .exclusive = parts_.exclusive};
  }
  [[nodiscard]] std::vector<std::shared_ptr<CallRecord>> open_records() const;
  [[nodiscard]] bool evict_requested() const { return evict_requested_; }
  [[nodiscard]] bool destroy_requested() const { return destroy_requested_; }
  [[nodiscard]] bool closing() const { return closing_; }

  // ---- around a function of the host that its code calls
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
  // What goes on outside of the agent, and what it has told so far.
  struct Remote final : extensions::RemoteListener {
    struct Told {
      Result<std::string> body;
      std::uint32_t flags = 0;  // of hearth_result
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
    SteadyTime due{};       // of a sleep
    std::uint64_t job = 0;  // of an offload
    bool over = false;
    hearth_status status = HEARTH_OK;
    std::shared_ptr<Remote> remote{};
    std::string notice{};  // the id of a notification, which is the host's
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
  // Good until something happens to their statement.
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
  // START, or MIGRATE, has failed.
  void fail_start(std::string why);
  [[nodiscard]] std::uint32_t schema_of_class() const;
  // What on_event says.
  Result<void> enter(hearth_event event, std::string_view name, std::string_view body);
  void leave();
  void finish(extensions::CallId call, const Result<std::string_view>& outcome);
  void tell_changes();
  bool deliver_work();
  bool send_notice();
  bool run_job();
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
  std::string broken_;   // why its storage does not work any more
  std::string misuse_;   // of the SDK, by its code: the test fails
  std::string refusal_;  // what create, or an event that it refuses, says of it
  std::function<void()> give_up_;
  std::optional<std::string> start_failure_;
  bool migrated_ = false;  // MIGRATE has ended well

  std::map<extensions::CallId, Call> calls_;
  extensions::CallId last_call_ = 0;
  std::map<extensions::OperationId, Operation> operations_;
  extensions::OperationId last_operation_ = 0;
  std::vector<Change> changes_;  // that a rollback may still take back
  // The STATE_CHANGED that is being handled, or that has begun what is. Null: none.
  std::shared_ptr<extensions::StateCause> state_cause_;
  bool works_for_fiber_ = false;  // and not for the event that it was entered with

  LentBytes lent_;
  std::size_t lent_before_ = 0;
  std::map<hearth_statement, StatementBytes> statements_;
};

}  // namespace hearth::mock
