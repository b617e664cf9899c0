// hearth.fibers/1.

#include "extensions/fibers.hpp"

#include "durable/dead_fiber.hpp"
#include "extensions/durable_calls.hpp"
#include "extensions/durable_work.hpp"

#include <hearth/ext/fibers.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiFibersTest : public DurableCallsTest {
 protected:
  static hearth_fiber_start brief() {
    hearth_fiber_start request{};
    request.struct_size = sizeof request;
    request.name = slice("work");
    return request;
  }
  static hearth_fiber_start good_request() {
    hearth_fiber_start request = brief();
    request.flags = HEARTH_FIBER_KEEP_RECORD;
    return request;
  }
  static hearth_fiber_filter good_filter() {
    hearth_fiber_filter filter{};
    filter.struct_size = sizeof filter;
    return filter;
  }
  hearth_status start(const hearth_fiber_start& request) {
    return fibers_.start(host_, kAgent, &request, &fiber_, &record_);
  }
  hearth_status settle(std::uint32_t status, std::string_view body) {
    return fibers_.settle(host_, kAgent, fiber_, status, slice(body), &record_);
  }

  const hearth_fibers_v1& fibers_ = extension<hearth_fibers_v1>(HEARTH_EXT_FIBERS);
  hearth_fiber fiber_ = 0;
  hearth_bytes record_{};
  std::uint64_t removed_ = 0;
  std::uint32_t is_first_ = 7;
};

TEST_F(AbiFibersTest, EveryFunctionKeepsTheCommonRules) {
  const auto request = good_request();
  const auto filter = good_filter();
  using Host = const hearth_host*;
  const DurableCall functions[] = {
      {"start", true,
       [&](Host host, hearth_agent agent) {
         return fibers_.start(host, agent, &request, &fiber_, &record_);
       }},
      {"resume", true,
       [&](Host host, hearth_agent agent) {
         return fibers_.resume(host, agent, slice("i"), &fiber_);
       }},
      {"stash", true,
       [&](Host host, hearth_agent agent) { return fibers_.stash(host, agent, 5, slice("{}")); }},
      {"settle", true,
       [&](Host host, hearth_agent agent) {
         return fibers_.settle(host, agent, 5, HEARTH_FIBER_COMPLETED, kNothing, &record_);
       }},
      {"inspect", false,
       [&](Host host, hearth_agent agent) {
         return fibers_.inspect(host, agent, slice("i"), kNothing, &record_);
       }},
      {"list", false,
       [&](Host host, hearth_agent agent) { return fibers_.list(host, agent, &filter, &record_); }},
      {"cancel", true,
       [&](Host host, hearth_agent agent) {
         return fibers_.cancel(host, agent, slice("i"), kNothing, slice("why"), &record_);
       }},
      {"resolve", true,
       [&](Host host, hearth_agent agent) {
         return fibers_.resolve(host, agent, slice("i"), slice("{}"));
       }},
      {"revive", true,
       [&](Host host, hearth_agent agent) { return fibers_.revive(host, agent, slice("i")); }},
      {"remove", true,
       [&](Host host, hearth_agent agent) {
         return fibers_.remove(host, agent, &filter, &removed_);
       }},
      {"once", true,
       [&](Host host, hearth_agent agent) {
         return fibers_.once(host, agent, 1, slice("m"), &is_first_);
       }},
      {"works_for", false,
       [&](Host host, hearth_agent agent) { return fibers_.works_for(host, agent, 1, 0); }},
  };
  expect_common_rules(functions);
  expect_io_error(functions[0]);
}

