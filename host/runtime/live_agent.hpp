#pragma once
// An agent that is in memory: its instance, its database, its outbox, and its work in progress.

#include "durable/wake.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/trace.hpp"
#include "extensions/wait.hpp"
#include "runtime/agent_calls.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/agent_clients.hpp"
#include "runtime/agent_commits.hpp"
#include "runtime/agent_operations.hpp"
#include "runtime/agent_visit.hpp"
#include "runtime/class_settings.hpp"
#include "runtime/code_on_stack.hpp"
#include "runtime/loan.hpp"
#include "runtime/outbox.hpp"
#include "runtime/shard_loop.hpp"
#include "runtime/shard_metrics.hpp"
#include "storage/agent_database.hpp"
#include "storage/kept.hpp"

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime {

class AgentInbox;
struct ShardServices;

// Promises
//  P1 One at a time  The instance is never entered while it is on the stack.
//  P2 Calls          Promises of AgentCalls.
//  P3 Turn           What the instance writes in a turn is committed before anything that it sends
//                    in that turn leaves.
//  P4 Lent           While it is lent(), another thread has the database, and the instance is not
//                    entered: events wait, in order, until take_back().
//  P5 Break          When storage fails, nothing that was not durable leaves, callers get an error,
//                    and its slot evicts the agent.
//  P6 Undone         After a rollback by the instance, state() gives what the file holds, and no
//                    frame and no STATE_CHANGED tells of the undone change.
//
// P3: Turns that follow one another at once may share a commit.
// P4: The other thread runs checkpoint(), which waits for the device; or the agent leaves, and its
// last answers wait for the device.
// P6: Frames that the instance itself has sent leave all the same.
//
// Threads    The shard's.
// Lifetime   Owned by its slot. shut() and close_database() come before destruction.
class LiveAgent final : public extensions::AgentContext,
                        private extensions::StateWatchers,
                        private OutboxOwner {
 public:
  // What it uses of its slot. All of it outlives the live agent.
  struct Parts {
    const storage::AgentKey& key;
    const std::string& segment;  // how URLs name the class
    AgentInbox& inbox;           // its clients, and the events that wait
    // No plugin code of this agent is on the stack any more: handles the results, then delivers the
    // events that wait. Does not destroy the live agent.
    std::function<void()> after_turn;
    // Durable work of the agent may be due: a task of the loop looks soon.
    std::function<void()> look;
  };

  // Opens the database. Throws StorageError.
  LiveAgent(const Parts& parts, ShardServices& services,
            std::shared_ptr<const AgentClass> agent_class, const ClassSettings& settings,
            AgentHandle handle);
  ~LiveAgent() override;

  // Makes the instance and delivers START, all under this span. The result is a Completion of kind
  // kStart. If the data has an older schema version of the class, it delivers MIGRATE first: the
  // result is a Completion of kind kMigrate, to be given to migrated(). If the data has a newer
  // version: kUnavailable.
  Result<void> start(const extensions::Span& span);
  // Whether the class knows the schema version of the agent's data. Clients may see the error.
  [[nodiscard]] Result<void> check_schema() const;
  // MIGRATE has ended: commits its writes, with the new version, and delivers START. If MIGRATE
  // failed, its writes are never committed. Throws StorageError.
  Result<void> migrated(const Completion& ended);

  // Replaces start() for visits alone: loads the host's halves of the extensions and makes no
  // instance. The agent then ends like any other.
  void open();
  // Storage has failed, as in storage_failed(), and the caller has logged it. After start() or
  // open() has thrown: uncommitted writes are lost, and the wake index keeps its entry.
  void give_up(std::string_view what);
  // Does what an administrator wants with the agent's data, now or after take_back(). The visit's
  // sink gets the result.
  void receive(AgentVisit& visit);
  // What it waits for, but for its durable work.
  [[nodiscard]] std::vector<extensions::Wait> waits();

  // Delivers one event, which began at `now`. The slot has checked that it may be delivered.
  void deliver(Event incoming, SteadyTime now);
  // Lets a waiting client in: CONNECTING, handshake, CONNECT. False: the client was refused and
  // closed.
  bool admit(Connection& connection, SteadyTime now);
  void deliver_post(std::uint64_t token);
  // Ends a call in progress with this error, and cancels it in the instance. Does nothing if the
  // call has ended.
  void abandon(CallId call, const Error& why);
  // Delivers kEvict. The result is a Completion of that kind.
  void ask_to_leave(EvictReason reason, std::chrono::milliseconds grace);

  // ---- durable work (durable_work.hpp) ----
  // Claims one thing that is due and delivers it. Its end is a Completion of its kind. False:
  // nothing begins now. A recovery begins only with `may_recover`, a notification to another agent
  // only with `may_notify`. Durable work and clients' events have limits of their own, do not wait
  // for each other, and take turns on the loop.
  // work() says when it may find work even if no event comes before.
  bool dispatch(bool may_recover, bool may_notify);
  // When the agent must be awake next, even if no event comes.
  [[nodiscard]] durable::Wake wake() const;
  // The disk was full when the agent woke: its work is as the last process has left it, and only
  // another instance can begin it.
  [[nodiscard]] bool work_waits_for_room() const { return work_waits_for_room_; }

  // Once, before shut(): commits. With durability `power`, the agent is lent afterwards until its
  // answers have left, if they wait for the device. After 10 s without a reply from the device its
  // storage has failed.
  void finish_turns(EvictReason reason);
  // Answers every call in progress with `why`, except those that are delivered again. Cancels
  // everything and destroys the instance. Afterwards only commits(), close_database() and the
  // destructor may be called.
  // Returns the interrupted events that are delivered again, in the order of their delivery. These
  // are CONNECT, and a call of an idempotent method (AgentClass::is_idempotent) whose caller still
  // waits and has seen no part of its answer. None after kHung, kShutdown and kDestroyed, and when
  // storage has failed.
  [[nodiscard]] std::vector<OwnedEvent> shut(EvictReason reason, const Error& why);
  // Once, after shut(), on any thread: moves the WAL into the file, which waits for the device, and
  // closes the file. Meanwhile only events of clients may lead to calls of other members. Returns
  // what went wrong, or "".
  std::string close_database();
  [[nodiscard]] const AgentCommits& commits() const { return commits_; }

  // ---- the WAL ----
  // The WAL is so long that the agent should be lent before the next event is delivered. `idle`:
  // see AgentDatabase.
  [[nodiscard]] bool checkpoint_due(bool idle = false) const {
    return !shutting() && phase_ != AgentPhase::kMigrating && !broken_ &&
           database_.checkpoint_due(idle);
  }
  // While it is lent(): keeps the step for take_back(). False: it is not, and the caller goes on.
  [[nodiscard]] bool postpone(std::function<void()> step) {
    return loan_.postpone(std::move(step));
  }
  [[nodiscard]] bool lent() const { return loan_.is_out(); }
  // Only if checkpoint_due(), at least with `idle`, and no code of the agent is on the stack.
  void lend();
  // Any thread, between lend() and take_back(). Returns what went wrong, or "".
  std::string checkpoint() { return database_.checkpoint(); }
  // Runs the postponed steps. The agent may be shut, and gone, afterwards.
  void take_back(const std::string& trouble);

  // Its events in progress.
  [[nodiscard]] AgentCalls& in_progress() { return calls_; }
  [[nodiscard]] const AgentCalls& in_progress() const { return calls_; }
  // No event is in progress and no effect is held back.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] bool entered() const { return code_.entered(); }
  // The instance is being destroyed: its effects do not count any more.
  [[nodiscard]] bool shutting() const { return phase_ == AgentPhase::kClosing; }
  [[nodiscard]] bool broken() const { return broken_.has_value(); }
  // Answers are held back until what they report is durable.
  [[nodiscard]] bool awaits_durability() const {
    return commits_.gate() != nullptr && !outbox_.empty();
  }
  // The outbox holds so much that no more events should be delivered before some of it has left.
  [[nodiscard]] bool is_crowded() const { return outbox_.is_crowded(); }
  // Gives memory back. Does nothing while the database is lent.
  void trim(extensions::Trim what);

  [[nodiscard]] bool eviction_requested() const { return wish_ == Wish::kLeave; }
  // The agent is condemned: no event is delivered any more.
  [[nodiscard]] bool destruction_requested() const { return wish_ == Wish::kBeDestroyed; }
  [[nodiscard]] const std::shared_ptr<const AgentClass>& agent_class() const { return class_; }
  [[nodiscard]] ClassMetrics& figures() { return figures_; }

  // Another part wrote to the directory for this agent: the agent's effects wait until that is
  // durable.
  void directory_was_written() { commits_.directory_was_written(true); }

  // ---- AgentContext ----
  [[nodiscard]] extensions::AgentPhase phase() const override { return phase_; }
  [[nodiscard]] extensions::EgressPtr egress() const override;
  void commit_now() override;
  void fiber_continued(std::string_view id) override;
  [[nodiscard]] std::optional<durable::Effect> listed_effect(std::string_view kind) const override {
    return class_->listed_effect(kind);
  }
  void works_for(durable::FiberHandle fiber, CallId call) override;
  Result<void> evict() override;
  Result<void> destroy() override;
  void log(LogLevel level, std::string_view text) override;
  void count_event(std::string_view name) override { figures_.named_event(name); }
  Result<void> audit(std::string_view what, std::string_view detail) override;
  void storage_failed(std::string_view what) override;

 private:
  LiveAgent(const Parts& parts, ShardServices& services,
            std::shared_ptr<const AgentClass> agent_class, const ClassSettings& settings,
            AgentHandle handle, storage::Kept kept);

  using AgentPhase = extensions::AgentPhase;
  // What the instance has asked for.
  enum class Wish : std::uint8_t { kStay, kLeave, kBeDestroyed };
  using Span = extensions::Span;
  using Call = CallInProgress;
  using UnderSpan = CodeOnStack::UnderSpan;

  // StateWatchers
  Result<void> may_change() override;
  void changed(ConnectionId source, std::string_view json, std::uint64_t write) override;
  void undone(std::uint64_t last_write) override;

  // OutboxOwner
  [[nodiscard]] bool dirty() const override;
  void apply(Effect& effect) override;
  void discard(Effect& effect) override;
  void let_out(FrameEffect& frame);
  void let_out(const CloseEffect& close);
  void let_out(const HandshakeEffect& handshake);
  void let_out(const PartEffect& part);
  void let_out(const FinishEffect& answer);
  void let_out(const OffloadEffect& job);
  void let_out(const DrainEffect& drain) { operations_.let_out(drain); }
  void let_out(const RemoteEffect& remote) { operations_.let_out(remote); }
  void synced(bool ok) override;

  void leave();
  void deliver_start(const Span& cause);
  [[nodiscard]] bool must_migrate() const;
  void deliver_migrate(const Span& cause);
  bool begin_work(bool may_recover);
  void load_work(bool has_code);
  void write_failed(const StorageError& failure);
  [[nodiscard]] extensions::SpanSource& spans() const;
  // The span of an event: below its cause, or the first of a trace if there is no cause.
  [[nodiscard]] Span span_of(std::string_view cause) const {
    return spans().below(extensions::read_span(cause));
  }
  [[nodiscard]] Span span_of(const extensions::OriginPtr& origin) const {
    return span_of(origin ? std::string_view(origin->trace) : std::string_view());
  }
  // Tells the instance, if it may hear it.
  void tell(OperationNews news);
  void notice_ended(const OperationNews& news);
  bool send_notice(bool may_notify);
  // ---- the durable work that the instance does, for the crash record ----
  void does(std::optional<WorkMark> work) {
    if (code_.begin_work(work) && instance_) instance_->works_for(work);
  }
  // The work that this event delivers: this agent's own, or another agent's notification.
  [[nodiscard]] WorkMark work_of(CallId call) const;
  [[nodiscard]] OffloadOrigin origin_of(const OffloadEffect& job) const {
    return {parts_.key.name, job.work};
  }
  // Closes a client for a reason of the host. Cannot fail, whatever the text.
  void end_connection(Connection& connection, std::uint16_t code, std::string_view reason);
  // Reports the fibers that an earlier instance left.
  void report_left_over();
  [[nodiscard]] Span span_of_left_over(std::string_view fiber);
  [[nodiscard]] Span span_of_run(durable::FiberHandle fiber);
  void schedule_flush();
  bool flush_at_turn_end(bool is_last);
  void flush();
  // Commits what is uncommitted, and lets out the effects that waited for it. Throws StorageError.
  void commit();
  // The instance is about to be entered. An empty `span`: the first of a trace.
  [[nodiscard]] CodeOnStack::Entry enter_code(CallId call = 0, const Span& span = {},
                                              std::string_view method = {});
  // `span`: for an event without a call.
  Result<void> enter(const AgentEvent& event, const Span& span = {});
  // Delivers the event of a call, which is in progress since this turn.
  void accept_call(const AgentEvent& event);
  // Begins a call for an event of the agent's own life, and delivers it.
  void deliver_own(AgentEvent event, Span span, std::chrono::milliseconds time);
  // The agent's boundary: runs what may touch storage. False: storage has failed.
  template <class Action>
  bool guard(const Action& action) {
    try {
      action();
      return true;
    } catch (const StorageError& failure) {
      storage_failed(failure.what());
      return false;
    }
  }
  [[nodiscard]] bool may_try_again(EvictReason reason) const;
  void ended(const Call& call, const Result<std::string_view>& outcome);
  void time_out(CallId id);
  void write_state_of_client(Event& incoming);
  [[nodiscard]] extensions::OriginPtr trace_alone() const;
  // A STATE_CHANGED event is entered next. `chain`: EventFreight::state_chain.
  void begin_cause(std::shared_ptr<unsigned> chain);
  // The agent's own SQL has rolled the transaction back: its memory differs from the file.
  void lose_turn();
  // To a client whose write was refused: it still shows what it has written.
  void show_true_state(ConnectionId id);

  const Parts parts_;
  ShardServices& services_;
  std::shared_ptr<const AgentClass> class_;
  ClassMetrics& figures_;

  storage::AgentDatabase database_;
  AgentCommits commits_;
  extensions::DurableWork work_;
  Outbox outbox_;
  Loan loan_;
  AgentClients clients_;
  AgentOperations operations_;
  std::unique_ptr<AgentInstance> instance_;

  CodeOnStack code_;
  AgentCalls calls_;
  bool notice_comes_first_ = false;

  bool work_waits_for_room_ = false;
  AgentPhase phase_ = AgentPhase::kStarting;
  Wish wish_ = Wish::kStay;
  std::optional<std::string> broken_;
  bool flush_scheduled_ = false;
  std::uint64_t turns_before_ = 0;  // code_.turns() when the flush was last scheduled or checked
  std::shared_ptr<LiveAgent*>
      self_;  // tasks of the loop reach us through it; null after destruction
};

}  // namespace hearth::runtime
