#include "config/units.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>

namespace hearth::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(UnitsTest, DurationsHaveFourUnits) {
  EXPECT_EQ(parse_duration("500ms").value(), milliseconds(500));
  EXPECT_EQ(parse_duration("30s").value(), seconds(30));
  EXPECT_EQ(parse_duration("5m").value(), minutes(5));
  EXPECT_EQ(parse_duration("1h").value(), hours(1));
  EXPECT_EQ(parse_duration("0s").value(), milliseconds(0));
  EXPECT_EQ(parse_duration("0").value(), milliseconds(0));
}

TEST(UnitsTest, ADurationWithoutItsUnitSaysWhatIsMissing) {
  EXPECT_EQ(parse_duration("30").error().message,
            "expected a duration with its unit, such as 30s, found \"30\"");
}

TEST(UnitsTest, RefusesWhatIsNoDuration) {
  for (const std::string_view text : {"", "s", "-5s", "+5s", "1.5s", "5 s", " 5s", "5s ", "5S",
                                      "5sec", "1h30m", "1d", "5us", "inf", "\xD9\xA5s"}) {
    const auto result = parse_duration(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, Errc::kInvalidArgument);
    EXPECT_TRUE(result.error().message.starts_with("expected a duration such as")) << text;
  }
}

TEST(UnitsTest, ADurationPastTheRangeIsTheLongestOne) {
  EXPECT_EQ(parse_duration("99999999999999999999h").value(), milliseconds::max());
  EXPECT_EQ(parse_duration("9223372036854775807h").value(), milliseconds::max());
  EXPECT_EQ(parse_duration("9223372036854775807ms").value(), milliseconds::max());
  EXPECT_EQ(parse_duration("9223372036854775808ms").value(), milliseconds::max());
}

TEST(UnitsTest, SizesAreBytesOrPowersOf1024) {
  EXPECT_EQ(parse_size("0").value(), 0U);
  EXPECT_EQ(parse_size("4096").value(), 4096U);
  EXPECT_EQ(parse_size("64KiB").value(), 65536U);
  EXPECT_EQ(parse_size("1MiB").value(), 1048576U);
  EXPECT_EQ(parse_size("2GiB").value(), 2147483648U);
  EXPECT_EQ(parse_size("99999999999999999999GiB").value(),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_size("18446744073709551615KiB").value(),
            std::numeric_limits<std::uint64_t>::max());
}

TEST(UnitsTest, RefusesWhatIsNoSize) {
  for (const std::string_view text :
       {"", "KiB", "-1", "1KB", "1MB", "1kib", "1 KiB", "1.5MiB", "0x10", "1TiB", "1B"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
  EXPECT_EQ(parse_size("1MB").error().message,
            "expected a size such as 4096, 64KiB or 1MiB, found \"1MB\"");
  EXPECT_EQ(parse_size("").error().message,
            "expected a size such as 4096, 64KiB or 1MiB, found nothing");
}

TEST(UnitsTest, CountsAreDigits) {
  EXPECT_EQ(parse_count("0").value(), 0U);
  EXPECT_EQ(parse_count("1000").value(), 1000U);
  for (const std::string_view text : {"", "-1", "+1", "1.0", "1e3", "1_000", "ten", "0x1"}) {
    EXPECT_FALSE(parse_count(text)) << text;
  }
}

TEST(UnitsTest, AddressesHaveAHostAndAPort) {
  EXPECT_EQ(parse_listen_address("127.0.0.1:8787").value(),
            (ListenAddress{.host = "127.0.0.1", .port = 8787}));
  EXPECT_EQ(parse_listen_address("0.0.0.0:0").value(),
            (ListenAddress{.host = "0.0.0.0", .port = 0}));
  EXPECT_EQ(parse_listen_address("[::1]:0").value(), (ListenAddress{.host = "::1", .port = 0}));
  EXPECT_EQ(parse_listen_address("[2001:db8::7]:65535").value(),
            (ListenAddress{.host = "2001:db8::7", .port = 65535}));
  EXPECT_EQ(parse_listen_address("localhost:80").value(),
            (ListenAddress{.host = "localhost", .port = 80}));
}

TEST(UnitsTest, RefusesWhatIsNoAddress) {
  using std::string_literals::operator""s;
  for (const std::string& text : {""s,
                                  "127.0.0.1"s,
                                  "8787"s,
                                  ":8787"s,
                                  "*:8787"s,
                                  "127.0.0.1:"s,
                                  "127.0.0.1:65536"s,
                                  "127.0.0.1:-1"s,
                                  "127.0.0.1:80x"s,
                                  "::1:80"s,
                                  "[::1]"s,
                                  "[::1"s,
                                  "[]:80"s,
                                  "[127.0.0.1]:80"s,
                                  "300.0.0.1:80"s,
                                  "1.2.3:80"s,
                                  "a b:80"s,
                                  "host/path:80"s,
                                  "http://host:80"s,
                                  "a\0b:80"s,
                                  std::string(300, 'a') + ":80"}) {
    EXPECT_FALSE(parse_listen_address(text)) << text;
  }
}

TEST(UnitsTest, AddressErrorsSayWhatIsMissing) {
  EXPECT_EQ(parse_listen_address(":80").error().message,
            "expected a host before the colon (0.0.0.0 means all of IPv4), found \":80\"");
  EXPECT_EQ(parse_listen_address("::1:80").error().message,
            "expected brackets around the IPv6 address, found \"::1:80\"");
  EXPECT_EQ(parse_listen_address("127.0.0.1:99999").error().message,
            "expected a port from 0 to 65535 after the colon, found \"127.0.0.1:99999\"");
}

TEST(UnitsTest, FormatsTheShortestTextThatReadsBack) {
  for (const auto& [duration, text] :
       {std::pair{milliseconds(0), "0s"}, std::pair{milliseconds(1500), "1500ms"},
        std::pair{milliseconds(30'000), "30s"}, std::pair{milliseconds(60'000), "1m"},
        std::pair{milliseconds(90'000), "90s"}, std::pair{milliseconds(86'400'000), "24h"}}) {
    EXPECT_EQ(format_duration(duration), text);
    EXPECT_EQ(parse_duration(text).value(), duration);
  }
  for (const auto& [size, text] :
       {std::pair{0U, "0"}, std::pair{1000U, "1000"}, std::pair{65536U, "64KiB"},
        std::pair{1572864U, "1536KiB"}, std::pair{1073741824U, "1GiB"}}) {
    EXPECT_EQ(format_size(size), text);
    EXPECT_EQ(parse_size(text).value(), size);
  }
  for (const std::string_view text : {"127.0.0.1:8787", "[::1]:0", "localhost:1"}) {
    EXPECT_EQ(to_string(parse_listen_address(text).value()), text);
  }
}

}  // namespace
}  // namespace hearth::config
