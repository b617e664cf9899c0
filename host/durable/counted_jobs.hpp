#pragma once
// What most kinds of jobs share: lines, lanes, tries that are counted, and how a try ends.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/job_line.hpp"
#include "durable/jobs.hpp"
#include "durable/wake.hpp"
#include "storage/agent_database.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {

// The jobs of a lane begin one at a time, in the order of their insertion. A waiting job holds back
// those behind it; a dead job holds back none.
enum class Lane {
  kNone,  // no job holds back another
  kKind,  // all jobs of the kind
  kKey    // the jobs of the kind with the same Job::key
};

// What a kind has of its own.
struct Kind {
  JobKind kind{};
  std::string_view noun;  // in messages: "no item has this id"
  Lane lane = Lane::kNone;
  std::size_t at_once = 1;           // tries in progress
  std::size_t most_dead = SIZE_MAX;  // dead jobs that stay; the oldest beyond are removed
};

// A job whose try has begun.
struct Begun : Job {
  std::string input;  // empty: none
};

enum class TryEnd {
  kDone,  // the row has gone
  kRetry,
  kDead,
  kWaitsForCode,  // for another version of the class, or the next instance. It is no try
  kRemoved        // the job was removed during its try, or the try was interrupted on purpose
};

struct TryEnded {
  TryEnd next{};
  std::int64_t next_ms = 0;  // of kRetry

  friend bool operator==(const TryEnded&, const TryEnded&) = default;
};

// Whether an agent has fewer jobs of a kind than a limit, without reading each row.
//
// It holds an upper bound of the number. Only if the bound reaches the limit, it counts the rows.
//
// Threads    The agent's shard.  Lifetime  `jobs` outlives it.  Failure  StorageError.
class JobCount {
 public:
  JobCount(Jobs& jobs, JobKind kind) : jobs_(jobs), kind_(kind) {}

  // Whether the agent has fewer than `most` jobs of the kind.
  [[nodiscard]] bool below(std::size_t most) {
    if (!size_) size_ = jobs_.count_bound(kind_);
    if (*size_ < most || is_exact_) return *size_ < most;
    size_ = jobs_.count(kind_);
    is_exact_ = true;
    return *size_ < most;
  }
  void added() {
    if (size_) ++*size_;
  }
  void removed(std::size_t count) {
    if (size_) *size_ -= std::min(*size_, count);
  }
  // An unknown number of rows was removed: the next below() that reaches the limit counts again.
  void removed_some() { is_exact_ = false; }

 private:
  Jobs& jobs_;
  const JobKind kind_;
  std::optional<std::size_t> size_;  // the number or an upper bound; nothing: not read yet
  bool is_exact_ = false;
};

// begin_next() adds one to Job::claims (all tries) and one to Job::interruptions. ended() sets
// interruptions to 0, and a success Job::fatal_attempts too. An interruption on purpose takes one
// from both of the first.
//
// A job that waits for code is due at kNextVersion, and holds back no job of its lane. The load()
// of the next instance makes it due.
//
// Promises
//  P1 Lanes    At most one job of a lane is in progress, also if its row was removed meanwhile.
//  P2 Wakes    On disk, the first job of a lane is claimed or has a due_at, and those behind it
//              wake no agent.
//
// Durable    Methods write into the agent's implicit transaction. The caller commits: after
//            begin_next() before the try begins, with the turn for the others.
// Savepoints  No member may be called while a savepoint of the agent's code is open: a rollback
//             would not reach the state in memory here.
// Threads    The agent's shard.
// Failure    Result for a caller's mistake, StorageError for the disk.
class CountedJobs : public WorkPart, protected LinePolicy<Job> {
 public:
  // `max_crashes`: as JobLine.
  CountedJobs(storage::AgentDatabase& database, const Clock& clock, Random& random,
              const Kind& kind, int max_crashes);
  virtual ~CountedJobs() = default;
  CountedJobs(const CountedJobs&) = delete;

  // Takes over the rows of an earlier instance: what it had claimed waits again. No wait is longer
  // than it was when it began, even if the clock was set back since. Once, before any other member.
  // `has_code` false: the agent's code is not there, and jobs that wait for code go on waiting.
  void load(bool has_code = true);
  void close() final { line_.close(); }
  void interrupt_on_purpose() final { line_.give_back_all(); }
  [[nodiscard]] bool due() const final { return line_.due(); }
  // Working: a try is in progress, or due. at_ms: when the next one is due.
  [[nodiscard]] Wake wake() const final {
    Wake wake = line_.wake();
    wake.needs_person = jobs_.needs_person();
    return wake;
  }

  // ---- rows ----
  [[nodiscard]] std::optional<Job> find(std::string_view id) { return jobs_.find(kind_.kind, id); }
  // A new job. It gets its seq, and is due at Job::next_at_ms if it is the first of its lane.
  void insert(Job& job, std::string_view input);
  // The row goes, and the next job of its lane has its turn. A try in progress goes on, and its end
  // is then kRemoved.
  void remove(const Job& job);
  Result<void> remove(std::string_view id);  // kNotFound

  // ---- tries ----
  // The next job that is due, claimed. Nothing: none is due, or at_once tries are in progress.
  std::optional<Begun> begin_next();
  // The try of this job has ended. JobPart::kLastError gets `error` if it has failed; without an
  // error it stays as it is. kRemoved also if the try was interrupted on purpose.
  TryEnded ended(std::string_view id, TryOutcome outcome,
                 std::optional<std::string_view> error = std::nullopt);
  [[nodiscard]] bool runs(std::string_view id) const { return line_.is_claimed(id); }
  // The jobs that were given up since the last call, for too many tries without an end.
  std::vector<GivenUp> take_given_up() { return line_.take_given_up(); }

 protected:
  // ---- what a kind decides ----
  // A try has failed, and Job::failures has counted it. When the next one begins; nothing: the job
  // is dead. By default it waits as back_off() says, without an end.
  [[nodiscard]] virtual std::optional<std::int64_t> next_after_failure(const Job& job);

  // ---- for the kind ----
  [[nodiscard]] Result<std::int64_t> place_after(std::string_view id);  // its seq; 0: no id
  // The claimed row as it is on disk now; nothing: it was removed, or is not claimed any more.
  [[nodiscard]] std::optional<Job> claimed_row(std::string_view id);
  // Rows of the lane were written: the first one that waits has its turn.
  void promote(const std::optional<std::string>& key);

  [[nodiscard]] Jobs& jobs() { return jobs_; }
  [[nodiscard]] const JobLine<Job>& line() const { return line_; }
  [[nodiscard]] JobCount& count() { return count_; }
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }
  [[nodiscard]] Random& random() const { return random_; }
  // "waiting", "running" or "dead".
  [[nodiscard]] std::string_view state_of(const Job& job) const;

 private:
  std::optional<std::int64_t> first_moment() override;
  std::optional<Job> next_due() override;
  void give_up(Job& job, std::string_view why) override;
  void claim(Job& job) override;
  void give_back(Job& job) override;
  void follow(std::int64_t jump_ms) override { jobs_.shift(kind_.kind, jump_ms); }
  // The first job of the lane that is not dead.
  [[nodiscard]] std::optional<Job> first_of_lane(const std::optional<std::string>& key);

  Jobs jobs_;
  const Clock& clock_;
  Random& random_;
  const Kind kind_;
  JobLine<Job> line_;
  JobCount count_;
};

}  // namespace hearth::durable
