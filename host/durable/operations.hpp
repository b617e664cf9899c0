#pragma once
// The ledger of one agent's operations: its effects outside the server. hearth/ext/operations.h has
// their meaning for authors.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/fibers.hpp"
#include "durable/jobs.hpp"
#include "durable/operation_answers.hpp"
#include "durable/wake.hpp"
#include "durable/work_part.hpp"
#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {

// From the mildest to the strictest.
enum class Effect : std::uint32_t { kRead = 1, kIdempotent, kKeyed, kProbe, kUnsafe };

// As bits, so that a filter can name several.
enum class OperationState : std::uint32_t {
  kRunning = 1,      // in this instance
  kInterrupted = 2,  // started, by its row, but not running
  kCompleted = 4,
  kNotExecuted = 8,
  kUnknown = 16,
};

// "running", "interrupted", "completed", "not_executed", "unknown".
[[nodiscard]] std::string_view to_string(OperationState state);

// kFailed: as kCutOff, and its run has refused the answer that it was given.
enum class OperationOutcome : std::uint32_t {
  kCompleted = 1,
  kNotExecuted,
  kUnknown,
  kCutOff,
  kFailed,
};

enum class OperationDecision : std::uint32_t { kRun = 1, kProbe, kCompleted, kJoin, kUnknown };

// An operator's settings for one kind. The limits are for each agent.
struct OperationKindSettings {
  std::chrono::milliseconds keep{0};  // of settled rows; 0: OperationSettings::keep
  std::size_t per_day = 0;            // operations that begin on one day of UTC; 0: no limit
  std::size_t cost_per_day = 0;       // the sum of their costs; 0: no limit
};

struct OperationSettings {
  std::size_t max_result_bytes = std::size_t{1} << 20;
  std::chrono::milliseconds keep = std::chrono::hours(24 * 30);
  std::map<std::string, OperationKindSettings, std::less<>> kinds{};
  std::size_t most = 100'000;  // rows
};

// The views are borrowed for the call. begin() checks the fields.
struct OperationRequest {
  Effect effect = Effect::kUnsafe;
  FiberHandle fiber = 0;  // the running fiber whose work it is; 0: none
  std::uint64_t horizon_ms = 0;
  bool can_probe = false;
  bool can_resume = false;       // the rest of an answer can be requested
  bool acts_by_request = false;  // its request is all that it does
  std::uint64_t cost = 0;        // in the author's unit
  std::string_view kind{};
  std::string_view arguments{};  // JSON; empty: null
  std::string_view key{};
  std::string_view id{};          // of an operation that was begun before; or empty
  std::string_view key_header{};  // the header for the key; empty: Idempotency-Key
};

// The request that a running operation is about to send.
struct OperationSending {
  std::string_view id{};           // the operation's
  std::string_view fingerprint{};  // of its method, URL and body; empty if it resumes
  bool resumes = false;            // it requests the rest of a stored answer
  std::uint64_t from = 0;          // the bytes of that answer which stay
};

// The received part of the answer to an operation's request.
struct StoredAnswer {
  DispatchedRequest request;
  std::string head;  // JSON; empty: not received
  std::string body;
};

struct OperationFilter {
  std::uint32_t states = 0;  // bits; 0: all
  std::string_view kind{};
  std::string_view fiber{};  // a fiber's id: only operations of its work
  bool keyed_too = false;  // of an outermost fiber also operations with a key, which have no scope
  std::string_view after{};
  std::size_t limit = 50;
  std::optional<std::int64_t> begun_before_ms{};
  bool without_documents = false;  // "args" and "result" are left out
};

struct OperationBegun {
  OperationDecision decision = OperationDecision::kUnknown;
  int attempt = 1;              // kRun
  std::uint64_t operation = 0;  // kRun, kProbe: for settle()
  std::string id;
  std::string result;  // kCompleted: JSON; empty: the result was too large to keep
};

// An operation with a new state.
struct OperationChange {
  std::string id;
  std::string kind;
  OperationState state = OperationState::kRunning;
};

struct UsedUpBudget {
  std::string kind;
  std::optional<std::int64_t> since_ms{};  // when the last operation of the day began
};

// An unknown operation that the host reports to the agent's code.
struct UnknownOperation {
  std::string id;
  std::string kind;
  std::string record{};  // JSON
  std::int64_t row = 0;
  std::int64_t since_ms = 0;  // when its last run began