TEST_F(AbiFibersTest, EveryFieldOfAStartArrives) {
  const hearth_fiber_start request = {.struct_size = sizeof request,
                                      .policy = HEARTH_FIBER_REPLACE_FAILED,
                                      .flags = HEARTH_FIBER_KEEP_RECORD | HEARTH_FIBER_TAKE_UP,
                                      .max_retries = 3,
                                      .name = slice("work"),
                                      .id = slice("i"),
                                      .key = slice("k"),
                                      .parent = slice("p"),
                                      .input = slice("[1]"),
                                      .metadata = slice(R"({"m":2})"),
                                      .retry_base_ms = 4,
                                      .retry_max_ms = 5,
                                      .lane = kNothing};
  EXPECT_EQ(fibers_.start(host_, kAgent, &request, nullptr, &record_), HEARTH_E_INVALID)
      << "work that nobody can settle must not begin";
  EXPECT_EQ(start(request), HEARTH_E_GONE) << "no fiber has the parent's id";
  auto parent = brief();
  parent.id = slice("p");
  ASSERT_EQ(start(parent), HEARTH_OK);
  ASSERT_EQ(start(request), HEARTH_OK) << last_error();
  EXPECT_NE(fiber_, 0U);
  for (const char* part : {R"("id":"i")", R"("key":"k")", R"("name":"work")", R"("input":[1])",
                           R"("metadata":{"m":2})", R"("max_retries":3)"})
    EXPECT_TRUE(has(record_, part)) << part << " in " << view(record_);
  EXPECT_FALSE(has(record_, "brief"));
}

