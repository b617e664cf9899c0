// hearth.managed_fibers/1.

#include "extensions/durable_calls.hpp"

#include <hearth/ext/managed_fibers.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiManagedFibersTest : public DurableCallsTest {
 protected:
  static hearth_fiber_request good_request() {
    hearth_fiber_request request{};
    request.struct_size = sizeof request;
    request.name = slice("work");
    return request;
  }
  static hearth_fiber_filter good_filter() {
    hearth_fiber_filter filter{};
    filter.struct_size = sizeof filter;
    return filter;
  }
  hearth_status start(const hearth_fiber_request& request) {
    return managed_.start(host_, kAgent, &request, &fiber_, &record_);
  }
  hearth_status settle(std::uint32_t status, std::string_view body) {
    return managed_.settle(host_, kAgent, fiber_, status, slice(body), &record_);
  }

  const hearth_managed_fibers_v1& managed_ =
      extension<hearth_managed_fibers_v1>(HEARTH_EXT_MANAGED_FIBERS);
  hearth_fiber fiber_ = 0;
  hearth_bytes record_{};
  std::uint64_t removed_ = 0;
};

TEST_F(AbiManagedFibersTest, EveryFunctionKeepsTheCommonRules) {
  const auto request = good_request();
  const auto filter = good_filter();
  using Host = const hearth_host*;
  const DurableCall functions[] = {
      {"start", true,
       [&](Host host, hearth_agent agent) {
         return managed_.start(host, agent, &request, &fiber_, &record_);
       }},
      {"resume", true,
       [&](Host host, hearth_agent agent) {
         return managed_.resume(host, agent, slice("i"), &fiber_);
       }},
      {"settle", true,
       [&](Host host, hearth_agent agent) {
         return managed_.settle(host, agent, 5, HEARTH_FIBER_COMPLETED, kNothing, &record_);
       }},
      {"inspect", false,
       [&](Host host, hearth_agent agent) {
         return managed_.inspect(host, agent, slice("i"), kNothing, &record_);
       }},
      {"list", false,
       [&](Host host, hearth_agent agent) {
         return managed_.list(host, agent, &filter, &record_);
       }},
      {"cancel", true,
       [&](Host host, hearth_agent agent) {
         return managed_.cancel(host, agent, slice("i"), kNothing, slice("why"));
       }},
      {"resolve", true,
       [&](Host host, hearth_agent agent) {
         return managed_.resolve(host, agent, slice("i"), slice("{}"));
       }},
      {"retry", true,
       [&](Host host, hearth_agent agent) { return managed_.retry(host, agent, slice("i")); }},
      {"remove", true,
       [&](Host host, hearth_agent agent) {
         return managed_.remove(host, agent, &filter, &removed_);
       }},
  };
  expect_common_rules(functions);
  expect_io_error(functions[0]);
}

TEST_F(AbiManagedFibersTest, EveryFieldOfARequestArrives) {
  const hearth_fiber_request request = {.struct_size = sizeof request,
                                        .policy = HEARTH_FIBER_REPLACE,
                                        .name = slice("work"),
                                        .id = slice("i"),
                                        .key = slice("k"),
                                        .input = slice("[1]"),
                                        .metadata = slice(R"({"m":2})"),
                                        .max_retries = 3,
                                        .reserved = 0,
                                        .retry_base_ms = 4,
                                        .retry_max_ms = 5};
  EXPECT_EQ(managed_.start(host_, kAgent, &request, nullptr, &record_), HEARTH_E_INVALID)
      << "work that nobody can settle must not begin";
  ASSERT_EQ(start(request), HEARTH_OK) << last_error();
  EXPECT_NE(fiber_, 0U);
  for (const char* part : {R"("id":"i")", R"("key":"k")", R"("name":"work")", R"("input":[1])",
                           R"("metadata":{"m":2})", R"("max_retries":3)"})
    EXPECT_TRUE(has(record_, part)) << part << " in " << view(record_);
  const hearth_fiber first = fiber_;
  ASSERT_EQ(start(request), HEARTH_OK) << "it runs, and is joined";
  EXPECT_EQ(fiber_, 0U);
  fiber_ = first;
  ASSERT_EQ(settle(HEARTH_FIBER_COMPLETED, "1"), HEARTH_OK);
  ASSERT_EQ(start(request), HEARTH_OK) << "it is over, and replaced";
  EXPECT_NE(fiber_, 0U);
}

TEST_F(AbiManagedFibersTest, StructsOfOtherSizesAreReadAsFarAsBothKnowThem) {
  hearth_fiber_request request = good_request();
  request.max_retries = 9;
  request.struct_size = offsetof(hearth_fiber_request, max_retries);
  EXPECT_EQ(start(request), HEARTH_OK);
  EXPECT_FALSE(has(record_, R"("max_retries":9)")) << view(record_);
  request.struct_size = 0;
  EXPECT_EQ(start(request), HEARTH_E_INVALID);
  EXPECT_EQ(managed_.start(host_, kAgent, nullptr, &fiber_, &record_), HEARTH_E_INVALID);
  EXPECT_EQ(managed_.list(host_, kAgent, nullptr, &record_), HEARTH_E_INVALID);
  EXPECT_EQ(managed_.remove(host_, kAgent, nullptr, &removed_), HEARTH_E_INVALID);
}

