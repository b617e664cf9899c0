#include "plugins/versions/class_configuration.hpp"

#include "config/class_file.hpp"
#include "config/parse.hpp"
#include "protocol/class_segment.hpp"

#include <system_error>
#include <utility>

namespace hearth::plugins {
namespace {

bool is_a_directory(const std::filesystem::path& path) {
  std::error_code failure;
  return std::filesystem::is_directory(path, failure);
}

// What class files cannot know of each other: an alias is the segment of a class without a file.
config::Diagnostics taken_aliases(const config::ClassConfigs& files,
                                  const ClassConfiguration::ServedSegments& served) {
  config::Diagnostics mistakes;
  for (const auto& [name, config] : files) {
    for (const std::string& alias : config.settings.aliases) {
      const auto taken = served.find(alias);
      if (taken == served.end()) continue;
      mistakes.push_back({.file = config.file,
                          .at = config::alias_at(config, alias),
                          .message = config::alias_is_taken(alias, taken->second)});
    }
  }
  return mistakes;
}

}  // namespace

ClassConfiguration::ClassConfiguration(std::filesystem::path directory,
                                       const config::ClassConfigs& read)
    : directory_(std::move(directory)),
      defaults_(std::make_shared<const config::ClassConfig>()),
      must_exist_(is_a_directory(directory_)),
      had_files_(!read.empty()) {
  for (const auto& [name, config] : read) {
    const std::string segment = protocol::kebab_case(name);
    held_[segment] = {.name = name,
                      .settings = std::make_shared<const config::ClassConfig>(config)};
    use_aliases(segment, config.settings.aliases);
  }
}

ClassConfiguration::Settings ClassConfiguration::held(const std::string& segment) const {
  const auto found = held_.find(segment);
  return found == held_.end() ? defaults_ : found->second.settings;
}

ClassConfiguration::Settings ClassConfiguration::of(std::string_view class_name) const {
  return held(protocol::kebab_case(class_name));
}

config::Diagnostics ClassConfiguration::none_is_left() const {
  return {
      {.file = directory_.string(),
       .at = {},
       .message = "classes: there is no class file any more; `hearth reload` if that is meant"}};
}

void ClassConfiguration::use_aliases(const std::string& segment,
                                     const std::vector<std::string>& aliases) {
  std::erase_if(aliases_, [&segment](const auto& each) { return each.second == segment; });
  // Another class that still has it has lost it in its own file: else that were a mistake.
  for (const std::string& alias : aliases) aliases_[alias] = segment;
}

std::string ClassConfiguration::paths(std::string_view segment) const {
  std::string paths = "/agents/" + std::string(segment);
  for (const auto& [alias, target] : aliases_) {
    if (target == segment) paths += ", /agents/" + alias;
  }
  return paths;
}

ClassConfiguration::Reading ClassConfiguration::read_again(std::string_view segment, bool by_person,
                                                           const ServedSegments& served) {
  Reading reading;
  must_exist_ = must_exist_ || is_a_directory(directory_);
  auto files = config::load_class_files(directory_, must_exist_, protocol::kebab_case);
  if (!files) {
    reading.mistakes = std::move(files).error();
    return reading;
  }
  if (files->empty() && had_files_ && !by_person) {
    reading.mistakes = none_is_left();
    return reading;
  }
  reading.mistakes = taken_aliases(*files, served);
  if (!reading.mistakes.empty()) return reading;
  // Of one class alone: what the others have may still be from files.
  had_files_ = !files->empty() || (had_files_ && !segment.empty());
  std::map<std::string, Held> next;
  for (const auto& [each, entry] : held_) next.try_emplace(each);
  for (const auto& [each, entry] : bad_) next.try_emplace(each);
  for (auto& [name, settings] : *files) {
    next[protocol::kebab_case(name)] = {
        .name = name, .settings = std::make_shared<const config::ClassConfig>(std::move(settings))};
  }
  for (auto& [each, entry] : next) {
    if (!segment.empty() && each != segment) continue;
    use_aliases(each, (entry.settings ? entry.settings : defaults_)->settings.aliases);
    consider(each, std::move(entry), by_person, reading);
  }
  return reading;
}

// `next`: without settings if no file speaks of the class any more.
void ClassConfiguration::consider(const std::string& segment, Held next, bool by_person,
                                  Reading& reading) {
  const Settings now = held(segment);
  const Settings then = next.settings ? next.settings : defaults_;
  const auto bad = bad_.find(segment);
  std::string name = next.name;
  if (name.empty()) name = bad != bad_.end() ? bad->second.name : held_.at(segment).name;
  std::vector<std::string> keys = config::changed_keys(*now, *then);
  if (keys.empty()) {
    if (bad != bad_.end()) {
      reading.segments.insert(segment);
      bad_.erase(bad);
    }
    if (now->file == then->file) return;
  } else {
    if (bad != bad_.end()) {
      if (!by_person && config::changed_keys(*bad->second.settings, *then).empty()) return;
      bad_.erase(bad);
    }
    reading.segments.insert(segment);
    reading.changes.push_back({.agent_class = std::move(name),
                               .file = next.settings || now->file.empty() ? then->file : now->file,
                               .keys = std::move(keys)});
  }
  if (next.settings) {
    held_[segment] = std::move(next);
  } else {
    held_.erase(segment);
  }
}

void ClassConfiguration::take_back(std::string_view class_name, const Settings& failed,
                                   const Settings& before, std::string reason) {
  const std::string segment = protocol::kebab_case(class_name);
  if (held(segment) != failed) return;
  Held& entry = held_[segment];
  if (entry.name.empty()) entry.name = class_name;  // defaults
  entry.settings = before;
  bad_[segment] = Bad{.name = entry.name,
                      .settings = failed,
                      .file = failed->file.empty() ? before->file : failed->file,
                      .reason = std::move(reason)};
}

bool ClassConfiguration::try_again(std::string_view class_name) {
  const auto bad = bad_.find(protocol::kebab_case(class_name));
  if (bad == bad_.end()) return false;
  held_[bad->first].settings = std::move(bad->second.settings);
  bad_.erase(bad);
  return true;
}

std::vector<ClassConfiguration::TakenBack> ClassConfiguration::taken_back() const {
  std::vector<TakenBack> list;
  list.reserve(bad_.size());
  for (const auto& [segment, bad] : bad_)
    list.push_back({.agent_class = bad.name, .file = bad.file, .reason = bad.reason});
  return list;
}

}  // namespace hearth::plugins
