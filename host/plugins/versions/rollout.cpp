#include "plugins/versions/rollout.hpp"

#include <algorithm>
#include <utility>

namespace hearth::plugins {

std::set<std::string> with_newer_schema(const ClassVersions& next, const ClassVersions& before) {
  std::set<std::string> segments;
  for (const auto& [segment, version] : next) {
    const auto schema = version.served->agent_class->schema_version();
    const auto its = before.find(segment);
    if (its == before.end() && !before.empty()) continue;  // it served no agent of the class
    const auto known = its == before.end() ? 0 : its->second.served->agent_class->schema_version();
    if (schema > known) segments.insert(segment);
  }
  return segments;
}

Served served_now(runtime::Runtime& runtime, const ClassVersion& version) {
  const Served now = runtime.classes().find(version.served->segment);
  const bool is_same_code = now && now->agent_class == version.served->agent_class;
  return is_same_code ? now : version.served;
}

Rollout::Rollout(runtime::Runtime& runtime, const Clock& clock, ClassVersions before)
    : runtime_(runtime), clock_(clock), before_(std::move(before)) {}

const runtime::ClassRollout& Rollout::begin(ClassVersion next,
                                            const runtime::RolloutSettings& settings) {
  const auto before = before_.find(next.served->segment);
  const bool is_new = before == before_.end();
  if (!is_new) before->second.served = served_now(runtime_, before->second);
  classes_.push_back(std::make_unique<runtime::ClassRollout>(
      runtime_, is_new ? nullptr : before->second.served, next.served, settings, clock_));
  next_[next.served->segment] = std::move(next);
  return *classes_.back();
}

Rollout::State Rollout::look() {
  State state = State::kDone;
  for (const auto& each : classes_) {
    const State of_class = each->look();
    if (of_class == State::kRolledBack) return of_class;
    state = std::min(state, of_class);
  }
  return state;
}

std::optional<SteadyTime> Rollout::next_deadline() const {
  std::optional<SteadyTime> next;
  for (const auto& each : classes_) next = earlier(next, each->next_deadline());
  return next;
}

void Rollout::hurry() {
  for (const auto& each : classes_) each->hurry();
}

void Rollout::roll_back(const std::string& reason) {
  for (const auto& each : classes_) each->roll_back(reason);
}

std::string Rollout::reason() const {
  const auto failed = std::ranges::find_if(
      classes_, [](const auto& each) { return each->state() == State::kRolledBack; });
  return failed == classes_.end() ? std::string() : (*failed)->reason();
}

std::vector<Served> Rollout::overtaken() const {
  std::vector<Served> versions;
  for (const auto& each : classes_) {
    if (each->before() != nullptr) versions.push_back(each->before());
  }
  return versions;
}

std::map<std::string, std::size_t> Rollout::tried() const {
  std::map<std::string, std::size_t> agents;
  for (const auto& each : classes_)
    agents[each->next().segment] = std::max(each->tried(), each->failed());
  return agents;
}

}  // namespace hearth::plugins
