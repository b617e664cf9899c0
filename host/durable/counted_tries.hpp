#pragma once
// The policy that most kinds of jobs share: tries that come to no end are counted.

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

// A row of the table of kinds.
struct TryRules {
  JobKind kind{};
  JobState waits_as = JobState::kWaiting;
  int most = 10;           // tries in a row that come to no end, until the job is given up
  std::string_view why{};  // then; a literal, for people
  // Before the third such try and each further one; doubles up to `cap`. The second begins at once:
  // the first interruption need not be the job's fault. 0: no wait, and the job's time stays.
  std::chrono::milliseconds base{0};
  std::chrono::milliseconds cap{0};
};

// A try is a claim (Job::claims) and, until it comes to an end, an interruption
// (Job::interruptions). A kind overrides what differs.
//
// Threads, Durable, Failure   As Jobs.
class CountedTries : public LinePolicy<Job> {
 public:
  CountedTries(storage::AgentDatabase& database, const Clock& clock, Random& random,
               const TryRules& rules)
      : jobs_(database), clock_(clock), random_(random), rules_(rules) {}

  // Rows that an instance which is gone had claimed wait again. No wait is longer than the longest
  // one that the rules or the row's own policy give: a longer one was written by a clock that has
  // been set back since.
  void load();

  std::optional<std::int64_t> first_moment() override;
  std::optional<Job> next_due() override;
  [[nodiscard]] std::string_view why_given_up(const Job& job) const override;
  void give_up(Job& job, std::string_view why) override { bury(job, why); }
  void claim(Job& job) override;
  void give_back(Job& job) override;
  void follow(std::int64_t jump_ms) override;

 protected:
  ~CountedTries() = default;

  // The row whose try is in progress; nothing: it was removed meanwhile.
  [[nodiscard]] virtual std::optional<Job> claimed_row(std::string_view id);
  // The try has come to an end, and the job waits until `at_ms`. kLastError says why, cut to 4 KiB;
  // without an error it stays as it is.
  void try_again(Job& job, std::int64_t at_ms, std::optional<std::string_view> error);
  // The job is dead, and kLastError says why.
  virtual void bury(Job& job, std::string_view why);
  // Whether a try counts in Job::claims.
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