TEST_F(AbiManagedFibersTest, NumbersThatNameNothingAreRefused) {
  hearth_fiber_request request = good_request();
  request.policy = 3;
  EXPECT_EQ(start(request), HEARTH_E_INVALID);
  request = good_request();
  request.reserved = 1;
  EXPECT_EQ(start(request), HEARTH_E_INVALID);
  for (const std::uint32_t status : {0U, 1U, 2U, 4U, 8U, 17U, 48U, 128U})
    EXPECT_EQ(settle(status, ""), HEARTH_E_INVALID) << status;
  hearth_fiber_filter filter = good_filter();
  filter.limit = 101;
  EXPECT_EQ(managed_.list(host_, kAgent, &filter, &record_), HEARTH_E_INVALID);
  EXPECT_EQ(managed_.remove(host_, kAgent, &filter, &removed_), HEARTH_OK) << "up to 500";
  filter.limit = 501;
  EXPECT_EQ(managed_.remove(host_, kAgent, &filter, &removed_), HEARTH_E_INVALID);
  filter = good_filter();
  filter.statuses = 128;
  EXPECT_EQ(managed_.list(host_, kAgent, &filter, &record_), HEARTH_E_INVALID);
  filter = good_filter();
  filter.dead = 2;
  EXPECT_EQ(managed_.list(host_, kAgent, &filter, &record_), HEARTH_E_INVALID);
}

TEST_F(AbiManagedFibersTest, BadSlicesAreRefusedBeforeAnythingIsDone) {
  for (const hearth_bytes bad : kBadSlices) {
    for (hearth_bytes hearth_fiber_request::* field :
         {&hearth_fiber_request::name, &hearth_fiber_request::id, &hearth_fiber_request::key,
          &hearth_fiber_request::input, &hearth_fiber_request::metadata}) {
      hearth_fiber_request request = good_request();
      request.*field = bad;
      EXPECT_EQ(start(request), HEARTH_E_INVALID);
    }
    for (hearth_bytes hearth_fiber_filter::* field :
         {&hearth_fiber_filter::name, &hearth_fiber_filter::after}) {
      hearth_fiber_filter filter = good_filter();
      filter.*field = bad;
      EXPECT_EQ(managed_.list(host_, kAgent, &filter, &record_), HEARTH_E_INVALID);
      EXPECT_EQ(managed_.remove(host_, kAgent, &filter, &removed_), HEARTH_E_INVALID);
    }
    EXPECT_EQ(managed_.resume(host_, kAgent, bad, &fiber_), HEARTH_E_INVALID);
    EXPECT_EQ(managed_.settle(host_, kAgent, 5, HEARTH_FIBER_COMPLETED, bad, &record_),
              HEARTH_E_INVALID);
    EXPECT_EQ(managed_.inspect(host_, kAgent, bad, kNothing, &record_), HEARTH_E_INVALID);
    EXPECT_EQ(managed_.inspect(host_, kAgent, kNothing, bad, &record_), HEARTH_E_INVALID);
    EXPECT_EQ(managed_.cancel(host_, kAgent, bad, kNothing, kNothing), HEARTH_E_INVALID);
    EXPECT_EQ(managed_.cancel(host_, kAgent, kNothing, bad, kNothing), HEARTH_E_INVALID);
    EXPECT_EQ(managed_.resolve(host_, kAgent, bad, slice("{}")), HEARTH_E_INVALID);
    EXPECT_EQ(managed_.resolve(host_, kAgent, slice("i"), bad), HEARTH_E_INVALID);
    EXPECT_EQ(managed_.retry(host_, kAgent, bad), HEARTH_E_INVALID);
  }
  EXPECT_FALSE(agent_.has_stored());
}

TEST_F(AbiManagedFibersTest, WorkCanEndWhateverItsErrorSays) {
  ASSERT_EQ(start(good_request()), HEARTH_OK);
  EXPECT_EQ(settle(HEARTH_FIBER_COMPLETED, "[1]"), HEARTH_OK) << last_error();
  EXPECT_TRUE(has(record_, R"("result":[1])")) << view(record_);
  EXPECT_EQ(settle(HEARTH_FIBER_COMPLETED, "1"), HEARTH_E_GONE) << "it was settled before";
  ASSERT_EQ(start(good_request()), HEARTH_OK);
  EXPECT_EQ(settle(HEARTH_FIBER_ERROR,
                   "b\xff"
                   "d"),
            HEARTH_OK)
      << last_error();
  EXPECT_TRUE(has(record_,
                  "b\xef\xbf\xbd"
                  "d"))
      << view(record_);
  ASSERT_EQ(start(good_request()), HEARTH_OK);
  EXPECT_EQ(settle(HEARTH_FIBER_ABORTED, std::string(5000, 'x')), HEARTH_OK) << last_error();
  EXPECT_TRUE(has(record_, std::string(4096, 'x')));
  EXPECT_FALSE(has(record_, std::string(4097, 'x')));
}

