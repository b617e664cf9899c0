#include "plugins/versions/quarantine.hpp"

#include "base/escape.hpp"
#include "base/files.hpp"
#include "json/json.hpp"
#include "plugins/generation/plugin_generation.hpp"
#include "protocol/class_segment.hpp"

#include <algorithm>
#include <utility>

namespace hearth::plugins {
namespace {

constexpr std::size_t kMaxQuarantineFileBytes = std::size_t{1} << 20;

std::int64_t number_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

bool truth_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// The objects of a list; a file that was edited by hand may have anything there.
std::vector<Json> objects_in(const Json& file, const char* key) {
  const auto found = file.find(key);
  if (found == file.end() || !found->is_array()) return {};
  std::vector<Json> objects;
  std::ranges::copy_if(*found, std::back_inserter(objects),
                       [](const Json& each) { return each.is_object(); });
  return objects;
}

// Whether whoever loads such a library is there again.
bool is_of_library(std::string_view call) {
  return std::ranges::find(kLibraryCalls, call) != kLibraryCalls.end();
}

}  // namespace

Result<Quarantine> Quarantine::load(const std::filesystem::path& data) {
  Quarantine quarantine = none(data);
  const auto text = read_file(quarantine.file_, kMaxQuarantineFileBytes);
  if (!text) {
    if (text.error().code == Errc::kNotFound) return quarantine;
    return text.error();
  }
  const auto file = parse_json(*text);
  if (!file || !file->is_object()) {
    return Error{Errc::kInvalidArgument, quarantine.file_.native() +
                                             " is not what the server writes: " +
                                             (file ? "it is no object" : file.error().message)};
  }
  for (const Json& each : objects_in(*file, "crashes")) {
    quarantine.crashes_.push_back({.agent_class = text_member(each, "class"),
                                   .sha256 = text_member(each, "sha256"),
                                   .time_ms = number_in(each, "time_ms")});
  }
  for (const Json& each : objects_in(*file, "quarantined")) {
    quarantine.held_.push_back({.agent_class = text_member(each, "class"),
                                .sha256 = text_member(each, "sha256"),
                                .library = text_member(each, "library"),
                                .reason = text_member(each, "reason"),
                                .call = text_member(each, "call"),
                                .is_barred = truth_in(each, "barred"),
                                .since_ms = number_in(each, "since_ms")});
  }
  return quarantine;
}

bool Quarantine::count(const diagnosis::CrashRecord& crash) {
  if (crash.agent_class.empty() || crash.sha256.empty()) return false;
  // One that lies ahead was written while the clock was wrong: it would never become old.
  std::erase_if(crashes_, [&crash](const Crash& each) {
    return each.time_ms > crash.time_ms || each.time_ms < crash.time_ms - kWindowMs;
  });
  bool is_new = false;
  for (std::size_t from = 0; from <= crash.agent_class.size();) {
    const std::size_t end = std::min(crash.agent_class.find(',', from), crash.agent_class.size());
    is_new = count(crash, crash.agent_class.substr(from, end - from)) || is_new;
    from = end + 1;
  }
  return is_new;
}

bool Quarantine::count(const diagnosis::CrashRecord& crash, const std::string& agent_class) {
  if (agent_class.empty()) return false;
  crashes_.push_back(
      {.agent_class = agent_class, .sha256 = crash.sha256, .time_ms = crash.time_ms});
  const auto is_same = [&](const Crash& each) {
    return each.agent_class == agent_class && each.sha256 == crash.sha256;
  };
  const auto times = static_cast<std::size_t>(std::ranges::count_if(crashes_, is_same));
  const auto held = std::ranges::find_if(held_, [&](const QuarantinedClass& each) {
    return each.agent_class == agent_class && each.sha256 == crash.sha256;
  });
  // No class of it was served, and yet it has started a thread.
  const bool starts_threads = held != held_.end() && held->call == diagnosis::kOwnThread &&
                              crash.call == diagnosis::kOwnThread;
  if (times <= kMaxCrashes && crash.reason != diagnosis::kHung && !starts_threads) return false;
  std::erase_if(crashes_, is_same);  // whoever releases it gives it a new chance
  const bool is_barred = starts_threads || is_of_library(crash.call);
  if (held != held_.end()) {
    if (held->is_barred || !is_barred) return false;
    held_.erase(held);
  }
  if (held_.size() >= kMaxEntries) held_.erase(held_.begin());
  held_.push_back({.agent_class = agent_class,
                   .sha256 = crash.sha256,
                   .library = crash.library,
                   .reason = crash.reason,
                   .call = crash.call,
                   .is_barred = is_barred,
                   .since_ms = crash.time_ms});
  return true;
}

bool Quarantine::holds(std::string_view agent_class, std::string_view sha256) const {
  return std::ranges::any_of(held_, [&](const QuarantinedClass& each) {
    return each.agent_class == agent_class && each.sha256 == sha256;
  });
}

const QuarantinedClass* Quarantine::find_barred(std::string_view sha256) const {
  const auto found = std::ranges::find_if(held_, [sha256](const QuarantinedClass& each) {
    return each.sha256 == sha256 && each.is_barred;
  });
  return found == held_.end() ? nullptr : &*found;
}

bool Quarantine::release(std::string_view agent_class) {
  // Those that are held with it.
  std::vector<QuarantinedClass> others;
  for (const QuarantinedClass& each : held_) {
    if (!each.is_barred || each.agent_class == agent_class) continue;
    if (std::ranges::any_of(held_, [&](const QuarantinedClass& named) {
          return named.agent_class == agent_class && named.sha256 == each.sha256 && named.is_barred;
        }))
      others.push_back(each);
  }
  for (const QuarantinedClass& each : others) {
    const auto is_same = [&each](const auto& other) {
      return other.agent_class == each.agent_class && other.sha256 == each.sha256;
    };
    std::erase_if(crashes_, is_same);
    std::erase_if(held_, is_same);
  }
  const auto is_of_class = [agent_class](const auto& each) {
    return each.agent_class == agent_class;
  };
  std::erase_if(crashes_, is_of_class);
  return std::erase_if(held_, is_of_class) > 0;
}

Result<void> Quarantine::save() const {
  Json crashes = Json::array();
  for (const Crash& each : crashes_) {
    crashes.push_back(
        {{"class", each.agent_class}, {"sha256", each.sha256}, {"time_ms", each.time_ms}});
  }
  Json held = Json::array();
  for (const QuarantinedClass& each : held_) {
    held.push_back({{"class", each.agent_class},
                    {"sha256", each.sha256},
                    {"library", each.library},
                    {"reason", each.reason},
                    {"call", each.call},
                    {"barred", each.is_barred},
                    {"since_ms", each.since_ms}});
  }
  const Json file = {{"crashes", std::move(crashes)}, {"quarantined", std::move(held)}};
  return write_file_atomically(file_, dump_json(file) + "\n", std::filesystem::perms{0600});
}

Result<std::vector<QuarantinedClass>> release_class(Quarantine& quarantine,
                                                    const std::string& given) {
  constexpr std::size_t kMaxShown = 128;
  const std::string segment = protocol::kebab_case(given);
  std::vector<QuarantinedClass> held;
  for (const QuarantinedClass& each : quarantine.all()) {
    if (protocol::kebab_case(each.agent_class) == segment) held.push_back(each);
  }
  if (held.empty())
    return Error{Errc::kNotFound,
                 "the class " + quote_text(given, kMaxShown) + " is not in quarantine"};
  for (const QuarantinedClass& each : held) quarantine.release(each.agent_class);
  return held;
}

}  // namespace hearth::plugins
