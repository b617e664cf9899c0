#include "base/log_line.hpp"

#include "base/utf8.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

namespace hearth {
namespace {

class LogLineTest : public ::testing::Test {
 protected:
  // Human lines show local time.
  void SetUp() override {
    ::setenv("TZ", "UTC", 1);  // NOLINT(concurrency-mt-unsafe): there is one thread
    ::tzset();
  }

  static LogEvent event(std::string_view name, std::span<const LogField> fields) {
    using std::chrono::milliseconds;
    return {.time = std::chrono::sys_days{std::chrono::year{2026} / 1 / 2} + milliseconds(43200007),
            .level = LogLevel::kWarn,
            .name = name,
            .fields = fields};
  }
  static std::string human(std::initializer_list<LogField> fields) {
    return render_human_line(event("a.b", {fields.begin(), fields.size()}));
  }
  static std::string json(std::initializer_list<LogField> fields) {
    return render_json_line(event("a.b", {fields.begin(), fields.size()}));
  }

  static constexpr std::string_view kHumanStart = "12:00:00.007 WARN  a.b";
  static constexpr std::string_view kJsonStart =
      R"({"time":"2026-01-02T12:00:00.007Z","level":"warn","event":"a.b")";
  static std::string human_with(std::string_view rest) { return std::string(kHumanStart) += rest; }
  static std::string json_with(std::string_view rest) { return std::string(kJsonStart) += rest; }
};

TEST_F(LogLineTest, AnEventWithoutFieldsIsTimeLevelAndName) {
  EXPECT_EQ(human({}), kHumanStart);
  EXPECT_EQ(json({}), json_with("}"));
}

TEST_F(LogLineTest, EveryKindOfValueKeepsItsType) {
  EXPECT_EQ(human({{"s", "text"}, {"i", -5}, {"u", std::size_t{7}}, {"d", 0.5}, {"b", true}}),
            human_with(" s=text i=-5 u=7 d=0.5 b=true"));
  EXPECT_EQ(json({{"s", "text"}, {"i", -5}, {"u", std::size_t{7}}, {"d", 0.5}, {"b", false}}),
            json_with(R"(,"s":"text","i":-5,"u":7,"d":0.5,"b":false})"));
}

// Parsers keep the last of two equal keys.
TEST_F(LogLineTest, NoTwoKeysOfALineAreEqual) {
  EXPECT_EQ(json({{"event", "call"}, {"k", 1}, {"k", 2}, {"k_2", 3}, {"k", 4}}),
            json_with(R"(,"event_2":"call","k":1,"k_2":2,"k_2_2":3,"k_3":4})"));
  EXPECT_EQ(json({{"time", 1}, {"level", 2}}), json_with(R"(,"time_2":1,"level_2":2})"));
  EXPECT_EQ(human({{"event", "call"}, {"k", 1}, {"k", 2}}), human_with(" event_2=call k=1 k_2=2"));
}

TEST_F(LogLineTest, AHumanValueIsQuotedOnlyWhenItMustBe) {
  EXPECT_EQ(human({{"k", "/a/b-c.so"}}), human_with(" k=/a/b-c.so"));
  EXPECT_EQ(human({{"k", ""}}), human_with(R"( k="")"));
  EXPECT_EQ(human({{"k", "a b"}}), human_with(R"( k="a b")"));
  EXPECT_EQ(human({{"k", "x other=y"}}), human_with(R"( k="x other=y")"));
  EXPECT_EQ(human({{"k", R"(say "hi")"}}), human_with(R"( k="say \"hi\"")"));
  EXPECT_EQ(human({{"k", "caf\xC3\xA9"}}), human_with(" k=caf\xC3\xA9"));
}

TEST_F(LogLineTest, LineEndsAndControlCharactersAreEscaped) {
  const std::string_view hostile("a\nb\r\tc\0d\x1B[2J\x7F", 13);
  EXPECT_EQ(human({{"k", hostile}}), human_with(R"( k="a\nb\r\tc\u0000d\u001b[2J\u007f")"));
  EXPECT_EQ(json({{"k", hostile}}), json_with(R"(,"k":"a\nb\r\tc\u0000d\u001b[2J\u007f"})"));
}

TEST_F(LogLineTest, UnicodeThatBreaksOrReordersLinesIsEscaped) {
  // NEL, line separator, right-to-left override, isolate.
  const std::string_view hostile = "\xC2\x85\xE2\x80\xA8\xE2\x80\xAE\xE2\x81\xA6";
  EXPECT_EQ(human({{"k", hostile}}), human_with(R"( k="\u0085\u2028\u202e\u2066")"));
  EXPECT_EQ(json({{"k", hostile}}), json_with(R"(,"k":"\u0085\u2028\u202e\u2066"})"));
}

TEST_F(LogLineTest, MalformedUtf8IsShownToPeopleAndReplacedForPrograms) {
  EXPECT_EQ(human({{"k", "a\xFF\xC3"}}), human_with(R"( k="a\xff\xc3")"));
  EXPECT_EQ(json({{"k", "a\xFF\xC3"}}), json_with(",\"k\":\"a\xEF\xBF\xBD\xEF\xBF\xBD\"}"));
}

TEST_F(LogLineTest, NoByteInANameAKeyOrAValueEndsTheLine) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  const std::vector<LogField> fields{{every, every}};
  for (const std::string& line :
       {render_human_line(event(every, fields)), render_json_line(event(every, fields))}) {
    EXPECT_TRUE(is_valid_utf8(line));
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20U);
  }
}

TEST_F(LogLineTest, NumbersThatJsonLacksBecomeStrings) {
  EXPECT_EQ(json({{"n", std::numeric_limits<double>::quiet_NaN()},
                  {"i", -std::numeric_limits<double>::infinity()}}),
            json_with(R"(,"n":"nan","i":"-inf"})"));
}

TEST_F(LogLineTest, ALongValueIsCutAndTheLineSaysSo) {
  const std::string value(kMaxLogValueBytes + 10, 'x');
  EXPECT_EQ(json({{"k", value}}), json_with(",\"k\":\"" + std::string(kMaxLogValueBytes, 'x') +
                                            "... (10 bytes more)\"}"));
  EXPECT_EQ(human({{"k", value}}),
            human_with(" k=\"" + std::string(kMaxLogValueBytes, 'x') + "... (10 bytes more)\""));
}

TEST_F(LogLineTest, ACutNeverSplitsACharacter) {
  const std::string value = std::string(kMaxLogValueBytes - 1, 'x') + "\xE2\x82\xAC";
  EXPECT_EQ(json({{"k", value}}), json_with(",\"k\":\"" + std::string(kMaxLogValueBytes - 1, 'x') +
                                            "... (3 bytes more)\"}"));
}

TEST_F(LogLineTest, TimesBefore1970HaveTheirMilliseconds) {
  const LogEvent old{.time = WallTime(std::chrono::milliseconds(-1)),
                     .level = LogLevel::kError,
                     .name = "x",
                     .fields = {}};
  EXPECT_EQ(render_json_line(old),
            R"({"time":"1969-12-31T23:59:59.999Z","level":"error","event":"x"})");
  EXPECT_EQ(render_human_line(old), "23:59:59.999 ERROR x");
}

}  // namespace
}  // namespace hearth
