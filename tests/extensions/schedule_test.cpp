// hearth.schedule/1.

#include "extensions/durable_calls.hpp"

#include <hearth/ext/schedule.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiScheduleTest : public DurableCallsTest {
 protected:
  using Filter = hearth_schedule_filter;
  using Request = hearth_schedule_request;

  static hearth_schedule_request good_request() {
    hearth_schedule_request request{};
    request.struct_size = sizeof request;
    request.type = HEARTH_SCHEDULE_DELAY;
    request.callback = slice("tick");
    return request;
  }
  static hearth_schedule_filter good_filter() {
    hearth_schedule_filter filter{};
    filter.struct_size = sizeof filter;
    return filter;
  }
  hearth_status create(const hearth_schedule_request& request) {
    return schedule_.create(host_, kAgent, &request, &record_, &created_);
  }
  hearth_status list(const hearth_schedule_filter& filter) {
    return schedule_.list(host_, kAgent, &filter, &record_);
  }

  const hearth_schedule_v1& schedule_ = extension<hearth_schedule_v1>(HEARTH_EXT_SCHEDULE);
  hearth_bytes record_{};
  std::uint32_t created_ = 7;
};

TEST_F(AbiScheduleTest, EveryFunctionKeepsTheCommonRules) {
  const auto request = good_request();
  const auto filter = good_filter();
  const DurableCall functions[] = {
      durable_call("create", true, schedule_.create, &request, &record_, &created_),
      durable_call("get", false, schedule_.get, slice("i"), &record_),
      durable_call("list", false, schedule_.list, &filter, &record_),
      durable_call("cancel", true, schedule_.cancel, slice("i")),
      durable_call("pause", true, schedule_.pause, slice("i"), 1U),
      durable_call("retry", true, schedule_.retry, slice("i")),
  };
  expect_common_rules(functions);
  expect_io_error(functions[0]);
}

TEST_F(AbiScheduleTest, EveryFieldOfARequestArrives) {
  hearth_schedule_request request = {.struct_size = sizeof request,
                                     .type = HEARTH_SCHEDULE_CRON,
                                     .callback = slice("tick"),
                                     .payload = slice("[1]"),
                                     .when_ms = 0,
                                     .cron = slice("5 4 * * *"),
                                     .time_zone = slice("Europe/Berlin"),
                                     .idempotent = HEARTH_IDEMPOTENT_NO,
                                     .misfire = HEARTH_MISFIRE_ALL,
                                     .misfire_limit = 5,
                                     .overlap = HEARTH_OVERLAP_ALLOW,
                                     .flags = 0,
                                     .max_attempts = 6,
                                     .retry_base_ms = 7,
                                     .retry_max_ms = 8};
  ASSERT_EQ(create(request), HEARTH_OK) << last_error();
  EXPECT_EQ(created_, 1U);
  for (const char* part :
       {R"("type":"cron")", R"("callback":"tick")", R"("payload":[1])", R"("cron":"5 4 * * *")",
        R"("time_zone":"Europe/Berlin")", R"("misfire":"all")", R"("misfire_limit":5)",
        R"("overlap":"allow")", R"("retry":{"max_attempts":6,"base_delay_ms":7,"max_delay_ms":8})"})
    EXPECT_TRUE(has(record_, part)) << part << " in " << view(record_);
  EXPECT_EQ(create(request), HEARTH_OK);
  EXPECT_EQ(created_, 1U) << "it is not idempotent";
  request = good_request();
  request.type = HEARTH_SCHEDULE_INTERVAL;
  request.when_ms = 4000;
  request.flags = HEARTH_SCHEDULE_FIXED_RATE;
  ASSERT_EQ(create(request), HEARTH_OK) << last_error();
  EXPECT_TRUE(has(record_, R"("interval_ms":4000)")) << view(record_);
  EXPECT_TRUE(has(record_, R"("fixed_rate":true)")) << view(record_);
}

