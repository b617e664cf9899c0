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

std::optional<Json> object_in(const Json& each, const char* key) {
  const auto found = each.find(key);
  return found != each.end() && found->is_object() ? std::optional(*found) : std::nullopt;
}

Trial::NotServed read_not_served(const Json& held) {
  return {.hash = text_member(held, "hash"),
          .reason = text_member(held, "reason"),
          .may_retry = truth_in(held, "may_retry")};
}

Json written(const Trial::NotServed& held) {
  return {{"hash", held.hash}, {"reason", held.reason}, {"may_retry", held.may_retry}};
}

Kept read_kept(const Json& each, const char* key) {
  const Json kept = object_in(each, key).value_or(Json::object());
  return {.hash = text_member(kept, "hash"),
          .file = text_member(kept, "file"),
          .text = text_member(kept, "text")};
}

Json written(const Kept& kept) {
  return {{"hash", kept.hash}, {"file", kept.file}, {"text", kept.text}};
}

// A trial names its library or its class.
Trial read_trial(const Json& each) {
  Trial trial{.of = {.name = text_member(each, "library")}, .proven = read_kept(each, "proven")};
  if (trial.of.name.empty())
    trial.of = {.kind = Subject::Kind::kSettings, .name = text_member(each, "class")};
  trial.superseded = read_kept(each, "superseded");
  trial.on_trial = text_member(each, "on_trial");
  if (const auto held = object_in(each, "not_served")) trial.not_served = read_not_served(*held);
  for (const Json& what : objects_in(each, "condemned"))
    trial.condemned.push_back(read_not_served(what));
  return trial;
}

Json written(const Trial& trial) {
  Json each = {{trial.of.kind == Subject::Kind::kCode ? "library" : "class", trial.of.name},
               {"proven", written(trial.proven)},
               {"on_trial", trial.on_trial}};
  if (!trial.superseded.hash.empty()) each["superseded"] = written(trial.superseded);
  if (trial.not_served) each["not_served"] = written(*trial.not_served);
  for (const Trial::NotServed& what : trial.condemned) each["condemned"].push_back(written(what));
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

template <class T>
Json all_written(const std::vector<T>& entries) {
  Json list = Json::array();
  for (const T& each : entries) list.push_back(written(each));
  return list;
}

// ---- the whole file -----------------------------------------------------------------------------

// Content to go back to has its bytes.
void add_trials(const Json& file, const fs::path& data, VersionFacts& facts) {
  for (const Json& each : objects_in(file, "trials")) {
    Trial trial = read_trial(each);
    const auto is_kept = [&](const Kept& kept) {
      return trial.of.kind == Subject::Kind::kSettings
                 ? !kept.hash.empty()
                 : is_hash(kept.hash) && is_there(version_bytes(data, kept.hash));
    };
    if (!is_kept(trial.superseded)) trial.superseded = {};
    if (!trial.of.name.empty() && is_kept(trial.proven)) facts.trials.push_back(std::move(trial));
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

Result<VersionFacts> read_versions(const fs::path& data) {
  const fs::path file = version_file(data);
  const auto text = read_file(file, kMaxVersionFile);
  if (!text && text.error().code == Errc::kNotFound) return VersionFacts();
  if (!text) return text.error();
  const auto object = parse_json(*text);
  if (!object || !object->is_object() || !object->contains("trials") ||
      !object->at("trials").is_array())
    return Error{Errc::kInvalidArgument, show_name(file.native()) +
                                             " is not what the server writes" +
                                             (object ? "" : ": " + object.error().message)};
  VersionFacts facts;
  for (const Json& each : objects_in(*object, "contents"))
    facts.contents.push_back(read_content(each));
  for (const Json& each : objects_in(*object, "classes")) facts.classes.push_back(read_class(each));
  add_trials(*object, data, facts);
  return facts;
}

std::string versions_text(const VersionFacts& facts) {
  const Json file = {{"contents", all_written(facts.contents)},
                     {"classes", all_written(facts.classes)},
                     {"trials", all_written(facts.trials)}};
  return dump_json(file) + "\n";
}

}  // namespace hearth::plugins
