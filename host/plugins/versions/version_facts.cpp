#include "plugins/versions/version_facts.hpp"

#include "base/utf8.hpp"
#include "config/class_file.hpp"
#include "plugins/generation/plugin_generation.hpp"
#include "protocol/class_segment.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace hearth::plugins {
namespace {

constexpr std::size_t kMaxReason = 1024;

static_assert(kMaxCrashes == config::kMaxClassCrashes, "what operators are told is what holds");

std::string cut_reason(std::string_view reason) {
  reason = reason.substr(0, kMaxReason);
  return std::string(reason.substr(0, valid_utf8_prefix(reason)));
}

bool is_of_library(std::string_view call) {
  return std::ranges::find(kLibraryCalls, call) != kLibraryCalls.end();
}

// ---- content ------------------------------------------------------------------------------------

ContentFacts& content_of(VersionFacts& facts, const std::string& sha256) {
  const auto found = std::ranges::find(facts.contents, sha256, &ContentFacts::sha256);
  if (found != facts.contents.end()) return *found;
  if (facts.contents.size() >= kMaxContents) facts.contents.erase(facts.contents.begin());
  return facts.contents.emplace_back(
      ContentFacts{.sha256 = sha256, .rule = {}, .reason = {}, .host = {}});
}

void forgive_contents(VersionFacts& facts,
                      const std::function<bool(const ContentFacts&)>& is_meant) {
  for (ContentFacts& each : facts.contents) {
    if (is_meant(each)) each.rule = each.reason = each.host = std::string();
  }
  std::erase_if(facts.contents,
                [](const ContentFacts& each) { return each.rule.empty() && each.crashes == 0; });
}

// ---- class --------------------------------------------------------------------------------------

void trim_classes(VersionFacts& facts) {
  const auto trim = [&facts](const auto& is_one) {
    for (auto count = std::ranges::count_if(facts.classes, is_one);
         std::cmp_greater(count, kMaxQuarantined); --count)
      facts.classes.erase(std::ranges::find_if(facts.classes, is_one));
  };
  trim([](const ClassFacts& each) { return each.is_quarantined; });
  trim([](const ClassFacts& each) { return !each.is_quarantined && !each.released_by.empty(); });
  std::erase_if(facts.classes, [](const ClassFacts& each) {
    return !each.is_quarantined && each.crashes_ms.empty() && each.released_by.empty();
  });
}

void count(ClassFacts& known, const diagnosis::CrashRecord& crash) {
  known.crashes_ms.push_back(crash.time_ms);
  // The library has started a thread although none of its classes was served.
  const bool starts_threads = known.is_quarantined && known.call == diagnosis::kOwnThread &&
                              crash.call == diagnosis::kOwnThread;
  if (known.crashes_ms.size() <= kMaxCrashes && crash.reason != diagnosis::kHung && !starts_threads)
    return;
  known.crashes_ms.clear();  // after a release it counts from zero
  const bool is_barred = starts_threads || is_of_library(crash.call);
  if (known.is_quarantined && (known.is_barred || !is_barred)) return;
  known.is_quarantined = true;
  known.library = crash.library;
  known.reason = crash.reason;
  known.call = crash.call;
  known.since_ms = crash.time_ms;
  known.is_barred = is_barred;
}

void count_class(VersionFacts& facts, const diagnosis::CrashRecord& crash, std::string name) {
  if (name.empty()) return;
  ClassFacts known;
  const auto found = std::ranges::find_if(facts.classes, [&](const ClassFacts& each) {
    return each.agent_class == name && each.sha256 == crash.sha256;
  });
  if (found == facts.classes.end()) {
    known.agent_class = std::move(name);
    known.sha256 = crash.sha256;
    count(known, crash);
    facts.classes.push_back(std::move(known));
    return;
  }
  known = *found;
  count(known, crash);
  if (known.since_ms == found->since_ms && known.is_barred == found->is_barred) {
    *found = std::move(known);
  } else {  // keeps the order: the latest in quarantine is last
    facts.classes.erase(found);
    facts.classes.push_back(std::move(known));
  }
}

// The classes that a record names, separated by commas.
std::vector<std::string> classes_in(const diagnosis::CrashRecord& crash) {
  std::vector<std::string> names;
  for (std::size_t from = 0; from <= crash.agent_class.size();) {
    const std::size_t end = std::min(crash.agent_class.find(',', from), crash.agent_class.size());
    names.push_back(crash.agent_class.substr(from, end - from));
    from = end + 1;
  }
  return names;
}

void count_classes(VersionFacts& facts, const diagnosis::CrashRecord& crash) {
  for (ClassFacts& each : facts.classes) {
    // A crash in the future was recorded while the clock was wrong: it would never become old.
    std::erase_if(each.crashes_ms, [&crash](std::int64_t time_ms) {
      return time_ms > crash.time_ms || time_ms < crash.time_ms - kCrashWindowMs;
    });
  }
  for (std::string& name : classes_in(crash)) count_class(facts, crash, std::move(name));
}

// ---- place --------------------------------------------------------------------------------------

void add_condemned(Place& place, const Place::NotServed& what) {
  std::erase_if(place.condemned, [&what](const auto& each) { return each.sha256 == what.sha256; });
  if (place.condemned.size() >= kMaxCondemned) place.condemned.erase(place.condemned.begin());
  place.condemned.push_back(what);
}

// Stores what `change` leaves; absent: the place is removed. The latest change is last.
void change_place(VersionFacts& facts, std::string_view file,
                  const std::function<void(std::optional<Place>&)>& change) {
  const auto found = std::ranges::find(facts.places, file, &Place::file);
  std::optional<Place> place;
  if (found != facts.places.end()) {
    place = std::move(*found);
    facts.places.erase(found);
  }
  change(place);
  if (place) facts.places.push_back(*std::move(place));
}

// The known place if `served` is its proven content or on trial. Otherwise a new one. Content that
// is on trial when the operator replaces it is the last good one: nothing is known against it.
Place place_of(std::optional<Place>& known, const std::string& file, const std::string& served) {
  if (known && (known->proven == served || known->on_trial == served)) {
    known->superseded = known->proven == served ? std::string() : served;
    return *std::move(known);
  }
  Place place;
  place.file = file;
  place.proven = served;
  return place;
}

// What was on trial has failed: the last good content is on trial again, unless it is what failed.
void fall_back(Place& place, const std::string& failed) {
  if (place.superseded == failed) place.superseded.clear();
  place.on_trial = place.superseded;
}

void allow(VersionFacts& facts, const std::string& sha256) {
  const auto is_meant = [&sha256](const auto& each) { return each.sha256 == sha256; };
  forgive_contents(facts, is_meant);
  for (Place& place : facts.places) {
    std::erase_if(place.condemned, is_meant);
    if (place.not_served && is_meant(*place.not_served)) place.not_served->may_retry = true;
  }
}

// ---- settings -----------------------------------------------------------------------------------

// Stores what `change` leaves; absent: the entry is removed. The latest change is last.
void change_settings(VersionFacts& facts, std::string_view agent_class,
                     const std::function<void(std::optional<SettingsFacts>&)>& change) {
  const auto found = std::ranges::find(facts.settings, agent_class, &SettingsFacts::agent_class);
  std::optional<SettingsFacts> known;
  if (found != facts.settings.end()) {
    known = std::move(*found);
    facts.settings.erase(found);
  }
  change(known);
  if (!known) return;
  if (facts.settings.size() >= kMaxSettings) facts.settings.erase(facts.settings.begin());
  facts.settings.push_back(*std::move(known));
}

// The known entry if `served` is proven, superseded or on trial in it. Otherwise a new one.
SettingsFacts settings_of(std::optional<SettingsFacts>& known, const std::string& agent_class,
                          const SettingsFacts::Proven& served) {
  const bool is_superseded = known && known->superseded && known->superseded->hash == served.hash;
  if (known &&
      (known->proven.hash == served.hash || known->on_trial == served.hash || is_superseded)) {
    known->superseded.reset();
    if (known->proven.hash != served.hash) known->superseded = served;
    return *std::move(known);
  }
  SettingsFacts settings;
  settings.agent_class = agent_class;
  settings.proven = served;
  return settings;
}

void fall_back(SettingsFacts& settings, const std::string& failed) {
  if (settings.superseded && settings.superseded->hash == failed) settings.superseded.reset();
  settings.on_trial = settings.superseded ? settings.superseded->hash : std::string();
}

// True if settings were on trial.
bool take_settings_back(VersionFacts& facts, const diagnosis::CrashRecord& crash,
                        const std::string& reason) {
  if (is_of_library(crash.call)) return false;
  bool were_tried = false;
  for (const std::string& name : classes_in(crash)) {
    const SettingsFacts* const known = facts.find_settings(protocol::kebab_case(name));
    if (known == nullptr || known->on_trial.empty()) continue;
    were_tried = true;
    change_settings(facts, std::string(known->agent_class), [&](auto& settings) {
      const std::string failed = settings->on_trial;
      fall_back(*settings, failed);
      settings->taken_back = {.hash = failed, .reason = reason};
    });
  }
  return were_tried;
}

// ---- one function for each event ----------------------------------------------------------------

void apply(VersionFacts& facts, const HostStarted& event) {
  forgive_contents(facts, [&event](const ContentFacts& each) {
    return each.host != event.host || each.rule == "P2";
  });
}

void apply(VersionFacts& facts, const ContentRefused& event) {
  ContentFacts& content = content_of(facts, event.sha256);
  if (!content.rule.empty()) return;
  content.rule = event.rule;
  content.reason = cut_reason(event.reason);
  content.host = event.host;
}

void apply(VersionFacts& facts, const ProcessCrashed& event) {
  const diagnosis::CrashRecord& crash = event.crash;
  if (crash.sha256.empty()) return;
  ++content_of(facts, crash.sha256).crashes;
  const std::string where = crash.call.empty() ? std::string() : " in " + crash.call;
  const std::string how = "ended the server (" + crash.reason + where + ")";
  const bool is_new_code =
      std::ranges::find(facts.places, crash.sha256, &Place::on_trial) != facts.places.end();
  const bool are_settings =
      !is_new_code &&
      take_settings_back(facts, crash, cut_reason("an agent " + how + " when they were tried"));
  if (!crash.agent_class.empty() && !are_settings) count_classes(facts, crash);
  trim_classes(facts);
  const Place::NotServed what{.sha256 = crash.sha256,
                              .reason = cut_reason("it " + how + " when it was tried"),
                              .may_retry = false};
  for (Place& place : facts.places) {
    if (place.on_trial != crash.sha256) continue;
    fall_back(place, crash.sha256);
    add_condemned(place, what);
    if (!place.not_served) place.not_served = what;
  }
}

void apply(VersionFacts& facts, const ClassReleased& event) {
  std::vector<std::string> barred;  // content
  std::vector<std::string> contents;
  for (const ClassFacts& each : facts.classes) {
    if (each.agent_class != event.agent_class || !each.is_quarantined) continue;
    contents.push_back(each.sha256);
    if (each.is_barred) barred.push_back(each.sha256);
  }
  for (ClassFacts& each : facts.classes) {
    const bool is_named = each.agent_class == event.agent_class;
    const bool is_held_with_it =
        each.is_barred && std::ranges::find(barred, each.sha256) != barred.end();
    if (!is_named && !is_held_with_it) continue;
    ClassFacts released;
    released.agent_class = each.agent_class;
    released.sha256 = each.sha256;
    released.released_by = each.is_quarantined ? event.by : each.released_by;
    each = std::move(released);
  }
  trim_classes(facts);
  for (const std::string& sha256 : contents) allow(facts, sha256);
}

void apply(VersionFacts& facts, const ContentAllowed& event) {
  allow(facts, event.sha256);
}

void apply(VersionFacts& facts, const TrialBegun& event) {
  change_place(facts, event.file, [&event](std::optional<Place>& place) {
    place = place_of(place, event.file, event.served);
    place->on_trial = event.next;
    place->not_served.reset();
    if (place->proven == event.next) place.reset();
  });
}

void apply(VersionFacts& facts, const TrialLost& event) {
  Place::NotServed what = event.what;
  what.reason = cut_reason(what.reason);
  if (facts.find_place(event.file) == nullptr) {
    if (!what.may_retry)
      apply(facts,
            ContentRefused{.sha256 = what.sha256, .rule = "R1", .reason = what.reason, .host = {}});
    return;
  }
  change_place(facts, event.file, [&](std::optional<Place>& place) {
    const bool is_proven = event.goes_on == place->proven;
    place->on_trial = is_proven ? std::string() : event.goes_on;
    if (is_proven || place->superseded == what.sha256) place->superseded.clear();
    if (!what.may_retry) add_condemned(*place, what);
    place->not_served = std::move(what);
  });
}

void apply(VersionFacts& facts, const TrialPassed& event) {
  const Place* const known = facts.find_place(event.file);
  if (known == nullptr || known->on_trial != event.sha256) return;
  change_place(facts, event.file, [&event](std::optional<Place>& place) {
    place->on_trial.clear();
    place->superseded.clear();
    place->proven = event.sha256;
    if (!place->not_served) place.reset();
  });
}

void apply(VersionFacts& facts, const FileLost& event) {
  change_place(facts, event.file, [&event](std::optional<Place>& place) {
    place = place_of(place, event.file, event.served);
    if (!place->not_served)
      place->not_served = {.sha256 = {}, .reason = cut_reason(event.reason), .may_retry = true};
  });
}

void apply(VersionFacts& facts, const FileSettled& event) {
  const Place* const known = facts.find_place(event.file);
  if (known == nullptr || !known->not_served) return;
  change_place(facts, event.file, [](std::optional<Place>& place) {
    place->not_served.reset();
    if (place->on_trial.empty()) place.reset();
  });
}

void apply(VersionFacts& facts, const FileMet& event) {
  const Place* const known = facts.find_place(event.file);
  if (known == nullptr || facts.find_condemned(event.file, event.sha256) != nullptr) return;
  if (known->on_trial == event.sha256 && !known->not_served) return;
  change_place(facts, event.file, [&event](std::optional<Place>& place) {
    place->on_trial = event.sha256;
    place->not_served.reset();
    if (place->proven == event.sha256) place.reset();
  });
}

void apply(VersionFacts& facts, const SettingsBegun& event) {
  change_settings(facts, event.agent_class, [&event](auto& settings) {
    settings = settings_of(settings, event.agent_class, event.served);
    settings->on_trial = event.next;
    settings->taken_back.reset();
    if (settings->proven.hash == event.next) settings.reset();
  });
}

void apply(VersionFacts& facts, const SettingsLost& event) {
  change_settings(facts, event.agent_class, [&event](auto& settings) {
    settings = settings_of(settings, event.agent_class, event.goes_on);
    const bool is_proven = settings->proven.hash == event.goes_on.hash;
    settings->on_trial = is_proven ? std::string() : event.goes_on.hash;
    settings->taken_back = {.hash = event.what.hash, .reason = cut_reason(event.what.reason)};
  });
}

void apply(VersionFacts& facts, const SettingsPassed& event) {
  const SettingsFacts* const known = facts.find_settings(event.agent_class);
  if (known == nullptr || known->on_trial != event.settings.hash) return;
  change_settings(facts, event.agent_class, [&event](auto& settings) {
    settings->on_trial.clear();
    settings->superseded.reset();
    settings->proven = event.settings;
    if (!settings->taken_back) settings.reset();
  });
}

void apply(VersionFacts& facts, const SettingsSettled& event) {
  if (facts.find_settings(event.agent_class) == nullptr) return;
  change_settings(facts, event.agent_class, [](auto& settings) {
    settings->taken_back.reset();
    if (settings->on_trial.empty()) settings.reset();
  });
}

void apply(VersionFacts& facts, const SettingsAllowed& event) {
  const SettingsFacts* const known = facts.find_settings(event.agent_class);
  if (known == nullptr || !known->taken_back) return;
  change_settings(facts, event.agent_class, [](auto& settings) { settings->taken_back.reset(); });
}

void apply(VersionFacts& facts, const SettingsMet& event) {
  const SettingsFacts* const known = facts.find_settings(event.agent_class);
  if (known == nullptr) return;
  if (known->taken_back && known->taken_back->hash == event.hash) return;
  if (known->on_trial == event.hash && !known->taken_back) return;
  change_settings(facts, event.agent_class, [&event](auto& settings) {
    settings->on_trial = event.hash;
    settings->taken_back.reset();
    if (settings->proven.hash == event.hash) settings.reset();
  });
}

}  // namespace

