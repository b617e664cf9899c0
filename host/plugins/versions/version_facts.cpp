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
  auto found = std::ranges::find_if(facts.classes, [&](const ClassFacts& each) {
    return each.agent_class == name && each.sha256 == crash.sha256;
  });
  if (found == facts.classes.end()) {
    found = facts.classes.emplace(found);
    found->agent_class = std::move(name);
    found->sha256 = crash.sha256;
  }
  const ClassFacts before = *found;
  count(*found, crash);
  // Keeps the order: the latest in quarantine is last.
  if (found->since_ms != before.since_ms || found->is_barred != before.is_barred)
    std::rotate(found, found + 1, facts.classes.end());
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

// ---- trials -------------------------------------------------------------------------------------

bool is_of_settings(const Trial& trial) {
  return trial.of.kind == Subject::Kind::kSettings;
}

// Stores what `change` leaves; absent: the trial is over. The latest change is last.
void change_trial(VersionFacts& facts, const Subject& of,
                  const std::function<void(std::optional<Trial>&)>& change) {
  std::optional<Trial> trial;
  const auto found = std::ranges::find(facts.trials, of, &Trial::of);
  if (found != facts.trials.end()) {
    trial = std::move(*found);
    facts.trials.erase(found);
  }
  change(trial);
  if (!trial) return;
  if (is_of_settings(*trial) &&
      std::cmp_greater_equal(std::ranges::count_if(facts.trials, is_of_settings), kMaxSettings))
    facts.trials.erase(std::ranges::find_if(facts.trials, is_of_settings));
  facts.trials.push_back(*std::move(trial));
}

bool has(const Trial& trial, const Kept& version) {
  return trial.proven.hash == version.hash || trial.on_trial == version.hash ||
         trial.superseded.hash == version.hash;
}

// The known trial if `served` is in it. Otherwise a new one. What is on trial when it is replaced
// is the last good one: nothing is known against it.
Trial trial_with(std::optional<Trial>& known, const Subject& of, const Kept& served) {
  if (!known || !has(*known, served)) return {.of = of, .proven = served};
  known->superseded = known->proven.hash == served.hash ? Kept() : served;
  return *std::move(known);
}

void condemn(Trial& trial, const Trial::NotServed& what) {
  if (what.may_retry || is_of_settings(trial)) return;
  std::erase_if(trial.condemned, [&what](const auto& each) { return each.hash == what.hash; });
  if (trial.condemned.size() >= kMaxCondemned) trial.condemned.erase(trial.condemned.begin());
  trial.condemned.push_back(what);
}

// What is on trial has crashed: the last good one is on trial again, unless it is what crashed.
void fall_back(Trial& trial, const std::string& reason) {
  const Trial::NotServed what{.hash = trial.on_trial, .reason = cut_reason(reason)};
  if (trial.superseded.hash == what.hash) trial.superseded = {};
  trial.on_trial = trial.superseded.hash;
  condemn(trial, what);
  if (!trial.not_served) trial.not_served = what;
}

void allow(VersionFacts& facts, const std::string& sha256) {
  forgive_contents(facts, [&sha256](const auto& each) { return each.sha256 == sha256; });
  const auto is_meant = [&sha256](const auto& each) { return each.hash == sha256; };
  for (Trial& trial : facts.trials) {
    std::erase_if(trial.condemned, is_meant);
    if (trial.not_served && is_meant(*trial.not_served)) trial.not_served->may_retry = true;
  }
}