TEST_F(AbiFibersTest, AFiberWhoseLaneIsTakenIsAcceptedWithoutAHandle) {
  auto request = good_request();
  request.flags = HEARTH_FIBER_RESET;
  request.lane = slice("x");
  request.id = slice("a");
  ASSERT_EQ(start(request), HEARTH_OK);
  const hearth_fiber first = fiber_;
  EXPECT_NE(first, 0U);
  EXPECT_FALSE(has(record_, "accepted"));
  request.id = slice("b");
  ASSERT_EQ(start(request), HEARTH_OK);
  EXPECT_EQ(fiber_, 0U);
  EXPECT_TRUE(has(record_, R"("lane":"x")"));
  EXPECT_TRUE(has(record_, R"("accepted":true)"));
  ASSERT_EQ(start(request), HEARTH_OK);
  EXPECT_FALSE(has(record_, "accepted")) << "it was there";
  const auto settle = [&](const char* outcome) {
    return fibers_.settle(host_, kAgent, first, HEARTH_FIBER_OUTCOME, slice(outcome), &record_);
  };
  EXPECT_EQ(settle("no outcome"), HEARTH_E_INVALID);
  ASSERT_EQ(settle(R"({"status":"aborted","error":"no tokens","reason":"budget"})"), HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("status":"aborted")"));
  EXPECT_TRUE(has(record_, R"("reason":"budget")"));
  EXPECT_EQ(settle(R"({"status":"error"})"), HEARTH_E_GONE);
}

TEST_F(AbiFibersTest, ACancelNamesTheInnerFibersThatEndWithIt) {
  auto request = brief();
  request.id = slice("outer");
  ASSERT_EQ(start(request), HEARTH_OK);
  request.id = slice("inner");
  request.parent = slice("outer");
  ASSERT_EQ(start(request), HEARTH_OK);
  ASSERT_EQ(fibers_.cancel(host_, kAgent, slice("outer"), kNothing, slice("why"), &record_),
            HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("inner":["inner"])")) << view(record_);
  EXPECT_EQ(fibers_.inspect(host_, kAgent, slice("inner"), kNothing, &record_), HEARTH_E_NOT_FOUND);
}

TEST_F(AbiFibersTest, ThePolicySaysWhatASettledRecordDoes) {
  hearth_fiber_start request = good_request();
  request.policy = HEARTH_FIBER_REPLACE;
  request.id = slice("i");
  ASSERT_EQ(start(request), HEARTH_OK) << last_error();
  EXPECT_FALSE(agent_.database().dirty()) << "it was committed";
  const hearth_fiber first = fiber_;
  ASSERT_EQ(start(request), HEARTH_OK) << "it runs, and is joined";
  EXPECT_EQ(fiber_, 0U);
  fiber_ = first;
  ASSERT_EQ(settle(HEARTH_FIBER_COMPLETED, "1"), HEARTH_OK);
  ASSERT_EQ(start(request), HEARTH_OK) << "it is over, and replaced";
  EXPECT_NE(fiber_, 0U);
}

TEST_F(AbiFibersTest, ACheckpointIsOnDiskAndTheEndWaitsForTheTurn) {
  ASSERT_EQ(start(brief()), HEARTH_OK);
  EXPECT_TRUE(agent_.work_log().contains("fiber:run:started"));
  EXPECT_EQ(fibers_.stash(host_, kAgent, fiber_, slice(R"({"done":3})")), HEARTH_OK);
  EXPECT_FALSE(agent_.database().dirty());
  EXPECT_EQ(fibers_.stash(host_, kAgent, fiber_, slice("{")), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.stash(host_, kAgent, fiber_, kNothing), HEARTH_E_INVALID);
  const std::string large = '"' + std::string(ClassSettings::kMaxValue, 'x') + '"';
  EXPECT_EQ(fibers_.stash(host_, kAgent, fiber_, slice(large)), HEARTH_E_LIMIT);
  EXPECT_EQ(settle(HEARTH_FIBER_COMPLETED, ""), HEARTH_OK);
  EXPECT_TRUE(agent_.database().dirty());
  EXPECT_TRUE(agent_.work_log().contains("fiber:run:completed"));
  EXPECT_EQ(fibers_.stash(host_, kAgent, fiber_, slice("{}")), HEARTH_E_GONE);
}

TEST_F(AbiFibersTest, StructsOfOtherSizesAreReadAsFarAsBothKnowThem) {
  hearth_fiber_start request = good_request();
  request.metadata = slice("9");
  request.struct_size = offsetof(hearth_fiber_start, metadata);
  EXPECT_EQ(start(request), HEARTH_OK);
  EXPECT_FALSE(has(record_, R"("metadata":9)")) << view(record_);
  request.struct_size = 0;
  EXPECT_EQ(start(request), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.start(host_, kAgent, nullptr, &fiber_, &record_), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.list(host_, kAgent, nullptr, &record_), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.remove(host_, kAgent, nullptr, &removed_), HEARTH_E_INVALID);
}

TEST_F(AbiFibersTest, NumbersThatNameNothingAreRefused) {
  hearth_fiber_start request = good_request();
  request.policy = HEARTH_FIBER_REPLACE_FAILED + 1;
  EXPECT_EQ(start(request), HEARTH_E_INVALID);
  request = good_request();
  request.flags = 16;
  EXPECT_EQ(start(request), HEARTH_E_INVALID);
  for (const std::uint32_t status : {0U, 1U, 2U, 4U, 8U, 17U, 48U, 1024U})
    EXPECT_EQ(settle(status, ""), HEARTH_E_INVALID) << status;
  hearth_fiber_filter filter = good_filter();
  filter.limit = 101;
  EXPECT_EQ(fibers_.list(host_, kAgent, &filter, &record_), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.remove(host_, kAgent, &filter, &removed_), HEARTH_OK) << "up to 500";
  filter.limit = 501;
  EXPECT_EQ(fibers_.remove(host_, kAgent, &filter, &removed_), HEARTH_E_INVALID);
  filter = good_filter();
  filter.statuses = 128;
  EXPECT_EQ(fibers_.list(host_, kAgent, &filter, &record_), HEARTH_E_INVALID);
  filter = good_filter();
  filter.dead = 2;
  EXPECT_EQ(fibers_.list(host_, kAgent, &filter, &record_), HEARTH_E_INVALID);
}

TEST_F(AbiFibersTest, BadSlicesAreRefusedBeforeAnythingIsDone) {
  for (const hearth_bytes bad : kBadSlices) {
    for (hearth_bytes hearth_fiber_start::* field :
         {&hearth_fiber_start::name, &hearth_fiber_start::id, &hearth_fiber_start::key,
          &hearth_fiber_start::parent, &hearth_fiber_start::input, &hearth_fiber_start::metadata}) {
      hearth_fiber_start request = good_request();
      request.*field = bad;
      EXPECT_EQ(start(request), HEARTH_E_INVALID);
    }
    for (hearth_bytes hearth_fiber_filter::* field :
         {&hearth_fiber_filter::name, &hearth_fiber_filter::after}) {
      hearth_fiber_filter filter = good_filter();
      filter.*field = bad;
      EXPECT_EQ(fibers_.list(host_, kAgent, &filter, &record_), HEARTH_E_INVALID);
      EXPECT_EQ(fibers_.remove(host_, kAgent, &filter, &removed_), HEARTH_E_INVALID);
    }
    EXPECT_EQ(fibers_.resume(host_, kAgent, bad, &fiber_), HEARTH_E_INVALID);
    EXPECT_EQ(fibers_.stash(host_, kAgent, 5, bad), HEARTH_E_INVALID);
    EXPECT_EQ(fibers_.settle(host_, kAgent, 5, HEARTH_FIBER_COMPLETED, bad, &record_),
              HEARTH_E_INVALID);
    EXPECT_EQ(fibers_.inspect(host_, kAgent, bad, kNothing, &record_), HEARTH_E_INVALID);
    EXPECT_EQ(fibers_.inspect(host_, kAgent, kNothing, bad, &record_), HEARTH_E_INVALID);
    EXPECT_EQ(fibers_.cancel(host_, kAgent, bad, kNothing, kNothing, &record_), HEARTH_E_INVALID);
    EXPECT_EQ(fibers_.cancel(host_, kAgent, kNothing, bad, kNothing, &record_), HEARTH_E_INVALID);
    EXPECT_EQ(fibers_.resolve(host_, kAgent, bad, slice("{}")), HEARTH_E_INVALID);
    EXPECT_EQ(fibers_.resolve(host_, kAgent, slice("i"), bad), HEARTH_E_INVALID);
    EXPECT_EQ(fibers_.revive(host_, kAgent, bad), HEARTH_E_INVALID);
  }
  EXPECT_FALSE(agent_.has_stored());
}

TEST_F(AbiFibersTest, AFinalErrorIsNotRetriedAndWorkThatNeedsCodeWaits) {
  auto request = good_request();
  request.max_retries = 3;
  ASSERT_EQ(start(request), HEARTH_OK);
  EXPECT_EQ(settle(HEARTH_FIBER_FINAL_ERROR, "refused"), HEARTH_OK) << last_error();
  EXPECT_TRUE(has(record_, R"("status":"error")")) << view(record_);
  ASSERT_EQ(start(request), HEARTH_OK);
  EXPECT_FALSE(agent_.work().reports().take_unreadable());
  EXPECT_EQ(settle(HEARTH_FIBER_NEEDS_CODE, "checkpoint.shop: missing"), HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("waits_for_code":true)")) << view(record_);
  EXPECT_TRUE(agent_.work().reports().take_unreadable());
  EXPECT_EQ(settle(HEARTH_FIBER_COMPLETED, "1"), HEARTH_E_GONE);
}

TEST_F(AbiFibersTest, WorkCanEndWhateverItsErrorSays) {
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

TEST_F(AbiFibersTest, RecordsAreFoundCancelledAndRemoved) {
  hearth_fiber_start request = good_request();
  request.id = slice("i");
  request.key = slice("k");
  ASSERT_EQ(start(request), HEARTH_OK);
  EXPECT_EQ(fibers_.resume(host_, kAgent, slice("i"), &fiber_), HEARTH_E_NOT_FOUND)
      << "it is not being recovered";
  EXPECT_EQ(fibers_.resume(host_, kAgent, slice("i"), nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.inspect(host_, kAgent, kNothing, slice("k"), &record_), HEARTH_OK);
  EXPECT_EQ(text_in(record_, "id"), "i");
  EXPECT_EQ(fibers_.inspect(host_, kAgent, slice("i"), kNothing, &record_), HEARTH_OK);
  EXPECT_EQ(text_in(record_, "key"), "k");
  EXPECT_EQ(fibers_.cancel(host_, kAgent, slice("i"), kNothing, slice("too \xff late"), &record_),
            HEARTH_OK)
      << last_error();
  EXPECT_EQ(fibers_.inspect(host_, kAgent, slice("i"), kNothing, &record_), HEARTH_OK);
  EXPECT_TRUE(has(record_, "too \xef\xbf\xbd late")) << view(record_);
  request.id = slice("j");
  request.key = kNothing;
  request.name = slice("other");
  ASSERT_EQ(start(request), HEARTH_OK) << last_error();
  const auto listed = [this](const hearth_fiber_filter& filter) {
    EXPECT_EQ(fibers_.list(host_, kAgent, &filter, &record_), HEARTH_OK) << last_error();
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
  EXPECT_EQ(fibers_.resolve(host_, kAgent, slice("nobody"), slice("{}")), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(fibers_.revive(host_, kAgent, slice("nobody")), HEARTH_E_NOT_FOUND);
  filter = good_filter();
  EXPECT_EQ(fibers_.remove(host_, kAgent, &filter, &removed_), HEARTH_OK);
  EXPECT_EQ(removed_, 1U) << "one is over";
}

TEST_F(AbiFibersTest, WhatIsOfferedIsResumedAndWhatWasInterruptedIsOfferedAgain) {
  const auto offered = [this] {
    agent_.clock.advance(std::chrono::minutes(10));  // longer than any wait
    while (auto work = agent_.work().dispatch().next(true)) {
      if (work->kind == EventKind::kFiberRecovered) return *std::move(work);
      if (work->kind == EventKind::kFibersRecovered)
        agent_.work().dispatch().ended(*work, std::string_view());
    }
    ADD_FAILURE() << "nothing is offered";
    return DueWork{};
  };
  hearth_fiber_start request = good_request();
  request.id = slice("i");
  request.max_retries = 1;
  ASSERT_EQ(start(request), HEARTH_OK);
  ASSERT_EQ(settle(HEARTH_FIBER_ERROR, "busy"), HEARTH_OK);
  agent_.work().dispatch().ended(offered(), std::string_view());  // no run goes on with it
  EXPECT_EQ(fibers_.revive(host_, kAgent, slice("i")), HEARTH_OK) << last_error();
  EXPECT_EQ(offered().id, "i");
  ASSERT_EQ(fibers_.resume(host_, kAgent, slice("i"), &fiber_), HEARTH_OK) << last_error();
  EXPECT_EQ(settle(HEARTH_FIBER_COMPLETED, "1"), HEARTH_OK) << last_error();
  EXPECT_TRUE(has(record_, R"("status":"completed")")) << view(record_);
}

TEST_F(AbiFibersTest, WithoutALimitAPageHasFiftyAndAHundredAreRemoved) {
  for (int i = 0; i < 101; ++i) {
    ASSERT_EQ(start(good_request()), HEARTH_OK);
    ASSERT_EQ(settle(HEARTH_FIBER_COMPLETED, "1"), HEARTH_OK);
  }
  const auto filter = good_filter();
  ASSERT_EQ(fibers_.list(host_, kAgent, &filter, &record_), HEARTH_OK);
  EXPECT_EQ(count_in(record_, R"("id":)"), 50U);
  ASSERT_EQ(fibers_.remove(host_, kAgent, &filter, &removed_), HEARTH_OK);
  EXPECT_EQ(removed_, 100U);
}

TEST_F(AbiFibersTest, ATurnSaysSoAndIsNobodysPart) {
  auto request = brief();
  request.flags = HEARTH_FIBER_TURN;
  ASSERT_EQ(start(request), HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("turn":true)")) << view(record_);
  request.parent = slice("p");
  EXPECT_EQ(start(request), HEARTH_E_INVALID);
}

TEST_F(AbiFibersTest, ClientsHearOfATurn) {
  agent_.add_client(5, "ada");
  agent_.add_client(6, "no protocol").flags = Client::kNoProtocol;
  auto request = brief();
  request.flags = HEARTH_FIBER_TURN;
  request.id = slice("t");
  ASSERT_EQ(start(request), HEARTH_OK);
  tell_clients_of_turns(agent_.clients(), agent_.work());
  EXPECT_TRUE(agent_.told.empty());
  die(agent_.work().fibers(), agent_.database(), "t", "too often");
  tell_clients_of_turns(agent_.clients(), agent_.work());
  EXPECT_EQ(
      agent_.told,
      (Lines{R"(send 0 {"type":"session.error","turn":"t","error":{"type":"turn_interrupted",)"
             R"("retry_status":"exhausted","message":"too often"}} to 5)",
             R"(send 0 {"type":"session.status_idle","turn":"t","stop_reason":)"
             R"({"type":"retries_exhausted"}} to 5)"}));
}

TEST_F(AbiFibersTest, AClientThatComesLaterHearsOfATurnThatWasGivenUp) {
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), Lines{});
  auto request = brief();
  request.flags = HEARTH_FIBER_TURN;
  for (const char* const id : {"u", "t"}) {
    request.id = slice(id);
    ASSERT_EQ(start(request), HEARTH_OK);
  }
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), Lines{}) << "they run";
  durable::Fibers& fibers = agent_.work().fibers();
  die(fibers, agent_.database(), "t", "too often");
  const Lines frames = {
      R"({"type":"session.error","turn":"t","error":{"type":"turn_interrupted",)"
      R"("retry_status":"exhausted","message":"too often"}})",
      R"({"type":"session.status_idle","turn":"t","stop_reason":{"type":"retries_exhausted"}})"};
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), frames);
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), frames) << "each that comes";
  request.id = slice("v");
  ASSERT_EQ(start(request), HEARTH_OK);
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), Lines{}) << "a later one says how it stands";
  die(fibers, agent_.database(), "v", "too often");
  EXPECT_EQ(frames_of_standing_turns(agent_.work()).size(), 2U);
  ASSERT_TRUE(fibers.records().resolve("v", R"({"status":"completed"})"));
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), Lines{}) << "somebody has seen to it";
}

