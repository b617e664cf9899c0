#pragma once
// The ledger of what one agent does outside. What its rows mean to an agent's author is in
// hearth/ext/operations.h.

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
  kInterrupted = 2,  // the row says that it was started, and it does not run
  kCompleted = 4,
  kNotExecuted = 8,
  kUnknown = 16,
};

// "running", "interrupted", "completed", "not_executed", "unknown".
[[nodiscard]] std::string_view to_string(OperationState state);

enum class OperationOutcome : std::uint32_t { kCompleted = 1, kNotExecuted, kUnknown, kCutOff };

enum class OperationDecision : std::uint32_t { kRun = 1, kProbe, kCompleted, kJoin, kUnknown };

// What an operator says of one kind. It holds for each agent by itself.
struct OperationKindSettings {
  std::chrono::milliseconds keep{0};  // of settled rows; 0: OperationSettings::keep
  std::size_t per_day = 0;            // operations that begin on one day of UTC; 0: any number
  std::size_t cost_per_day = 0;       // the sum of their costs; 0: any
};

struct OperationSettings {
  std::size_t max_result_bytes = std::size_t{1} << 20;
  std::chrono::milliseconds keep = std::chrono::hours(24 * 30);
  std::map<std::string, OperationKindSettings, std::less<>> kinds{};
  std::size_t most = 100'000;  // rows
};

// The views are borrowed for the call; nothing in it was checked.
struct OperationRequest {
  Effect effect = Effect::kUnsafe;
  FiberHandle fiber = 0;  // the one that runs; 0: none
  std::uint64_t horizon_ms = 0;
  bool can_probe = false;
  bool can_resume = false;  // the rest of an answer can be asked for
  std::uint64_t cost = 0;   // in the author's unit
  std::string_view kind{};
  std::string_view arguments{};  // JSON; empty: null
  std::string_view key{};
  std::string_view id{};          // of one that was begun before; or empty
  std::string_view key_header{};  // of its request; empty: Idempotency-Key
};

// The request that a running operation is about to send.
struct OperationSending {
  std::string_view id{};           // the operation's
  std::string_view fingerprint{};  // of its method, URL and body; of one that resumes none
  bool resumes = false;            // asks for the rest of a stored answer,
  std::uint64_t from = 0;          // which stays up to here
};

// What has come of the answer to an operation's request.
struct StoredAnswer {
  DispatchedRequest request;
  std::string head;  // JSON; empty: none has come
  std::string body;
};

struct OperationFilter {
  std::uint32_t states = 0;  // bits; 0: all
  std::string_view kind{};
  std::string_view fiber{};  // a fiber's id: those of its work
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
  std::string result;  // kCompleted: JSON; empty: it was not kept
};

// An operation has another state.
struct OperationChange {
  std::string id;
  std::string kind;
  OperationState state = OperationState::kRunning;
};

// An operation about which the agent is to be told.
struct UnknownOperation {
  std::string id;
  std::string kind;
  std::string record;  // JSON

  // For models and people; also the text of the client's frame.
  [[nodiscard]] static std::string warning(std::string_view id) {
    return "operation " + std::string(id) + " may have executed; verify before retrying";
  }
};

