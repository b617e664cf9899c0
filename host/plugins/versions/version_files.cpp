#include "plugins/versions/version_files.hpp"

#include "base/escape.hpp"
#include "base/files.hpp"
#include "json/json.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace hearth::plugins {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxVersionFile = std::size_t{8} << 20U;
constexpr std::size_t kHashDigits = 64;

// A hash becomes a part of a path: a file edited by hand must not lead to another directory.
bool is_hash(std::string_view text) {
  return text.size() == kHashDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::int64_t number_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

bool truth_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// The objects in a list. A file edited by hand may have other values there.
std::vector<Json> objects_in(const Json& file, const char* key) {
  const auto found = file.find(key);
  if (found == file.end() || !found->is_array()) return {};
  std::vector<Json> objects;
  std::ranges::copy_if(*found, std::back_inserter(objects),
                       [](const Json& each) { return each.is_object(); });
  return objects;
}

// ---- one entry of each list ---------------------------------------------------------------------

Place::NotServed read_not_served(const Json& held) {
  return {.sha256 = text_member(held, "sha256"),
          .reason = text_member(held, "reason"),
          .may_retry = truth_in(held, "may_retry")};
}

Json written(const Place::NotServed& held) {
  return {{"sha256", held.sha256}, {"reason", held.reason}, {"may_retry", held.may_retry}};
}

Place read_place(const Json& each) {
  Place place;
  place.file = text_member(each, "file");
  place.proven = text_member(each, "proven");
  place.superseded = text_member(each, "superseded");
  place.on_trial = text_member(each, "on_trial");
  const auto held = each.find("not_served");
  if (held != each.end() && held->is_object()) place.not_served = read_not_served(*held);
  for (const Json& what : objects_in(each, "condemned"))
    place.condemned.push_back(read_not_served(what));
  return place;
}

Json written(const Place& place) {
  Json each = {{"file", place.file}, {"proven", place.proven}, {"on_trial", place.on_trial}};
  if (!place.superseded.empty()) each["superseded"] = place.superseded;
  if (place.not_served) each["not_served"] = written(*place.not_served);
  for (const Place::NotServed& what : place.condemned) each["condemned"].push_back(written(what));
  return each;
}

ClassFacts read_class(const Json& each) {
  ClassFacts facts;
  facts.agent_class = text_member(each, "class");
  facts.sha256 = text_member(each, "sha256");
  facts.library = text_member(each, "library");
  facts.reason = text_member(each, "reason");
  facts.call = text_member(each, "call");
  facts.since_ms = number_in(each, "since_ms");
  facts.is_quarantined = truth_in(each, "quarantined");
  facts.is_barred = truth_in(each, "barred") && facts.is_quarantined;
  facts.released_by = text_member(each, "released_by");
  const auto crashes = each.find("crashes_ms");
  if (crashes == each.end() || !crashes->is_array()) return facts;
  for (const Json& time : *crashes) {
    if (time.is_number_integer()) facts.crashes_ms.push_back(time.get<std::int64_t>());
  }
  return facts;
}

Json written(const ClassFacts& facts) {
  Json each = {{"class", facts.agent_class}, {"sha256", facts.sha256}};
  if (!facts.crashes_ms.empty()) each["crashes_ms"] = facts.crashes_ms;
  if (!facts.released_by.empty()) each["released_by"] = facts.released_by;
  if (!facts.is_quarantined) return each;
  each["quarantined"] = true;
  each["library"] = facts.library;
  each["reason"] = facts.reason;
  each["call"] = facts.call;
  each["since_ms"] = facts.since_ms;
  each["barred"] = facts.is_barred;
  return each;
}

ContentFacts read_content(const Json& each) {
  return {
      .sha256 = text_member(each, "sha256"),
      .rule = text_member(each, "rule"),
      .reason = text_member(each, "reason"),
      .host = text_member(each, "host"),
      .crashes = static_cast<std::uint64_t>(std::max<std::int64_t>(number_in(each, "crashes"), 0))};
}

Json written(const ContentFacts& facts) {
  return {{"sha256", facts.sha256},
          {"rule", facts.rule},
          {"reason", facts.reason},
          {"host", facts.host},
          {"crashes", facts.crashes}};
}

std::optional<SettingsFacts::Proven> read_settings(const Json& each, const char* key) {
  const auto found = each.find(key);
  if (found == each.end() || !found->is_object()) return std::nullopt;
  return SettingsFacts::Proven{.hash = text_member(*found, "hash"),
                               .file = text_member(*found, "file"),
                               .text = text_member(*found, "text")};
}

Json written(const SettingsFacts::Proven& settings) {
  return {{"hash", settings.hash}, {"file", settings.file}, {"text", settings.text}};
}

SettingsFacts read_settings_facts(const Json& each) {
  SettingsFacts facts;
  facts.agent_class = text_member(each, "class");
  facts.on_trial = text_member(each, "on_trial");
  facts.proven = read_settings(each, "proven").value_or(SettingsFacts::Proven{});
  facts.superseded = read_settings(each, "superseded");
  if (const auto found = each.find("taken_back"); found != each.end() && found->is_object()) {
    facts.taken_back = {.hash = text_member(*found, "hash"),
                        .reason = text_member(*found, "reason")};
  }
  return facts;
}

Json written(const SettingsFacts& facts) {
  Json each = {{"class", facts.agent_class},
               {"proven", written(facts.proven)},
               {"on_trial", facts.on_trial}};
  if (facts.superseded) each["superseded"] = written(*facts.superseded);
  if (facts.taken_back) {
    each["taken_back"] = {{"hash", facts.taken_back->hash}, {"reason", facts.taken_back->reason}};
  }
  return each;
}

template <class T>
Json all_written(const std::vector<T>& entries) {
  Json list = Json::array();
  for (const T& each : entries) list.push_back(written(each));
  return list;
}

// ---- whole files --------------------------------------------------------------------------------

// The object in the file. It must have a list of places. Absent: there is no such file, or it is
// unreadable, which `stored` says.
std::optional<Json> read_object(const fs::path& file, StoredVersions& stored) {
  const auto text = read_file(file, kMaxVersionFile);
  if (!text && text.error().code == Errc::kNotFound) return std::nullopt;
  const auto fail = [&](Error why) {
    stored.unreadable.push_back({.file = file, .why = std::move(why)});
    return std::nullopt;
  };
  if (!text) return fail(text.error());
  auto object = parse_json(*text);
  const auto is_ours = [&] {
    if (!object || !object->is_object()) return false;
    const auto found = object->find("places");
    return found != object->end() && found->is_array();
  };
  if (is_ours()) return *std::move(object);
  return fail({Errc::kInvalidArgument, show_name(file.native()) + " is not what the server writes" +
                                           (object ? "" : ": " + object.error().message)});
}

void add_places(const Json& file, const fs::path& data, VersionFacts& facts) {
  for (const Json& each : objects_in(file, "places")) {
    Place place = read_place(each);
    const auto is_kept = [&data](const std::string& content) {
      return is_hash(content) && is_there(version_bytes(data, content));
    };
    if (!is_kept(place.superseded)) place.superseded.clear();
    const bool is_ours = !place.file.empty() && is_kept(place.proven);
    if (is_ours) facts.places.push_back(std::move(place));
  }
}

}  // namespace

