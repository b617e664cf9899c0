#include "config/class_file.hpp"

#include "config/config_files.hpp"
#include "config/key_rows.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hearth::config {
namespace {

using namespace std::chrono_literals;

using runtime::ClassSettings;
using runtime::Durability;

class ClassFileTest : public ConfigFilesTest {};

template <class T>
Fields<ClassSettings, T> at_egress_limit(T extensions::EgressLimits::* member) {
  return {{.get = [=](const ClassSettings& it) -> const T& { return it.egress.limits.*member; },
           .of = [=](ClassSettings& it) -> T& { return it.egress.limits.*member; }}};
}

// `directory` is that of the file.
std::vector<KeyRow<ClassSettings>> class_keys(const std::filesystem::path& directory) {
  using Class = ClassSettings;
  using Strings = std::vector<std::string>;
  using storage::PluginSqlLimits;
  const auto sql = [](auto member) { return at(&Class::sql, member); };
  using Fibers = durable::FiberSettings;
  const auto fibers = [](auto member) { return at(&Class::fibers, member); };
  using Schedules = durable::ScheduleSettings;
  const auto schedules = [](auto member) { return at(&Class::schedules, member); };
  using Queue = durable::QueueSettings;
  const auto queue = [](auto member) { return at(&Class::queue, member); };
  using Alarms = durable::AlarmSettings;
  const auto alarms = [](auto member) { return at(&Class::alarms, member); };
  using Kv = extensions::KvSettings;
  const auto kv = [](auto member) { return at(&Class::kv, member); };
  using extensions::EgressLimits;
  using Egress = extensions::EgressSettings;
  const auto egress = [](auto member) { return at(&Class::egress, member); };
  using Secrets = std::map<std::string, std::filesystem::path>;
  const auto values =
      all(sql(&PluginSqlLimits::max_value_bytes), at(&Class::max_state_bytes),
          fibers(&Fibers::max_snapshot_bytes), fibers(&Fibers::max_json_bytes),
          schedules(&Schedules::max_payload_bytes), queue(&Queue::max_payload_bytes));
  return {
      {"code", "assistant"},
      key("aliases", "[assistant, \"my-chat\"]", at(&Class::aliases),
          Strings{"assistant", "my-chat"}, Strings{}),
      key("send_identity", "false", at(&Class::send_identity), false, true),
      key("list_methods", "true", at(&Class::list_methods), true, false),
      {"show_failures", "true"},
      {"auth.type", "jwt"},
      {"auth.name", "''"},
      {"cors.origins", "['*']"},
      {"cors.methods", "[GET]"},
      {"cors.headers", "[X-A]"},
      {"cors.credentials", "true"},
      {"cors.max_age", "5s"},
      key("evict_grace", "3s", at(&Class::evict_grace), 3s, 0s),
      key("durability", "power", at(&Class::durability), Durability::kPower, Durability::kProcess),
      {"objects_call_timeout", "5s"},
      {"idempotency_keep", "2h"},
      {"calls", "serial"},
      key("limits.max_value", "4KiB", values, 4096, std::size_t{2} << 20),
      key("limits.max_sql", "5KiB", sql(&PluginSqlLimits::max_sql_bytes), 5120, 256 << 10),
      key("limits.max_variables", "6", sql(&PluginSqlLimits::max_variables), 6, 1000),
      key("limits.sql_time", "7s", sql(&PluginSqlLimits::sql_time), 7s, 5s),
      key("limits.max_frame", "9KiB", at(&Class::max_frame), 9216, 0),       // 0: as the server's
      key("limits.call_timeout", "10s", at(&Class::call_timeout), 10s, 0s),  // likewise
      key("limits.max_events", "8", at(&Class::max_events), 8, 1000),
      key("fibers.recovery_timeout", "3s", fibers(&Fibers::recovery_timeout), 3s, 1min),
      key("fibers.max_attempts", "4", fibers(&Fibers::max_attempts), 4, 10),
      key("fibers.max_recoveries", "0", fibers(&Fibers::max_recoveries), 0, 1000),
      key("fibers.max_turn_recoveries", "7", fibers(&Fibers::max_turn_recoveries), 7, 5),
      key("fibers.max_crashes", "0", fibers(&Fibers::max_crashes), 0, 2),
      key("fibers.retry_base", "20ms", fibers(&Fibers::retry_base), 20ms, 1s),
      key("fibers.max_running", "6", fibers(&Fibers::max_running), 6, 1000),
      key("fibers.keep_completed", "7s", fibers(&Fibers::keep_completed), 7s, 24h),
      key("fibers.keep_failed", "8h", fibers(&Fibers::keep_failed), 8h, 24h * 7),
      key("fibers.max_records", "9", fibers(&Fibers::max_records), 9, 10'000),
      key("schedules.timeout", "10s", schedules(&Schedules::timeout), 10s, 5min),
      key("schedules.max_schedules", "11", schedules(&Schedules::max_schedules), 11, 10'000),
      key("schedules.max_running", "12", schedules(&Schedules::max_running), 12, 32),
      key("queue.timeout", "13s", queue(&Queue::timeout), 13s, 5min),
      key("queue.max_items", "14", queue(&Queue::max_items), 14, 100'000),
      key("alarms.max_alarms", "18", alarms(&Alarms::max_alarms), 18, 100),
      key("alarms.max_attempts", "19", alarms(&Alarms::max_attempts), 19, 3),
      key("alarms.retry_base", "20s", alarms(&Alarms::retry_base), 20s, 1s),
      key("kv.max_keys", "15", kv(&Kv::max_keys), 15, 10'000),
      key("kv.max_value", "16KiB", kv(&Kv::max_value_bytes), 16'384, std::size_t{1} << 20),
      key("kv.max_total", "17KiB", kv(&Kv::max_total_bytes), 17'408, std::size_t{50} << 20),
      key("keep_alive_interval", "15s", at(&Class::keep_alive_interval), 15s, 30s),
      {"operations.keep", "3h"},
      {"operations.kinds.charge", "{per_day: 7}"},
      key("egress.allow", R"([api.example.com, "*.example.org:443", "10.0.0.0/8", "::1"])",
          egress(&Egress::allow),
          Strings{"api.example.com", "*.example.org:443", "10.0.0.0/8", "::1"}, Strings{}),
      key("egress.deny", R"(["10.0.0.1"])", egress(&Egress::deny), Strings{"10.0.0.1"}, Strings{}),
      key("egress.proxy", "'http://proxy.example:3128'", egress(&Egress::proxy),
          "http://proxy.example:3128", ""),
      key("egress.secrets.key", "key.txt", egress(&Egress::secrets),
          Secrets{{"key", directory / "key.txt"}}, Secrets{}),
      key("egress.limits.requests_per_minute", "5",
          at_egress_limit(&EgressLimits::requests_per_minute), 5, 0),
      key("egress.limits.concurrent", "6", at_egress_limit(&EgressLimits::concurrent), 6, 1000),
      key("egress.limits.bytes_per_day", "7MiB", at_egress_limit(&EgressLimits::bytes_per_day),
          7 << 20, 0),
      key("egress.http2", "false", egress(&Egress::http2), false, true),
      key("options.a", "1", at(&Class::options), R"({"a":1})", "{}"),
      key("idle_timeout", "20ms", at(&Class::idle_timeout), 20ms, 60s),
  };
}

TEST_F(ClassFileTest, EachKeyReachesItsFieldAloneAndItsChangeIsNoticedUnderItsName) {
  const ClassConfig defaults = class_c("");
  const std::vector<KeyRow<ClassSettings>> rows = class_keys(path("classes"));
  put("classes/key.txt", "s3cret\n");
  for (const KeyRow<ClassSettings>& row : rows) {
    const ClassConfig changed = class_c(row.file());
    expect_only(row, changed.settings, rows);
    EXPECT_EQ(changed.file, path("classes/c.yaml"));
    EXPECT_EQ(changed_keys(defaults, changed), std::vector{row.key});
    EXPECT_EQ(changed_keys(changed, defaults), std::vector{row.key});
    EXPECT_TRUE(changed_keys(changed, changed).empty()) << row.key;
  }
  const std::vector<std::string> implied{"idle_timeout", "objects", "calls"};
  EXPECT_EQ(changed_keys(defaults, class_c("objects: true\n")), implied);
  EXPECT_EQ(changed_keys(class_c("objects: true\n"), defaults), implied);
  for (const Setting<ClassSettings>& setting : class_settings()) {
    const auto names_it = [&](const auto& row) { return row.key.starts_with(setting.path); };
    EXPECT_TRUE(setting.path == "objects" || std::ranges::any_of(rows, names_it))
        << setting.path << " needs a row above";
  }
}

TEST_F(ClassFileTest, ObjectsHaveDefaultsOfTheirOwn) {
  const ClassSettings object = class_c("objects: true\n").settings;
  EXPECT_TRUE(object.is_object);
  EXPECT_EQ(object.idle_timeout, 5min);
  EXPECT_TRUE(object.serial_calls);
  EXPECT_EQ(object.object_call_timeout, 30s);
  EXPECT_EQ(object.answers.keep, 24h);
  const std::string own = "objects: true\nidle_timeout: 1m\ncalls: concurrent\n";
  EXPECT_EQ(class_c(own).settings.idle_timeout, 1min);
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
  EXPECT_EQ(object.idle_timeout, 5min);
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

TEST_F(ClassFileTest, EachMistakeIsNamedAtItsPlace) {
  const std::string missing = "1:1: the key \"class\" is missing: which class is this for?";
  const std::string no_segment =
      ": aliases: expected a list of URL segments such as [\"my-chat\"] (lower-case letters, "
      "digits and -), found ";
  const std::pair<const char*, std::string> rows[] = {
      {"idle_timeout: 5s\n", missing},
      {"", missing},
      {"class: ../up\n",
       "1:8: class: expected a name of up to 64 letters, digits, _ and -, the first a letter or _, "
       "found \"../up\""},
      {"class: c\naliases:\n  - my-chat\n  - MyChat\n", "4:5" + no_segment + "\"MyChat\""},
      {"class: c\naliases: my-chat\n", "2:10" + no_segment + "\"my-chat\""},
      {"class: c\naliases: [d, c]\n", "2:14: aliases: \"c\" already leads to the class \"c\""},
      {"class: c\naliases: [d, d]\n", "2:14: aliases: \"d\" already leads to the class \"c\""},
      {"class: c\ndurability: disk\n",
       "2:13: durability: expected process or power, found \"disk\""},
      // limits
      {"class: c\nidle_timeout: 0s\n",
       "2:15: idle_timeout: must be from 10ms to 8760h, found \"0s\""},
      {"class: c\nevict_grace: 6m\n", "2:14: evict_grace: must be from 0s to 5m, found \"6m\""},
      {"class: c\nlimits: {max_variables: 32767}\n",
       "2:25: limits.max_variables: must be from 1 to 32766, found \"32767\""},
      {"class: c\nlimits: {max_value: 1GiB}\n",
       "2:21: limits.max_value: must be from 1KiB to 256MiB, found \"1GiB\""},
      {"class: c\nkeep_alive_interval: 2h\n",
       "2:22: keep_alive_interval: must be from 10ms to 1h, found \"2h\""},
      {"class: c\nschedules: {timeout: 0s}\n",
       "2:22: schedules.timeout: must be from 10ms to 24h, found \"0s\""},
      {"class: c\nschedules: {max_running: 0}\n",
       "2:26: schedules.max_running: must be from 1 to 10000, found \"0\""},
      {"class: c\nqueue: {max_items: 0}\n",
       "2:20: queue.max_items: must be from 1 to 10000000, found \"0\""},
      // options
      {"class: c\noptions: [1]\n",
       "2:10: options: expected a mapping (lines of \"key: value\"), found a list"},
      {"class: c\noptions: {a: [.nan]}\n",
       "2:15: options.a[0]: JSON has neither infinities nor .nan; quote it to keep it as text"},
  };
  for (const auto& [text, mistake] : rows)
    EXPECT_EQ(class_mistake(text), "classes/c.yaml:" + mistake);
  EXPECT_EQ(class_c("idle_timeout: 8760h\n").settings.idle_timeout, 8760h);
  EXPECT_EQ(class_c("durability: process\n").settings.durability, Durability::kProcess);
  EXPECT_EQ(class_c("options:\n").settings.options, "{}");
}

TEST_F(ClassFileTest, AMisspeltClassIsMissingAndUnknown) {
  put("server.yaml", "");
  put("classes/c.yaml", "clas: counter\n");
  EXPECT_EQ(mistakes(),
            (std::vector<std::string>{
                "classes/c.yaml:1:1: the key \"class\" is missing: which class is this for?",
                "classes/c.yaml:1:1: unknown key \"clas\"; did you mean \"class\"?"}));
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

TEST_F(ClassFileTest, CallsAreConcurrentOrSerial) {
  EXPECT_FALSE(class_c("").settings.serial_calls);
  EXPECT_TRUE(class_c("calls: serial\n").settings.serial_calls);
  EXPECT_FALSE(class_c("calls: concurrent\n").settings.serial_calls);
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
