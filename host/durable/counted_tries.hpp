#pragma once
// The policy that most kinds of jobs share: it counts unfinished tries. A try is unfinished if the
// process ended before the kind wrote how the try ended.

#include "base/clock.hpp"
#include "base/random.hpp"
#include "durable/job_line.hpp"
#include "durable/jobs.hpp"
#include "storage/agent_database.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hearth::durable {

// How one kind bounds unfinished tries. A failed try is finished: the kind bounds those itself.
struct TryRules {
  JobKind kind{};
  JobState waits_as = JobState::kWaiting;  // the state of this kind's waiting rows
  int most = 0;            // unfinished tries in a row, after which the job is given up
  bool all_count = false;  // `most` counts all tries instead
  std::string_view why{};  // the reason then; a literal, for logs and records
  // The wait before the third try in such a row; doubles with each further one, up to `cap`. The
  // second try begins at once: the first interruption need not be the job's fault. 0: no waits, and
  // the job keeps its time.
  std::chrono::milliseconds base{0};
  std::chrono::milliseconds cap{0};
};

// claim() adds one to Job::claims (all tries) and one to Job::interruptions (unfinished tries in a
// row). try_again() sets interruptions to 0. give_back() takes one from both. A kind overrides what
// differs.
//
// Threads, Durable, Failure   As Jobs.
class CountedTries : public LinePolicy<Job> {
 public:
  CountedTries(storage::AgentDatabase& database, const Clock& clock, Random& random,
               const TryRules& rules)
      : jobs_(database), clock_(clock), random_(random), rules_(rules) {}

  // Rows that an earlier instance had claimed wait again. Shortens waits that are longer than the
  // rules and the row's own retry policy allow: the clock was set back after they were written.
  void load();

  std::optional<std::int64_t> first_moment() override;
  std::optional<Job> next_due() override;
  [[nodiscard]] std::string_view why_given_up(const Job& job) const final;
  void give_up(Job& job, std::string_view why) override { bury(job, why); }
  void claim(Job& job) override;
  void give_back(Job& job) override;
  void follow(std::int64_t jump_ms) override;

 protected:
  ~CountedTries() = default;

  // The claimed row as it is on disk now; nothing: it was removed, or is not claimed any more.
  [[nodiscard]] virtual std::optional<Job> claimed_row(std::string_view id);
  // The try has ended, and the job waits until `at_ms`. JobPart::kLastError gets `error`, cut to
  // 4 KiB; without an error it stays as it is.
  void try_again(Job& job, std::int64_t at_ms, std::optional<std::string_view> error);
  // Makes the job dead. JobPart::kLastError gets `why`.
  virtual void bury(Job& job, std::string_view why);
  // Whether claim() counts in Job::claims.
  [[nodiscard]] virtual bool counts_claims() const { return true; }
  [[nodiscard]] Jobs& jobs() { return jobs_; }
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }
  [[nodiscard]] Random& random() const { return random_; }

 private:
  void wait(Job& job) const;

  Jobs jobs_;
  const Clock& clock_;
  Random& random_;
  const TryRules rules_;
};

}  // namespace hearth::durable