  // A text for models and people, also in the client's frame.
  [[nodiscard]] static std::string warning(std::string_view id) {
    return "operation " + std::string(id) + " may have executed; verify before retrying";
  }
};

// state         what is on disk            leaves it by
// running       the row, 'started'         settle(); the end of this instance -> interrupted
// interrupted   the row, 'started'         give_up_lost() -> unknown, or no row (P12), or not
//                                          executed (P9);
//                                          begin() -> running or unknown;
//                                          resolve() -> completed, not executed
// unknown       the row, 'unknown'         resolve() -> completed, not executed;
//                                          begin() -> running, if it was given up (P12)
// not executed  the row, 'not_executed'    begin() -> running; sweep() -> no row
// completed     the row and its result     sweep() -> no row
//
// Promises
//  P1 Once       begin() gives kRun for a new operation, for one that was certainly not executed,
//                and for one whose effect allows another run.
//  P2 Same       An operation of a fiber has the same id in each run of the fiber's work.
//  P3 Conflict   A key with other arguments is kConflict.
//  P4 Told       An unknown operation is told (next_untold()) once in each instance until told()
//                says that it was heard, at most kMostTellings times.
//  P5 Bounded    There are at most OperationSettings::most rows.
//  P6 Kept       A settled row is removed when the time to keep of its kind is over, but not while
//                its work may run again; an unknown row stays.
//  P7 Budget     begin() is kLimitExceeded, and writes nothing, for an operation that would exceed
//                its kind's limits of the day.
//  P8 One request  may_send() rejects a second request of an operation if it could act a second
//                time, and any request while another one is in flight.
//  P9 Not sent   An operation that is cut off before its run began (never_begins()) or before its
//                request left (may_send()) is not executed, whatever its effect.
//  P10 Partial   Of the answer to a request, the first max_result_bytes are kept until the
//                operation is settled, or the answer is refused.
//  P11 One agent's  No two agents give an operation the same id, whatever keys and fiber ids their
//                code chooses.
//  P12 Given up  An interrupted operation that will not be begun again becomes unknown and is told;
//                if its effect is kRead or kIdempotent, its row is removed instead.
//
// P1: An operation has two effects: the one that it was begun with, and the one of the new request.
// The stricter of them counts.
// P2: A run may begin at a checkpoint. To find the id, begin() counts equal operations: those that
// completed in this run, and those that a run had used when it wrote the checkpoint
// (checkpointed()).
// P3: 500 and 500.0 are one number, as far as integers are exact (2^53).
// P4: A telling that crashes the process counts for half of them.
// P5: To make room, the oldest settled rows of fibers that cannot run again are removed. If there
// are none: kLimitExceeded.
// P6: The time runs from when the operation was settled. "Its work may run again" means the
// outermost fiber of its work, or a fiber below that.
// P7: Another run of a counted operation does not count again. An operation that was not executed
// does not count. There is one row of counts for each day: a clock that jumps ahead and back finds
// the old counts. After a clock was set back over midnight, the later day goes on.
// P8: A request that resumes a stored answer is allowed with each effect. Other second requests:
//
//   effect              rejected
//   kRead, kIdempotent  never
//   kKeyed              with another fingerprint, or after the horizon
//   kProbe, kUnsafe     always
//
// P9: Not if an earlier run may have acted, or if the agent sent something else after that request
// (sent_elsewhere()). With acts_by_request, the row shows it: it has no request. Then this holds
// after a crash too.
// P10: An operation that has the beginning of a good answer whose rest can be requested may run
// again, whatever its effect. For an operation of a fiber, the outermost fiber of its work or one
// below that must still be open. An answer is refused by drop_answer(), by kFailed unless its
// request has failed, and by the other side, which does not send the rest. Operations whose effect
// allows another run lose the refused answer, and begin it anew. The others keep it.
// P11: This includes an agent that was destroyed and a later one of its name. A copy of an agent's
// file gives the same ids.
// P12: When an interrupted operation is given up:
//
//   of a fiber's work     when all fibers of the work are over; dead ones are over. Of an operation
//                         with a key, it is the work of the fiber that has begun it last
//   keyed                 at its horizon; at once if the clock was set back to before it began, by
//                         more than a tenth of its horizon or kMostSkew
//   unsafe                at once
//   other, of no fiber    kLongestInterruption after it began; at once if the clock was set back to
//                         more than that before
//
// An operation that can go on with its answer (P10) is given up neither at its horizon nor as an
// unsafe one; without a fiber it has at least kLongestInterruption. wake() plans these moments. A
// revived fiber, or other code, may still begin an operation that was given up. Then begin() gives
// kProbe, or kRun for a keyed operation whose key the other side still knows.
//
// On disk    cf_agents_operations and cf_agents_operation_documents, made with the first operation;
//            cf_agents_operation_days, made with the first that a limit counts. cf_agents_meta's
//            `incarnation` is a part of each id. Documents: part 0, empty: it was given up, and may
//            still be begun again (P12); 1: arguments; 2: result; others: operation_answers.hpp.
// Durable    Methods write into the agent's implicit transaction; the caller commits.
// Savepoints No member may be called while a savepoint of the agent's code is open.
// Threads    The agent's shard.
// Failure    Result for a caller's mistake, StorageError for the disk.
class Operations final : public WorkPart {
 public:
  static constexpr std::size_t kMaxArgumentBytes = std::size_t{64} << 10;
  static constexpr int kMostTellings = 10;
  static constexpr std::size_t kMaxPageBytes = std::size_t{4} << 20;
  // A caller that is no fiber begins an interrupted operation again within a day, or never.
  static constexpr std::chrono::milliseconds kLongestInterruption = std::chrono::hours(24);
  static constexpr std::chrono::milliseconds kMostSkew = std::chrono::minutes(5);
  // So small that a day's sum cannot overflow.
  static constexpr std::uint64_t kMostCost = 1'000'000'000'000'000;

