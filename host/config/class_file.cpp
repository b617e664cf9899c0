#include "config/class_file.hpp"

#include "base/escape.hpp"
#include "base/names.hpp"
#include "config/edge_section.hpp"
#include "config/egress_section.hpp"
#include "config/operations_section.hpp"
#include "config/options.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <utility>

namespace hearth::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

using runtime::ClassSettings;

constexpr std::string_view kAliases = "aliases";
constexpr std::string_view kCode = "code";
constexpr std::string_view kNameForm =
    "a name of up to 64 letters, digits, _ and -, the first a letter or _";

Setting<ClassSettings> code_setting() {
  auto setting = row(
      std::string(kCode), "name", "", at(&ClassSettings::code),
      [](const Reading& in, std::string& out) {
        const YamlNode* const node = in.reader.find_scalar(in.key, kNameForm);
        if (node == nullptr) return;
        if (is_class_name(node->text)) {
          out = node->text;
        } else {
          in.reader.complain(
              in.key, node->at,
              "expected " + std::string(kNameForm) + ", found " + quote_text(node->text));
        }
      },
      [](const std::string& value) { return value; },
      "the class of a library whose [code](#several-classes-with-one-code) the agents run");
  setting.default_words = "the class itself";
  return setting;
}

// An object, or null for an empty one. Errors do not show the value, which may be secret.
void read_options(const Reading& in, std::string& out) {
  const YamlNode* const node = in.reader.find(in.key);
  if (node == nullptr || node->kind == YamlNode::Kind::kNull) return;
  if (node->kind == YamlNode::Kind::kMapping) {
    out = dump_json(to_json(*node, "options", in.report));
  } else if (node->kind != YamlNode::Kind::kRefused) {
    const bool is_scalar = node->kind == YamlNode::Kind::kScalar;
    in.reader.complain(in.key, node->at,
                       "expected a mapping (lines of \"key: value\"), found " +
                           (is_scalar ? "a single value" : describe(*node)));
  }
}

Json options_as_json(const std::string& options) {
  auto parsed = parse_json(options);
  return parsed ? *std::move(parsed) : Json::object();
}

Setting<ClassSettings> options_setting() {
  auto setting = row("options", "mapping", "", at(&ClassSettings::options), read_options,
                     options_as_json, "handed to the plugin, which defines its meaning");
  setting.is_secret = true;
  return setting;
}

Fields<ClassSettings, std::size_t> every_value() {
  using Class = ClassSettings;
  return all(at(&Class::max_state_bytes),
             at(&Class::sql, &storage::PluginSqlLimits::max_value_bytes),
             at(&Class::fibers, &durable::FiberSettings::max_snapshot_bytes),
             at(&Class::fibers, &durable::FiberSettings::max_json_bytes),
             at(&Class::schedules, &durable::ScheduleSettings::max_payload_bytes),
             at(&Class::queue, &durable::QueueSettings::max_payload_bytes),
             at(&Class::operations, &durable::OperationSettings::max_result_bytes));
}

constexpr const char* kServers = "that of the server file";

Setting<ClassSettings> own_frame_setting() {
  auto setting = size("limits.max_frame", at(&ClassSettings::max_frame), {1U << 10U, 256U << 20U},
                      "one WebSocket message from a client; for new connections");
  setting.default_words = kServers;
  return setting;
}

Setting<ClassSettings> own_timeout_setting() {
  auto setting = duration("limits.call_timeout", at(&ClassSettings::call_timeout),
                          {milliseconds(10), hours(24)},
                          "how long one event may take, before its caller gets a timeout");
  setting.default_words = kServers;
  return setting;
}

