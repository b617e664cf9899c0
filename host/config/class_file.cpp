#include "config/class_file.hpp"

#include "base/escape.hpp"
#include "base/names.hpp"
#include "config/mapping_reader.hpp"
#include "config/options.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace hearth::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// The largest are those of SQLite as Debian builds it, or well below them: a value past 256 MiB
// would stop its shard for as long as it takes to copy.
constexpr Bounds<milliseconds> kIdle{milliseconds(10), hours(24 * 365)};
constexpr Bounds<milliseconds> kEvictGrace{seconds(0), minutes(5)};
constexpr Bounds<std::size_t> kValue{1U << 10U, 256U << 20U};
constexpr Bounds<std::size_t> kSql{1U << 10U, 16U << 20U};
constexpr Bounds<std::uint32_t> kVariables{1, 32'766};
constexpr Bounds<milliseconds> kSqlTime{milliseconds(10), minutes(10)};
constexpr Bounds<std::uint32_t> kEvents{1, 100'000};
constexpr Bounds<milliseconds> kRecovery{milliseconds(10), hours(24)};
constexpr Bounds<std::uint32_t> kAttempts{1, 1'000'000};
constexpr Bounds<std::uint32_t> kRecoveries{0, 1'000'000};
constexpr Bounds<milliseconds> kRetry{milliseconds(1), minutes(5)};
constexpr Bounds<std::uint32_t> kRunning{1, 100'000};
constexpr Bounds<milliseconds> kKeep{seconds(0), hours(24 * 365 * 10)};
constexpr Bounds<std::uint32_t> kRecords{1, 1'000'000};
constexpr Bounds<milliseconds> kRun{milliseconds(10), hours(24)};
constexpr Bounds<std::uint32_t> kSchedules{1, 1'000'000};
constexpr Bounds<std::uint32_t> kRunsAtOnce{1, 10'000};
constexpr Bounds<std::uint32_t> kItems{1, 10'000'000};
constexpr Bounds<milliseconds> kKeepAlive{milliseconds(10), hours(1)};

void read_class_limits(const YamlNode& node, ClassLimits& limits, Report& report) {
  MappingReader reader(node, "limits.", report);
  reader.read_size("max_value", limits.max_value_bytes, kValue);
  reader.read_size("max_sql", limits.max_sql_bytes, kSql);
  reader.read_count("max_variables", limits.max_variables, kVariables);
  reader.read_duration("sql_time", limits.sql_time, kSqlTime);
  reader.read_count("max_events", limits.max_events, kEvents);
  reader.finish();
}

void read_fibers(const YamlNode& node, ClassFibers& fibers, Report& report) {
  MappingReader reader(node, "fibers.", report);
  reader.read_duration("recovery_timeout", fibers.recovery_timeout, kRecovery);
  reader.read_count("max_attempts", fibers.max_attempts, kAttempts);
  reader.read_count("max_recoveries", fibers.max_recoveries, kRecoveries);
  reader.read_duration("retry_base", fibers.retry_base, kRetry);
  reader.read_count("max_running", fibers.max_running, kRunning);
  reader.read_duration("keep_completed", fibers.keep_completed, kKeep);
  reader.read_duration("keep_failed", fibers.keep_failed, kKeep);
  reader.read_count("max_records", fibers.max_records, kRecords);
  reader.finish();
}

void read_schedules(const YamlNode& node, ClassSchedules& schedules, Report& report) {
  MappingReader reader(node, "schedules.", report);
  reader.read_duration("timeout", schedules.timeout, kRun);
  reader.read_count("max_schedules", schedules.max_schedules, kSchedules);
  reader.read_count("max_running", schedules.max_running, kRunsAtOnce);
  reader.finish();
}

void read_queue(const YamlNode& node, ClassQueue& queue, Report& report) {
  MappingReader reader(node, "queue.", report);
  reader.read_duration("timeout", queue.timeout, kRun);
  reader.read_count("max_items", queue.max_items, kItems);
  reader.finish();
}

void read_name(MappingReader& reader, const YamlNode& root, ClassFile& file, Report& report) {
  constexpr std::string_view kForm =
      "a name of up to 64 letters, digits, _ and -, the first a letter or _";
  // A file without its class has no better place for that than its beginning.
  const bool is_missing =
      std::ranges::find(root.entries, "class", &YamlEntry::key) == root.entries.end();
  if (is_missing && root.kind != YamlNode::Kind::kRefused) {
    report.add({.line = 1, .column = 1}, "the key \"class\" is missing: which class is this for?");
  }
  const YamlNode* const node = reader.find_scalar("class", kForm);
  if (node == nullptr) return;
  if (!is_class_name(node->text)) {
    return reader.complain("class", node->at,
                           "expected " + std::string(kForm) + ", found " + quote_text(node->text));
  }
  file.name = node->text;
  file.name_at = node->at;
}

void read_options(MappingReader& reader, Json& options, Report& report) {
  const YamlNode* const node = reader.find("options");
  if (node == nullptr || node->kind == YamlNode::Kind::kNull) return;
  if (node->kind == YamlNode::Kind::kMapping) {
    options = to_json(*node, "options", report);
  } else if (node->kind != YamlNode::Kind::kRefused) {
    // Not the value: options may be secret.
    const bool is_scalar = node->kind == YamlNode::Kind::kScalar;
    reader.complain("options", node->at,
                    "expected a mapping (lines of \"key: value\"), found " +
                        (is_scalar ? "a single value" : describe(*node)));
  }
}

// Numbers that are equal and written in another way (1, 1.0) may mean different things to a plugin.
bool is_same(const Json& options, const std::string& key, const Json& value) {
  const auto found = options.find(key);
  return found != options.end() && dump_json(*found) == dump_json(value);
}

std::vector<std::string> changed_options(const Json& before, const Json& after) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : after.items()) {
    if (!is_same(before, key, value)) keys.push_back("options." + key);
  }
  for (const auto& [key, value] : before.items()) {
    if (!after.contains(key)) keys.push_back("options." + key);
  }
  return keys;
}

}  // namespace

std::vector<std::string> changed_keys(const ClassConfig& before, const ClassConfig& after) {
  std::vector<std::string> keys;
  const auto compare = [&](std::string_view key, const auto& value_in) {
    if (value_in(before) != value_in(after)) keys.emplace_back(key);
  };
  using Class = ClassConfig;
  compare("idle_timeout", [](const Class& c) { return c.idle_timeout; });
  compare("evict_grace", [](const Class& c) { return c.evict_grace; });
  compare("durability", [](const Class& c) { return c.durability; });
  compare("limits.max_value", [](const Class& c) { return c.limits.max_value_bytes; });
  compare("limits.max_sql", [](const Class& c) { return c.limits.max_sql_bytes; });
  compare("limits.max_variables", [](const Class& c) { return c.limits.max_variables; });
  compare("limits.sql_time", [](const Class& c) { return c.limits.sql_time; });
  compare("limits.max_events", [](const Class& c) { return c.limits.max_events; });
  compare("fibers.recovery_timeout", [](const Class& c) { return c.fibers.recovery_timeout; });
  compare("fibers.max_attempts", [](const Class& c) { return c.fibers.max_attempts; });
  compare("fibers.max_recoveries", [](const Class& c) { return c.fibers.max_recoveries; });
  compare("fibers.retry_base", [](const Class& c) { return c.fibers.retry_base; });
  compare("fibers.max_running", [](const Class& c) { return c.fibers.max_running; });
  compare("fibers.keep_completed", [](const Class& c) { return c.fibers.keep_completed; });
  compare("fibers.keep_failed", [](const Class& c) { return c.fibers.keep_failed; });
  compare("fibers.max_records", [](const Class& c) { return c.fibers.max_records; });
  compare("schedules.timeout", [](const Class& c) { return c.schedules.timeout; });
  compare("schedules.max_schedules", [](const Class& c) { return c.schedules.max_schedules; });
  compare("schedules.max_running", [](const Class& c) { return c.schedules.max_running; });
  compare("queue.timeout", [](const Class& c) { return c.queue.timeout; });
  compare("queue.max_items", [](const Class& c) { return c.queue.max_items; });
  compare("keep_alive_interval", [](const Class& c) { return c.keep_alive_interval; });
  std::ranges::move(changed_options(before.options, after.options), std::back_inserter(keys));
  return keys;
}

ClassFile read_class_file(const YamlNode& root, Report& report) {
  ClassFile file;
  ClassConfig& config = file.config;
  config.file = report.file();
  MappingReader reader(root, "", report);
  read_name(reader, root, file, report);
  reader.read_duration("idle_timeout", config.idle_timeout, kIdle);
  reader.read_duration("evict_grace", config.evict_grace, kEvictGrace);
  reader.read_choice("durability", config.durability,
                     {{"process", Durability::kProcess}, {"power", Durability::kPower}});
  if (const YamlNode* const limits = reader.find("limits"); limits != nullptr) {
    read_class_limits(*limits, config.limits, report);
  }
  if (const YamlNode* const fibers = reader.find("fibers"); fibers != nullptr) {
    read_fibers(*fibers, config.fibers, report);
  }
  if (const YamlNode* const schedules = reader.find("schedules"); schedules != nullptr) {
    read_schedules(*schedules, config.schedules, report);
  }
  if (const YamlNode* const queue = reader.find("queue"); queue != nullptr) {
    read_queue(*queue, config.queue, report);
  }
  reader.read_duration("keep_alive_interval", config.keep_alive_interval, kKeepAlive);
  read_options(reader, config.options, report);
  reader.finish();
  return file;
}

}  // namespace hearth::config