  // The references outlive this object.
  Operations(storage::AgentDatabase& database, const Fibers& fibers, const Clock& clock,
             Random& random, const OperationSettings& settings)
      : database_(database),
        fibers_(fibers.runs()),
        clock_(clock),
        random_(random),
        settings_(settings),
        jobs_(database),
        answers_(database) {}

  [[nodiscard]] bool exists();
  // The last process has crashed while the agent was told of an operation. Before load().
  void count_crash(const EndedProcess& ended);
  // Takes over the rows of an earlier instance. Once, before any other member.
  void load();
  // Gives up operations as P12 says. The caller calls it after a fiber has ended, which may have
  // been the last of its work, and when has_lost().
  void give_up_lost();
  // The moment to give up an operation may have come.
  [[nodiscard]] bool has_lost() const {
    return must_look_ || (next_loss_ms_ && *next_loss_ms_ <= now_ms());
  }
  // Releases the database. Afterwards only wake() may be called.
  void close() override;
  // Nothing to do: operations have no count of interrupted runs.
  void interrupt_on_purpose() override {}

  // Decides what the caller is to do, and writes the row for a new run. kInvalidArgument,
  // kConflict, kLimitExceeded. kNotFound: no operation has the id, or the fiber has ended.
  Result<OperationBegun> begin(const OperationRequest& request);
  // A run has ended. Returns the operation's new state. kNotFound: it does not run.
  // kInvalidArgument: the result is no JSON, and the operation still runs. kLimitExceeded: the
  // result is too large, and the operation has completed without it. kConflict: it is said to act
  // by its request, and has asked for none; it is unknown.
  Result<OperationState> settle(std::uint64_t operation, OperationOutcome outcome,
                                std::string_view body);
  // Empty: it does not run.
  [[nodiscard]] std::string id_of_run(std::uint64_t operation) const;
  // A run that begin() allowed and that waits to begin will not begin. settle() follows.
  void never_begins(std::uint64_t operation);
  // The run begins when `wait`, an operation that the agent has submitted, has ended, and never if
  // `wait` is cancelled.
  void waits_for(std::uint64_t operation, std::uint64_t wait);
  void cancelled(std::uint64_t wait);
  // What a running operation has cost, in place of the cost that it began with, for P7 too.
  // kNotFound: it does not run. kInvalidArgument: above kMostCost.
  Result<void> set_cost(std::string_view id, std::uint64_t cost);
  // The path of a running operation's file: its id, in the agent's directory of files, which is
  // made. It is the same in each attempt. The file is removed with the operation's row. kNotFound:
  // the operation does not run. kUnavailable: the directory cannot be made.
  Result<std::string> path_of(std::string_view id);

