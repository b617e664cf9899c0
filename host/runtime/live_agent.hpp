#pragma once
// An agent that is in memory: its instance, its database, its outbox, and what is in progress.

#include "base/assert.hpp"
#include "base/slot_map.hpp"
#include "base/stop_point.hpp"
#include "durable/wake.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/call_order.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/trace.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/agent_clients.hpp"
#include "runtime/agent_operations.hpp"
#include "runtime/agent_visit.hpp"
#include "runtime/class_settings.hpp"
#include "runtime/interruptible_events.hpp"
#include "runtime/live_agent_owner.hpp"
#include "runtime/outbox.hpp"
#include "runtime/shard_loop.hpp"
#include "runtime/shard_metrics.hpp"
#include "runtime/wake_keeper.hpp"
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

class ShardServices;

// What became of internal events; the owner acts on it once no plugin code is on the stack.
struct Completion {
  EventKind kind{};
  ConnectionId connection = 0;
  SteadyTime began;  // if its kind is_timed
  std::optional<Error> error;
  CallId call = 0;
  extensions::Span span = {};
};

// Promises
//  P1 One at a time  The instance is never entered while it is on the stack.
//  P2 Answer once    Each sink given to deliver() is finished exactly once, or dropped with its
//                    caller.
//  P3 Turn           What the instance writes between entering and leaving it is committed before
//                    anything it sends in that time leaves. Turns that follow one another at once
//                    may share a commit.
//  P4 Lent           While it is lent(), another thread has the database for checkpoint(), which
//                    waits for the device; or the last answers of an agent that leaves wait for it.
//                    The instance is not entered then: what would enter it waits, in order, until
//                    take_back().
//  P5 Break          When storage fails, nothing that was not durable leaves; callers get an error,
//                    and the owner evicts the agent.
//  P6 Undone         A rollback of the instance's own takes the state back with the rows: state()
//                    gives what the file holds, and no frame and no STATE_CHANGED tells of what was
//                    undone. Frames that the instance itself has sent leave.
//  P7 Once           The answer to a call that came with a key is stored in the commit of the turn
//                    that gave it. A later call with that key and the same contents gets the stored
//                    answer, and one that may have had effects without an answer is not run again
//                    unless its method is idempotent. Of a method that is read-only nothing is
//                    stored: it runs again.
//
// Threads    The shard's. Lifetime  Owned by its owner; shut() and close_database() before
//                                   destruction.
class LiveAgent final : public extensions::AgentContext,
                        private extensions::AgentCalls,
                        private extensions::StateWatchers,
                        private OperationsOwner,
                        private OutboxOwner {
 public:
  // Opens the database. Throws StorageError.
  LiveAgent(LiveAgentOwner& owner, ShardServices& services,
            std::shared_ptr<const AgentClass> agent_class, const ClassSettings& settings,
            AgentHandle handle);
  ~LiveAgent() override;

  // Makes the instance and delivers START, all under this span; the outcome is a Completion of kind
  // kStart. Data of an older schema version of the class come first: then it delivers MIGRATE,
  // whose outcome is a Completion of kind kMigrate, for migrated(). Data of a newer one:
  // kUnavailable.
  Result<void> start(const extensions::Span& span);
  // Whether the class knows the schema version of the agent's data. The error is for clients too.
  [[nodiscard]] Result<void> check_schema() const;
  // MIGRATE has ended: commits what it wrote, with the new version, and delivers START. An error:
  // nothing of it is ever committed. Throws StorageError.
  Result<void> migrated(const Completion& ended);

  // In the place of start(), for visits alone: the host's halves are loaded, and no instance is
  // made. Then it ends as any other does.
  void open();
  // Storage has failed, as by storage_failed(), and whoever calls has logged it. After start() or
  // open() has thrown: what is on the way is never committed, and the wake index keeps its entry.
  void give_up(std::string_view what);
  // What an administrator does with its data, now or once it is back (lent()). Everything is told
  // to the visit's sink.
  void receive(AgentVisit& visit);

  // Delivers one event. The owner has checked that it may be delivered now.
  void deliver(Event incoming);
  // Lets a waiting client in: CONNECTING, handshake, CONNECT. False if it was refused (and closed).
  bool admit(Connection& connection);
  void deliver_post(std::uint64_t token);
  // Asks for kEvict to be handled; the outcome is a Completion of that kind.
  void ask_to_leave(EvictReason reason, std::chrono::milliseconds grace);

  // ---- durable work (durable_work.hpp) ----
  // Claims and delivers one thing that is due; its end is a Completion of its kind. False: nothing
  // begins now. A recovery begins only if it may. What is delivered so does not count against the
  // limit of clients' events and does not wait for them, nor they for it: each has limits of its
  // own, and they take turns on the loop.
  bool dispatch(bool may_recover);
  [[nodiscard]] bool work_due() const { return work_.due(); }
  [[nodiscard]] bool recovery_due() const { return work_.recovery_due(); }
  [[nodiscard]] bool recovering() const { return work_.recovering(); }
  [[nodiscard]] bool has_durable_work() const { return !work_.empty(); }
  // When dispatch() may find something though nothing happens before, Unix milliseconds.
  [[nodiscard]] std::optional<std::int64_t> next_look_ms() const { return work_.next_look_ms(); }
  // When it must be awake next, though nobody asks for it.
  [[nodiscard]] durable::Wake wake() const;

  // The client is gone: answers to it are dropped.
  void forget_connection(ConnectionId id);

  // Before shut(), once: commits. With durability `power` it is lent afterwards if answers wait for
  // the device, until they have left. After 10 s without an answer its storage has failed.
  void finish_turns(EvictReason reason);
  // Answers every call in progress with `why` but those that come again, cancels everything and
  // destroys the instance. After it only take_interrupted(), close_database() and the destructor
  // may be called.
  void shut(EvictReason reason, const Error& why);
  // After shut(): what was cut off and comes again, in the order in which it was delivered.
  // CONNECT; and a call of a method that is idempotent (AgentClass::is_idempotent), if somebody
  // waits for it and has seen no part of its answer. Nothing after kHung, kShutdown and kDestroyed,
  // nor when storage has failed.
  [[nodiscard]] std::vector<OwnedEvent> take_interrupted() {
    return interruptible_.take_interrupted();
  }
  // After shut(): moves the WAL into the file, which waits for the device, and closes it. Not
  // twice. Any thread; nothing else may be called meanwhile but what a client's events come to.
  // Gives what went wrong, or "".
  std::string close_database();
  // After close_database(): what is stored is on the device, with the names that lead to it, and
  // the directory does not know it yet.
  [[nodiscard]] bool kept_at_end() const { return kept_at_end_; }

  // ---- the WAL ----
  // It has grown so long that the agent should be lent: no event is delivered before. `idle`: as
  // AgentDatabase says.
  [[nodiscard]] bool checkpoint_due(bool idle = false) const {
    return !shutting() && phase_ != AgentPhase::kMigrating && !broken_ &&
           database_.checkpoint_due(idle);
  }
  [[nodiscard]] bool lent() const { return lent_; }
  // Only when checkpoint_due(), of an idle one at least, and nothing of it is on the stack.
  void lend();
  // Any thread, between lend() and take_back(). Gives what went wrong, or "".
  std::string checkpoint() { return database_.checkpoint(); }
  // Does what has waited. It may be shut, and gone, afterwards.
  void take_back(const std::string& trouble);
  // While it is lent: `step` is done when it is back. False: it is not lent.
  bool postpone(std::function<void()> step) override;

  [[nodiscard]] std::size_t events_in_progress() const { return calls_.size(); }
  // Of them, those that dispatch() has not delivered.
  [[nodiscard]] std::size_t client_events() const { return calls_.size() - work_calls_; }
  // Nothing in progress, nothing held back.
  [[nodiscard]] bool idle() const;
  // A call or a request is in progress; and one that runs alone is.
  [[nodiscard]] bool runs_method() const { return methods_in_progress_ > 0; }
  [[nodiscard]] bool runs_alone() const { return alone_in_progress_ > 0; }
  [[nodiscard]] bool entered() const { return entered_; }
  // The instance is being destroyed: nothing of it counts any more.
  [[nodiscard]] bool shutting() const { return phase_ == AgentPhase::kClosing; }
  [[nodiscard]] bool broken() const { return broken_.has_value(); }
  // The last write of the state that is committed (AgentDatabase::state_writes()), 0: none.
  [[nodiscard]] std::uint64_t committed_state_writes() const { return committed_state_writes_; }
  // Answers are held back until what they report is durable.
  [[nodiscard]] bool awaits_durability() const { return gate_ != nullptr && !outbox_.empty(); }
  // So much is held back that no more events should be delivered before some of it has left.
  [[nodiscard]] bool is_crowded() const { return outbox_.is_crowded(); }
  // Gives back memory that an idle agent does not need.
  void trim();

  // Internal completions and requests since the last call, in order.
  std::vector<Completion> take_completions() { return std::exchange(completions_, {}); }
  [[nodiscard]] bool has_completions() const { return !completions_.empty(); }
  [[nodiscard]] bool eviction_requested() const { return wish_ == Wish::kLeave; }
  // It is condemned: no event is delivered any more.
  [[nodiscard]] bool destruction_requested() const { return wish_ == Wish::kBeDestroyed; }
  [[nodiscard]] const std::shared_ptr<const AgentClass>& agent_class() const { return class_; }
  [[nodiscard]] ClassMetrics& figures() { return figures_; }

  // On its behalf, other than by itself: what it tells waits until that is durable.
  void directory_was_written();

  // ---- AgentContext ----
  [[nodiscard]] extensions::AgentPhase phase() const override { return phase_; }
  [[nodiscard]] extensions::EgressPtr egress() const override { return owner_.egress(); }
  void commit_now() override;
  void fiber_continued(std::string_view id) override;
  [[nodiscard]] std::optional<durable::Effect> listed_effect(std::string_view kind) const override {
    return class_->listed_effect(kind);
  }
  void works_for(durable::FiberHandle fiber, CallId call) override;
  Result<void> evict() override;
  Result<void> destroy() override;
  void log(LogLevel level, std::string_view text) override;
  Result<void> audit(std::string_view what, std::string_view detail) override;
  void storage_failed(std::string_view what) override;

 private:
  using AgentPhase = extensions::AgentPhase;
  // What the instance has asked for.
  enum class Wish : std::uint8_t { kStay, kLeave, kBeDestroyed };
  // Of an event, and of what it has begun, which may go on when the event is over.
  using Span = extensions::Span;
  [[nodiscard]] extensions::CallOrder call_order() const {
    return {.serial = settings().serial_calls, .exclusive = class_->exclusive_methods()};
  }
  struct Call {
    EventKind kind{};
    std::string method;  // of a call or a request; its beginning, for the log
    ConnectionId connection = 0;
    extensions::OriginPtr origin;
    Span span;
    std::shared_ptr<CallSink> sink;
    std::unique_ptr<RequestHead> request;
    ResponseHead head;
    std::optional<extensions::CallKey> retry_key;  // under which its answer is kept
    std::unique_ptr<extensions::DueWork> work;     // what it stands for, if dispatch() delivered it
    bool part_sent = false;
    bool runs_alone = false;              // extensions/call_order.hpp
    InterruptibleEvents::Place kept = 0;  // so that it can be delivered again
    Interruptions interruptions;
    TimerId deadline = 0;
    std::chrono::milliseconds timeout{0};  // until its end, or the next part; 0: none
    SteadyTime due{};                      // when that is over
    SteadyTime began;                      // if its kind is_timed
  };
  // Marks the instance as being on the stack, for `call` (0: for none), and keeps whose the lines
  // of its log are: the call may be over before its code has returned. Re-entry is the one thing
  // that the plugin contract excludes by construction: no function that a plugin can call comes
  // back to deliver an event.
  class Entry {
   public:
    explicit Entry(LiveAgent& agent, CallId call = 0, const Span& span = {},
                   std::string_view method = {})
        : agent_(agent) {
      HEARTH_ASSERT(!agent_.entered_, "instance entered while it is on the stack");
      HEARTH_ASSERT(!agent_.lent_, "instance entered while another thread has the database");
      agent_.entered_ = true;
      agent_.current_call_ = call;
      agent_.current_method_ = method;
      agent_.current_span_ = span.is_none() ? agent_.spans().root() : span;
      agent_.begin_work_of(agent_.tells_fibers_ ? std::optional(durable::kNoFiber) : std::nullopt);
      ++agent_.turns_;
    }
    ~Entry() {
      agent_.entered_ = false;
      agent_.current_call_ = 0;
      agent_.current_method_.clear();
      agent_.current_span_ = {};
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    LiveAgent& agent_;
  };
  // What is reported meanwhile is of this span, unless that is none.
  class UnderSpan {
   public:
    UnderSpan(LiveAgent& agent, const Span& span) : agent_(agent), before_(agent.current_span_) {
      if (!span.is_none()) agent.current_span_ = span;
    }
    ~UnderSpan() { agent_.current_span_ = before_; }
    UnderSpan(const UnderSpan&) = delete;
    UnderSpan& operator=(const UnderSpan&) = delete;

   private:
    LiveAgent& agent_;
    const Span before_;
  };

  // AgentCalls
  Result<void> complete(CallId call, const Result<std::string_view>& outcome) override;
  Result<void> emit(CallId call, std::string_view part) override;
  Result<OperationId> submit(std::uint32_t operation, std::string_view request,
                             std::uint64_t token) override;
  Result<OperationId> submit(std::uint32_t operation,
                             std::unique_ptr<extensions::RemoteOperation> remote,
                             std::uint64_t token) override;
  Result<void> cancel(OperationId operation) override;
  Result<void> credit(OperationId operation, std::uint64_t bytes) override;
  extensions::CallOrigin origin(CallId call) override;
  [[nodiscard]] std::string trace() const override { return current_span_.text(); }
  [[nodiscard]] extensions::Span span() const override { return current_span_; }
  [[nodiscard]] extensions::LineOrigin current() const override;
  Result<extensions::RequestView> request(CallId call) override;

  // OperationsOwner
  bool queue_job(const JobEffect& job, std::function<void(Result<void>)> done) override;
  void drop_job(const JobEffect& job) override;
  [[nodiscard]] bool has_client(ConnectionId id) const override {
    return clients_.connection(id) != nullptr;
  }
  [[nodiscard]] bool hears_results() const override {
    return !shutting() && !broken_ && instance_ != nullptr;
  }
  bool keep(const std::function<void()>& write) override;
  void tell(const SubmittedOperation& of, const OperationResult& result) override;
  void notice_ended(const std::string& notice, const Result<std::string>& outcome,
                    std::uint32_t flags) override;

  // StateWatchers
  Result<void> may_change() override;
  void changed(ConnectionId source, std::string_view json, std::uint64_t write) override;
  void undone(std::uint64_t last_write) override;

  // OutboxOwner
  [[nodiscard]] bool dirty() const override;
  void commit() override;
  void apply(Effect& effect) override;
  void discard(Effect& effect) override;
  void let_out(FrameEffect& frame);
  void let_out(const CloseEffect& close);
  void let_out(const HandshakeEffect& handshake);
  void let_out(const PartEffect& part);
  void let_out(const FinishEffect& answer);
  void let_out(const JobEffect& job) { operations_.let_out(job); }
  void let_out(const DrainEffect& drain) { operations_.let_out(drain); }
  void let_out(const RemoteEffect& remote) { operations_.let_out(remote); }
  void all_durable() override;
  void durability_lost() override;

  // The directory knows the agent from now on.
  void record();
  void note_kept(storage::Kept kept);
  void leave();
  void deliver_start(const Span& cause);
  [[nodiscard]] bool must_migrate() const;
  void deliver_migrate(const Span& cause);
  bool begin_work(bool may_recover);
  [[nodiscard]] extensions::SpanSource& spans() const;
  // A span of an event: below its cause, or the first of a trace if there is none.
  [[nodiscard]] Span span_of(std::string_view cause) const {
    return spans().below(extensions::read_span(cause));
  }
  [[nodiscard]] Span span_of(const extensions::OriginPtr& origin) const {
    return span_of(origin ? std::string_view(origin->trace) : std::string_view());
  }
  // As Logger::write_limited(), with what agent_line() adds of this event; 0: of the span that the
  // code is under.
  void write_line(LogLevel level, std::string_view event,
                  std::initializer_list<std::string_view> kind, CallId id,
                  std::initializer_list<LogField> own) const;
  void end_work(const Call& call, const Result<std::string_view>& outcome);
  bool send_notice();
  // ---- whose work the instance does, for the record of a crash ----
  void begin_work_of(std::optional<durable::FiberRow> fiber) {
    if (fiber == fiber_) return;
    fiber_ = fiber;
    if (instance_) instance_->works_for(fiber);
  }
  // That of the fiber which this event offers, or asks a plan for; kSeveralFibers: a plan for
  // several; else kNoFiber.
  [[nodiscard]] durable::FiberRow offered_row(CallId call);
  [[nodiscard]] JobOrigin origin_of(const JobEffect& job) const {
    return {owner_.key().name, job.fiber};
  }
  // Closes a client for a reason of the host's. Cannot fail, whatever the text.
  void end_connection(Connection& connection, std::uint16_t code, std::string_view reason);
  // Of the fibers that an earlier instance left.
  void report_left_over();
  [[nodiscard]] Span span_of_left_over(std::string_view fiber);
  void schedule_flush();
  bool flush_at_turn_end(bool is_last);
  void flush();
  // `span`: of an event without a call.
  Result<void> enter(const AgentEvent& event, const Span& span = {});
  // The error with the text that the instance has given for it, if it has.
  Error explained(const Error& error);
  void accept_call(CallId id, const AgentEvent& event);
  // ---- events that are delivered again (live_agent_interrupted.cpp) ----
  [[nodiscard]] std::chrono::milliseconds call_timeout() const;
  [[nodiscard]] std::chrono::milliseconds time_for(const Interruptions& interruptions) const;
  // It goes on beyond its first turn.
  void keep_if_interruptible(Call& call, const AgentEvent& event);
  void forbid_another_try(Call& call);
  [[nodiscard]] bool may_try_again(EvictReason reason) const;
  // The end of the instance cuts it off. False: it must be answered now.
  bool interrupt(Call& call);
  void finish(CallId id, Call& call, const Result<std::string_view>& outcome);
  // ---- calls that came with a key (live_agent_answers.cpp) ----
  // Answers the call from what is known of its key. False: it may run.
  bool answer_again(Event& incoming);
  [[nodiscard]] bool has_unwritten_answers() const;
  void write_answers();
  void tell_failure(CallId id, const Call& call, const Error& error) const;
  void arm_deadline(CallId id, Call& call, std::chrono::milliseconds timeout);
  void time_out(CallId id);
  [[nodiscard]] static Error storage_error_for_clients();
  void write_state_of_client(Event& incoming);
  [[nodiscard]] extensions::OriginPtr trace_alone() const;
  [[nodiscard]] Result<void> may_submit() const;
  // A STATE_CHANGED is entered next. `chain`: BasicEvent::state_chain.
  void begin_cause(std::shared_ptr<unsigned> chain);
  // Its own SQL has undone the transaction: what it has in memory is not what is stored.
  void lose_turn();
  // Of what the code submits now.
  [[nodiscard]] std::shared_ptr<extensions::StateCause> cause_to_carry() const;
  // To a client whose write was refused, and which shows what it has written.
  void show_true_state(ConnectionId id);

  LiveAgentOwner& owner_;
  ShardServices& services_;
  std::shared_ptr<const AgentClass> class_;
  ClassMetrics& figures_;

  storage::Kept kept_;  // as the directory has it
  bool kept_at_end_ = false;
  storage::AgentDatabase database_;
  extensions::DurableWork work_;
  WakeKeeper wake_keeper_;
  StopPointsAtCommit stops_at_commit_;
  std::unique_ptr<DurabilityGate> gate_;  // null: durability `process`
  Outbox outbox_;
  AgentClients clients_;
  AgentOperations operations_;
  std::unique_ptr<AgentInstance> instance_;

  SlotMap<Call> calls_;
  std::size_t work_calls_ = 0;  // of them, those that dispatch() has delivered
  std::size_t methods_in_progress_ = 0;
  std::size_t alone_in_progress_ = 0;
  bool notice_comes_first_ = false;
  CallId current_call_ = 0;     // in which the instance is on the stack, as far as that is known
  std::string current_method_;  // of that, also when it is over; keeps its memory
  Span current_span_;           // of that
  std::optional<durable::FiberRow> fiber_;  // whose work it does; nothing: not known
  bool tells_fibers_ = false;               // it has called works_for()
  InterruptibleEvents interruptible_;
  std::vector<Completion> completions_;

  // The STATE_CHANGED that is on the stack, or that has begun what is. Null: none.
  std::shared_ptr<extensions::StateCause> state_cause_;

  bool entered_ = false;
  bool lent_ = false;
  std::vector<std::function<void()>> postponed_;  // while it is lent
  AgentPhase phase_ = AgentPhase::kStarting;
  Wish wish_ = Wish::kStay;
  bool directory_dirty_ =
      false;               // with a gate: it was written to, and nothing asked for a sync since
  bool recorded_ = false;  // the directory knows this agent
  std::uint64_t committed_state_writes_ = 0;
  std::optional<std::string> broken_;
  std::string refusal_text_;  // what create or a synchronous event says of the error it returns
  bool flush_scheduled_ = false;
  std::uint64_t turns_ = 0;         // entries so far
  std::uint64_t turns_before_ = 0;  // ... when the flush was last arranged, or looked
  std::shared_ptr<LiveAgent*>
      self_;  // tasks of the loop reach us through it; null after destruction
};

}  // namespace hearth::runtime