// state         what is on disk            leaves it by
// running       the row, 'started'         settle(); the end of this instance -> interrupted
// interrupted   the row, 'started'         give_up_lost() -> unknown, or no row (P12);
//                                          begin() -> running or unknown;
//                                          resolve() -> completed, not executed
// unknown       the row, 'unknown'         resolve() -> completed, not executed;
//                                          begin() -> running, if it was given up (P12)
// not executed  the row, 'not_executed'    begin() -> running; sweep() -> no row
// completed     the row and its result     sweep() -> no row
//
// Promises
//  P1 Once       begin() gives kRun for a new operation, one that was certainly not executed, and
//                one whose effect allows another run. The stricter of two effects counts: the one
//                that it was begun with, and the one that is asked for.
//  P2 Same       An operation of a fiber has the same id in each run of the fiber's work, though
//                the run begins with a checkpoint: begin() counts those that completed in this run,
//                and those that a run had used when it wrote the checkpoint (checkpointed()).
//  P3 Conflict   A key with other arguments is kConflict. 500 and 500.0 are one number, as far as
//                integers are exact (2^53).
//  P4 Told       An unknown operation is told (next_untold()) until told() says that it was heard,
//                kMostTellings times at most, once an instance.
//  P5 Bounded    OperationSettings::most rows. When there is no room, settled ones go whose fiber
//                cannot run again, the oldest first; then kLimitExceeded.
//  P6 Kept       A row goes when its kind's time to keep is over, counted from when it was settled;
//                but not while the outermost fiber of its work may run again, or one below that.
//                An unknown row never goes by itself.
//  P7 Budget     begin() is kLimitExceeded, and writes nothing, for an operation with which the
//                agent would exceed its kind's limits of the day. Another run of one that counts
//                already does not count again. One that was not executed counts no more. The counts
//                are rows, one for each day: a clock that jumps ahead and back finds what it had
//                counted. One that is set back over midnight goes on with the day that it was.
//  P8 One request  An operation sends one request. may_send() refuses a second one whose effect
//                could be a second one: of a keyed operation a request with another fingerprint, or
//                behind its horizon; of a probed or unsafe one any, but one that asks for the rest
//                of an answer. While one is in flight it refuses any other.
//  P11 One agent's  No two agents give an operation the same id, whatever keys and ids of fibers
//                their code chooses; nor does an agent that was destroyed and one of its name that
//                is made later. A copy of the agent's file gives the same ids. Rows that an earlier
//                server has left are found under the ids that they have.
//  P12 Given up  An interrupted operation that nobody will begin again is unknown, and told; one
//                that might have been repeated has no row then. Nobody will once the fibers of its
//                work are over; dead ones are. The work of one with a key is that of the fiber that
//                has begun it last. One of no fiber is waited for: a keyed one until its horizon,
//                any other for kLongestInterruption. wake() plans those moments. A keyed one behind
//                its horizon, or begun by a clock that was set back since, and an unsafe one are
//                given up at once; but not one that goes on with its answer (P10). If somebody
//                begins it all the same, such as a fiber that was revived, a probed one is asked
//                for, and a keyed one runs whose key the other side still knows.
//  P9 Not sent   If a run is cut off before it has begun (never_begins()), or whose request
//                (may_send()) has not left, its operation is not executed, whatever its effect; but
//                not if an earlier run may have acted, or the agent has sent something else behind
//                that request (sent_elsewhere()).
//  P10 Partial   Of the answer to a request the first max_result_bytes are kept until the operation
//                is settled. With the beginning of a good answer whose rest can be asked for, an
//                operation may run again, whatever its effect; but one of a fiber only as long as
//                the outermost fiber of its work is not over, or one below that is not.
//
// On disk    cf_agents_operations and cf_agents_operation_documents (part 1: arguments, 2: result;
//            0, empty: it was given up, and nobody has said that it cannot be known; the others
//            are in operation_answers.hpp), made with the first operation;
//            cf_agents_operation_days with the first that a limit counts. cf_agents_meta's
//            `incarnation` is a part of each id.
// Durable    Methods write into the agent's implicit transaction; the caller commits.
// Savepoints None of it may be called while a savepoint of the agent's own is open.
// Threads    The agent's shard.  Failure  Result for what a caller does wrong, StorageError for the
//                                         disk.
class Operations final : public WorkPart {
 public:
  static constexpr std::size_t kMaxArgumentBytes = std::size_t{64} << 10;
  static constexpr int kMostTellings = 10;
  static constexpr std::size_t kMaxPageBytes = std::size_t{4} << 20;
  // A caller outside of a fiber that has not come back within a day does not come back.
  static constexpr std::chrono::milliseconds kLongestInterruption = std::chrono::hours(24);

  // The references outlive it.
  Operations(storage::AgentDatabase& database, const Fibers& fibers, const Clock& clock,
             Random& random, const OperationSettings& settings)
      : database_(database),
        fibers_(fibers),
        clock_(clock),
        random_(random),
        settings_(settings),
        jobs_(database),
        answers_(database) {}

  [[nodiscard]] bool exists();
  // What an earlier instance left. Once, before anything else.
  void load();
  // P12. When a fiber has ended: it may have been the one that would have run it again; and when
  // has_lost().
  void give_up_lost();
  // The moment of one may have come.
  [[nodiscard]] bool has_lost() const {
    return must_look_ || (next_loss_ms_ && *next_loss_ms_ <= now_ms());
  }
  // Gives up what holds the database; only wake() may be called afterwards.
  void close() override;
  // An operation that was cut off counts nothing: see begin().
  void interrupt_on_purpose() override {}