TEST_F(AbiFibersTest, WhoseWorkRunsIsTold) {
  EXPECT_EQ(fibers_.works_for(host_, kAgent, 3, 0), HEARTH_OK);
  EXPECT_EQ(fibers_.works_for(host_, kAgent, 0, 4), HEARTH_OK);
  EXPECT_EQ(agent_.told, (Lines{"works for 3 0", "works for 0 4"}));
}

TEST_F(AbiFibersTest, AMarkIsNewOnce) {
  ASSERT_EQ(start(brief()), HEARTH_OK);
  const auto once = [&](hearth_bytes mark) {
    return fibers_.once(host_, kAgent, fiber_, mark, &is_first_);
  };
  EXPECT_EQ(once(slice("m")), HEARTH_OK);
  EXPECT_EQ(is_first_, 1U);
  EXPECT_EQ(once(slice("m")), HEARTH_OK);
  EXPECT_EQ(is_first_, 0U);
  EXPECT_EQ(once(kNothing), HEARTH_E_INVALID);
  for (const hearth_bytes bad : kBadSlices) EXPECT_EQ(once(bad), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.once(host_, kAgent, fiber_, slice("m"), nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.once(host_, kAgent, fiber_ + 1, slice("m"), &is_first_), HEARTH_E_GONE);
}

TEST_F(AbiFibersTest, ACancelTellsTheRecordAndABriefOneGoes) {
  ASSERT_EQ(start(brief()), HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("brief":true)")) << view(record_);
  ASSERT_EQ(fibers_.stash(host_, kAgent, fiber_, slice("5")), HEARTH_OK);
  auto request = brief();
  request.key = slice("k");
  ASSERT_EQ(start(request), HEARTH_OK);
  ASSERT_EQ(fibers_.cancel(host_, kAgent, kNothing, slice("k"), slice("\xff"), &record_),
            HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("status":"aborted")")) << view(record_);
  EXPECT_EQ(fibers_.inspect(host_, kAgent, kNothing, slice("k"), &record_), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(fibers_.settle(host_, kAgent, fiber_, HEARTH_FIBER_COMPLETED, kNothing, &record_),
            HEARTH_E_GONE);
}

}  // namespace
}  // namespace hearth::extensions
