// hearth.queue/1.

#include "plugins/generation/durable_calls.hpp"

#include <hearth/ext/queue.h>

#include <gtest/gtest.h>

#include <cstddef>

namespace hearth::plugins {
namespace {

using namespace testing;

class AbiQueueTest : public DurableCallsTest {
 protected:
  static hearth_queue_request good_request() {
    hearth_queue_request request{};
    request.struct_size = sizeof request;
    request.callback = slice("send");
    return request;
  }
  static hearth_queue_filter good_filter() {
    hearth_queue_filter filter{};
    filter.struct_size = sizeof filter;
    return filter;
  }

  const hearth_queue_v1& queue_ = extension<hearth_queue_v1>(HEARTH_EXT_QUEUE);
  hearth_bytes record_{};
  std::uint64_t removed_ = 0;
};

TEST_F(AbiQueueTest, EveryFunctionKeepsTheCommonRules) {
  const auto request = good_request();
  const auto filter = good_filter();
  using Host = const hearth_host*;
  const DurableCall functions[] = {
      {"push",
       [&](Host host, hearth_agent agent) { return queue_.push(host, agent, &request, &record_); }},
      {"get", [&](Host host,
                  hearth_agent agent) { return queue_.get(host, agent, slice("i"), &record_); }},
      {"list",
       [&](Host host, hearth_agent agent) { return queue_.list(host, agent, &filter, &record_); }},
      {"remove",
       [&](Host host, hearth_agent agent) { return queue_.remove(host, agent, slice("i")); }},
      {"remove_all",
       [&](Host host, hearth_agent agent) {
         return queue_.remove_all(host, agent, &filter, &removed_);
       }},
      {"retry",
       [&](Host host, hearth_agent agent) { return queue_.retry(host, agent, slice("i")); }},
  };
  expect_common_rules(functions);
}

TEST_F(AbiQueueTest, EveryFieldArrivesAndTheRecordIsLent) {
  const hearth_queue_request request = {.struct_size = sizeof request,
                                        .max_attempts = 1,
                                        .callback = slice("send"),
                                        .payload = slice("{}"),
                                        .retry_base_ms = 2,
                                        .retry_max_ms = 3};
  EXPECT_EQ(queue_.push(host_, kAgent, &request, &record_), HEARTH_OK);
  EXPECT_EQ(view(record_), "its record");
  hearth_queue_filter filter = good_filter();
  EXPECT_EQ(queue_.list(host_, kAgent, &filter, &record_), HEARTH_OK);
  filter = {.struct_size = sizeof filter,
            .limit = 7,
            .callback = slice("send"),
            .state = slice("dead"),
            .member = slice("to"),
            .value = slice("\"me\""),
            .after = slice("x")};
  EXPECT_EQ(queue_.list(host_, kAgent, &filter, &record_), HEARTH_OK);
  EXPECT_EQ(queue_.remove_all(host_, kAgent, &filter, &removed_), HEARTH_OK);
  EXPECT_EQ(removed_, 3U);
  EXPECT_EQ(queue_.remove_all(host_, kAgent, &filter, nullptr), HEARTH_OK);
  EXPECT_EQ(queue_.get(host_, kAgent, slice("i"), &record_), HEARTH_OK);
  EXPECT_EQ(queue_.remove(host_, kAgent, slice("i")), HEARTH_OK);
  EXPECT_EQ(queue_.retry(host_, kAgent, slice("i")), HEARTH_OK);
  EXPECT_EQ(agent_.calls, (Calls{"push_item callback=send payload={} retry=1/2/3",
                                 "list_items callback= state= = after= limit=100",
                                 "list_items callback=send state=dead to=\"me\" after=x limit=7",
                                 "remove_items callback=send state=dead to=\"me\" after=x limit=7",
                                 "remove_items callback=send state=dead to=\"me\" after=x limit=7",
                                 "get_item i", "remove_item i", "retry_item i"}));
  answer(Errc::kNotFound);
  EXPECT_EQ(queue_.get(host_, kAgent, slice("i"), &record_), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(queue_.retry(host_, kAgent, slice("i")), HEARTH_E_NOT_FOUND);
}

TEST_F(AbiQueueTest, StructsOfOtherSizesAreReadAsFarAsBothKnowThem) {
  hearth_queue_request request = good_request();
  request.retry_base_ms = 9;
  request.struct_size = offsetof(hearth_queue_request, retry_base_ms);
  EXPECT_EQ(queue_.push(host_, kAgent, &request, &record_), HEARTH_OK);
  EXPECT_EQ(agent_.calls, (Calls{"push_item callback=send payload= retry=0/0/0"}));
  struct {
    hearth_queue_request known = good_request();
    std::uint64_t later = 1;
  } larger;
  larger.known.struct_size = sizeof larger;
  EXPECT_EQ(queue_.push(host_, kAgent, &larger.known, &record_), HEARTH_OK);
  request.struct_size = 3;
  EXPECT_EQ(queue_.push(host_, kAgent, &request, &record_), HEARTH_E_INVALID);
  EXPECT_EQ(queue_.push(host_, kAgent, nullptr, &record_), HEARTH_E_INVALID);
  EXPECT_EQ(queue_.list(host_, kAgent, nullptr, &record_), HEARTH_E_INVALID);
  EXPECT_EQ(queue_.remove_all(host_, kAgent, nullptr, &removed_), HEARTH_E_INVALID);
}

TEST_F(AbiQueueTest, BadSlicesAndLimitsAreRefusedBeforeAnythingIsDone) {
  for (const hearth_bytes bad : kBadSlices) {
    for (hearth_bytes hearth_queue_request::* field :
         {&hearth_queue_request::callback, &hearth_queue_request::payload}) {
      hearth_queue_request request = good_request();
      request.*field = bad;
      EXPECT_EQ(queue_.push(host_, kAgent, &request, &record_), HEARTH_E_INVALID);
    }
    for (hearth_bytes hearth_queue_filter::* field :
         {&hearth_queue_filter::callback, &hearth_queue_filter::state, &hearth_queue_filter::member,
          &hearth_queue_filter::value, &hearth_queue_filter::after}) {
      hearth_queue_filter filter = good_filter();
      filter.*field = bad;
      EXPECT_EQ(queue_.list(host_, kAgent, &filter, &record_), HEARTH_E_INVALID);
      EXPECT_EQ(queue_.remove_all(host_, kAgent, &filter, &removed_), HEARTH_E_INVALID);
    }
    EXPECT_EQ(queue_.get(host_, kAgent, bad, &record_), HEARTH_E_INVALID);
    EXPECT_EQ(queue_.remove(host_, kAgent, bad), HEARTH_E_INVALID);
    EXPECT_EQ(queue_.retry(host_, kAgent, bad), HEARTH_E_INVALID);
  }
  hearth_queue_filter filter = good_filter();
  filter.limit = 1001;
  EXPECT_EQ(queue_.list(host_, kAgent, &filter, &record_), HEARTH_E_INVALID);
  EXPECT_TRUE(agent_.calls.empty());
}

}  // namespace
}  // namespace hearth::plugins
