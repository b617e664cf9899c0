#include "extensions/durable_work.hpp"

#include <algorithm>

namespace hearth::extensions {
namespace {

constexpr std::chrono::milliseconds kLookAgain{1'000};  // at due work that cannot begin

bool is_of_fibers(durable::Jobs& jobs, const durable::EndedProcess& ended) {
  if (!ended.row || *ended.row == kSeveralRows) return true;
  const auto job = jobs.find(*ended.row);
  return job && job->kind == durable::JobKind::kFiber;
}

}  // namespace

DurableWork::DurableWork(storage::AgentDatabase& database, const storage::AgentKey& agent,
                         const Clock& clock, Random& random, const ClassSettings& settings,
                         DurableEvents& events, StopPointsAtCommit& stops)
    : database_(database),
      clock_(clock),
      random_(random),
      stops_(stops),
      kinds_(database, clock, random, settings),
      reports_(agent, kinds_, events),
      recovery_(kinds_.fibers(), settings, reports_, stops),
      dispatch_(agent, clock, settings, kinds_, recovery_, reports_, stops) {}

void DurableWork::load(const std::optional<durable::EndedProcess>& ended, bool needed_person,
                       bool has_code) {
  needed_person_ = needed_person;
  kinds_.load(ended, has_code);
  if (!database_.exists() || !kinds_.jobs().exists()) return;
  if (ended && is_of_fibers(kinds_.jobs(), *ended)) recovery_.plan_singly();
  reports_.add_operations();
  reports_.add_notes();
}

void DurableWork::close() {
  needed_person_ = wake().needs_person;
  is_closed_ = true;
  try {
    if (needed_person_ && !database_.broken()) needed_person_ = kinds_.jobs().any_needs_person();
  } catch (const StorageError&) {  // NOLINT(bugprone-empty-catch): the index may say so in vain
  }
  for (durable::WorkPart* part : kinds_.parts()) part->close();
}

void DurableWork::interrupt_on_purpose() {
  for (durable::WorkPart* part : kinds_.parts()) part->interrupt_on_purpose();
}

durable::Operations& DurableWork::operations() {
  if (auto* const known = find_operations()) return *known;
  auto& operations = kinds_.get<durable::Operations>();
  reports_.add_operations();
  return operations;
}

Result<void> DurableWork::waits_for_person(std::string_view what, std::string_view key) {
  durable::Jobs& jobs = kinds_.jobs();
  using durable::JobKind;
  const auto known = jobs.find(JobKind::kQuestion, key);
  if (known ? known->name == what : what.empty()) return {};
  if (known) jobs.erase(known->seq);
  if (what.empty()) {
    needed_person_ = jobs.any_needs_person();
    jobs.note_person(false);
    return {};
  }
  if (!known && jobs.count(JobKind::kQuestion) >= kMostQuestions)
    return Error{Errc::kLimitExceeded, "the agent waits for 16 persons already"};
  durable::Job question{.kind = JobKind::kQuestion,
                        .state = durable::JobState::kDead,
                        .id = std::string(key),
                        .name = std::string(what),
                        .created_at_ms = now_ms()};
  jobs.insert(question);
  question.dead = true;
  jobs.update(question);
  return {};
}

bool DurableWork::due() const {
  if (kinds_.find<durable::Operations>() != nullptr && kinds_.fibers().ends().has_settled())
    return true;
  return std::ranges::any_of(kinds_.parts(), [this](const durable::WorkPart* part) {
    return part != &kinds_.fibers() && part->due();
  });
}

bool DurableWork::empty() const {
  return kinds_.parts().size() == 2 && !kinds_.fibers().ends().has_settled() && wake().none();
}

durable::Wake DurableWork::wake() const {
  durable::Wake wake;
  for (const durable::WorkPart* part : kinds_.parts()) wake = either(wake, part->wake());
  wake.needs_person =
      needed_person_ || ((wake.needs_person || kinds_.jobs().needs_person()) && !is_closed_);
  return wake;
}

std::optional<std::int64_t> DurableWork::next_look_ms() const {
  const std::int64_t now = now_ms();
  std::optional<std::int64_t> at;
  for (const durable::WorkPart* part : kinds_.parts()) {
    std::optional<std::int64_t> its = part->wake().at_ms;
    if (!its && part != &kinds_.fibers() && part->due()) its = now;
    if (its && *its <= now) {
      // The past moment may be of a fiber whose hook still runs. It hides the later moment of
      // another fiber that could begin beside it.
      const bool waits_for_permit = part == &kinds_.fibers() && recovery_.none_or_full();
      its = waits_for_permit ? std::nullopt : std::optional(now + kLookAgain.count());
    }
    at = durable::earliest(at, its);
  }
  return at;
}

}  // namespace hearth::extensions