  // ---- the request that it sends (operations_requests.cpp) ----
  // Whether the operation may send this request. Returns the name of the header for its id.
  // kNotFound: it does not run. kConflict: P8, or there is no stored answer to resume.
  // kInvalidArgument: a probe runs.
  Result<std::string> may_send(const OperationSending& sending);
  // The request that may_send() allowed leaves with this turn. It is in flight as long as the
  // caller keeps the returned pointer.
  [[nodiscard]] std::shared_ptr<const void> dispatched(const OperationSending& sending);
  // The next members are about the request that was dispatched last, and come in this order.
  // Ignored if the operation does not run any more. `head`: JSON. `fits` false: this is not the
  // part of the answer that the request asked for.
  void answered(std::string_view id, std::int64_t status,
                const std::optional<std::string>& upstream_id, std::string_view head,
                bool fits = true);
  void received(std::string_view id, std::string_view piece);
  void answer_ended(std::string_view id);
  // The request has failed: the rest of its answer does not come.
  void broke_off(std::string_view id);
  // It has failed, and nothing of it has left.
  void not_sent(std::string_view id);
  // The request that may_send() allowed could not be made, so nothing was dispatched.
  void not_made(std::string_view id);
  // The agent has sent a fetch without `op`, a call or a notification. Any running operation may
  // have sent it: from now on an unsent request does not prove that its operation was not executed.
  void sent_elsewhere();
  // The stored answer is of no use (P10). kNotFound: the operation does not run.
  Result<void> drop_answer(std::string_view id);
  // The stored answer. kNotFound: no operation has the id, or it has sent no request.
  Result<StoredAnswer> answer(std::string_view id);

  // The kinds whose budget of today is used up: the next operation of the kind would be refused, or
  // one that costs something.
  [[nodiscard]] std::vector<UsedUpBudget> used_up();

  // This fiber has written a checkpoint: the next run of its work begins after the operations that
  // this run has used.
  void checkpointed(std::string_view fiber);

  // JSON, as in hearth/ext/operations.h. kNotFound.
  Result<std::string> inspect(std::string_view id);
  // A page ends with the record that reaches kMaxPageBytes. kNotFound: no operation has the id
  // `after`.
  Result<std::string> list(const OperationFilter& filter);
  // The page ended at kMaxPageBytes: ask again for the records after its last one.
  [[nodiscard]] static bool is_cut_short(std::string_view page) {
    return page.size() > kMaxPageBytes;
  }
  // Whether resolve() would succeed.
  [[nodiscard]] Result<void> may_resolve(std::string_view id, OperationOutcome outcome,
                                         std::string_view result, std::string_view note,
                                         std::string_view actor);
  // An actor settles an unknown or interrupted operation. kNotFound; kConflict: it runs, or is
  // settled; kInvalidArgument; kLimitExceeded.
  Result<void> resolve(std::string_view id, OperationOutcome outcome, std::string_view result,
                       std::string_view note, std::string_view actor);

  // ---- telling ----
  // The next unknown operation to tell the agent's code of. Nothing: none, or one is being told.
  std::optional<UnknownOperation> next_untold();
  void told(std::string_view id, bool was_heard);
  // The newest kMostStanding unknown operations, the oldest of them first. Without records.
  static constexpr std::size_t kMostStanding = 20;
  [[nodiscard]] std::vector<UnknownOperation> standing_unknown();
  // The changes since the last call, in order.
  std::vector<OperationChange> take_changes() { return std::exchange(changes_, {}); }

  // Removes some of the expired rows. Cheap when there are none.
  void sweep();

  [[nodiscard]] bool due() const override { return has_untold() || has_lost(); }
  // Working: the agent is to be told of an operation, or one runs that a restart would give up.
  // at_ms: when the next one is given up, or earlier. unknown_operations: present if one may be
  // unsettled. Both are exact only after close(), so that operations cost no writes for them.
  [[nodiscard]] Wake wake() const override;