TEST_F(AbiScheduleTest, AScheduleThatWasThereIsNotNew) {
  hearth_schedule_request request = good_request();
  request.type = HEARTH_SCHEDULE_INTERVAL;
  request.when_ms = 1000;
  EXPECT_EQ(create(request), HEARTH_OK);
  EXPECT_EQ(created_, 1U);
  EXPECT_EQ(create(request), HEARTH_OK);
  EXPECT_EQ(created_, 0U);
  EXPECT_EQ(schedule_.create(host_, kAgent, &request, nullptr, nullptr), HEARTH_OK)
      << "nobody must want the answers";
}

TEST_F(AbiScheduleTest, WhatAnOlderStructLacksIsZero) {
  hearth_schedule_request request = good_request();
  request.idempotent = HEARTH_IDEMPOTENT_NO;
  request.flags = 0xFFFF;  // past the end: not looked at
  request.struct_size = offsetof(hearth_schedule_request, idempotent);
  EXPECT_EQ(create(request), HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("misfire":"run_once")") || has(record_, R"("misfire":"once")"))
      << view(record_);
}

TEST_F(AbiScheduleTest, ALargerStructIsReadAsFarAsItIsKnown) {
  struct {
    hearth_schedule_request known = good_request();
    std::uint64_t later = 0xABCD;
  } larger;
  larger.known.struct_size = sizeof larger;
  EXPECT_EQ(create(larger.known), HEARTH_OK);
}

TEST_F(AbiScheduleTest, AStructWithoutASizeAndNoStructAreRefused) {
  EXPECT_EQ(create(with(good_request(), &Request::struct_size, 0)), HEARTH_E_INVALID);
  EXPECT_EQ(schedule_.create(host_, kAgent, nullptr, &record_, &created_), HEARTH_E_INVALID);
  EXPECT_EQ(schedule_.list(host_, kAgent, nullptr, &record_), HEARTH_E_INVALID);
  EXPECT_FALSE(agent_.has_stored());
}

TEST_F(AbiScheduleTest, NumbersThatNameNothingAreRefused) {
  const auto refuses = [this](std::uint32_t Request::* field, std::uint32_t value) {
    hearth_schedule_request request = good_request();
    request.*field = value;
    return create(request) == HEARTH_E_INVALID && !last_error().empty();
  };
  EXPECT_TRUE(refuses(&Request::type, 0));
  EXPECT_TRUE(refuses(&Request::type, 5));
  EXPECT_TRUE(refuses(&Request::idempotent, 3));
  EXPECT_TRUE(refuses(&Request::misfire, 3));
  EXPECT_TRUE(refuses(&Request::overlap, 3));
  EXPECT_TRUE(refuses(&Request::flags, 2));
  EXPECT_EQ(list(with(good_filter(), &Filter::type, 5)), HEARTH_E_INVALID);
  EXPECT_EQ(list(with(good_filter(), &Filter::limit, 1001)), HEARTH_E_INVALID);
  EXPECT_EQ(list(with(good_filter(), &Filter::reserved, 1)), HEARTH_E_INVALID);
  EXPECT_EQ(schedule_.pause(host_, kAgent, slice("i"), 2), HEARTH_E_INVALID);
  EXPECT_FALSE(agent_.has_stored());
}

TEST_F(AbiScheduleTest, BadSlicesAreRefusedBeforeAnythingIsDone) {
  for (const hearth_bytes bad : kBadSlices) {
    for (hearth_bytes Request::* field :
         {&Request::callback, &Request::payload, &Request::cron, &Request::time_zone}) {
      hearth_schedule_request request = good_request();
      request.*field = bad;
      EXPECT_EQ(create(request), HEARTH_E_INVALID);
    }
    for (hearth_bytes Filter::* field : {&Filter::callback, &Filter::state, &Filter::after}) {
      hearth_schedule_filter filter = good_filter();
      filter.*field = bad;
      EXPECT_EQ(list(filter), HEARTH_E_INVALID);
    }
    EXPECT_EQ(schedule_.get(host_, kAgent, bad, &record_), HEARTH_E_INVALID);
    EXPECT_EQ(schedule_.cancel(host_, kAgent, bad), HEARTH_E_INVALID);
    EXPECT_EQ(schedule_.pause(host_, kAgent, bad, 0), HEARTH_E_INVALID);
    EXPECT_EQ(schedule_.retry(host_, kAgent, bad), HEARTH_E_INVALID);
  }
  EXPECT_FALSE(agent_.has_stored());
}

TEST_F(AbiScheduleTest, EachFieldOfAFilterLeavesSomeOut) {
  hearth_schedule_request request = good_request();
  request.when_ms = 1000;
  ASSERT_EQ(create(request), HEARTH_OK);
  const std::string first = text_in(record_, "id");
  request.type = HEARTH_SCHEDULE_INTERVAL;
  request.callback = slice("tock");
  request.when_ms = 60'000;
  ASSERT_EQ(create(request), HEARTH_OK);
  const std::string second = text_in(record_, "id");
  const auto listed = [this](const hearth_schedule_filter& filter) {
    EXPECT_EQ(list(filter), HEARTH_OK) << last_error();
    return std::string(view(record_));
  };
  const auto only = [&](const hearth_schedule_filter& filter, const std::string& id) {
    const std::string all = listed(filter);
    return all.find(id) != std::string::npos &&
           all.find(id == first ? second : first) == std::string::npos;
  };
  EXPECT_NE(listed(good_filter()).find(first), std::string::npos);
  EXPECT_NE(listed(good_filter()).find(second), std::string::npos);
  EXPECT_TRUE(only(with(good_filter(), &Filter::type, HEARTH_SCHEDULE_INTERVAL), second));
  EXPECT_TRUE(only(with(good_filter(), &Filter::callback, slice("tick")), first));
  auto filter = good_filter();
  filter.limit = 1;
  EXPECT_TRUE(only(filter, first)) << "the one that is due first";
  filter.after = slice(first);
  EXPECT_TRUE(only(filter, second));
  const std::int64_t now = unix_millis(agent_.clock.wall_now());
  EXPECT_TRUE(only(with(good_filter(), &Filter::from_ms, now + 2000), second));
  EXPECT_TRUE(only(with(good_filter(), &Filter::until_ms, now + 2000), first));
  EXPECT_EQ(schedule_.pause(host_, kAgent, slice(second), 1), HEARTH_OK);
  filter = good_filter();
  filter.state = slice("paused");
  EXPECT_TRUE(only(filter, second));
  EXPECT_EQ(schedule_.pause(host_, kAgent, slice(second), 0), HEARTH_OK);
  EXPECT_EQ(listed(filter), "[]");
  EXPECT_EQ(schedule_.retry(host_, kAgent, slice("nobody")), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(schedule_.get(host_, kAgent, slice(first), &record_), HEARTH_OK);
  EXPECT_EQ(text_in(record_, "id"), first);
  EXPECT_EQ(schedule_.cancel(host_, kAgent, slice(first)), HEARTH_OK);
  EXPECT_EQ(schedule_.get(host_, kAgent, slice(first), &record_), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(schedule_.cancel(host_, kAgent, slice(first)), HEARTH_E_NOT_FOUND);
}

TEST_F(AbiScheduleTest, OneThatIsMadeAtEachStartAnewIsToldOf) {
  agent_.its_phase = AgentPhase::kStarting;
  EXPECT_EQ(create(good_request()), HEARTH_OK);
  EXPECT_TRUE(agent_.work_log().contains("schedule:duplicate_warning"));
}

TEST_F(AbiScheduleTest, WithoutALimitAPageHasAHundred) {
  hearth_schedule_request request = good_request();
  request.when_ms = 1000;
  request.idempotent = HEARTH_IDEMPOTENT_NO;
  for (int i = 0; i < 101; ++i) ASSERT_EQ(create(request), HEARTH_OK) << last_error();
  hearth_schedule_filter filter = good_filter();
  ASSERT_EQ(list(filter), HEARTH_OK);
  EXPECT_EQ(count_in(record_, R"("id":)"), 100U);
  filter.limit = 1000;
  ASSERT_EQ(list(filter), HEARTH_OK) << last_error();
  EXPECT_EQ(count_in(record_, R"("id":)"), 101U);
}

}  // namespace
}  // namespace hearth::extensions