// True if settings were on trial.
bool take_settings_back(VersionFacts& facts, const diagnosis::CrashRecord& crash,
                        const std::string& how) {
  if (is_of_library(crash.call)) return false;
  bool were_tried = false;
  for (const std::string& name : classes_in(crash)) {
    for (Trial& trial : facts.trials) {
      if (!is_of_settings(trial) || trial.of.name != protocol::kebab_case(name) ||
          trial.on_trial.empty())
        continue;
      were_tried = true;
      fall_back(trial, "an agent " + how + " when they were tried");
    }
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
      std::ranges::find(facts.trials, crash.sha256, &Trial::on_trial) != facts.trials.end();
  const bool are_settings = !is_new_code && take_settings_back(facts, crash, how);
  if (!crash.agent_class.empty() && !are_settings) count_classes(facts, crash);
  trim_classes(facts);
  for (Trial& trial : facts.trials) {
    if (trial.on_trial == crash.sha256) fall_back(trial, "it " + how + " when it was tried");
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
  change_trial(facts, event.of, [&event](std::optional<Trial>& trial) {
    trial = trial_with(trial, event.of, event.served);
    trial->on_trial = event.next;
    trial->not_served.reset();
    if (trial->proven.hash == event.next) trial.reset();
  });
}

void apply(VersionFacts& facts, const TrialLost& event) {
  Trial::NotServed what = event.what;
  what.reason = cut_reason(what.reason);
  if (event.of.kind == Subject::Kind::kCode && facts.find_trial(event.of) == nullptr) {
    if (!what.may_retry)
      apply(facts,
            ContentRefused{.sha256 = what.hash, .rule = "R1", .reason = what.reason, .host = {}});
    return;
  }
  change_trial(facts, event.of, [&](std::optional<Trial>& trial) {
    if (!trial || (is_of_settings(*trial) && !has(*trial, event.goes_on)))
      trial = Trial{.of = event.of, .proven = event.goes_on};
    const bool is_proven = event.goes_on.hash == trial->proven.hash;
    trial->on_trial = is_proven ? std::string() : event.goes_on.hash;
    if (is_proven || trial->superseded.hash == what.hash) trial->superseded = {};
    condemn(*trial, what);
    // What goes on may have failed before: then the version before it has failed too.
    const auto goes_on = [&event](const auto& each) { return each.hash == event.goes_on.hash; };
    std::erase_if(trial->condemned, goes_on);
    if (trial->not_served && goes_on(*trial->not_served)) {
      trial->not_served.reset();
    } else {
      trial->not_served = std::move(what);
    }
  });
}

void apply(VersionFacts& facts, const TrialPassed& event) {
  const Trial* const known = facts.find_trial(event.of);
  if (known == nullptr || known->on_trial != event.version.hash) return;
  change_trial(facts, event.of, [&event](std::optional<Trial>& trial) {
    trial->on_trial.clear();
    trial->superseded = {};
    trial->proven = event.version;
    if (!trial->not_served) trial.reset();
  });
}

void apply(VersionFacts& facts, const TrialSettled& event) {
  const Trial* const known = facts.find_trial(event.of);
  if (known == nullptr || !known->not_served) return;
  change_trial(facts, event.of, [](std::optional<Trial>& trial) {
    trial->not_served.reset();
    if (trial->on_trial.empty()) trial.reset();
  });
}

void apply(VersionFacts& facts, const TrialMet& event) {
  const Trial* const known = facts.find_trial(event.of);
  if (known == nullptr || facts.find_condemned(event.of, event.hash) != nullptr) return;
  if (known->on_trial == event.hash && !known->not_served) return;
  change_trial(facts, event.of, [&event](std::optional<Trial>& trial) {
    trial->on_trial = event.hash;
    trial->not_served.reset();
    if (trial->proven.hash == event.hash) trial.reset();
  });
}

void apply(VersionFacts& facts, const TrialAllowed& event) {
  for (Trial& trial : facts.trials) {
    if (trial.of == event.of && trial.not_served) trial.not_served->may_retry = true;
  }
}

void apply(VersionFacts& facts, const FileLost& event) {
  change_trial(facts, event.of, [&event](std::optional<Trial>& trial) {
    trial = trial_with(trial, event.of, event.served);
    if (!trial->not_served)
      trial->not_served = {.hash = {}, .reason = cut_reason(event.reason), .may_retry = true};
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

const Trial* VersionFacts::find_trial(const Subject& of) const {
  const auto found = std::ranges::find(trials, of, &Trial::of);
  return found == trials.end() ? nullptr : &*found;
}

const Trial::NotServed* VersionFacts::find_condemned(const Subject& of,
                                                     std::string_view hash) const {
  const Trial* const here = find_trial(of);
  if (here != nullptr && here->proven.hash == hash) return nullptr;
  const Trial::NotServed* const failed = here == nullptr ? nullptr : here->taken_back();
  if (failed != nullptr && failed->hash == hash) return failed;
  for (const Trial& trial : trials) {
    const auto found = std::ranges::find(trial.condemned, hash, &Trial::NotServed::hash);
    if (found != trial.condemned.end()) return &*found;
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
