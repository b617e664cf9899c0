#include "config/class_file.hpp"

#include "config/config_files.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace hearth::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

using runtime::ClassSettings;
using runtime::Durability;

class ClassFileTest : public ConfigFilesTest {};

TEST_F(ClassFileTest, EveryKeyReachesItsField) {
  const ClassConfig read = class_c(R"(
aliases: [assistant, "my-chat"]
send_identity: false
list_methods: true
idle_timeout: 20ms
evict_grace: 3s
durability: process
limits:
  max_value: 4KiB
  max_sql: 5KiB
  max_variables: 6
  sql_time: 7s
  max_frame: 9KiB
  call_timeout: 10s
  max_events: 8
fibers:
  recovery_timeout: 3s
  max_attempts: 4
  max_recoveries: 5
  max_turn_recoveries: 7
  max_crashes: 6
  retry_base: 20ms
  max_running: 6
  keep_completed: 7s
  keep_failed: 8h
  max_records: 9
schedules:
  timeout: 10s
  max_schedules: 11
  max_running: 12
queue:
  timeout: 13s
  max_items: 14
alarms:
  max_alarms: 18
  max_attempts: 19
  retry_base: 20s
kv:
  max_keys: 15
  max_value: 16KiB
  max_total: 17KiB
keep_alive_interval: 15s
options:
  a: 1
  b: "1"
)");
  const ClassSettings& config = read.settings;
  EXPECT_EQ(config.aliases, (std::vector<std::string>{"assistant", "my-chat"}));
  EXPECT_FALSE(config.send_identity);
  EXPECT_TRUE(config.list_methods);
  EXPECT_EQ(config.idle_timeout, milliseconds(20));
  EXPECT_EQ(config.evict_grace, seconds(3));
  EXPECT_EQ(config.durability, Durability::kProcess);
  EXPECT_EQ(config.sql.max_value_bytes, 4096U);
  EXPECT_EQ(config.max_state_bytes, 4096U);
  EXPECT_EQ(config.fibers.max_snapshot_bytes, 4096U);
  EXPECT_EQ(config.fibers.max_json_bytes, 4096U);
  EXPECT_EQ(config.schedules.max_payload_bytes, 4096U);
  EXPECT_EQ(config.queue.max_payload_bytes, 4096U);
  EXPECT_EQ(config.sql.max_sql_bytes, 5120U);
  EXPECT_EQ(config.sql.max_variables, 6);
  EXPECT_EQ(config.sql.sql_time, seconds(7));
  EXPECT_EQ(config.max_frame, 9216U);
  EXPECT_EQ(config.call_timeout, seconds(10));
  EXPECT_EQ(config.max_events, 8U);
  EXPECT_EQ(config.fibers.recovery_timeout, std::chrono::seconds(3));
  EXPECT_EQ(config.fibers.max_attempts, 4);
  EXPECT_EQ(config.fibers.max_recoveries, 5);
  EXPECT_EQ(config.fibers.max_turn_recoveries, 7);
  EXPECT_EQ(config.fibers.max_crashes, 6);
  EXPECT_EQ(config.fibers.retry_base, std::chrono::milliseconds(20));
  EXPECT_EQ(config.fibers.max_running, 6U);
  EXPECT_EQ(config.fibers.keep_completed, seconds(7));
  EXPECT_EQ(config.fibers.keep_failed, hours(8));
  EXPECT_EQ(config.fibers.max_records, 9U);
  EXPECT_EQ(config.schedules.timeout, seconds(10));
  EXPECT_EQ(config.schedules.max_schedules, 11U);
  EXPECT_EQ(config.schedules.max_running, 12U);
  EXPECT_EQ(config.queue.timeout, seconds(13));
  EXPECT_EQ(config.queue.max_items, 14U);
  EXPECT_EQ(config.alarms.max_alarms, 18U);
  EXPECT_EQ(config.alarms.max_attempts, 19);
  EXPECT_EQ(config.alarms.retry_base, seconds(20));
  EXPECT_EQ(config.kv.max_keys, 15U);
  EXPECT_EQ(config.kv.max_value_bytes, 16384U);
  EXPECT_EQ(config.kv.max_total_bytes, 17408U);
  EXPECT_EQ(config.keep_alive_interval, seconds(15));
  EXPECT_EQ(config.options, R"({"a":1,"b":"1"})");
  EXPECT_EQ(read.file, path("classes/c.yaml"));
}