  // kInvalidArgument, kConflict, kLimitExceeded; kNotFound: no operation has the id, or the fiber
  // has ended.
  Result<OperationBegun> begin(const OperationRequest& request);
  // What it is then. kNotFound: it does not run. kInvalidArgument: the result is no JSON, and it
  // still runs. kLimitExceeded: the result is too large, and it has completed without it.
  Result<OperationState> settle(std::uint64_t operation, OperationOutcome outcome,
                                std::string_view body);
  // One that begin() has given, and which waits to begin, never does. settle() follows.
  void never_begins(std::uint64_t operation);
  // It begins when `wait`, an operation of the agent, has ended; and never if that is cancelled.
  void waits_for(std::uint64_t operation, std::uint64_t wait);
  void cancelled(std::uint64_t wait);
  // The file of a running operation, named by its id in the agent's own directory of files, which
  // is made: the same in each attempt. It goes with the operation's row. kNotFound: it does not
  // run; kUnavailable: the directory cannot be made.
  Result<std::string> path_of(std::string_view id);

  // ---- the request that it sends (operations_requests.cpp) ----
  // The name of the header for its id. kNotFound: it does not run. kConflict: it has sent another
  // one, one is in flight, its horizon is over, or there is nothing to ask the rest of.
  // kInvalidArgument: a probe runs.
  Result<std::string> may_send(const OperationSending& sending);
  // What may_send() has allowed is about to leave with this turn. It is in flight as long as what
  // this gives is kept.
  [[nodiscard]] std::shared_ptr<const void> dispatched(const OperationSending& sending);
  // The rest is of the request that was dispatched last, in this order. Ignored if the operation
  // runs no more. `head`: JSON. `fits` false: it is not the part of the answer that the request has
  // asked for.
  void answered(std::string_view id, std::int64_t status,
                const std::optional<std::string>& upstream_id, std::string_view head,
                bool fits = true);
  void received(std::string_view id, std::string_view piece);
  void answer_ended(std::string_view id);
  // ... has failed, and nothing of it has left.
  void not_sent(std::string_view id);
  // What may_send() has allowed could not be made, so that nothing was dispatched.
  void not_made(std::string_view id);
  // The agent has sent a fetch without `op`, a call or a notification. Any operation that runs may
  // have sent it, so none of them counts as not executed because its own request has not left.
  void sent_elsewhere();
  // kNotFound: none has the id, or it has sent nothing through the ledger.
  Result<StoredAnswer> answer(std::string_view id);

  // This fiber has written a checkpoint: another run of its work begins behind what this run has
  // used.
  void checkpointed(std::string_view fiber);

  // JSON, as hearth/ext/operations.h has it. kNotFound.
  Result<std::string> inspect(std::string_view id);
  // Ends with the record with which it reaches kMaxPageBytes. kNotFound: `after`.
  Result<std::string> list(const OperationFilter& filter);
  // It ended there, though the limit would allow more: ask again behind its last one.
  [[nodiscard]] static bool is_cut_short(std::string_view page) {
    return page.size() > kMaxPageBytes;
  }
  // Whether resolve() would do it.
  [[nodiscard]] Result<void> may_resolve(std::string_view id, OperationOutcome outcome,
                                         std::string_view result, std::string_view note,
                                         std::string_view actor);
  // kNotFound; kConflict: it runs, or is settled; kInvalidArgument; kLimitExceeded.
  Result<void> resolve(std::string_view id, OperationOutcome outcome, std::string_view result,
                       std::string_view note, std::string_view actor);

  // ---- telling ----
  // The next one to tell of, claimed.
  std::optional<UnknownOperation> next_untold();
  void told(std::string_view id, bool was_heard);
  // Those that are unknown; the newest kMostStanding, the oldest of these first. Without records.
  static constexpr std::size_t kMostStanding = 20;
  [[nodiscard]] std::vector<UnknownOperation> standing_unknown();
  // Since the last call, in order.
  std::vector<OperationChange> take_changes() { return std::exchange(changes_, {}); }

