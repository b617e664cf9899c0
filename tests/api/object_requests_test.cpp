#include "api/object_requests.hpp"

#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace hearth::api {
namespace {

constexpr std::string_view kWrong = "invalid_argument";

template <class T, class Show>
std::string shown(const Result<T>& read, Show show) {
  return read ? show(*read) : std::string(to_string(read.error().code));
}

TEST(ObjectRequestsTest, APageOfObjectsHasFilters) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "| any  100"},
      {"class=tally&status=ACTIVE&cursor=Tally%2Fa&limit=1000", "tally| active Tally/a 1000"},
      {"status=Hibernating", "| hibernating  100"},
      {"status=asleep", kWrong},
      {"limit=0", kWrong},
      {"limit=1001", kWrong},
  };
  for (const auto& [query, expected] : cases) {
    const auto show = [](const ObjectPageRequest& page) {
      const char* const status = !page.is_active   ? "any"
                                 : *page.is_active ? "active"
                                                   : "hibernating";
      return page.agent_class + "| " + status + ' ' + page.after + ' ' + std::to_string(page.limit);
    };
    EXPECT_EQ(shown(read_object_page(query), show), expected) << query;
  }
  EXPECT_EQ(read_page("after=b&cursor=c&limit=7", "cursor").value().after, "c");
  EXPECT_EQ(read_page("after=b&cursor=c&limit=7", "after").value().limit, 7U);
  EXPECT_FALSE(read_page("limit=x", "after"));
}

TEST(ObjectRequestsTest, ANewObjectHasAClassAndAnId) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"class":"tally","object_id":"a"})", "tally a "},
      {R"({"class":"tally","object_id":"a%2F b","storage":null})", "tally a%252F%20b "},
      {R"({"class":"tally","object_id":"a","storage":{"n":1}})", R"(tally a {"n":1})"},
      {R"({"class":"tally","object_id":"a","storage":[]})", kWrong},
      {R"({"class":"tally","object_id":".."})", kWrong},
      {R"({"class":"tally","object_id":"long-id-of-eighteen"})", kWrong},
      {R"({"class":"tally"})", kWrong},
      {R"({"class":1,"object_id":"a"})", kWrong},
      {"[]", kWrong},
      {"{", kWrong},
  };
  for (const auto& [body, expected] : cases) {
    const auto show = [](const NewObject& object) {
      return object.agent_class + ' ' + object.name + ' ' + object.patch;
    };
    EXPECT_EQ(shown(read_new_object(body, 12), show), expected) << body;
  }
}

TEST(ObjectRequestsTest, NothingButTheStorageOfAnObjectCanBeChanged) {
  EXPECT_EQ(read_storage_member(R"({"storage":{"n":null}})").value(), R"({"n":null})");
  for (const std::string_view body :
       {"", "[]", "{}", R"({"storage":1})", R"({"storage":{},"class":"tally"})"})
    EXPECT_EQ(read_storage_member(body).error().code, Errc::kInvalidArgument) << body;
}

TEST(ObjectRequestsTest, AnAlarmSaysOnceWhenItIs) {
  const hearth::testing::ManualClock clock;
  const std::int64_t now = unix_millis(clock.wall_now());
  const auto show = [now](const AlarmRequest& alarm) {
    return alarm.method + alarm.arguments + std::to_string(alarm.at_ms - now);
  };
  const auto read = [&](std::string_view body) { return shown(read_alarm(body, clock), show); };
  EXPECT_EQ(read(R"({"method":"m","delay_seconds":1.5})"), "m[]1500");
  EXPECT_EQ(read(R"({"method":"m","args":{"n":1},"delay_seconds":0})"), R"(m[{"n":1}]0)");
  EXPECT_EQ(read(R"({"method":"m","args":[1],"fire_at":"1970-01-01T00:00:00Z"})"),
            "m[1]" + std::to_string(-now));
  for (const std::string_view body :
       {"", "[]", R"({"method":"m"})", R"({"method":"m","delay_seconds":-1})",
        R"({"method":"m","delay_seconds":"1"})", R"({"method":"m","delay_seconds":1e10})",
        R"({"method":"m","fire_at":"soon"})",
        R"({"method":"m","delay_seconds":1,"fire_at":"1970-01-01T00:00:00Z"})"})
    EXPECT_EQ(read(body), kWrong) << body;
}

}  // namespace
}  // namespace hearth::api