 private:
  enum class OperationPart : std::int64_t { kGivenUp = 0, kArguments = 1, kResult = 2 };
  struct Row {
    std::int64_t seq = 0;
    std::string id;
    std::string kind;
    Effect effect = Effect::kUnsafe;
    std::string state;
    std::optional<std::string> root;  // the id of the outermost fiber of its work
    std::optional<std::string> scope;
    std::optional<std::string> key;
    std::string likeness;  // hash of its kind and arguments
    std::int64_t n = 0;    // set only for a new row
    std::int64_t cost = 0;
    std::optional<std::int64_t> day;  // of the budget that it counts in; nothing: none
    bool acts_by_request = false;
    int attempts = 1;
    std::int64_t started_at_ms = 0;
    std::optional<std::int64_t> horizon_at_ms;
    std::optional<std::int64_t> settled_at_ms;
    std::optional<std::string> settled_by;
    std::optional<std::string> note;
  };
  // The place of a fiber's work: below which outermost fiber, and where.
  struct Scope {
    std::string root;  // the id of the outermost fiber
    std::string path;
    std::int64_t unkept = 0;  // the fiber's row, if the scope is to be stored with it; or 0
  };
  using Roots = std::set<std::string, std::less<>>;
  struct Arguments {
    std::string json;        // as stored
    std::string likeness{};  // a hash of the operation's kind and arguments
  };
  // The row is as it was when the run began.
  struct Running : Row {
    FiberHandle fiber = 0;
    std::string key_header{};
    bool can_resume = false;
    bool is_anew = false;    // no earlier run may have acted
    bool is_probe = false;   // it asks the other side whether the operation was executed
    std::uint64_t wait = 0;  // see waits_for(); 0: none
    // ---- its request ----
    bool has_asked = false;  // may_send() has allowed one
    std::weak_ptr<const void> in_flight{};
    bool unsent = false;       // nothing of it has left, for certain
    bool is_repeated = false;  // an earlier request of the operation may have left
    bool resumes = false;      // it requests the rest of an answer
    bool is_broken = false;    // it has failed
    bool was_refused = false;  // its answer is not stored (any more)
    std::uint64_t received = 0;
    std::uint64_t kept = 0;
  };
  // Rows that a run of a fiber has used since its last checkpoint, by their likeness.
  using Used = std::map<std::string, std::set<std::int64_t>, std::less<>>;

  void prepare_write();
  std::optional<Row> find(std::string_view id);
  [[nodiscard]] static Row row_of(const storage::Rows& rows);

  // ---- fibers (operations_fibers.cpp) ----
  [[nodiscard]] Scope scope_of(const std::string& fiber, int depth = 0);
  // Stores the scope, so that it stays the same when the fibers above are removed.
  void keep_scope(const Scope& scope);
  // Whether the fiber `root`, or one below it, may still begin the operation again. True for
  // nothing: the operation belongs to no fiber.
  [[nodiscard]] bool may_go_on(const std::optional<std::string>& root);
  [[nodiscard]] bool may_go_on(const std::string& root, const Roots& of_open);
  // The outermost fibers above all unfinished fibers that have a parent.
  [[nodiscard]] Roots roots_of_open();
  // The same, also above dead and interrupted ones: an operator may let those run again.
  [[nodiscard]] Roots roots_of_needed();
  // The outermost fibers above those that a condition of SQL (a literal) selects.
  [[nodiscard]] Roots roots_of(std::string_view fibers);

  // ---- which one it is (operations_identity.cpp) ----
  [[nodiscard]] static Result<Arguments> read_arguments(const OperationRequest& request);
  Result<Row> identify(const OperationRequest& request, const std::string& likeness,
                       const std::optional<Scope>& scope);
  // The number of the next one among equal operations of the fiber's work, from 1.
  [[nodiscard]] std::int64_t next_n(const Scope& scope, FiberHandle fiber,
                                    const std::string& likeness);
  // A random word that tells this agent from all others that ever have its class and name. insert()
  // stores it if the file has none.
  [[nodiscard]] const std::string& incarnation();
  void keep_incarnation();

