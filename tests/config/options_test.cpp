#include "config/options.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace hearth::config {
namespace {

TEST(OptionsTest, PlainScalarsHaveTheTypesOfTheCoreSchema) {
  const std::pair<std::string_view, Json> cases[] = {
      {"", nullptr},
      {"~", nullptr},
      {"null", nullptr},
      {"NULL", nullptr},
      {"true", true},
      {"False", false},
      {"0", 0},
      {"42", 42},
      {"-7", -7},
      {"+7", 7},
      {"010", 10},
      {"0o17", 15},
      {"0xFf", 255},
      {"18446744073709551615", std::numeric_limits<std::uint64_t>::max()},
      {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()},
      {"0.5", 0.5},
      {"-.5", -0.5},
      {"+1.5", 1.5},
      {"2.", 2.0},
      {"1e3", 1000.0},
      {"1.5E-2", 0.015},
  };
  for (const auto& [text, value] : cases) {
    const auto parsed = core_schema_value(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, value) << text;
    EXPECT_EQ(parsed->is_number_float(), value.is_number_float()) << text;
  }
}

TEST(OptionsTest, EverythingElseIsText) {
  for (const std::string_view text :
       {"yes", "on",  "off", "No",    "nULL",       "tRUE",  "a b", "1 2", "1_000",
        "0b1", "0o8", "0x",  "0xg",   "-0x1",       "1.2.3", ".",   "-",   "+",
        "e5",  "1e",  "--1", "12:30", "2026-01-02", "+.nan", "inf"}) {
    const auto parsed = core_schema_value(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, Json(std::string(text))) << text;
  }
}

TEST(OptionsTest, NumbersThatJsonCannotHoldAreRefused) {
  EXPECT_EQ(core_schema_value("18446744073709551616").error().message,
            "a number that does not fit into 64 bits; quote it to keep it as text");
  EXPECT_FALSE(core_schema_value("-9223372036854775809"));
  EXPECT_FALSE(core_schema_value("0x10000000000000000"));
  EXPECT_FALSE(core_schema_value("1e999"));
  EXPECT_EQ(core_schema_value("-.inf").error().message,
            "JSON has neither infinities nor .nan; quote it to keep it as text");
  EXPECT_FALSE(core_schema_value(".NaN"));
}

TEST(OptionsTest, ATreeBecomesTheSameTree) {
  Report report("f");
  const auto root =
      parse_yaml("a: 1\nb: '1'\nc: [x, ~, [true]]\nd: {e: {}}\nf: |\n  line\n\"g\\n\": 0\n7: k\n",
                 report)
          .value();
  EXPECT_EQ(dump_json(to_json(root, "options", report)),
            R"({"7":"k","a":1,"b":"1","c":["x",null,[true]],"d":{"e":{}},"f":"line\n","g\n":0})");
  EXPECT_TRUE(report.empty());
}

TEST(OptionsTest, MistakesNameTheirPath) {
  Report report("f");
  const auto root = parse_yaml("a:\n  - b: .inf\n", report).value();
  static_cast<void>(to_json(root, "options", report));
  const Diagnostics mistakes = report.take();
  ASSERT_EQ(mistakes.size(), 1U);
  EXPECT_EQ(
      to_string(mistakes[0]),
      "f:2:8: options.a[0].b: JSON has neither infinities nor .nan; quote it to keep it as text");
}

}  // namespace
}  // namespace hearth::config