TEST_F(ClassFileTest, AChangeOfAKeyIsNoticedUnderItsName) {
  const ClassConfig defaults = class_c("");
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"code", "assistant"},
      {"aliases", "[assistant]"},
      {"send_identity", "false"},
      {"list_methods", "true"},
      {"show_failures", "true"},
      {"auth.type", "jwt"},
      {"auth.name", "''"},
      {"cors.origins", "['*']"},
      {"cors.methods", "[GET]"},
      {"cors.headers", "[X-A]"},
      {"cors.credentials", "true"},
      {"cors.max_age", "5s"},
      {"idle_timeout", "20ms"},
      {"evict_grace", "3s"},
      {"durability", "power"},
      {"objects", "true"},
      {"objects_call_timeout", "5s"},
      {"idempotency_keep", "2h"},
      {"calls", "serial"},
      {"limits.max_value", "4KiB"},
      {"limits.max_sql", "5KiB"},
      {"limits.max_variables", "6"},
      {"limits.sql_time", "7s"},
      {"limits.max_frame", "9KiB"},
      {"limits.call_timeout", "10s"},
      {"limits.max_events", "8"},
      {"fibers.recovery_timeout", "3s"},
      {"fibers.max_attempts", "4"},
      {"fibers.max_recoveries", "0"},
      {"fibers.max_turn_recoveries", "7"},
      {"fibers.max_crashes", "0"},
      {"fibers.retry_base", "20ms"},
      {"fibers.max_running", "6"},
      {"fibers.keep_completed", "7s"},
      {"fibers.keep_failed", "8h"},
      {"fibers.max_records", "9"},
      {"schedules.timeout", "10s"},
      {"schedules.max_schedules", "11"},
      {"schedules.max_running", "12"},
      {"queue.timeout", "13s"},
      {"queue.max_items", "14"},
      {"alarms.max_alarms", "7"},
      {"alarms.max_attempts", "5"},
      {"alarms.retry_base", "2s"},
      {"kv.max_keys", "15"},
      {"kv.max_value", "16KiB"},
      {"kv.max_total", "17KiB"},
      {"keep_alive_interval", "15s"},
      {"operations.keep", "3h"},
      {"operations.kinds.charge", "{per_day: 7}"},
      {"egress.allow", "[a.example]"},
      {"egress.deny", "[a.example]"},
      {"egress.proxy", "'http://proxy.example:3128'"},
      {"egress.secrets.key", "key.txt"},
      {"egress.limits.concurrent", "7"},
      {"egress.http2", "false"},
      {"options.a", "1"},
  };
  put("classes/key.txt", "s3cret\n");
  for (const auto& [key, value] : keys) {
    std::string text = value;
    std::string rest = key;
    for (auto dot = rest.rfind('.'); dot != std::string::npos; dot = rest.rfind('.')) {
      text = "{" + rest.substr(dot + 1) + ": " + text + "}";
      rest.erase(dot);
    }
    const ClassConfig changed = class_c(rest.append(": ").append(text) + "\n");
    std::vector<std::string> expected = {key};
    if (key == "objects") expected = {"idle_timeout", "objects", "calls"};  // and what it implies
    EXPECT_EQ(changed_keys(defaults, changed), expected);
    EXPECT_EQ(changed_keys(changed, defaults), expected);
    EXPECT_TRUE(changed_keys(changed, changed).empty()) << key;
  }
  for (const Setting<ClassSettings>& setting : class_settings()) {
    const auto names_it = [&](const auto& key) { return key.first.starts_with(setting.path); };
    EXPECT_TRUE(std::ranges::any_of(keys, names_it)) << setting.path << " needs a case above";
  }
}

