#include "extensions/alarms.hpp"

#include "extensions/abi_fixture.hpp"
#include "json/json.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiAlarmsTest : public AbiHostTest {
 protected:
  hearth_status set(std::string_view method, std::string_view arguments = "",
                    std::int64_t at_ms = 4'000'000'000'000) {
    const hearth_alarm_request request = {.struct_size = sizeof request,
                                          .reserved = 0,
                                          .method = slice(method),
                                          .arguments = slice(arguments),
                                          .at_ms = at_ms};
    return alarms_.set(host_, kAgent, &request, &record_);
  }
  std::string_view list() {
    EXPECT_EQ(alarms_.list(host_, kAgent, &record_), HEARTH_OK);
    return view(record_);
  }
  const hearth_alarms_v1& alarms_ = extension<hearth_alarms_v1>(HEARTH_EXT_ALARMS);
  hearth_bytes record_{};
};

TEST_F(AbiAlarmsTest, A3_OneOfAMethodTakesThePlaceOfTheOther) {
  EXPECT_EQ(list(), "[]");
  EXPECT_EQ(set("reset", "[1, 2]"), HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("method":"reset","args":[1, 2],"fire_at":4000000000000)"));
  EXPECT_TRUE(has(record_, R"("replaced":false)"));
  EXPECT_EQ(set("bill"), HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("args":[])"));
  EXPECT_EQ(set("reset", "[]", 5'000'000'000'000), HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("replaced":true)"));
  (void)list();
  EXPECT_EQ(count_in(record_, R"("id":)"), 2U);
  EXPECT_FALSE(has(record_, "replaced"));
}

TEST_F(AbiAlarmsTest, A10_ACancelRemovesIt) {
  EXPECT_EQ(set("reset"), HEARTH_OK);
  const std::string id = text_in(record_, "id");
  EXPECT_EQ(alarms_.cancel(host_, kAgent, slice(id)), HEARTH_OK);
  EXPECT_EQ(alarms_.cancel(host_, kAgent, slice(id)), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(list(), "[]");
}

TEST_F(AbiAlarmsTest, A8_WhatIsNoAlarmAndOneTooManyAreRefused) {
  for (const std::string& method :
       {std::string(), std::string("__storage"), std::string(HEARTH_ALARM_METHOD_MAX + 1, 'm')})
    EXPECT_EQ(set(method), HEARTH_E_INVALID) << method;
  for (const std::string_view arguments : {"{}", "1", "[", "[1] x"})
    EXPECT_EQ(set("m", arguments), HEARTH_E_INVALID) << arguments;
  EXPECT_EQ(alarms_.set(host_, kAgent, nullptr, &record_), HEARTH_E_INVALID);
  const std::string huge = "[\"" + std::string(agent_.settings().sql.max_value_bytes, 'x') + "\"]";
  EXPECT_EQ(set("m", huge), HEARTH_E_LIMIT);
  for (int i = 0; i < HEARTH_ALARMS_DEFAULT; ++i)
    ASSERT_EQ(set("m" + std::to_string(i)), HEARTH_OK) << i;
  EXPECT_EQ(set("one-more"), HEARTH_E_LIMIT);
  EXPECT_EQ(set("m7"), HEARTH_OK) << "it takes the place of another one";
}

TEST_F(AbiAlarmsTest, APageSaysWhereTheNextOneBegins) {
  EXPECT_EQ(alarm_page(agent_, "", 9).value(), R"({"alarms":[],"next":null})");
  ASSERT_EQ(set("a", "[1]"), HEARTH_OK);
  ASSERT_EQ(set("b", "[2]", 5'000'000'000'000), HEARTH_OK);
  const auto first = parse_host_json(alarm_page(agent_, "", 1).value()).value();
  ASSERT_EQ(first["alarms"].size(), 1U);
  EXPECT_EQ(first["alarms"][0]["method"], "a");
  const auto second =
      parse_host_json(alarm_page(agent_, first["next"].get<std::string>(), 1).value()).value();
  EXPECT_EQ(second["alarms"][0]["method"], "b");
  EXPECT_EQ(second["next"], nullptr);
  EXPECT_EQ(alarm_page(agent_, "x", 1).error().code, Errc::kInvalidArgument);
}

TEST_F(AbiAlarmsTest, ArgumentsAsDeepAsAnyAreShown) {
  const std::string deepest = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  ASSERT_EQ(set("m", deepest), HEARTH_OK);
  EXPECT_TRUE(parse_host_json(list()));
  EXPECT_TRUE(parse_host_json(alarm_page(agent_, "", 9).value()));
  EXPECT_EQ(set("m", "[" + deepest + "]"), HEARTH_E_INVALID);
}

TEST_F(AbiAlarmsTest, NoneIsSetWhileDataAreMigrated) {
  agent_.its_phase = AgentPhase::kMigrating;
  EXPECT_EQ(set("m"), HEARTH_E_INVALID);
  EXPECT_EQ(alarms_.cancel(host_, kAgent, slice("a")), HEARTH_E_INVALID);
}

}  // namespace
}  // namespace hearth::extensions
