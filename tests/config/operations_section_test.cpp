#include "config/operations_section.hpp"

#include "config/class_file.hpp"
#include "config/config_files.hpp"
#include "support/built.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace hearth::config {
namespace {

using durable::OperationSettings;
using std::chrono::hours;
using std::chrono::milliseconds;

class OperationsSectionTest : public ConfigFilesTest {
 protected:
  [[nodiscard]] std::string operations_mistake(const std::string& section) const {
    return class_mistake("class: c\noperations: {" + section + "}\n");
  }
};

TEST_F(OperationsSectionTest, EveryKeyReachesItsField) {
  const OperationSettings operations = class_c(R"(
limits: {max_value: 1MiB}
operations:
  keep: 48h
  kinds:
    charge: {keep: 9600h, per_day: 100, cost_per_day: 50000}
    mail: {per_day: 7}
)")
                                           .settings.operations;
  EXPECT_EQ(operations.keep, hours(48));
  EXPECT_EQ(operations.max_result_bytes, std::size_t{1} << 20U);
  ASSERT_EQ(operations.kinds.size(), 2U);
  EXPECT_EQ(operations.kinds.at("charge").keep, hours(24 * 400));
  EXPECT_EQ(operations.kinds.at("charge").per_day, 100U);
  EXPECT_EQ(operations.kinds.at("charge").cost_per_day, 50'000U);
  EXPECT_EQ(operations.kinds.at("mail").keep, milliseconds(0)) << "as operations.keep";
  EXPECT_EQ(operations.kinds.at("mail").per_day, 7U);
  EXPECT_EQ(operations.kinds.at("mail").cost_per_day, 0U);
}

TEST_F(OperationsSectionTest, WithoutItRowsStayThirtyDaysAndNothingIsLimited) {
  const OperationSettings operations = class_c("").settings.operations;
  EXPECT_EQ(operations.keep, hours(24 * 30));
  EXPECT_TRUE(operations.kinds.empty());
}

TEST_F(OperationsSectionTest, TheShippedPaymentsAreLimitedWhateverTheirProviderMakesOfKeys) {
  const Config config = load_config(testing::built::sources() / "config/hearth.yaml").value();
  const auto& kinds = config.classes.at("payments").settings.operations.kinds;
  for (const std::string what : {"charge", "refund"}) {
    for (const char* const keys : {"", ".listed", ".ignored"}) {
      SCOPED_TRACE(what + keys);
      const auto kind = kinds.find(what + keys);
      ASSERT_NE(kind, kinds.end());
      EXPECT_GT(kind->second.cost_per_day, 0U);
    }
  }
}

TEST_F(OperationsSectionTest, MistakesAreNamed) {
  for (const auto& [section, named] :
       {std::pair("kinds: [charge]", "operations.kinds"),
        std::pair("kinds: {charge: {per_days: 1}}", "operations.kinds.charge.per_days"),
        std::pair("kinds: {charge: {per_day: -1}}", "operations.kinds.charge.per_day"),
        std::pair("kinds: {charge: {keep: soon}}", "operations.kinds.charge.keep"),
        std::pair("kinds: {\"a b\": {per_day: 1}}", "operations.kinds.a b"),
        std::pair("keep: 900000h", "operations.keep")}) {
    EXPECT_NE(operations_mistake(section).find(named), std::string::npos)
        << section << ": " << operations_mistake(section);
  }
}

}  // namespace
}  // namespace hearth::config