TEST_F(ClassFileTest, ObjectsHaveDefaultsOfTheirOwn) {
  const ClassSettings object = class_c("objects: true\n").settings;
  EXPECT_TRUE(object.is_object);
  EXPECT_EQ(object.idle_timeout, minutes(5));
  EXPECT_TRUE(object.serial_calls);
  EXPECT_EQ(object.object_call_timeout, seconds(30));
  EXPECT_EQ(object.answers.keep, hours(24));
  const std::string own = "objects: true\nidle_timeout: 1m\ncalls: concurrent\n";
  EXPECT_EQ(class_c(own).settings.idle_timeout, minutes(1));
  EXPECT_FALSE(class_c(own).settings.serial_calls);
  EXPECT_FALSE(read_settings_text(settings_text(class_c(own).settings))->serial_calls);
}

TEST_F(ClassFileTest, AServerMakesAllClassesObjectsButThoseThatSayNo) {
  put("classes/c.yaml", "class: c\n");
  put("classes/d.yaml", "class: d\nobjects: false\n");
  put("server.yaml", "objects: {all_classes: true}\n");
  const ClassConfigs classes = load().classes;
  const ClassSettings& object = classes.at("c").settings;
  EXPECT_TRUE(object.is_object);
  EXPECT_TRUE(object.serial_calls);
  EXPECT_EQ(object.idle_timeout, minutes(5));
  const ClassSettings& agent = classes.at("d").settings;
  EXPECT_FALSE(agent.is_object);
  EXPECT_FALSE(agent.serial_calls);
  EXPECT_EQ(agent.idle_timeout, ClassSettings().idle_timeout);
  const ClassSettings without = class_without_file({.all_are_objects = true}).settings;
  EXPECT_TRUE(without.is_object);
  EXPECT_EQ(settings_text(without), settings_text(object));
  EXPECT_FALSE(class_without_file({}).settings.is_object);
}

TEST_F(ClassFileTest, ObjectsAskForTheKeyUnlessTheirFileSaysHowClientsAuthenticate) {
  put("key", "0123456789abcdef\n");
  const auto type_of = [this](const std::string& lines) {
    put("classes/c.yaml", "class: c\n" + lines);
    return load().classes.at("c").settings.auth.type;
  };
  const std::string object = "objects: true\n";
  put("server.yaml", "objects: {token_file: key}\n");
  EXPECT_EQ(type_of(object), ProofKind::kObjectsKey);
  EXPECT_EQ(type_of(object + "auth: {type: none}\n"), ProofKind::kNone);
  EXPECT_EQ(type_of(object + "auth: {type: jwt}\n"), ProofKind::kJwt);
  EXPECT_EQ(type_of(object + "auth: {type: server}\n"), std::nullopt);
  EXPECT_EQ(type_of(""), std::nullopt);
  EXPECT_EQ(type_of("auth: {type: objects_key}\n"), ProofKind::kObjectsKey);
  put("server.yaml", "objects: {token_file: key, all_classes: true}\n");
  EXPECT_EQ(type_of(""), ProofKind::kObjectsKey);
  EXPECT_EQ(type_of("objects: false\n"), std::nullopt);
  const ForClasses server{.all_are_objects = true, .objects_have_key = true};
  EXPECT_EQ(class_without_file(server).settings.auth.type, ProofKind::kObjectsKey);
  put("server.yaml", "");
  EXPECT_EQ(type_of(object), std::nullopt);
}

TEST_F(ClassFileTest, OptionsThatAreWrittenInAnotherWayAreOthers) {
  const ClassConfig number = class_c("options: {a: 1, b: {c: 2}}\n");
  EXPECT_TRUE(changed_keys(number, class_c("options: {b: {c: 2}, a: 0x1}\n")).empty());
  EXPECT_EQ(changed_keys(number, class_c("options: {a: 1.0, b: {c: 2}}\n")),
            std::vector<std::string>{"options.a"});
  EXPECT_EQ(changed_keys(number, class_c("options: {a: 1, b: {c: 3}}\n")),
            std::vector<std::string>{"options.b"});
}

