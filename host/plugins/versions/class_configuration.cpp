#include "plugins/versions/class_configuration.hpp"

#include "base/sha256.hpp"
#include "config/class_file.hpp"
#include "config/edge_section.hpp"
#include "config/parse.hpp"
#include "protocol/class_segment.hpp"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

namespace hearth::plugins {
namespace {

bool is_a_directory(const std::filesystem::path& path) {
  std::error_code failure;
  return std::filesystem::is_directory(path, failure);
}

std::string hash_of(const ClassConfiguration::Settings& settings) {
  return sha256_hex(config::settings_text(settings->settings));
}

Subject settings_of(std::string_view class_name) {
  return {.kind = Subject::Kind::kSettings, .name = protocol::kebab_case(class_name)};
}

// As the ledger keeps them. The text is empty if it could not give all settings back.
Kept kept(const ClassConfiguration::Settings& settings) {
  std::string text = config::settings_text(settings->settings);
  std::string hash = sha256_hex(text);
  const auto read = config::read_settings_text(text);
  if (!read || config::settings_text(*read) != text || text.size() > kMaxSettingsText) text.clear();
  return {.hash = std::move(hash), .file = settings->file, .text = std::move(text)};
}

}  // namespace

ClassConfiguration::ClassConfiguration(std::filesystem::path directory,
                                       const config::ClassConfigs& read, VersionLedger& ledger,
                                       std::filesystem::path definitions, config::ForClasses server)
    : directory_(std::move(directory)),
      definitions_(std::move(definitions)),
      server_(std::move(server)),
      defaults_(std::make_shared<const config::ClassConfig>(config::class_without_file(server_))),
      must_exist_(is_a_directory(directory_)),
      had_files_(has_class_file(read)),
      ledger_(ledger) {
  for (const auto& [name, config] : read) {
    const std::string segment = protocol::kebab_case(name);
    said_[segment] = {.name = name,
                      .settings = std::make_shared<const config::ClassConfig>(config)};
    use_aliases(segment, config.settings.aliases);
  }
  held_ = said_;
  for (const Trial& each : ledger_.settings()) {
    (void)ledger_.note(TrialMet{.of = each.of, .hash = hash_of(held(each.of.name))});
    const auto known = ledger_.find(each.of);
    if (known && known->taken_back() != nullptr) go_back(each.of.name, known->way_back());
  }
}

void ClassConfiguration::keep_claims_for(std::vector<RouteRule> routes, AuthRules servers) {
  routes_ = std::move(routes);
  servers_auth_ = std::move(servers);
}

void ClassConfiguration::go_back(const std::string& segment, const Kept& proven) {
  const Settings said = held(segment);
  auto before = config::read_settings_text(proven.text);
  if (!before || proven.text.empty()) {
    without_way_back_.push_back("the settings of " + segment +
                                " before these are not kept, or cannot be read");
    (void)ledger_.note(TrialSettled{settings_of(segment)});
    return;
  }
  before->code = said->settings.code;
  before->aliases = said->settings.aliases;
  before->list_methods = said->settings.list_methods;
  before->auth = said->settings.auth;
  before->cors = said->settings.cors;
  before->egress = said->settings.egress;
  held_[segment] = {.name = name_of(segment),
                    .settings = std::make_shared<const config::ClassConfig>(config::ClassConfig{
                        .settings = *std::move(before), .file = proven.file, .sources = {}})};
}

bool ClassConfiguration::has_class_file(const config::ClassConfigs& read) const {
  return std::ranges::any_of(read, [this](const auto& each) {
    return definitions_.empty() ||
           std::filesystem::path(each.second.file).parent_path() != definitions_;
  });
}

ClassConfiguration::Settings ClassConfiguration::held(const std::string& segment) const {
  const auto found = held_.find(segment);
  return found == held_.end() ? defaults_ : found->second.settings;
}

std::string ClassConfiguration::name_of(const std::string& segment) const {
  for (const auto* const names : {&said_, &held_}) {
    const auto found = names->find(segment);
    if (found != names->end()) return found->second.name;
  }
  return segment;
}

ClassConfiguration::Settings ClassConfiguration::of(std::string_view class_name) const {
  return held(protocol::kebab_case(class_name));
}

std::vector<std::string> ClassConfiguration::classes_of(std::string_view library_class) const {
  const std::string segment = protocol::kebab_case(library_class);
  std::vector<std::string> names;
  const auto own = said_.find(segment);
  if (own == said_.end() || own->second.settings->settings.code.empty())
    names.emplace_back(library_class);
  for (const auto& [its, said] : said_) {
    const std::string& code = said.settings->settings.code;
    if (!code.empty() && protocol::kebab_case(code) == segment) names.push_back(said.name);
  }
  return names;
}

void ClassConfiguration::use_aliases(const std::string& segment,
                                     const std::vector<std::string>& aliases) {
  std::erase_if(aliases_, [&segment](const auto& each) { return each.second == segment; });
  // If aliases_ has the alias for another class, that class's file does not name it any more:
  // otherwise the files would have a mistake.
  for (const std::string& alias : aliases) aliases_[alias] = segment;
}

runtime::ClassRegistry::EntryTable ClassConfiguration::entry_rules() const {
  runtime::ClassRegistry::EntryTable table;
  table[""] = std::make_shared<const EntryRules>(defaults_->settings.entry_rules());
  for (const auto& [segment, said] : said_)
    table[segment] = std::make_shared<const EntryRules>(said.settings->settings.entry_rules());
  return table;
}

runtime::ClassRegistry::EgressTable ClassConfiguration::egress() const {
  runtime::ClassRegistry::EgressTable table;
  for (const auto& [segment, said] : said_)
    table[segment] = extensions::EgressPtr(said.settings, &said.settings->settings.egress);
  return table;
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
  auto files = config::load_class_files(directory_, must_exist_, protocol::kebab_case, definitions_,
                                        {}, server_);
  if (!files) {
    reading.mistakes = std::move(files).error();
    return reading;
  }
  const bool has_files = has_class_file(*files);
  if (!has_files && had_files_ && !by_person) {
    reading.mistakes.push_back(
        {.file = directory_.string(),
         .at = {},
         .message = "classes: there is no class file any more; `hearth reload` if that is meant"});
    return reading;
  }
  reading.mistakes = config::taken_aliases(*files, served);
  if (!routes_.empty()) {
    config::ClassConfigs before;
    for (const auto& [each, said] : said_) before.emplace(said.name, *said.settings);
    std::ranges::move(
        config::lost_claims(routes_, servers_auth_, before, *files, protocol::kebab_case),
        std::back_inserter(reading.mistakes));
  }
  if (!reading.mistakes.empty()) return reading;
  // If only one class is read, the settings of the others may still be from files.
  had_files_ = has_files || (had_files_ && !segment.empty());
  std::map<std::string, Held> next;
  for (const auto& [each, entry] : held_) next.try_emplace(each);
  for (const auto& [each, entry] : said_) next.try_emplace(each);
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

std::string ClassConfiguration::said_code(const std::string& segment) const {
  const auto said = said_.find(segment);
  if (said == said_.end() || said->second.settings->settings.code.empty()) return {};
  return said->second.name + " " + said->second.settings->settings.code;
}

// `next` has no settings if no file names the class any more.
void ClassConfiguration::consider(const std::string& segment, Held next, bool by_person,
                                  Reading& reading) {
  const Settings now = held(segment);
  const Settings then = next.settings ? next.settings : defaults_;
  std::string name = next.name.empty() ? name_of(segment) : next.name;
  const std::string code = said_code(segment);
  if (next.settings) {
    said_[segment] = next;
  } else {
    said_.erase(segment);
  }
  reading.other_codes = reading.other_codes || said_code(segment) != code;
  std::vector<std::string> keys = config::changed_keys(*now, *then);
  const auto known = ledger_.find(settings_of(segment));
  if (known && known->taken_back() != nullptr) {
    const std::string hash = hash_of(then);
    if (!keys.empty() && !by_person && hash == known->taken_back()->hash) return;
    if (hash == hash_of(now)) {
      (void)ledger_.note(TrialSettled{known->of});
    } else {
      (void)ledger_.note(TrialAllowed{known->of});
    }
    reading.segments.insert(segment);
  }
  if (keys.empty() && now->file == then->file) return;
  if (!keys.empty()) {
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

Result<void> ClassConfiguration::begin_trial(std::string_view class_name, const Settings& next,
                                             const Settings& before) {
  return ledger_.note(
      TrialBegun{.of = settings_of(class_name), .next = hash_of(next), .served = kept(before)});
}

bool ClassConfiguration::is_on_trial(std::string_view class_name) const {
  const auto known = ledger_.find(settings_of(class_name));
  return known && !known->on_trial.empty();
}

Result<void> ClassConfiguration::prove(std::string_view class_name, const Settings& settings) {
  return ledger_.note(TrialPassed{.of = settings_of(class_name), .version = kept(settings)});
}

void ClassConfiguration::take_back(std::string_view class_name, const Settings& failed,
                                   const Settings& before, std::string reason) {
  const std::string segment = protocol::kebab_case(class_name);
  if (held(segment) != failed) return;
  Held& entry = held_[segment];
  if (entry.name.empty()) entry.name = class_name;  // defaults
  entry.settings = before;
  (void)ledger_.note(TrialLost{.of = settings_of(segment),
                               .goes_on = kept(before),
                               .what = {.hash = hash_of(failed), .reason = std::move(reason)}});
}

bool ClassConfiguration::try_again(std::string_view class_name) {
  const std::string segment = protocol::kebab_case(class_name);
  const auto known = ledger_.find(settings_of(segment));
  if (!known || known->taken_back() == nullptr) return false;
  (void)ledger_.note(TrialAllowed{known->of});
  const auto said = said_.find(segment);
  held_[segment] = {.name = name_of(segment),
                    .settings = said == said_.end() ? defaults_ : said->second.settings};
  return true;
}

std::vector<ClassConfiguration::TakenBack> ClassConfiguration::taken_back() const {
  std::vector<TakenBack> list;
  for (const Trial& each : ledger_.settings()) {
    const Trial::NotServed* const failed = each.taken_back();
    if (failed == nullptr) continue;
    const std::string& segment = each.of.name;
    const auto said = said_.find(segment);
    list.push_back({.agent_class = name_of(segment),
                    .file = said == said_.end() ? held(segment)->file : said->second.settings->file,
                    .reason = failed->reason});
  }
  return list;
}

}  // namespace hearth::plugins
