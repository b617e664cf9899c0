// Class files that give classes other code (`code`) while the library stays as it is.
#include "plugins/versions/class_news.hpp"
#include "plugins/versions/code_rollouts.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace hearth::plugins {
namespace {

bool is_same(const runtime::AgentClass& one, const runtime::AgentClass& other) {
  return one.name() == other.name() && one.code() == other.code();
}

}  // namespace

bool CodeRollouts::is_of_another(const std::string& segment,
                                 const std::filesystem::path& file) const {
  return std::ranges::any_of(parts_.libraries.by_file(), [&](const auto& each) {
    return each.first != file && each.second.classes.contains(segment);
  });
}

void CodeRollouts::follow_class_files() {
  std::map<std::filesystem::path, PluginLoader::Classes> wanted;
  ClassVersions leaving;
  for (auto& [file, library] : parts_.libraries.by_file()) {
    if (library.has_its_classes || library.code.rollout) continue;
    auto classes = loader_.classes_of(file);
    if (!classes) continue;
    library.has_its_classes = true;
    give_up_others(file, library, *classes, leaving);
    wanted.emplace(file, *std::move(classes));
  }
  // Second: a class may go from one library to another.
  for (const auto& [file, classes] : wanted) {
    for (const auto& agent_class : classes) serve_if_new(file, agent_class, leaving);
  }
  for (const auto& [segment, version] : leaving) {
    const auto now = parts_.configuration.of(segment);
    removed_.remove(now->file.empty() ? version.settings->file : now->file, {{segment, version}},
                    "its agents keep their data; they come back once a library that is served has "
                    "the code that the class file names");
  }
}

void CodeRollouts::give_up_others(const std::filesystem::path& file, ServedLibrary& library,
                                  const PluginLoader::Classes& wanted, ClassVersions& leaving) {
  std::erase_if(library.classes, [&](const auto& each) {
    const auto& [segment, version] = each;
    const bool stays = std::ranges::any_of(wanted, [&](const auto& agent_class) {
      return is_same(*agent_class, *version.served->agent_class);
    });
    if (stays) return false;
    settings_.hurry(file, library, segment);
    library.code.probation.forget(segment);
    parts_.libraries.leave(file, version.served);
    leaving.emplace(segment, version);
    return true;
  });
}

void CodeRollouts::serve_if_new(const std::filesystem::path& file,
                                const std::shared_ptr<const runtime::AgentClass>& agent_class,
                                ClassVersions& leaving) {
  ServedLibrary& library = parts_.libraries.by_file().at(file);
  const ClassVersion next = parts_.libraries.version_of(agent_class);
  const std::string& segment = next.served->segment;
  if (library.classes.contains(segment)) return;
  if (is_of_another(segment, file)) {  // a version of that library comes in: when it is in
    library.has_its_classes = false;
    return;
  }
  library.classes[segment] = next;
  parts_.runtime.serve(next.served);
  if (const auto before = leaving.find(segment); before != leaving.end()) {
    parts_.runtime.tell([served = before->second.served](runtime::ShardVersions& versions) {
      versions.leave(served, runtime::EvictReason::kCodeUpdate, false);
    });
    leaving.erase(before);
  }
  tell_served(parts_.logger, *next.served, parts_.configuration.paths(segment),
              next.settings->file);
  warn_of_unlisted_kinds(parts_.logger, next);
}

}  // namespace hearth::plugins
