// hearth.managed_fibers/1.

#include "plugins/generation/durable_calls.hpp"

#include <hearth/ext/managed_fibers.h>

#include <gtest/gtest.h>

#include <cstddef>

namespace hearth::plugins {
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
    return managed_.settle(host_, kAgent, 5, status, slice(body), &record_);
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
      {"start",
       [&](Host host, hearth_agent agent) {
         return managed_.start(host, agent, &request, &fiber_, &record_);
       }},
      {"resume",
       [&](Host host, hearth_agent agent) {
         return managed_.resume(host, agent, slice("i"), &fiber_);
       }},
      {"settle",
       [&](Host host, hearth_agent agent) {
         return managed_.settle(host, agent, 5, HEARTH_FIBER_COMPLETED, kNothing, &record_);
       }},
      {"inspect",
       [&](Host host, hearth_agent agent) {
         return managed_.inspect(host, agent, slice("i"), kNothing, &record_);
       }},
      {"list", [&](Host host,
                   hearth_agent agent) { return managed_.list(host, agent, &filter, &record_); }},
      {"cancel",
       [&](Host host, hearth_agent agent) {
         return managed_.cancel(host, agent, slice("i"), kNothing, slice("why"));
       }},
      {"resolve",
       [&](Host host, hearth_agent agent) {
         return managed_.resolve(host, agent, slice("i"), slice("{}"));
       }},
      {"retry",
       [&](Host host, hearth_agent agent) { return managed_.retry(host, agent, slice("i")); }},
      {"remove",
       [&](Host host, hearth_agent agent) {
         return managed_.remove(host, agent, &filter, &removed_);
       }},
  };
  expect_common_rules(functions);
}

TEST_F(AbiManagedFibersTest, EveryFieldOfARequestArrives) {
  const hearth_fiber_request request = {.struct_size = sizeof request,
                                        .policy = HEARTH_FIBER_REPLACE,
                                        .name = slice("work"),
                                        .id = slice("i"),
                                        .key = slice("k"),
                                        .input = slice("[1]"),
                                        .metadata = slice("{}"),
                                        .max_retries = 3,
                                        .reserved = 0,
                                        .retry_base_ms = 4,
                                        .retry_max_ms = 5};
  EXPECT_EQ(start(request), HEARTH_OK);
  EXPECT_EQ(fiber_, 5U);
  EXPECT_EQ(view(record_), "its record");
  EXPECT_EQ(agent_.calls, (Calls{"start_managed policy=2 name=work id=i key=k input=[1] "
                                 "metadata={} retry=3/4/5"}));
  EXPECT_EQ(managed_.start(host_, kAgent, &request, nullptr, &record_), HEARTH_E_INVALID)
      << "work that nobody can settle must not begin";
}

TEST_F(AbiManagedFibersTest, StructsOfOtherSizesAreReadAsFarAsBothKnowThem) {
  hearth_fiber_request request = good_request();
  request.max_retries = 9;
  request.struct_size = offsetof(hearth_fiber_request, max_retries);
  EXPECT_EQ(start(request), HEARTH_OK);
  EXPECT_EQ(agent_.calls,
            (Calls{"start_managed policy=0 name=work id= key= input= metadata= retry=0/0/0"}));
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
  EXPECT_TRUE(agent_.calls.empty());
}

TEST_F(AbiManagedFibersTest, WorkCanEndWhateverItsErrorSays) {
  EXPECT_EQ(settle(HEARTH_FIBER_COMPLETED, "[1]"), HEARTH_OK);
  EXPECT_EQ(view(record_), "its record");
  EXPECT_EQ(settle(HEARTH_FIBER_ERROR,
                   "b\xff"
                   "d \"q\""),
            HEARTH_OK);
  EXPECT_EQ(settle(HEARTH_FIBER_ABORTED, std::string(5000, 'x')), HEARTH_OK);
  EXPECT_EQ(agent_.calls, (Calls{"settle_managed 5 16 [1]",
                                 "settle_managed 5 32 b\xef\xbf\xbd"
                                 "d \"q\"",
                                 "settle_managed 5 64 " + std::string(4096, 'x')}));
  answer(Errc::kNotFound);
  EXPECT_EQ(settle(HEARTH_FIBER_COMPLETED, "1"), HEARTH_E_GONE) << "it was settled before";
}

TEST_F(AbiManagedFibersTest, TheOthersArePassedOn) {
  EXPECT_EQ(managed_.resume(host_, kAgent, slice("i"), &fiber_), HEARTH_OK);
  EXPECT_EQ(fiber_, 6U);
  EXPECT_EQ(managed_.resume(host_, kAgent, slice("i"), nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(managed_.inspect(host_, kAgent, kNothing, slice("k"), &record_), HEARTH_OK);
  hearth_fiber_filter filter = good_filter();
  EXPECT_EQ(managed_.list(host_, kAgent, &filter, &record_), HEARTH_OK);
  filter = {.struct_size = sizeof filter,
            .statuses = HEARTH_FIBER_ERROR | HEARTH_FIBER_ABORTED,
            .name = slice("work"),
            .before_ms = 9,
            .after = slice("x"),
            .limit = 7,
            .dead = 1};
  EXPECT_EQ(managed_.list(host_, kAgent, &filter, &record_), HEARTH_OK);
  EXPECT_EQ(managed_.remove(host_, kAgent, &filter, &removed_), HEARTH_OK);
  EXPECT_EQ(removed_, 4U);
  EXPECT_EQ(managed_.cancel(host_, kAgent, slice("i"), slice("k"), slice("too \xff late")),
            HEARTH_OK);
  EXPECT_EQ(managed_.resolve(host_, kAgent, slice("i"), slice("{}")), HEARTH_OK);
  EXPECT_EQ(managed_.retry(host_, kAgent, slice("i")), HEARTH_OK);
  EXPECT_EQ(agent_.calls,
            (Calls{"resume_managed i", "inspect_managed id= key=k",
                   "list_managed statuses=0 name= before=0 after= limit=50",
                   "list_managed statuses=96 name=work before=9 after=x limit=7 dead",
                   "remove_managed statuses=96 name=work before=9 after=x limit=7 dead",
                   "cancel_managed id=i key=k too \xef\xbf\xbd late", "resolve_managed i {}",
                   "retry_managed i"}));
}

}  // namespace
}  // namespace hearth::plugins
