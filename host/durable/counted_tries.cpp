#include "durable/counted_tries.hpp"

#include "durable/back_off.hpp"

namespace hearth::durable {
namespace {

constexpr std::size_t kMaxTryErrorBytes = 4096;

}  // namespace

void CountedTries::load() {
  jobs_.release(rules_.kind, rules_.waits_as, now_ms());
  if (rules_.cap.count() > 0) jobs_.bound_waits(rules_.kind, rules_.waits_as, now_ms(), rules_.cap);
}

void CountedTries::wait(Job& job) const {
  job.wait();
  job.state = rules_.waits_as;
}

std::optional<std::int64_t> CountedTries::first_moment() {
  const std::optional<Job> first = next_due();
  return first ? first->due_at_ms : std::nullopt;
}

std::optional<Job> CountedTries::next_due() {
  return jobs_.first_due(rules_.kind, rules_.waits_as);
}

std::string_view CountedTries::why_given_up(const Job& job) const {
  const int tries = rules_.all_count ? job.claims : job.interruptions;
  return tries >= rules_.most ? rules_.why : std::string_view();
}

void CountedTries::claim(Job& job) {
  if (counts_claims()) ++job.claims;
  ++job.interruptions;  // try_again() resets it
  if (job.interruptions > 1 && rules_.base.count() > 0)
    job.next_at_ms =
        now_ms() + back_off(job.interruptions - 1, rules_.base, rules_.cap, random_).count();
  job.claim();
  jobs_.update(job);
}

std::optional<Job> CountedTries::claimed_row(std::string_view id) {
  auto row = jobs_.find(rules_.kind, id);
  if (row && row->state != JobState::kClaimed) row.reset();
  return row;
}

void CountedTries::give_back(Job& job) {
  std::optional<Job> row = claimed_row(job.id);
  if (!row) return;
  if (counts_claims()) --row->claims;
  --row->interruptions;
  if (rules_.base.count() > 0) row->next_at_ms = 0;
  wait(*row);
  jobs_.update(*row);
}

void CountedTries::follow(std::int64_t jump_ms) {
  jobs_.shift(rules_.kind, rules_.waits_as, jump_ms);
}

void CountedTries::try_again(Job& job, std::int64_t at_ms, std::optional<std::string_view> error) {
  job.interruptions = 0;
  job.next_at_ms = at_ms;
  wait(job);
  if (error) jobs_.put(job.seq, JobPart::kLastError, error->substr(0, kMaxTryErrorBytes));
  jobs_.update(job);
}

void CountedTries::bury(Job& job, std::string_view why) {
  job.state = JobState::kDead;
  job.due_at_ms.reset();
  job.dead = true;
  jobs_.put(job.seq, JobPart::kLastError, why.substr(0, kMaxTryErrorBytes));
  jobs_.update(job);
}

}  // namespace hearth::durable