TEST_F(AbiManagedFibersTest, RecordsAreFoundCancelledAndRemoved) {
  hearth_fiber_request request = good_request();
  request.id = slice("i");
  request.key = slice("k");
  ASSERT_EQ(start(request), HEARTH_OK);
  EXPECT_EQ(managed_.resume(host_, kAgent, slice("i"), &fiber_), HEARTH_E_NOT_FOUND)
      << "it is not being recovered";
  EXPECT_EQ(managed_.resume(host_, kAgent, slice("i"), nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(managed_.inspect(host_, kAgent, kNothing, slice("k"), &record_), HEARTH_OK);
  EXPECT_EQ(text_in(record_, "id"), "i");
  EXPECT_EQ(managed_.inspect(host_, kAgent, slice("i"), kNothing, &record_), HEARTH_OK);
  EXPECT_EQ(text_in(record_, "key"), "k");
  EXPECT_EQ(managed_.cancel(host_, kAgent, slice("i"), kNothing, slice("too \xff late")), HEARTH_OK)
      << last_error();
  EXPECT_EQ(managed_.inspect(host_, kAgent, slice("i"), kNothing, &record_), HEARTH_OK);
  EXPECT_TRUE(has(record_, "too \xef\xbf\xbd late")) << view(record_);
  request.id = slice("j");
  request.key = kNothing;
  request.name = slice("other");
  ASSERT_EQ(start(request), HEARTH_OK) << last_error();
  const auto listed = [this](const hearth_fiber_filter& filter) {
    EXPECT_EQ(managed_.list(host_, kAgent, &filter, &record_), HEARTH_OK) << last_error();
    return std::pair(has(record_, R"("id":"i")"), has(record_, R"("id":"j")"));
  };
  hearth_fiber_filter filter = good_filter();
  EXPECT_EQ(listed(filter), std::pair(true, true));
  filter.statuses = HEARTH_FIBER_ERROR | HEARTH_FIBER_ABORTED;
  EXPECT_EQ(listed(filter), std::pair(true, false));
  filter = good_filter();
  filter.name = slice("other");
  EXPECT_EQ(listed(filter), std::pair(false, true));
  filter = good_filter();
  filter.after = slice("j");
  EXPECT_EQ(listed(filter), std::pair(true, false)) << "newest first";
  filter = good_filter();
  filter.limit = 1;
  EXPECT_EQ(listed(filter), std::pair(false, true));
  filter = good_filter();
  filter.dead = 1;
  EXPECT_EQ(listed(filter), std::pair(false, false));
  EXPECT_EQ(managed_.resolve(host_, kAgent, slice("nobody"), slice("{}")), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(managed_.retry(host_, kAgent, slice("nobody")), HEARTH_E_NOT_FOUND);
  filter = good_filter();
  EXPECT_EQ(managed_.remove(host_, kAgent, &filter, &removed_), HEARTH_OK);
  EXPECT_EQ(removed_, 1U) << "one is over";
}

TEST_F(AbiManagedFibersTest, WhatIsOfferedIsResumedAndWhatWasInterruptedIsOfferedAgain) {
  const auto offered = [this] {
    agent_.clock.advance(std::chrono::minutes(10));  // longer than any wait
    while (auto work = agent_.work().next(true)) {
      if (work->kind == EventKind::kFiberRecovered) return *std::move(work);
    }
    ADD_FAILURE() << "nothing is offered";
    return DueWork{};
  };
  hearth_fiber_request request = good_request();
  request.id = slice("i");
  request.max_retries = 1;
  ASSERT_EQ(start(request), HEARTH_OK);
  ASSERT_EQ(settle(HEARTH_FIBER_ERROR, "busy"), HEARTH_OK);
  agent_.work().ended(offered(), std::string_view());  // no run goes on with it
  EXPECT_EQ(managed_.retry(host_, kAgent, slice("i")), HEARTH_OK) << last_error();
  EXPECT_EQ(offered().id, "i");
  ASSERT_EQ(managed_.resume(host_, kAgent, slice("i"), &fiber_), HEARTH_OK) << last_error();
  EXPECT_EQ(settle(HEARTH_FIBER_COMPLETED, "1"), HEARTH_OK) << last_error();
  EXPECT_TRUE(has(record_, R"("status":"completed")")) << view(record_);
}

TEST_F(AbiManagedFibersTest, WithoutALimitAPageHasFiftyAndAHundredAreRemoved) {
  for (int i = 0; i < 101; ++i) {
    ASSERT_EQ(start(good_request()), HEARTH_OK);
    ASSERT_EQ(settle(HEARTH_FIBER_COMPLETED, "1"), HEARTH_OK);
  }
  const auto filter = good_filter();
  ASSERT_EQ(managed_.list(host_, kAgent, &filter, &record_), HEARTH_OK);
  EXPECT_EQ(count_in(record_, R"("id":)"), 50U);
  ASSERT_EQ(managed_.remove(host_, kAgent, &filter, &removed_), HEARTH_OK);
  EXPECT_EQ(removed_, 100U);
}

}  // namespace
}  // namespace hearth::extensions
