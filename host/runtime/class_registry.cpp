#include "runtime/class_registry.hpp"

#include <algorithm>
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
  entry_rules_.try_emplace(served.segment,
                           std::make_shared<const EntryRules>(served.settings.entry_rules()));
  egress_.try_emplace(served.segment,
                      std::make_shared<const extensions::EgressSettings>(served.settings.egress));
  Known& known = segments_[served.segment];
  if (known.served != nullptr) return false;
  (void)known.serve(std::make_shared<const ServedClass>(std::move(served)), news_);
  return true;
}

std::shared_ptr<const ServedClass> ClassRegistry::put(std::shared_ptr<const ServedClass> next) {
  note_served(next->segment);
  const MutexLock lock(mutex_);
  Known& known = segments_[next->segment];
  known.is_awaited = false;
  if (next->refusal.empty()) {
    known.missing_since.reset();
  } else {
    known.miss();
  }
  return known.serve(std::move(next), news_);
}

std::shared_ptr<const ServedClass> ClassRegistry::Known::serve(
    std::shared_ptr<const ServedClass> next, const std::shared_ptr<VersionNews>& news) {
  if (!next->starts->news) next->starts->news = news;
  is_expected = stays_expected = true;
  settings = next->settings;
  return std::exchange(served, std::move(next));
}

std::shared_ptr<const ServedClass> ClassRegistry::remove(std::string_view segment) {
  const MutexLock lock(mutex_);
  const auto found = segments_.find(segment);
  if (found == segments_.end() || found->second.served == nullptr) return nullptr;
  found->second.is_awaited = true;
  found->second.miss();
  return std::exchange(found->second.served, nullptr);
}

const ClassRegistry::Known& ClassRegistry::known(std::string_view segment) const {
  static const Known nothing;
  const auto found = segments_.find(segment);
  return found == segments_.end() ? nothing : found->second;
}

bool ClassRegistry::is_awaited(std::string_view segment) const {
  const MutexLock lock(mutex_);
  return known(segment).is_awaited;
}

std::optional<WallTime> ClassRegistry::missing_since(std::string_view segment) const {
  const MutexLock lock(mutex_);
  return known(segment).missing_since;
}

void ClassRegistry::give_up(std::string_view segment) {
  const MutexLock lock(mutex_);
  if (const auto found = segments_.find(segment); found != segments_.end())
    found->second.is_awaited = false;
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
  Known& known = segments_[std::move(segment)];
  known.settings = std::move(settings);
  known.is_expected = true;
}

ClassSettings ClassRegistry::last_settings(std::string_view segment) const {
  const MutexLock lock(mutex_);
  return known(segment).settings;
}

void ClassRegistry::expect_again(std::string segment) {
  const MutexLock lock(mutex_);
  Known& known = segments_[std::move(segment)];
  known.is_expected = known.stays_expected = true;
}

void ClassRegistry::expect_no_more(std::string_view segment) {
  const MutexLock lock(mutex_);
  const auto found = segments_.find(segment);
  if (found == segments_.end()) return;
  found->second.settings = {};
  found->second.is_expected = found->second.stays_expected;
}

void ClassRegistry::remember(const Segments& known,
                             std::function<void(const std::string& segment)> note) {
  const MutexLock lock(mutex_);
  for (const std::string& segment : known) segments_[segment].is_remembered = true;
  note_ = std::move(note);
}

// Calls `note` without the lock, because it may wait for the disk.
void ClassRegistry::note_served(const std::string& segment) {
  std::function<void(const std::string& segment)> note;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(segments_[segment].is_remembered, true)) return;
    note = note_;
  }
  if (note) note(segment);
}

bool ClassRegistry::had_library(std::string_view name) const {
  const MutexLock lock(mutex_);
  const auto alias = aliases_.find(name);
  const std::string wanted = plain_name(alias == aliases_.end() ? name : alias->second);
  return std::ranges::any_of(segments_, [&wanted](const auto& each) {
    return (each.second.is_remembered || each.second.stays_expected) &&
           plain_name(each.first) == wanted;
  });
}

bool ClassRegistry::is_expected(std::string_view segment) const {
  const MutexLock lock(mutex_);
  const auto alias = aliases_.find(segment);
  return known(segment).is_expected ||
         (alias != aliases_.end() && known(alias->second).is_expected);
}

bool ClassRegistry::is_expected_name(std::string_view name) const {
  const MutexLock lock(mutex_);
  return std::ranges::any_of(segments_, [wanted = plain_name(name)](const auto& each) {
    return each.second.is_expected && each.second.served == nullptr &&
           plain_name(each.first) == wanted;
  });
}

std::shared_ptr<const ServedClass> ClassRegistry::find(std::string_view segment) const {
  const MutexLock lock(mutex_);
  return known(segment).served;
}

std::shared_ptr<const ServedClass> ClassRegistry::find_for_client(std::string_view segment) const {
  const MutexLock lock(mutex_);
  if (const auto& served = known(segment).served) return served;
  const auto alias = aliases_.find(segment);
  return alias == aliases_.end() ? nullptr : known(alias->second).served;
}

std::shared_ptr<const ServedClass> ClassRegistry::find_by_name(std::string_view name) const {
  const MutexLock lock(mutex_);
  for (const auto& [segment, known] : segments_) {
    if (known.served != nullptr && known.served->agent_class->name() == name) return known.served;
  }
  return nullptr;
}

std::vector<std::shared_ptr<const ServedClass>> ClassRegistry::all() const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const ServedClass>> result;
  for (const auto& [segment, known] : segments_) {
    if (known.served != nullptr) result.push_back(known.served);
  }
  return result;
}

void ClassRegistry::clear() {
  std::vector<std::shared_ptr<const ServedClass>> going;  // the last owner unloads code: no lock
  const MutexLock lock(mutex_);
  going.reserve(segments_.size());
  for (auto& [segment, known] : segments_) going.push_back(std::exchange(known.served, nullptr));
}

std::shared_ptr<const ServedClass> find_by_any_name(const ClassRegistry& classes,
                                                    std::string_view name) {
  auto served = classes.find_for_client(name);
  return served != nullptr ? served : classes.find_by_name(name);
}

}  // namespace hearth::runtime