  // ---- beginning ----
  Result<OperationBegun> insert(Row row, const OperationRequest& request,
                                const std::optional<Scope>& scope, std::string_view arguments);
  OperationBegun decide(Row row, const OperationRequest& request);
  OperationBegun run(Row row, const OperationRequest& request, bool anew);
  std::uint64_t probe(const Row& row, const OperationRequest& request);
  enum class Begin : std::uint8_t { kAnew, kAgain, kProbe };
  std::uint64_t add_running(const Row& row, const OperationRequest& request, Begin how);
  [[nodiscard]] Running* find_running(std::string_view id);
  // Another run would go on with an answer that has begun.
  [[nodiscard]] bool is_resumable(std::int64_t seq);
  // The outcome of a run that was cut off. kCutOff: the operation may be begun again.
  [[nodiscard]] OperationOutcome outcome_of_cut(const Running& running);
  // The other side still knows the operation's key.
  [[nodiscard]] bool is_key_known(const Row& row) const {
    const std::int64_t now = now_ms();
    return row.horizon_at_ms && now >= row.started_at_ms - skew_ms(row) && now < *row.horizon_at_ms;
  }
  // How far the clock may be set back while an operation with a horizon is interrupted.
  [[nodiscard]] static std::int64_t skew_ms(const Row& row) {
    if (!row.horizon_at_ms) return 0;
    return std::min((*row.horizon_at_ms - row.started_at_ms) / 10, std::int64_t{kMostSkew.count()});
  }
  void refuse_answer(Running& running, DispatchedRequest request);
  // For a settled operation. `was_executed` true: the request stays.
  void forget_answer(std::int64_t seq, bool was_executed);
  void set_not_executed(const Row& row, std::string_view why);
  void use(FiberHandle fiber, std::string_view likeness, std::int64_t seq);
  void make_unknown(const Row& row, std::string_view why);
  // The row is about to get another state.
  void leave_unknown(const Row& row);
  // ---- giving up (operations_lost.cpp) ----
  // When an interrupted operation that cannot resume its answer is given up; nothing: when its
  // fibers are over.
  [[nodiscard]] static std::optional<std::int64_t> loss_without_answer_ms(const Row& row);
  [[nodiscard]] std::optional<std::int64_t> loss_ms(const Row& row);
  [[nodiscard]] bool is_lost(const Row& row, const Roots& of_open);
  void give_up(const Row& row);
  // An operation has begun, or was cut off: wake() plans its moment.
  void plan_loss(std::optional<std::int64_t> at_ms) {
    next_loss_ms_ = earliest(next_loss_ms_, at_ms);
  }
  [[nodiscard]] std::optional<std::int64_t> find_next_loss();
  // The rows with the state 'started'.
  [[nodiscard]] std::vector<Row> started_rows();
  [[nodiscard]] bool has_untold() const { return !untold_.empty() && !telling_; }
  [[nodiscard]] Result<void> make_room();
  // ---- budgets (operations_budget.cpp) ----
  struct Spent {
    std::int64_t day = 0;
    std::int64_t count = 0;
    std::int64_t cost = 0;
  };
  [[nodiscard]] const OperationKindSettings* limits_of(std::string_view kind) const;
  [[nodiscard]] Spent spent_today(std::string_view kind);
  // Counts one more operation, on disk. Returns the day of the count; nothing: its kind has no
  // limit. kLimitExceeded.
  [[nodiscard]] Result<std::optional<std::int64_t>> spend(std::string_view kind,
                                                          std::uint64_t cost);
  // Takes back the count of an operation that has counted.
  void give_back(const Row& row);

  // ---- retention ----
  [[nodiscard]] std::int64_t keep_ms(std::string_view kind) const;
  // When the first settled row expires.
  [[nodiscard]] std::optional<std::int64_t> next_expiry_ms();

  void note_state(const Row& row, OperationState state) {
    changes_.push_back({row.id, row.kind, state});
  }
  [[nodiscard]] bool has_open();
  [[nodiscard]] std::int64_t number(std::string_view sql);
  std::int64_t remove_for_room();
  // Removes rows, whose ids `sql` returns, with their files.
  std::int64_t remove_rows(std::string_view sql, std::span<const storage::Param> params);
  [[nodiscard]] OperationState state_of(const Row& row) const;
  [[nodiscard]] std::string record_json(const Row& row, bool without_documents = false);
  std::optional<std::string> document(std::int64_t seq, OperationPart part);
  void put(std::int64_t seq, OperationPart part, std::string_view body);
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  storage::AgentDatabase& database_;
  const FiberRuns& fibers_;
  const Clock& clock_;
  Random& random_;
  const OperationSettings& settings_;
  Jobs jobs_;
  OperationAnswers answers_;
  bool exists_ = false;
  std::string incarnation_;
  bool incarnation_is_kept_ = false;
  bool has_days_ = false;         // the table of budgets exists
  bool may_be_open_ = false;      // a row may be 'started' or 'unknown'
  std::int64_t unknown_now_ = 0;  // rows
  // No operation is given up before this, unless its fibers end; nothing: none at all.
  std::optional<std::int64_t> next_loss_ms_;
  bool must_look_ = false;  // an operation was cut off whose fibers may be over already
  std::map<std::uint64_t, Running> running_;
  std::map<std::string, std::uint64_t, std::less<>> running_ids_;
  std::uint64_t last_operation_ = 0;
  std::map<FiberHandle, Used> used_;
  std::deque<std::int64_t> untold_;  // rows to tell in this instance
  bool telling_ = false;
  // No row expires between these two moments. Wall time.
  std::int64_t swept_at_ms_ = 0;
  std::int64_t next_sweep_ms_ = 0;
  std::vector<OperationChange> changes_;
};

}  // namespace hearth::durable