TEST_F(ClassFileTest, AClassAloneHasTheDefaults) {
  const ClassSettings config = class_c("").settings;
  EXPECT_TRUE(config.aliases.empty());
  EXPECT_TRUE(config.send_identity);
  EXPECT_FALSE(config.list_methods);
  EXPECT_EQ(config.idle_timeout, seconds(60));
  EXPECT_EQ(config.evict_grace, seconds(0));
  EXPECT_EQ(config.durability, Durability::kProcess);
  EXPECT_EQ(config.sql.max_value_bytes, 2U << 20U);
  EXPECT_EQ(config.max_state_bytes, 2U << 20U);
  EXPECT_EQ(config.fibers.max_snapshot_bytes, 2U << 20U);
  EXPECT_EQ(config.fibers.max_json_bytes, 2U << 20U);
  EXPECT_EQ(config.schedules.max_payload_bytes, 2U << 20U);
  EXPECT_EQ(config.queue.max_payload_bytes, 2U << 20U);
  EXPECT_EQ(config.sql.max_sql_bytes, 256U << 10U);
  EXPECT_EQ(config.sql.max_variables, 1000);
  EXPECT_EQ(config.sql.sql_time, seconds(5));
  EXPECT_EQ(config.max_events, 1000U);
  EXPECT_EQ(config.max_frame, 0U) << "that of the server file";
  EXPECT_EQ(config.fibers.keep_completed, hours(24));
  EXPECT_EQ(config.fibers.keep_failed, hours(24 * 7));
  EXPECT_EQ(config.fibers.max_attempts, 10);
  EXPECT_EQ(config.fibers.max_recoveries, 1000);
  EXPECT_EQ(config.fibers.max_turn_recoveries, 5);
  EXPECT_EQ(config.fibers.max_crashes, 2);
  EXPECT_EQ(config.fibers.recovery_timeout, minutes(1));
  EXPECT_EQ(config.fibers.retry_base, seconds(1));
  EXPECT_EQ(config.fibers.max_running, 1000U);
  EXPECT_EQ(config.fibers.max_records, 10'000U);
  EXPECT_EQ(config.schedules.timeout, minutes(5));
  EXPECT_EQ(config.schedules.max_schedules, 10'000U);
  EXPECT_EQ(config.schedules.max_running, 32U);
  EXPECT_EQ(config.queue.timeout, minutes(5));
  EXPECT_EQ(config.queue.max_items, 100'000U);
  EXPECT_EQ(config.kv.max_keys, 10'000U);
  EXPECT_EQ(config.kv.max_value_bytes, std::size_t{1} << 20);
  EXPECT_EQ(config.kv.max_total_bytes, std::size_t{50} << 20);
  EXPECT_EQ(config.keep_alive_interval, seconds(30));
  EXPECT_EQ(config.options, "{}");
}

TEST_F(ClassFileTest, TheClassIsRequired) {
  EXPECT_EQ(class_mistake("idle_timeout: 5s\n"),
            "classes/c.yaml:1:1: the key \"class\" is missing: which class is this for?");
  EXPECT_EQ(class_mistake(""),
            "classes/c.yaml:1:1: the key \"class\" is missing: which class is this for?");
}

TEST_F(ClassFileTest, AMisspeltClassIsMissingAndUnknown) {
  put("server.yaml", "");
  put("classes/c.yaml", "clas: counter\n");
  EXPECT_EQ(mistakes(),
            (std::vector<std::string>{
                "classes/c.yaml:1:1: the key \"class\" is missing: which class is this for?",
                "classes/c.yaml:1:1: unknown key \"clas\"; did you mean \"class\"?"}));
}

TEST_F(ClassFileTest, ANameThatNoClassCanHaveIsRefused) {
  EXPECT_EQ(class_mistake("class: ../up\n"),
            "classes/c.yaml:1:8: class: expected a name of up to 64 letters, digits, _ and -, the "
            "first a letter or _, found \"../up\"");
}

TEST_F(ClassFileTest, AnAliasIsASegmentThatClientsCanAskFor) {
  EXPECT_EQ(class_mistake("class: c\naliases:\n  - my-chat\n  - MyChat\n"),
            "classes/c.yaml:4:5: aliases: expected a list of URL segments such as [\"my-chat\"] "
            "(lower-case letters, digits and -), found \"MyChat\"");
  EXPECT_EQ(class_mistake("class: c\naliases: my-chat\n"),
            "classes/c.yaml:2:10: aliases: expected a list of URL segments such as [\"my-chat\"] "
            "(lower-case letters, digits and -), found \"my-chat\"");
}

TEST_F(ClassFileTest, AnAliasLeadsToOneClassOnce) {
  EXPECT_EQ(class_mistake("class: c\naliases: [d, c]\n"),
            "classes/c.yaml:2:14: aliases: \"c\" already leads to the class \"c\"");
  EXPECT_EQ(class_mistake("class: c\naliases: [d, d]\n"),
            "classes/c.yaml:2:14: aliases: \"d\" already leads to the class \"c\"");
}

TEST_F(ClassFileTest, ObjectsLeaveThePathOfDefinitionsFree) {
  constexpr std::string_view kWhy =
      "\"definitions\" is no segment for a class of objects: /objects/definitions is the path of "
      "the definitions of classes";
  EXPECT_EQ(class_mistake("class: definitions\nobjects: true\n"),
            "classes/c.yaml:1:8: class: " + std::string(kWhy));
  EXPECT_EQ(class_mistake("class: c\nobjects: true\naliases: [definitions]\n"),
            "classes/c.yaml:3:11: aliases: " + std::string(kWhy));
  EXPECT_EQ(class_c("aliases: [definitions]\n").settings.aliases.size(), 1U) << "no objects";
}

TEST_F(ClassFileTest, DurabilityIsOneOfTwoWords) {
  EXPECT_EQ(class_c("durability: power\n").settings.durability, Durability::kPower);
  EXPECT_EQ(class_c("durability: process\n").settings.durability, Durability::kProcess);
  EXPECT_EQ(class_mistake("class: c\ndurability: disk\n"),
            "classes/c.yaml:2:13: durability: expected process or power, found \"disk\"");
}

TEST_F(ClassFileTest, CallsAreConcurrentOrSerial) {
  EXPECT_FALSE(class_c("").settings.serial_calls);
  EXPECT_TRUE(class_c("calls: serial\n").settings.serial_calls);
  EXPECT_FALSE(class_c("calls: concurrent\n").settings.serial_calls);
}

TEST_F(ClassFileTest, LimitsAreHeldToTheirBounds) {
  EXPECT_EQ(class_c("idle_timeout: 8760h\n").settings.idle_timeout, hours(8760));
  EXPECT_EQ(class_mistake("class: c\nidle_timeout: 0s\n"),
            "classes/c.yaml:2:15: idle_timeout: must be from 10ms to 8760h, found \"0s\"");
  EXPECT_EQ(class_mistake("class: c\nevict_grace: 6m\n"),
            "classes/c.yaml:2:14: evict_grace: must be from 0s to 5m, found \"6m\"");
  EXPECT_EQ(class_mistake("class: c\nlimits: {max_variables: 32767}\n"),
            "classes/c.yaml:2:25: limits.max_variables: must be from 1 to 32766, found \"32767\"");
  EXPECT_EQ(class_mistake("class: c\nlimits: {max_value: 1GiB}\n"),
            "classes/c.yaml:2:21: limits.max_value: must be from 1KiB to 256MiB, found \"1GiB\"");
  EXPECT_EQ(class_mistake("class: c\nkeep_alive_interval: 2h\n"),
            "classes/c.yaml:2:22: keep_alive_interval: must be from 10ms to 1h, found \"2h\"");
  EXPECT_EQ(class_mistake("class: c\nschedules: {timeout: 0s}\n"),
            "classes/c.yaml:2:22: schedules.timeout: must be from 10ms to 24h, found \"0s\"");
  EXPECT_EQ(class_mistake("class: c\nschedules: {max_running: 0}\n"),
            "classes/c.yaml:2:26: schedules.max_running: must be from 1 to 10000, found \"0\"");
  EXPECT_EQ(class_mistake("class: c\nqueue: {max_items: 0}\n"),
            "classes/c.yaml:2:20: queue.max_items: must be from 1 to 10000000, found \"0\"");
}

TEST_F(ClassFileTest, CrashesThatMakeAClassSuspectBeforeItsFiberAreDoubtful) {
  for (const char* const doubtful : {"0", "3", "4", "1000"}) {
    const std::string doubt =
        doubts(class_c("fibers: {max_crashes: " + std::string(doubtful) + "}\n"));
    EXPECT_NE(doubt.find("fibers.max_crashes: " + std::string(doubtful) + " a fiber"),
              std::string::npos)
        << doubt;
    EXPECT_NE(doubt.find("set 1 to 2"), std::string::npos) << doubt;
  }
  for (const char* const meant : {"", "fibers: {max_crashes: 1}\n", "fibers: {max_crashes: 2}\n"})
    EXPECT_EQ(doubts(class_c(meant)), "") << meant;
}

TEST_F(ClassFileTest, OptionsAreAMapping) {
  EXPECT_EQ(class_c("options:\n").settings.options, "{}");
  EXPECT_EQ(class_mistake("class: c\noptions: [1]\n"),
            "classes/c.yaml:2:10: options: expected a mapping (lines of \"key: value\"), found a "
            "list");
  EXPECT_EQ(class_mistake("class: c\noptions: {a: [.nan]}\n"),
            "classes/c.yaml:2:15: options.a[0]: JSON has neither infinities nor .nan; quote it "
            "to keep it as text");
}

TEST_F(ClassFileTest, NoMistakeRepeatsWhatStandsInOptions) {
  for (const char* options :
       {"hunter2", "{a: 99999999999999999999}", "{a: 0xfffffffffffffffffff}", "{a: 98765e9999}",
        "{a: !hunter2 b}", "{a: *hunter2}", "{a: \"\\hunter2\"}", "!hunter2 {a: 1}"}) {
    const std::string mistake = class_mistake("class: c\noptions: " + std::string(options) + "\n");
    for (const char* secret : {"unter2", "9999", "fff", "98765"})
      EXPECT_EQ(mistake.find(secret), std::string::npos) << mistake;
  }
}

// ---- as a text ----------------------------------------------------------------------------------

TEST_F(ClassFileTest, SettingsComeBackFromTheirText) {
  for (const std::string text :
       {"", "idle_timeout: 10s", "evict_grace: 0s\ndurability: power\nsend_identity: false",
        "limits: {max_value: 4KiB, max_variables: 6, sql_time: 1234ms}\nkv: {max_total: 5KiB}",
        "fibers: {keep_failed: 8h, max_recoveries: 0}\nschedules: {max_running: 3}",
        R"(options: {a: 1, b: "1", c: -2.5e-7, d: [true, null, "", {e: "true"}], "f: g": 1e300})",
        R"(options: {text: "a \" \\ \n \t \u0001 \u00e9 \U0001F600 # -"})"}) {
    const ClassConfig config = class_c(text);
    const auto read = read_settings_text(settings_text(config.settings));
    ASSERT_TRUE(read) << text << ": " << read.error().message;
    EXPECT_EQ(changed_keys(config, ClassConfig{.settings = *read, .file = {}, .sources = {}}),
              std::vector<std::string>{})
        << text;
  }
}

TEST_F(ClassFileTest, TheTextIsThatOfTheValuesAlone) {
  const auto text = [this](const std::string& file) {
    return settings_text(class_c(file).settings);
  };
  EXPECT_EQ(text(""), "{}");
  EXPECT_EQ(text("idle_timeout: 60s\naliases: [tally]"), "{}");
  EXPECT_EQ(text("# a remark\nlimits: {max_sql: 2KiB}\nidle_timeout: 1s"),
            text("idle_timeout: 1000ms\nlimits:\n  max_sql: 2048"));
  EXPECT_NE(text("options: {a: 1}"), text("options: {a: 2}"));
}

TEST_F(ClassFileTest, ATextWithOtherSettingsThanThisVersionHasIsRefused) {
  EXPECT_FALSE(read_settings_text(R"({"future": 1})"));
  EXPECT_FALSE(read_settings_text(R"({"idle_timeout": "1 fortnight"})"));
  EXPECT_FALSE(read_settings_text("["));
}

}  // namespace
}  // namespace hearth::config