fs::path version_file(const fs::path& data) {
  return data / "versions.json";
}

fs::path version_bytes_directory(const fs::path& data) {
  return data / "trials";
}

fs::path version_bytes(const fs::path& data, std::string_view sha256) {
  return version_bytes_directory(data) / (std::string(sha256) + ".so");
}

StoredVersions read_versions(const fs::path& data) {
  StoredVersions stored;
  const auto file = read_object(version_file(data), stored);
  if (!file) return stored;
  for (const Json& each : objects_in(*file, "contents"))
    stored.facts.contents.push_back(read_content(each));
  for (const Json& each : objects_in(*file, "classes"))
    stored.facts.classes.push_back(read_class(each));
  add_places(*file, data, stored.facts);
  for (const Json& each : objects_in(*file, "settings")) {
    SettingsFacts settings = read_settings_facts(each);
    if (!settings.agent_class.empty() && !settings.proven.hash.empty())
      stored.facts.settings.push_back(std::move(settings));
  }
  return stored;
}

std::string versions_text(const VersionFacts& facts) {
  const Json file = {{"contents", all_written(facts.contents)},
                     {"classes", all_written(facts.classes)},
                     {"places", all_written(facts.places)},
                     {"settings", all_written(facts.settings)}};
  return dump_json(file) + "\n";
}

}  // namespace hearth::plugins
