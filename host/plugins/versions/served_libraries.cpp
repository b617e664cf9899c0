#include "plugins/versions/served_libraries.hpp"

#include <algorithm>
#include <utility>

namespace hearth::plugins {

void ServedLibrary::begin_probation(SteadyTime ends, const ClassVersions& before) {
  std::set<std::string> untried;
  std::set<std::string> migrating;
  if (on_trial) {
    for (const auto& [segment, version] : classes)
      if (before.empty() || before.contains(segment)) untried.insert(segment);
    migrating = with_newer_schema(classes, before);
  }
  code.probation.begin(ends, std::move(untried), std::move(migrating));
}

ServedLibraries::ServedLibraries(const ClassConfiguration& configuration, Describe describe)
    : configuration_(configuration), describe_(std::move(describe)) {}

ClassVersion ServedLibraries::version_of(
    const std::shared_ptr<const runtime::AgentClass>& agent_class) const {
  return {.served = std::make_shared<const runtime::ServedClass>(describe_(agent_class)),
          .settings = configuration_.of(agent_class->name())};
}

std::set<std::string> ServedLibraries::segments() const {
  std::set<std::string> all;
  for (const auto& [file, library] : by_file_) {
    for (const auto& [segment, version] : library.classes) all.insert(segment);
  }
  return all;
}

bool ServedLibraries::is_of_another(const std::string& segment,
                                    const std::filesystem::path& file) const {
  return std::ranges::any_of(by_file_, [&](const auto& each) {
    return each.first != file && each.second.classes.contains(segment);
  });
}

std::vector<const Coming*> ServedLibraries::coming() const {
  std::vector<const Coming*> all;
  for (const auto& [file, library] : by_file_) {
    all.push_back(&library.code);
    for (const auto& [segment, settings] : library.settings) all.push_back(&settings);
  }
  return all;
}

bool ServedLibraries::is_moving() const {
  return std::ranges::any_of(coming(), [](const Coming* each) { return each->rollout != nullptr; });
}

std::vector<std::string> ServedLibraries::moving() const {
  std::vector<std::string> names;
  for (const Coming* each : coming()) {
    if (!each->rollout) continue;
    for (const auto& [segment, version] : each->rollout->next())
      names.emplace_back(version.served->agent_class->name());
  }
  return names;
}

std::optional<SteadyTime> ServedLibraries::next_deadline() const {
  std::optional<SteadyTime> next;
  for (const Coming* each : coming()) next = earlier(next, each->next_deadline());
  return next;
}

std::vector<Served> ServedLibraries::with_other_code(const std::filesystem::path& file) const {
  const auto library = by_file_.find(file);
  const auto leaving = leaving_.find(file);
  if (leaving == leaving_.end()) return {};
  std::vector<Served> others;
  for (const Served& served : leaving->second) {
    const bool is_served = library != by_file_.end() &&
                           std::ranges::any_of(library->second.classes, [&](const auto& each) {
                             return each.second.served->agent_class == served->agent_class;
                           });
    if (!is_served) others.push_back(served);
  }
  return others;
}

void ServedLibraries::forget_left() {
  const auto has_left = [](const Served& served) { return served->starts->agents == 0; };
  for (auto& [file, versions] : leaving_) std::erase_if(versions, has_left);
  std::erase_if(leaving_, [](const auto& each) { return each.second.empty(); });
}

}  // namespace hearth::plugins
