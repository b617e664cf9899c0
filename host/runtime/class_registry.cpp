#include "runtime/class_registry.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hearth::runtime {
namespace {

// A class's name without the differences between its spellings.
std::string plain_name(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    if (c == '-' || c == '_') continue;
    letters += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return letters;
}

// Whether `other` has another `auth` for a class of `table`. A class that it lacks has the
// defaults.
bool has_other_auth(const ClassRegistry::EntryTable& table,
                    const ClassRegistry::EntryTable& other) {
  return std::ranges::any_of(table, [&other](const auto& row) {
    const auto found = other.find(row.first);
    return row.second->auth != (found == other.end() ? AuthRules{} : found->second->auth);
  });
}

}  // namespace

void StartCounts::count_start() {
  ++started;
  if (news) news->ring();
}

void StartCounts::count_leave() {
  if (--agents == 0 && news) news->ring();
}

void StartCounts::count_failure(const std::string& agent) {
  {
    const MutexLock lock(mutex_);
    if (names_.size() < kMaxNames && !names_.insert(agent).second) return;
    ++failed;
  }
  if (news) news->ring();
}

void StartCounts::count_unreadable(const std::string& agent) {
  unreadable = true;
  count_failure(agent);
}

bool ClassRegistry::add(ServedClass served) {
  note_served(served.segment);
  const MutexLock lock(mutex_);
  std::string segment = served.segment;
  if (!served.starts->news) served.starts->news = news_;
  expected_[segment] = true;
  last_settings_.insert_or_assign(segment, served.settings);
  entry_rules_.try_emplace(segment,
                           std::make_shared<const EntryRules>(served.settings.entry_rules()));
  egress_.try_emplace(segment,
                      std::make_shared<const extensions::EgressSettings>(served.settings.egress));
  return classes_
      .try_emplace(std::move(segment), std::make_shared<const ServedClass>(std::move(served)))
      .second;
}

std::shared_ptr<const ServedClass> ClassRegistry::put(std::shared_ptr<const ServedClass> next) {
  note_served(next->segment);
  const MutexLock lock(mutex_);
  if (!next->starts->news) next->starts->news = news_;
  awaited_.erase(next->segment);
  if (next->refusal.empty())
    missing_since_.erase(next->segment);
  else
    missing_since_.try_emplace(next->segment, std::chrono::system_clock::now());
  expected_[next->segment] = true;
  last_settings_.insert_or_assign(next->segment, next->settings);
  std::shared_ptr<const ServedClass>& place = classes_[next->segment];
  return std::exchange(place, std::move(next));
}

std::shared_ptr<const ServedClass> ClassRegistry::remove(std::string_view segment) {
  const MutexLock lock(mutex_);
  const auto found = classes_.find(segment);
  if (found == classes_.end()) return nullptr;
  std::shared_ptr<const ServedClass> going = std::move(found->second);
  awaited_.insert(found->first);
  missing_since_.try_emplace(found->first, std::chrono::system_clock::now());
  classes_.erase(found);
  return going;
}

bool ClassRegistry::is_awaited(std::string_view segment) const {
  const MutexLock lock(mutex_);
  return awaited_.contains(segment);
}

std::optional<WallTime> ClassRegistry::missing_since(std::string_view segment) const {
  const MutexLock lock(mutex_);
  const auto found = missing_since_.find(segment);
  if (found == missing_since_.end()) return std::nullopt;
  return found->second;
}

void ClassRegistry::give_up(std::string_view segment) {
  const MutexLock lock(mutex_);
  if (const auto found = awaited_.find(segment); found != awaited_.end()) awaited_.erase(found);
}

void ClassRegistry::set_aliases(Aliases aliases) {
  const MutexLock lock(mutex_);
  aliases_ = std::move(aliases);
}

std::string ClassRegistry::aliased(std::string_view alias) const {
  const MutexLock lock(mutex_);
  const auto found = aliases_.find(alias);
  return found == aliases_.end() ? std::string() : found->second;
}

std::vector<std::string> ClassRegistry::aliases_of(std::string_view segment) const {
  const MutexLock lock(mutex_);
  std::vector<std::string> aliases;
  for (const auto& [alias, target] : aliases_) {
    if (target == segment) aliases.push_back(alias);
  }
  return aliases;
}

ClassRegistry::EntryTable ClassRegistry::set_entry_rules(EntryTable rules) {
  const MutexLock lock(mutex_);
  EntryTable before = std::exchange(entry_rules_, std::move(rules));
  if (has_other_auth(before, entry_rules_) || has_other_auth(entry_rules_, before))
    access_changed();
  return before;
}

std::shared_ptr<const EntryRules> ClassRegistry::entry_rules(std::string_view segment) const {
  static const auto defaults = std::make_shared<const EntryRules>();
  const MutexLock lock(mutex_);
  for (const std::string_view each : {segment, std::string_view()}) {
    if (const auto found = entry_rules_.find(each); found != entry_rules_.end())
      return found->second;
  }
  return defaults;
}

