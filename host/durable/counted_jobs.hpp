#pragma once
// What most kinds of jobs share: lines, lanes, tries that are counted, and how a try ends.

#include "base/clock.hpp"
#include "base/random.hpp"
#include "durable/job_count.hpp"
#include "durable/job_line.hpp"
#include "durable/jobs.hpp"
#include "durable/wake.hpp"
#include "durable/work_part.hpp"
#include "storage/agent_database.hpp"

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

// How the tries of one kind are made.
struct TryRules {
  JobKind kind{};
  Lane lane = Lane::kNone;
  std::size_t at_once = 1;         // tries in progress
  int max_crashes = kMostCrashes;  // as JobLine
};

enum class TryOutcome {
  kDone,
  kFailed,
  kHopeless,   // failed, and no further try could end better
  kNeedsCode,  // this version of the class cannot do it
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

// begin() adds one to Job::claims (all tries) and one to Job::interruptions. end() sets
// interruptions to 0, and a success Job::fatal_attempts too. An interruption on purpose takes one
// from both of the first. A kind overrides what differs.
//
// A job that waits for code is due at kNextVersion, and holds back no job of its lane. The load()
// of the next instance makes it due.
//
// Promises
//  P1 Lanes    At most one job of a lane is in progress, also if its row was removed meanwhile.
//  P2 Wakes    On disk, the first job of a lane is claimed or has a due_at, and those behind it
//              wake no agent.
//
// Threads, Durable, Failure   As Jobs.
class CountedJobs : public WorkPart, protected LinePolicy<Job> {
 public:
  CountedJobs(storage::AgentDatabase& database, const Clock& clock, Random& random,
              const TryRules& rules);

  // Takes over the rows of an earlier instance: what it had claimed waits again. No wait is longer
  // than it was when it began, even if the clock was set back since. Once, before any other member.
  void load();
  void close() final;
  void interrupt_on_purpose() final;
  [[nodiscard]] bool due() const final { return line_.due(); }
  // Working: a try is in progress, or due. at_ms: when the next one is due.
  [[nodiscard]] Wake wake() const final { return line_.wake(); }
  // The jobs that were given up since the last call, for too many tries without an end.
  std::vector<GivenUp> take_given_up() { return line_.take_given_up(); }

 protected:
  ~CountedJobs() = default;

  // ---- what a kind decides ----
  // A try has failed: counts it. When the next one begins; nothing: the job is dead.
  [[nodiscard]] virtual std::optional<std::int64_t> failed(Job& job) = 0;
  // Makes the job dead. JobPart::kLastError gets `why`.
  virtual void bury(Job& job, std::string_view why);
  std::optional<Job> next_due() final;
  void give_up(Job& job, std::string_view why) final;
  void follow(std::int64_t jump_ms) final;

  // ---- for the kind ----
  // A new job. It gets its seq, and is due at Job::next_at_ms if it is the first of its lane.
  void insert(Job& job, std::string_view input);
  // The row goes, and the next job of its lane has its turn. A try in progress goes on.
  void remove(const Job& job);
  // The next job that is due, claimed.
  std::optional<Job> begin() { return line_.claim(); }
  // The try of this job has ended. JobPart::kLastError gets `error` if it has failed; without an
  // error it stays as it is.
  TryEnded end(std::string_view id, TryOutcome outcome, std::optional<std::string_view> error);
  // The claimed row as it is on disk now; nothing: it was removed, or is not claimed any more.
  [[nodiscard]] std::optional<Job> claimed_row(std::string_view id);
  // Rows of the lane were written: the first one that waits has its turn.
  void promote(const std::optional<std::string>& key);

  [[nodiscard]] Jobs& jobs() { return jobs_; }
  [[nodiscard]] JobLine<Job>& line() { return line_; }
  [[nodiscard]] const JobLine<Job>& line() const { return line_; }
  [[nodiscard]] JobCount& count() { return count_; }
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }
  [[nodiscard]] Random& random() const { return random_; }
  // "waiting", "running" or "dead".
  [[nodiscard]] std::string_view state_of(const Job& job) const;
  // Nothing: no try has failed.
  [[nodiscard]] std::optional<std::string> last_error(const Job& job);

 private:
  std::optional<std::int64_t> first_moment() override;
  void claim(Job& job) override;
  void give_back(Job& job) override;
  void pace_cut_off();
  // A job of its lane is in progress, perhaps one whose row was removed.
  [[nodiscard]] bool is_held_back(const Job& job) const;
  // The first job of the lane that is not dead.
  [[nodiscard]] std::optional<Job> first_of_lane(const std::optional<std::string>& key);

  Jobs jobs_;
  const Clock& clock_;
  Random& random_;
  const TryRules rules_;
  JobLine<Job> line_;
  JobCount count_;
};

}  // namespace hearth::durable