  // Removes rows that have had their time, some at a time. Cheap when there are none.
  void sweep();

  [[nodiscard]] bool due() const override { return has_untold() || has_lost(); }
  // Working: the agent is to be told of one, or one runs that is given up once the process ends.
  // at_ms: when the next one is given up, or before that; unknown_operations: one may be not
  // settled. Both are exact after close(), so that they cost no write for each operation.
  [[nodiscard]] Wake wake() const override;

 private:
  enum class OperationPart : std::int64_t { kGivenUp = 0, kArguments = 1, kResult = 2 };
  struct Row {
    std::int64_t seq = 0;
    std::string id;
    std::string kind;
    Effect effect = Effect::kUnsafe;
    std::string state;
    std::optional<std::string> root;  // the id of the outermost fiber whose work it is
    std::optional<std::string> scope;
    std::optional<std::string> key;
    std::string likeness;  // of its kind and arguments
    std::int64_t n = 0;    // known of a new one only
    std::int64_t cost = 0;
    std::optional<std::int64_t> day;  // on which it counts; none: it does not
    int attempts = 1;
    std::int64_t started_at_ms = 0;
    std::optional<std::int64_t> horizon_at_ms;
    std::optional<std::int64_t> settled_at_ms;
    std::optional<std::string> settled_by;
    std::optional<std::string> note;
  };
  // Whose work a fiber belongs to.
  struct Scope {
    std::string root;  // the id of the outermost fiber
    std::string path;
    std::int64_t unkept = 0;  // the fiber's row, if it does not say this yet and is to; or 0
  };
  using Roots = std::set<std::string, std::less<>>;
  // A hash of an operation's kind and arguments: as it is now, and as an earlier server made it.
  struct Likeness {
    std::string now;
    std::string before;
  };
  struct Arguments {
    std::string json;  // as it is kept
    Likeness likeness{};
  };
  struct Running {
    std::int64_t seq = 0;
    std::string id;
    std::string likeness;
    std::string kind;
    Effect effect = Effect::kUnsafe;
    FiberHandle fiber = 0;
    std::optional<std::string> root{};
    std::int64_t started_at_ms = 0;
    std::optional<std::int64_t> horizon_at_ms{};
    std::string key_header{};
    bool can_resume = false;
    bool is_anew = false;    // no earlier run may have acted
    bool is_probe = false;   // the other side is asked
    std::uint64_t wait = 0;  // see waits_for(); 0: for none
    // ---- of its request ----
    std::weak_ptr<const void> in_flight{};
    bool unsent = false;       // all that it was to send has certainly not left
    bool is_repeated = false;  // another one that may have left was dispatched before it
    bool resumes = false;      // it asks for the rest of an answer
    bool was_refused = false;  // and does not get it
    std::uint64_t received = 0;
    std::uint64_t kept = 0;
  };
  // Rows that a run of a fiber has used since its last checkpoint, by their arguments and kind.
  using Used = std::map<std::string, std::set<std::int64_t>, std::less<>>;

  void prepare_write();
  storage::Statement& kept(std::string_view sql);
  std::optional<Row> find(std::string_view id);
  [[nodiscard]] static Row row_of(const storage::Rows& rows);

  // ---- fibers (operations_fibers.cpp) ----
  [[nodiscard]] Scope scope_of(const std::string& fiber, int depth = 0);
  // The place of a fiber's work stays the same when the fibers above it have gone.
  void keep_scope(const Scope& scope);
  // Whether the fiber with this id, or one below it, may still begin the operation again. Nullopt:
  // the operation belongs to no fiber.
  [[nodiscard]] bool may_go_on(const std::optional<std::string>& root);
  [[nodiscard]] bool may_go_on(const std::string& root, const Roots& of_open);
  // The outermost ones above the fibers below others that are not over.
  [[nodiscard]] Roots roots_of_open();
  // ... or that an operator may let run again: what they have done is kept for them.
  [[nodiscard]] Roots roots_of_needed();
  // Of the fibers that a condition of SQL (a literal) names.
  [[nodiscard]] Roots roots_of(std::string_view fibers);

