// hearth.schedule/1.

#include "plugins/generation/durable_calls.hpp"

#include <hearth/ext/schedule.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

namespace hearth::plugins {
namespace {

using namespace testing;

class AbiScheduleTest : public DurableCallsTest {
 protected:
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
  using Host = const hearth_host*;
  const DurableCall functions[] = {
      {"create",
       [&](Host host, hearth_agent agent) {
         return schedule_.create(host, agent, &request, &record_, &created_);
       }},
      {"get", [&](Host host,
                  hearth_agent agent) { return schedule_.get(host, agent, slice("i"), &record_); }},
      {"list", [&](Host host,
                   hearth_agent agent) { return schedule_.list(host, agent, &filter, &record_); }},
      {"cancel",
       [&](Host host, hearth_agent agent) { return schedule_.cancel(host, agent, slice("i")); }},
      {"pause",
       [&](Host host, hearth_agent agent) { return schedule_.pause(host, agent, slice("i"), 1); }},
      {"retry",
       [&](Host host, hearth_agent agent) { return schedule_.retry(host, agent, slice("i")); }},
  };
  expect_common_rules(functions);
}

TEST_F(AbiScheduleTest, EveryFieldOfARequestArrives) {
  const hearth_schedule_request request = {.struct_size = sizeof request,
                                           .type = HEARTH_SCHEDULE_CRON,
                                           .callback = slice("tick"),
                                           .payload = slice("[1]"),
                                           .when_ms = -4,
                                           .cron = slice("* * * * *"),
                                           .time_zone = slice("Europe/Berlin"),
                                           .idempotent = HEARTH_IDEMPOTENT_NO,
                                           .misfire = HEARTH_MISFIRE_ALL,
                                           .misfire_limit = 5,
                                           .overlap = HEARTH_OVERLAP_ALLOW,
                                           .flags = HEARTH_SCHEDULE_FIXED_RATE,
                                           .max_attempts = 6,
                                           .retry_base_ms = 7,
                                           .retry_max_ms = 8};
  EXPECT_EQ(create(request), HEARTH_OK);
  EXPECT_EQ(view(record_), "its record");
  EXPECT_EQ(created_, 1U);
  EXPECT_EQ(agent_.calls,
            (Calls{"create_schedule type=3 callback=tick payload=[1] when=-4 cron=* * * * * "
                   "zone=Europe/Berlin idempotent=2 misfire=2/5 overlap=2 fixed retry=6/7/8"}));
}

TEST_F(AbiScheduleTest, AScheduleThatWasThereIsNotNew) {
  agent_.its_schedule_is_new = false;
  EXPECT_EQ(create(good_request()), HEARTH_OK);
  EXPECT_EQ(created_, 0U);
  const auto request = good_request();
  EXPECT_EQ(schedule_.create(host_, kAgent, &request, nullptr, nullptr), HEARTH_OK)
      << "nobody must want the answers";
}

TEST_F(AbiScheduleTest, WhatAnOlderStructLacksIsZero) {
  hearth_schedule_request request = good_request();
  request.idempotent = HEARTH_IDEMPOTENT_NO;
  request.flags = 0xFFFF;  // past the end: not looked at
  request.struct_size = offsetof(hearth_schedule_request, idempotent);
  EXPECT_EQ(create(request), HEARTH_OK);
  EXPECT_EQ(agent_.calls, (Calls{"create_schedule type=1 callback=tick payload= when=0 cron= zone= "
                                 "idempotent=0 misfire=0/0 overlap=0 retry=0/0/0"}));
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
  hearth_schedule_request request = good_request();
  request.struct_size = 0;
  EXPECT_EQ(create(request), HEARTH_E_INVALID);
  EXPECT_EQ(schedule_.create(host_, kAgent, nullptr, &record_, &created_), HEARTH_E_INVALID);
  EXPECT_EQ(schedule_.list(host_, kAgent, nullptr, &record_), HEARTH_E_INVALID);
  EXPECT_TRUE(agent_.calls.empty());
}

TEST_F(AbiScheduleTest, NumbersThatNameNothingAreRefused) {
  const auto refuses = [this](std::uint32_t hearth_schedule_request::* field, std::uint32_t value) {
    hearth_schedule_request request = good_request();
    request.*field = value;
    return create(request) == HEARTH_E_INVALID && !last_error().empty();
  };
  EXPECT_TRUE(refuses(&hearth_schedule_request::type, 0));
  EXPECT_TRUE(refuses(&hearth_schedule_request::type, 5));
  EXPECT_TRUE(refuses(&hearth_schedule_request::idempotent, 3));
  EXPECT_TRUE(refuses(&hearth_schedule_request::misfire, 3));
  EXPECT_TRUE(refuses(&hearth_schedule_request::overlap, 3));
  EXPECT_TRUE(refuses(&hearth_schedule_request::flags, 2));
  hearth_schedule_filter filter = good_filter();
  filter.type = 5;
  EXPECT_EQ(list(filter), HEARTH_E_INVALID);
  filter = good_filter();
  filter.limit = 1001;
  EXPECT_EQ(list(filter), HEARTH_E_INVALID);
  filter = good_filter();
  filter.reserved = 1;
  EXPECT_EQ(list(filter), HEARTH_E_INVALID);
  EXPECT_EQ(schedule_.pause(host_, kAgent, slice("i"), 2), HEARTH_E_INVALID);
  EXPECT_TRUE(agent_.calls.empty());
}

TEST_F(AbiScheduleTest, BadSlicesAreRefusedBeforeAnythingIsDone) {
  for (const hearth_bytes bad : kBadSlices) {
    for (hearth_bytes hearth_schedule_request::* field :
         {&hearth_schedule_request::callback, &hearth_schedule_request::payload,
          &hearth_schedule_request::cron, &hearth_schedule_request::time_zone}) {
      hearth_schedule_request request = good_request();
      request.*field = bad;
      EXPECT_EQ(create(request), HEARTH_E_INVALID);
    }
    for (hearth_bytes hearth_schedule_filter::* field :
         {&hearth_schedule_filter::callback, &hearth_schedule_filter::state,
          &hearth_schedule_filter::after}) {
      hearth_schedule_filter filter = good_filter();
      filter.*field = bad;
      EXPECT_EQ(list(filter), HEARTH_E_INVALID);
    }
    EXPECT_EQ(schedule_.get(host_, kAgent, bad, &record_), HEARTH_E_INVALID);
    EXPECT_EQ(schedule_.cancel(host_, kAgent, bad), HEARTH_E_INVALID);
    EXPECT_EQ(schedule_.pause(host_, kAgent, bad, 0), HEARTH_E_INVALID);
    EXPECT_EQ(schedule_.retry(host_, kAgent, bad), HEARTH_E_INVALID);
  }
  EXPECT_TRUE(agent_.calls.empty());
}

TEST_F(AbiScheduleTest, FiltersAndIdsArePassedOn) {
  hearth_schedule_filter filter = good_filter();
  EXPECT_EQ(list(filter), HEARTH_OK);
  filter.type = HEARTH_SCHEDULE_INTERVAL;
  filter.callback = slice("tick");
  filter.state = slice("paused");
  filter.from_ms = 1;
  filter.until_ms = 2;
  filter.after = slice("x");
  filter.limit = 1000;
  EXPECT_EQ(list(filter), HEARTH_OK);
  EXPECT_EQ(view(record_), "its record");
  EXPECT_EQ(schedule_.get(host_, kAgent, slice("i"), &record_), HEARTH_OK);
  EXPECT_EQ(schedule_.cancel(host_, kAgent, slice("i")), HEARTH_OK);
  EXPECT_EQ(schedule_.pause(host_, kAgent, slice("i"), 1), HEARTH_OK);
  EXPECT_EQ(schedule_.pause(host_, kAgent, slice("i"), 0), HEARTH_OK);
  EXPECT_EQ(schedule_.retry(host_, kAgent, slice("i")), HEARTH_OK);
  EXPECT_EQ(
      agent_.calls,
      (Calls{"list_schedules type=any callback= state= from=0 until=0 after= limit=100",
             "list_schedules type=4 callback=tick state=paused from=1 until=2 after=x limit=1000",
             "get_schedule i", "cancel_schedule i", "pause_schedule i on", "pause_schedule i off",
             "retry_schedule i"}));
  answer(Errc::kNotFound);
  EXPECT_EQ(schedule_.get(host_, kAgent, slice("i"), &record_), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(schedule_.cancel(host_, kAgent, slice("i")), HEARTH_E_NOT_FOUND);
}

}  // namespace
}  // namespace hearth::plugins
