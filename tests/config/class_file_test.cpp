#include "config/class_file.hpp"

#include "config/config_files.hpp"

#include <chrono>
#include <string>

namespace hearth::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class ClassFileTest : public ConfigFilesTest {};

TEST_F(ClassFileTest, EveryKeyReachesItsField) {
  const ClassConfig config = class_c(R"(
idle_timeout: 20ms
evict_grace: 3s
durability: process
limits:
  max_value: 4KiB
  max_sql: 5KiB
  max_variables: 6
  sql_time: 7s
  max_events: 8
fibers:
  recovery_timeout: 3s
  max_attempts: 4
  retry_base: 20ms
  max_running: 6
options:
  a: 1
  b: "1"
)");
  EXPECT_EQ(config.idle_timeout, milliseconds(20));
  EXPECT_EQ(config.evict_grace, seconds(3));
  EXPECT_EQ(config.durability, Durability::kProcess);
  EXPECT_EQ(config.limits.max_value_bytes, 4096U);
  EXPECT_EQ(config.limits.max_sql_bytes, 5120U);
  EXPECT_EQ(config.limits.max_variables, 6U);
  EXPECT_EQ(config.limits.sql_time, seconds(7));
  EXPECT_EQ(config.limits.max_events, 8U);
  EXPECT_EQ(config.fibers.recovery_timeout, std::chrono::seconds(3));
  EXPECT_EQ(config.fibers.max_attempts, 4U);
  EXPECT_EQ(config.fibers.retry_base, std::chrono::milliseconds(20));
  EXPECT_EQ(config.fibers.max_running, 6U);
  EXPECT_EQ(dump_json(config.options), R"({"a":1,"b":"1"})");
  EXPECT_EQ(config.file, path("classes/c.yaml"));
}

TEST_F(ClassFileTest, AClassAloneHasTheDefaults) {
  const ClassConfig config = class_c("");
  EXPECT_EQ(config.idle_timeout, seconds(60));
  EXPECT_EQ(config.evict_grace, seconds(0));
  EXPECT_EQ(config.durability, Durability::kProcess);
  EXPECT_EQ(config.limits.max_value_bytes, 2U << 20U);
  EXPECT_EQ(config.limits.max_sql_bytes, 256U << 10U);
  EXPECT_EQ(config.limits.max_variables, 1000U);
  EXPECT_EQ(config.limits.sql_time, seconds(5));
  EXPECT_EQ(config.limits.max_events, 1000U);
  EXPECT_EQ(dump_json(config.options), "{}");
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

TEST_F(ClassFileTest, PowerIsNotAvailableYet) {
  EXPECT_EQ(class_mistake("class: c\ndurability: power\n"),
            "classes/c.yaml:2:13: durability: power is not available yet; the only one there is is "
            "process");
  EXPECT_EQ(class_mistake("class: c\ndurability: disk\n"),
            "classes/c.yaml:2:13: durability: expected process or power, found \"disk\"");
}

TEST_F(ClassFileTest, LimitsAreHeldToTheirBounds) {
  EXPECT_EQ(class_c("idle_timeout: 8760h\n").idle_timeout, hours(8760));
  EXPECT_EQ(class_mistake("class: c\nidle_timeout: 0s\n"),
            "classes/c.yaml:2:15: idle_timeout: must be from 10ms to 8760h, found \"0s\"");
  EXPECT_EQ(class_mistake("class: c\nevict_grace: 6m\n"),
            "classes/c.yaml:2:14: evict_grace: must be from 0s to 5m, found \"6m\"");
  EXPECT_EQ(class_mistake("class: c\nlimits: {max_variables: 32767}\n"),
            "classes/c.yaml:2:25: limits.max_variables: must be from 1 to 32766, found \"32767\"");
  EXPECT_EQ(class_mistake("class: c\nlimits: {max_value: 1GiB}\n"),
            "classes/c.yaml:2:21: limits.max_value: must be from 1KiB to 256MiB, found \"1GiB\"");
}

TEST_F(ClassFileTest, OptionsAreAMapping) {
  EXPECT_EQ(dump_json(class_c("options:\n").options), "{}");
  EXPECT_EQ(class_mistake("class: c\noptions: [1]\n"),
            "classes/c.yaml:2:10: options: expected a mapping (lines of \"key: value\"), found a "
            "list");
  EXPECT_EQ(class_mistake("class: c\noptions: {a: [.nan]}\n"),
            "classes/c.yaml:2:15: options.a[0]: JSON has no \".nan\"; quote it to keep it as text");
}

}  // namespace
}  // namespace hearth::config
