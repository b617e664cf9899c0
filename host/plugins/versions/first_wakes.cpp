#include "plugins/versions/first_wakes.hpp"

#include <iterator>

namespace hearth::plugins {

FirstWakes::Judgement FirstWakes::judge(const Starts& starts_of,
                                        const runtime::RolloutSettings& settings, bool is_over) {
  for (auto segment = untried_.begin(); segment != untried_.end();) {
    const auto starts = starts_of(*segment);
    const std::size_t failed = starts->failed;
    const std::size_t seen = starts->started + failed;
    const bool is_enough = seen >= settings.trial_agents;
    // With few agents, one failure may have another reason.
    const bool too_many = is_enough ? failed * 100 > seen * settings.max_failed_percent
                                    : is_over && failed > 0 && starts->started == 0;
    if (too_many) {
      untried_.clear();
      return {Verdict::kFailed,
              std::to_string(failed) + " of the first " + std::to_string(seen) +
                  " agents that woke could not start on it" +
                  (starts->unreadable ? ", or not read the work of earlier versions" : "")};
    }
    segment = is_enough || is_over ? untried_.erase(segment) : std::next(segment);
  }
  const bool is_judged = untried_.empty() && std::exchange(has_newer_schema_, false);
  return {is_judged ? Verdict::kProven : Verdict::kOpen};
}

}  // namespace hearth::plugins
