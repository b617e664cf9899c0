#include "plugins/versions/probation.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace hearth::plugins {

Probation::Judgement Probation::judge(const Starts& starts_of,
                                      const runtime::RolloutSettings& settings, SteadyTime now) {
  const bool is_over = ends_ && now >= *ends_;
  for (auto segment = untried_.begin(); segment != untried_.end();) {
    const auto starts = starts_of(*segment);
    const std::size_t failed = starts->failed;
    const std::size_t seen = starts->started + failed;
    const bool is_enough = seen >= settings.trial_agents;
    // With few agents, one failure may have another reason.
    const bool too_many = is_enough ? failed * 100 > seen * settings.max_failed_percent
                                    : is_over && failed > 0 && starts->started == 0;
    if (too_many && !excused_.contains(*segment)) {
      end();
      return {Verdict::kFailed,
              std::to_string(failed) + " of the first " + std::to_string(seen) +
                  " agents that woke could not start on it" +
                  (starts->unreadable ? ", or not read the work of earlier versions" : "")};
    }
    const bool is_judged = is_enough && !too_many;
    segment = is_judged || is_over ? untried_.erase(segment) : std::next(segment);
  }
  const bool has_migrated =
      !migrating_.empty() && std::ranges::none_of(migrating_, [this](const auto& segment) {
        return untried_.contains(segment);
      });
  if (!is_over && !has_migrated) return {};
  end();
  return {Verdict::kProven};
}

}  // namespace hearth::plugins