// The largest bounds are the limits of Debian's SQLite, or well below them: to copy a value of more
// than 256 MiB would block its shard.
Settings<ClassSettings> make_own_settings() {
  using Class = ClassSettings;
  using durable::AlarmSettings;
  using durable::FiberSettings;
  using durable::QueueSettings;
  using durable::ScheduleSettings;
  using extensions::AnswerSettings;
  using extensions::KvSettings;
  using runtime::Durability;
  using storage::PluginSqlLimits;
  return {
      code_setting(),
      texts(std::string(kAliases), at(&Class::aliases),
            "URL segments such as [\"my-chat\"] (lower-case letters, digits and -)", is_class_alias,
            "further URL segments of the class: clients reach the same agents at "
            "`/agents/SEGMENT/NAME`, see [below](#aliases)"),
      yes_or_no("send_identity", at(&Class::send_identity),
                "whether the server tells clients the class and the name of their agent when "
                "they connect; [what they lack without it](#clients-without-an-identity)"),
      yes_or_no("list_methods", at(&Class::list_methods),
                "whether `GET /agents/CLASS` gives every client the [list of the class's "
                "methods](#the-list-of-methods)"),
      yes_or_no("show_failures", at(&Class::show_failures),
                "whether clients read the text of every exception of a method. Else that of an "
                "exception that is no `hearth::Error` is in the log only, and they read `the "
                "method failed` and the trace"),
      duration("idle_timeout", at(&Class::idle_timeout), {milliseconds(10), hours(24 * 365)},
               "how long an agent without events stays in memory; its sockets stay open"),
      duration("evict_grace", at(&Class::evict_grace), {seconds(0), minutes(5)},
               "how long `on_evict` may take before it is cut off; `0s`: agents leave memory "
               "without `on_evict`"),
      word("durability", at(&Class::durability),
           {{"process", Durability::kProcess}, {"power", Durability::kPower}},
           "what an acknowledged write survives: `process` (`kill -9`) or `power` (loss of "
           "power too); [what that costs](#durability-power)"),
      yes_or_no("objects", at(&Class::is_object),
                "whether the agents are [objects](#objects): clients call them at "
                "`/objects/SEGMENT/ID`. Two defaults change, `idle_timeout: 300s` and `calls: "
                "serial`, and every object is listed as soon as it was called"),
      duration("objects_call_timeout", at(&Class::object_call_timeout),
               {milliseconds(10), hours(24)},
               "how long one call over `/objects` may take, before its caller gets 504"),
      duration("idempotency_keep", at(&Class::answers, &AnswerSettings::keep),
               {seconds(1), hours(24 * 30)},
               "how long the answer of a call with an `Idempotency-Key` is kept"),
      word("calls", at(&Class::serial_calls), {{"concurrent", false}, {"serial", true}},
           "`serial`: an agent handles one call or request at a time, and the others wait until it "
           "is answered; a call that waits for itself is an error"),
      size("limits.max_value", every_value(), {1U << 10U, 256U << 20U},
           "one SQL value, the agent's state, a snapshot or a payload"),
      size("limits.max_sql", at(&Class::sql, &PluginSqlLimits::max_sql_bytes),
           {1U << 10U, 16U << 20U}, "one SQL statement"),
      count("limits.max_variables", at(&Class::sql, &PluginSqlLimits::max_variables), {1, 32'766},
            "variables of one SQL statement"),
      duration("limits.sql_time", at(&Class::sql, &PluginSqlLimits::sql_time),
               {milliseconds(10), minutes(10)},
               "how long one SQL statement may take. The server looks at the time between "
               "SQLite's instructions; [functions](#limits-of-sql-functions) are one instruction"),
      own_frame_setting(),
      own_timeout_setting(),
      count("limits.max_events", at(&Class::max_events), {1, 100'000},
            "events in progress at once in one agent"),
      duration("fibers.recovery_timeout", at(&Class::fibers, &FiberSettings::recovery_timeout),
               {milliseconds(10), hours(24)}, "how long one recovery hook may take"),
      count("fibers.max_attempts", at(&Class::fibers, &FiberSettings::max_attempts), {1, 1'000'000},
            "recoveries without progress, until a fiber is dead"),
      count("fibers.max_recoveries", at(&Class::fibers, &FiberSettings::max_recoveries),
            {0, 1'000'000},
            "recoveries in all, with progress or without, until a fiber is dead; `0`: no "
            "limit"),
      count("fibers.max_turn_recoveries", at(&Class::fibers, &FiberSettings::max_turn_recoveries),
            {1, 1'000}, "recoveries in all, until a turn (`FiberOptions::turn`) is given up"),
      count("fibers.max_crashes", at(&Class::fibers, &FiberSettings::max_crashes), {0, 1'000},
            "runs of one fiber that crashed the server, until the fiber is dead; a run of "
            "five minutes with a checkpoint begins the count anew; `0`: no limit. With 3 "
            "or more, or `0`, one fiber may bring its class into quarantine, which comes "
            "with the fourth crash in five minutes. The first of these may be a crash in "
            "`on_fibers_recovered` for several fibers, which counts for no fiber. The "
            "server warns of such values (`config.doubtful`)"),
      duration("fibers.retry_base", at(&Class::fibers, &FiberSettings::retry_base),
               {milliseconds(1), minutes(5)},
               "the wait after the first failed recovery; it doubles up to 5m, plus up to a "
               "quarter at random"),
      count("fibers.max_running", at(&Class::fibers, &FiberSettings::max_running), {1, 100'000},
            "fibers of one agent at once"),
      duration("fibers.keep_completed", at(&Class::fibers, &FiberSettings::keep_completed),
               {seconds(0), hours(24 * 365 * 10)},
               "how long the record of a completed or aborted fiber stays"),
      duration("fibers.keep_failed", at(&Class::fibers, &FiberSettings::keep_failed),
               {seconds(0), hours(24 * 365 * 10)},
               "how long the record of a failed fiber stays, and that of a dead fiber without "
               "`keep_record`; records of interrupted and other dead fibers stay until they are "
               "removed"),
      count("fibers.max_records", at(&Class::fibers, &FiberSettings::max_records), {1, 1'000'000},
            "records of fibers of one agent, also of those that wait for a version of the "
            "class that can continue them"),
      duration("schedules.timeout", at(&Class::schedules, &ScheduleSettings::timeout),
               {milliseconds(10), hours(24)},
               "how long one run of a schedule may take, before it fails"),
      count("schedules.max_schedules", at(&Class::schedules, &ScheduleSettings::max_schedules),
            {1, 1'000'000}, "schedules of one agent"),
      count("schedules.max_running", at(&Class::schedules, &ScheduleSettings::max_running),
            {1, 10'000}, "runs of one agent at once; further runs that are due wait"),
      duration("queue.timeout", at(&Class::queue, &QueueSettings::timeout),
               {milliseconds(10), hours(24)},
               "how long one delivery of a queue item may take, before it fails"),
      count("queue.max_items", at(&Class::queue, &QueueSettings::max_items), {1, 10'000'000},
            "items of one agent, dead letters included"),
      count("alarms.max_alarms", at(&Class::alarms, &AlarmSettings::max_alarms), {1, 10'000},
            "alarms of one object that wait or run"),
      count("alarms.max_attempts", at(&Class::alarms, &AlarmSettings::max_attempts), {1, 100},
            "calls of an alarm, until it is dead"),
      duration("alarms.retry_base", at(&Class::alarms, &AlarmSettings::retry_base),
               {milliseconds(1), hours(1)},
               "the wait after the first failed call of an alarm; it doubles"),
      count("kv.max_keys", at(&Class::kv, &KvSettings::max_keys), {1, 1'000'000},
            "keys of one agent"),
      size("kv.max_value", at(&Class::kv, &KvSettings::max_value_bytes), {1U << 10U, 256U << 20U},
           "the value of one key"),
      size("kv.max_total", at(&Class::kv, &KvSettings::max_total_bytes), {1U << 10U, 1U << 30U},
           "all keys and values of one agent"),
      duration("keep_alive_interval", at(&Class::keep_alive_interval), {milliseconds(10), hours(1)},
               "the longest wait after a failure before an agent with work in progress (a "
               "keep-alive reference, a running fiber) is woken again, see "
               "[below](#waking-after-a-failure)"),
  };
}

Settings<ClassSettings> make_class_settings() {
  Settings<ClassSettings> settings = make_own_settings();
  std::ranges::move(class_edge_section(), std::back_inserter(settings));
  std::ranges::move(operations_section(), std::back_inserter(settings));
  std::ranges::move(egress_section(), std::back_inserter(settings));
  settings.push_back(options_setting());
  return settings;
}

// The defaults of objects.
void fill_in_object_defaults(ClassConfig& config, bool have_key) {
  if (!config.sources.contains("idle_timeout")) config.settings.idle_timeout = minutes(5);
  if (!config.sources.contains("calls")) config.settings.serial_calls = true;
  if (have_key && !config.sources.contains("auth.type"))
    config.settings.auth.type = ProofKind::kObjectsKey;
}

void read_name(MappingReader& reader, const YamlNode& root, ClassFile& file, Report& report) {
  // If the key is missing, the mistake stands at the beginning of the file.
  const bool is_missing =
      std::ranges::find(root.entries, "class", &YamlEntry::key) == root.entries.end();
  if (is_missing && root.kind != YamlNode::Kind::kRefused) {
    report.add({.line = 1, .column = 1}, "the key \"class\" is missing: which class is this for?");
  }
  const YamlNode* const node = reader.find_scalar("class", kNameForm);
  if (node == nullptr) return;
  if (!is_class_name(node->text)) {
    return reader.complain(
        "class", node->at,
        "expected " + std::string(kNameForm) + ", found " + quote_text(node->text));
  }
  file.name = node->text;
  file.name_at = node->at;
}

}  // namespace

const Settings<ClassSettings>& class_settings() {
  static const Settings<ClassSettings> table = make_class_settings();
  return table;
}

std::string class_reference() {
  return std::string(kReferenceHead) +
         reference_line("class", "name", "required", "",
                        "up to 64 letters, digits, `_` and `-`, the first a letter or `_`") +
         reference(class_settings());
}

std::vector<std::string> changed_keys(const ClassConfig& before, const ClassConfig& after) {
  return changed_settings(class_settings(), before.settings, after.settings);
}

bool is_untried(std::string_view key) {
  return key == kCode || key == kAliases || key == "list_methods" || key.starts_with("auth.") ||
         key.starts_with("cors.") || key.starts_with("egress.");
}

std::string settings_text(const ClassSettings& settings) {
  Json text = Json::object();
  const ClassSettings defaults;
  for (const Setting<ClassSettings>& setting : class_settings()) {
    Json value = setting.value(settings);
    if (is_untried(setting.path) || dump_json(value) == dump_json(setting.value(defaults)))
      continue;
    const SplitPath split = split_path(setting.path);
    Json& section =
        split.section.empty() ? text : text[split.section.substr(0, split.section.size() - 1)];
    section[split.key] = std::move(value);
  }
  return dump_json(text);
}

Result<ClassSettings> read_settings_text(std::string_view text) {
  Report report{std::string()};
  ClassSettings settings;
  if (const auto root = parse_yaml(text, report)) {
    MappingReader reader(*root, "", report);
    Sources unused;
    read_settings(class_settings(), reader, {}, report, settings, unused);
    reader.finish();
  }
  if (report.empty()) return settings;
  return Error{Errc::kInvalidArgument, report.take().front().message};
}

Diagnostics wrong_codes(const ClassConfigs& files,
                        const std::function<std::string(std::string_view)>& segment) {
  const auto segment_of = [&segment](const std::string& name) {
    return segment ? segment(name) : name;
  };
  std::map<std::string, std::string> codes;  // of the classes that have one, by segment
  for (const auto& [name, config] : files) {
    if (!config.settings.code.empty()) codes.emplace(segment_of(name), config.settings.code);
  }
  Diagnostics mistakes;
  for (const auto& [name, config] : files) {
    const std::string& code = config.settings.code;
    if (code.empty()) continue;
    const auto next = codes.find(segment_of(code));
    if (next == codes.end()) continue;
    const bool is_itself = next->first == segment_of(name);
    mistakes.push_back(
        {.file = config.file,
         .at = config.sources.at(std::string(kCode)).at,
         .message = "code: the class " + quote_text(name) +
                    (is_itself ? " cannot name itself: leave `code` out"
                               : " names " + quote_text(code) + ", which runs the code of " +
                                     quote_text(next->second) + " itself: name that")});
  }
  return mistakes;
}

Position alias_at(const ClassConfig& config, std::string_view alias) {
  return config.sources.at("aliases." + std::string(alias)).at;
}

std::string alias_is_taken(std::string_view alias, std::string_view class_name) {
  return "aliases: " + quote_text(alias) + " already leads to the class " + quote_text(class_name);
}

Diagnostics taken_aliases(const ClassConfigs& files,
                          const std::map<std::string, std::string, std::less<>>& served) {
  Diagnostics mistakes;
  for (const auto& [name, config] : files) {
    for (const std::string& alias : config.settings.aliases) {
      const auto taken = served.find(alias);
      if (taken == served.end()) continue;
      mistakes.push_back({.file = config.file,
                          .at = alias_at(config, alias),
                          .message = alias_is_taken(alias, taken->second)});
    }
  }
  return mistakes;
}

ClassFile read_class_file(const YamlNode& root, Report& report, const ForClasses& server,
                          bool is_definition) {
  ClassFile file;
  file.config.settings.is_object = server.all_are_objects;
  file.config.file = report.file();
  MappingReader reader(root, "", report);
  read_name(reader, root, file, report);
  const std::filesystem::path itself(report.file());
  const auto directory = itself.empty() ? itself : std::filesystem::absolute(itself).parent_path();
  read_settings(class_settings(), reader, directory, report, file.config.settings,
                file.config.sources, is_definition ? &server.secrets : nullptr);
  reader.finish();
  check_class_auth(file.config, report);
  if (file.config.settings.is_object) fill_in_object_defaults(file.config, server.objects_have_key);
  return file;
}

std::string doubts(const ClassConfig& config) {
  const int max_crashes = config.settings.fibers.max_crashes;
  // One more crash may come first, in a plan of several fibers; it counts for none of them.
  constexpr int kMost = kMaxClassCrashes - 1;
  if (max_crashes > 0 && max_crashes <= kMost) return {};
  return "with fibers.max_crashes: " + std::to_string(max_crashes) +
         " a fiber that ends the server each time may bring its whole class into quarantine, "
         "which comes with crash " +
         std::to_string(kMaxClassCrashes + 1) + ": set 1 to " + std::to_string(kMost);
}

ClassConfig class_without_file(const ForClasses& server) {
  ClassConfig config;
  config.settings.is_object = server.all_are_objects;
  if (server.all_are_objects) fill_in_object_defaults(config, server.objects_have_key);
  return config;
}

}  // namespace hearth::config