const ContentFacts* VersionFacts::find_content(std::string_view sha256) const {
  const auto found = std::ranges::find(contents, sha256, &ContentFacts::sha256);
  return found == contents.end() ? nullptr : &*found;
}

const ClassFacts* VersionFacts::find_class(std::string_view agent_class,
                                           std::string_view sha256) const {
  const auto found = std::ranges::find_if(classes, [&](const ClassFacts& each) {
    return each.agent_class == agent_class && each.sha256 == sha256;
  });
  return found == classes.end() ? nullptr : &*found;
}

const Place* VersionFacts::find_place(std::string_view file) const {
  const auto found = std::ranges::find(places, file, &Place::file);
  return found == places.end() ? nullptr : &*found;
}

const SettingsFacts* VersionFacts::find_settings(std::string_view agent_class) const {
  const auto found = std::ranges::find(settings, agent_class, &SettingsFacts::agent_class);
  return found == settings.end() ? nullptr : &*found;
}

const Place::NotServed* VersionFacts::find_condemned(std::string_view file,
                                                     std::string_view sha256) const {
  const Place* const here = find_place(file);
  if (here != nullptr && here->proven == sha256) return nullptr;
  for (const Place& place : places) {
    const auto found = std::ranges::find(place.condemned, sha256, &Place::NotServed::sha256);
    if (found != place.condemned.end()) return &*found;
  }
  return nullptr;
}

const ClassFacts* VersionFacts::find_barred(std::string_view sha256) const {
  const auto found = std::ranges::find_if(classes, [sha256](const ClassFacts& each) {
    return each.sha256 == sha256 && each.is_barred;
  });
  return found == classes.end() ? nullptr : &*found;
}

VersionFacts after(VersionFacts facts, const VersionEvent& event) {
  std::visit([&facts](const auto& each) { apply(facts, each); }, event);
  return facts;
}

}  // namespace hearth::plugins