  // ---- which one it is (operations_identity.cpp) ----
  [[nodiscard]] static Result<Arguments> read_arguments(const OperationRequest& request);
  Result<Row> identify(const OperationRequest& request, const Likeness& likeness,
                       const std::optional<Scope>& scope);
  // One that an earlier server has begun, under the id that it gave it.
  std::optional<Row> find_earlier(const OperationRequest& request, const Likeness& likeness,
                                  const std::optional<Scope>& scope);
  // Which of the equal ones of the fiber's work comes next.
  [[nodiscard]] std::int64_t next_n(const Scope& scope, FiberHandle fiber,
                                    const std::string& likeness);
  // Which of all agents that ever have this class and name: a random word, which insert() keeps if
  // the file has none.
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
  // Another run of it would go on with an answer that has begun.
  [[nodiscard]] bool is_resumable(std::int64_t seq);
  // What is known of a run that was cut off: kCutOff if it may be begun again.
  [[nodiscard]] OperationOutcome outcome_of_cut(const Running& running);
  // The other side still knows the key of one that was begun then.
  [[nodiscard]] bool is_key_known(std::int64_t started_at_ms,
                                  const std::optional<std::int64_t>& horizon_at_ms) const {
    const std::int64_t now = now_ms();
    return horizon_at_ms && now >= started_at_ms && now < *horizon_at_ms;
  }
  // Of one that is settled.
  void forget_answer(std::int64_t seq, bool was_executed);
  void use(FiberHandle fiber, std::string_view likeness, std::int64_t seq);
  void make_unknown(std::int64_t seq, const std::string& id, const std::string& kind,
                    std::string_view why);
  // Its row is about to say something else.
  void leave_unknown(const Row& row);
  // ---- giving up (operations_lost.cpp) ----
  // When one is given up that does not go on with its answer; nothing: when its fibers are over.
  [[nodiscard]] static std::optional<std::int64_t> loss_ms(
      Effect effect, bool has_root, std::int64_t started_at_ms,
      const std::optional<std::int64_t>& horizon_at_ms);
  [[nodiscard]] std::optional<std::int64_t> loss_ms(const Row& row);
  [[nodiscard]] bool is_lost(const Row& row, const Roots& of_open);
  void give_up(const Row& row);
  // One has begun, or was cut off: wake() knows when it is given up.
  void plan_loss(std::optional<std::int64_t> at_ms) {
    next_loss_ms_ = earliest(next_loss_ms_, at_ms);
  }
  [[nodiscard]] std::optional<std::int64_t> find_next_loss();
  // Rows that are 'started'.
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
  // Counts one more, and writes it. The day on which it counts; none: its kind has no limit.
  // kLimitExceeded.
  [[nodiscard]] Result<std::optional<std::int64_t>> spend(std::string_view kind,
                                                          std::uint64_t cost);
  // Of one that has counted; any other is left alone.
  void give_back(const Row& row);

  // ---- retention ----
  [[nodiscard]] std::int64_t keep_ms(std::string_view kind) const;
  // When the first settled row has had its time.
  [[nodiscard]] std::optional<std::int64_t> next_expiry_ms();

  void note_state(const std::string& id, const std::string& kind, OperationState state);
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
  const Fibers& fibers_;
  const Clock& clock_;
  Random& random_;
  const OperationSettings& settings_;
  Jobs jobs_;
  OperationAnswers answers_;
  bool exists_ = false;
  std::string incarnation_;
  bool incarnation_is_kept_ = false;
  bool has_days_ = false;         // the table of budgets is there
  bool may_be_open_ = false;      // a row may be 'started' or 'unknown'
  std::int64_t unknown_now_ = 0;  // rows
  // None is given up before, unless its fibers end; nothing: none ever.
  std::optional<std::int64_t> next_loss_ms_;
  bool must_look_ = false;  // one was cut off whose fibers may be over already
  std::map<const char*, std::unique_ptr<storage::Statement>> statements_;  // by their text's place
  std::map<std::uint64_t, Running> running_;
  std::map<std::string, std::uint64_t, std::less<>> running_ids_;
  std::uint64_t last_operation_ = 0;
  std::map<FiberHandle, Used> used_;
  std::deque<std::int64_t> untold_;  // in this instance
  bool telling_ = false;
  // No row has its time over from the first of these moments to the second. Wall time.
  std::int64_t swept_at_ms_ = 0;
  std::int64_t next_sweep_ms_ = 0;
  std::vector<OperationChange> changes_;
};

}  // namespace hearth::durable