void ClassRegistry::set_egress(EgressTable table) {
  const MutexLock lock(mutex_);
  egress_ = std::move(table);
}

extensions::EgressPtr ClassRegistry::egress(std::string_view segment) const {
  static const auto defaults = std::make_shared<const extensions::EgressSettings>();
  const MutexLock lock(mutex_);
  const auto found = egress_.find(segment);
  return found == egress_.end() ? defaults : found->second;
}

void ClassRegistry::expect(std::string segment, ClassSettings settings) {
  const MutexLock lock(mutex_);
  last_settings_.insert_or_assign(segment, std::move(settings));
  expected_.try_emplace(std::move(segment), false);
}

ClassSettings ClassRegistry::last_settings(std::string_view segment) const {
  const MutexLock lock(mutex_);
  const auto found = last_settings_.find(segment);
  return found == last_settings_.end() ? ClassSettings{} : found->second;
}

void ClassRegistry::expect_again(std::string segment) {
  const MutexLock lock(mutex_);
  expected_[std::move(segment)] = true;
}

void ClassRegistry::expect_no_more(std::string_view segment) {
  const MutexLock lock(mutex_);
  if (const auto found = last_settings_.find(segment); found != last_settings_.end())
    last_settings_.erase(found);
  const auto found = expected_.find(segment);
  if (found != expected_.end() && !found->second) expected_.erase(found);
}

void ClassRegistry::remember(Segments known, std::function<void(const std::string& segment)> note) {
  const MutexLock lock(mutex_);
  remembered_ = std::move(known);
  note_ = std::move(note);
}

// Calls `note` without the lock, because it may wait for the disk.
void ClassRegistry::note_served(const std::string& segment) {
  std::function<void(const std::string& segment)> note;
  {
    const MutexLock lock(mutex_);
    if (!remembered_.insert(segment).second) return;
    note = note_;
  }
  if (note) note(segment);
}

bool ClassRegistry::had_library(std::string_view name) const {
  const MutexLock lock(mutex_);
  const auto alias = aliases_.find(name);
  const std::string wanted = plain_name(alias == aliases_.end() ? name : alias->second);
  const auto is_wanted = [&wanted](const std::string& segment) {
    return plain_name(segment) == wanted;
  };
  return std::ranges::any_of(remembered_, is_wanted) ||
         std::ranges::any_of(expected_, [&is_wanted](const auto& each) {
           return each.second && is_wanted(each.first);
         });
}

bool ClassRegistry::is_expected(std::string_view segment) const {
  const MutexLock lock(mutex_);
  const auto alias = aliases_.find(segment);
  return expected_.contains(segment) ||
         (alias != aliases_.end() && expected_.contains(alias->second));
}

bool ClassRegistry::is_expected_name(std::string_view name) const {
  const MutexLock lock(mutex_);
  const std::string wanted = plain_name(name);
  for (const auto& each : expected_) {
    if (plain_name(each.first) == wanted && !classes_.contains(each.first)) return true;
  }
  return false;
}

std::shared_ptr<const ServedClass> ClassRegistry::find(std::string_view segment) const {
  const MutexLock lock(mutex_);
  const auto found = classes_.find(segment);
  return found == classes_.end() ? nullptr : found->second;
}

std::shared_ptr<const ServedClass> ClassRegistry::find_for_client(std::string_view segment) const {
  const MutexLock lock(mutex_);
  auto found = classes_.find(segment);
  if (found == classes_.end()) {
    const auto alias = aliases_.find(segment);
    if (alias != aliases_.end()) found = classes_.find(alias->second);
  }
  return found == classes_.end() ? nullptr : found->second;
}

std::shared_ptr<const ServedClass> ClassRegistry::find_by_name(std::string_view name) const {
  const MutexLock lock(mutex_);
  for (const auto& [segment, served] : classes_) {
    if (served->agent_class->name() == name) return served;
  }
  return nullptr;
}

std::shared_ptr<const ServedClass> ClassRegistry::find_by_any_name(std::string_view name) const {
  auto served = find_for_client(name);
  return served != nullptr ? served : find_by_name(name);
}

std::vector<std::shared_ptr<const ServedClass>> ClassRegistry::all() const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const ServedClass>> result;
  result.reserve(classes_.size());
  for (const auto& [segment, served] : classes_) result.push_back(served);
  return result;
}

void ClassRegistry::clear() {
  std::map<std::string, std::shared_ptr<const ServedClass>, std::less<>> going;
  {
    const MutexLock lock(mutex_);
    going.swap(classes_);  // destroyed outside the lock: the last owner unloads code
  }
}

}  // namespace hearth::runtime
