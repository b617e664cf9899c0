#include "plugins/versions/removed_classes.hpp"

namespace hearth::plugins {

void RemovedClasses::remove(const std::filesystem::path& file, const ClassVersions& classes,
                            std::string_view advice) {
  Removed& removed = removed_[file];
  removed.give_up_at = clock_.steady_now() + grace_;
  for (const auto& [segment, version] : classes) {
    runtime_.classes().remove(segment);
    runtime_.tell([served = version.served](runtime::ShardVersions& versions) {
      versions.leave(served, runtime::EvictReason::kPluginRemoved, false);
    });
    removed.segments.push_back(segment);
    logger_.record(LogLevel::kWarn, "reload.removed",
                   {{"class", version.served->agent_class->name()},
                    {"file", file.native()},
                    {"advice", advice}});
  }
}

void RemovedClasses::end(const std::filesystem::path& file) {
  const auto found = removed_.find(file);
  if (found == removed_.end()) return;
  std::erase_if(found->second.segments, [this](const std::string& segment) {
    return !runtime_.classes().is_awaited(segment);
  });
  if (found->second.segments.empty()) removed_.erase(found);
}

void RemovedClasses::drive() {
  const SteadyTime now = clock_.steady_now();
  std::erase_if(removed_, [&](const auto& each) {
    if (now < each.second.give_up_at) return false;
    for (const std::string& segment : each.second.segments) {
      // Another library serves the class now: its clients stay.
      if (!runtime_.classes().is_awaited(segment)) continue;
      runtime_.classes().give_up(segment);
      runtime_.tell(
          [segment](runtime::ShardVersions& versions) { versions.class_is_gone(segment); });
    }
    return true;
  });
}

std::optional<SteadyTime> RemovedClasses::next_deadline() const {
  std::optional<SteadyTime> next;
  for (const auto& [file, removed] : removed_) next = earlier(next, removed.give_up_at);
  return next;
}

}  // namespace hearth::plugins
