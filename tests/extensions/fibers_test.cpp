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
  using Filter = hearth_fiber_filter;
  using Request = hearth_fiber_start;

  static hearth_fiber_start brief(std::string_view id = "", std::uint32_t flags = 0) {
    hearth_fiber_start request{};
    request.struct_size = sizeof request;
    request.name = slice("work");
    request.id = slice(id);
    request.flags = flags;
    return request;
  }
  static hearth_fiber_start good_request(std::string_view id = "") {
    return brief(id, HEARTH_FIBER_KEEP_RECORD);
  }
  static hearth_fiber_filter good_filter() {
    hearth_fiber_filter filter{};
    filter.struct_size = sizeof filter;
    return filter;
  }
  hearth_status start(const hearth_fiber_start& request) {
    return fibers_.start(host_, kAgent, &request, &fiber_, &record_);
  }
  hearth_status list(const hearth_fiber_filter& filter) {
    return fibers_.list(host_, kAgent, &filter, &record_);
  }
  hearth_status remove(const hearth_fiber_filter& filter) {
    return fibers_.remove(host_, kAgent, &filter, &removed_);
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
  const DurableCall functions[] = {
      durable_call("start", true, fibers_.start, &request, &fiber_, &record_),
      durable_call("resume", true, fibers_.resume, slice("i"), &fiber_),
      durable_call("stash", true, fibers_.stash, 5U, slice("{}")),
      durable_call("settle", true, fibers_.settle, 5U, HEARTH_FIBER_COMPLETED, kNothing, &record_),
      durable_call("inspect", false, fibers_.inspect, slice("i"), kNothing, &record_),
      durable_call("list", false, fibers_.list, &filter, &record_),
      durable_call("cancel", true, fibers_.cancel, slice("i"), kNothing, slice("why"), &record_),
      durable_call("resolve", true, fibers_.resolve, slice("i"), slice("{}")),
      durable_call("revive", true, fibers_.revive, slice("i")),
      durable_call("remove", true, fibers_.remove, &filter, &removed_),
      durable_call("once", true, fibers_.once, 1U, slice("m"), &is_first_),
      durable_call("works_for", false, fibers_.works_for, 1U, 0U),
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
  ASSERT_EQ(start(brief("p")), HEARTH_OK);
  ASSERT_EQ(start(request), HEARTH_OK) << last_error();
  EXPECT_NE(fiber_, 0U);
  for (const char* part : {R"("id":"i")", R"("key":"k")", R"("name":"work")", R"("input":[1])",
                           R"("metadata":{"m":2})", R"("max_retries":3)"})
    EXPECT_TRUE(has(record_, part)) << part << " in " << view(record_);
  EXPECT_FALSE(has(record_, "brief"));
}

TEST_F(AbiFibersTest, AFiberWhoseLaneIsTakenIsAcceptedWithoutAHandle) {
  auto request = brief("a", HEARTH_FIBER_RESET);
  request.lane = slice("x");
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
  ASSERT_EQ(start(brief("outer")), HEARTH_OK);
  ASSERT_EQ(start(with(brief("inner"), &Request::parent, slice("outer"))), HEARTH_OK);
  ASSERT_EQ(fibers_.cancel(host_, kAgent, slice("outer"), kNothing, slice("why"), &record_),
            HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("inner":["inner"])")) << view(record_);
  EXPECT_EQ(fibers_.inspect(host_, kAgent, slice("inner"), kNothing, &record_), HEARTH_E_NOT_FOUND);
}

TEST_F(AbiFibersTest, ThePolicySaysWhatASettledRecordDoes) {
  const auto request = with(good_request("i"), &Request::policy, HEARTH_FIBER_REPLACE);
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
  EXPECT_EQ(start(with(good_request(), &Request::flags, 16)), HEARTH_E_INVALID);
  for (const std::uint32_t status : {0U, 1U, 2U, 4U, 8U, 17U, 48U, 1024U})
    EXPECT_EQ(settle(status, ""), HEARTH_E_INVALID) << status;
  hearth_fiber_filter filter = good_filter();
  filter.limit = 101;
  EXPECT_EQ(list(filter), HEARTH_E_INVALID);
  EXPECT_EQ(remove(filter), HEARTH_OK) << "up to 500";
  filter.limit = 501;
  EXPECT_EQ(remove(filter), HEARTH_E_INVALID);
  EXPECT_EQ(list(with(good_filter(), &Filter::statuses, 128)), HEARTH_E_INVALID);
  EXPECT_EQ(list(with(good_filter(), &Filter::dead, 2)), HEARTH_E_INVALID);
}

TEST_F(AbiFibersTest, BadSlicesAreRefusedBeforeAnythingIsDone) {
  for (const hearth_bytes bad : kBadSlices) {
    for (hearth_bytes Request::* field : {&Request::name, &Request::id, &Request::key,
                                          &Request::parent, &Request::input, &Request::metadata}) {
      hearth_fiber_start request = good_request();
      request.*field = bad;
      EXPECT_EQ(start(request), HEARTH_E_INVALID);
    }
    for (hearth_bytes Filter::* field : {&Filter::name, &Filter::after}) {
      hearth_fiber_filter filter = good_filter();
      filter.*field = bad;
      EXPECT_EQ(list(filter), HEARTH_E_INVALID);
      EXPECT_EQ(remove(filter), HEARTH_E_INVALID);
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
  const auto request = with(good_request(), &Request::max_retries, 3);
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
  hearth_fiber_start request = good_request("i");
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
    EXPECT_EQ(list(filter), HEARTH_OK) << last_error();
    return std::pair(has(record_, R"("id":"i")"), has(record_, R"("id":"j")"));
  };
  hearth_fiber_filter filter = good_filter();
  EXPECT_EQ(listed(filter), std::pair(true, true));
  filter.statuses = HEARTH_FIBER_ERROR | HEARTH_FIBER_ABORTED;
  EXPECT_EQ(listed(filter), std::pair(true, false));
  EXPECT_EQ(listed(with(good_filter(), &Filter::name, slice("other"))), std::pair(false, true));
  filter = good_filter();
  filter.after = slice("j");
  EXPECT_EQ(listed(filter), std::pair(true, false)) << "newest first";
  EXPECT_EQ(listed(with(good_filter(), &Filter::limit, 1)), std::pair(false, true));
  EXPECT_EQ(listed(with(good_filter(), &Filter::dead, 1)), std::pair(false, false));
  EXPECT_EQ(fibers_.resolve(host_, kAgent, slice("nobody"), slice("{}")), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(fibers_.revive(host_, kAgent, slice("nobody")), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(remove(good_filter()), HEARTH_OK);
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
  ASSERT_EQ(start(with(good_request("i"), &Request::max_retries, 1)), HEARTH_OK);
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
  ASSERT_EQ(list(filter), HEARTH_OK);
  EXPECT_EQ(count_in(record_, R"("id":)"), 50U);
  ASSERT_EQ(remove(filter), HEARTH_OK);
  EXPECT_EQ(removed_, 100U);
}

TEST_F(AbiFibersTest, ATurnSaysSoAndIsNobodysPart) {
  auto request = brief("", HEARTH_FIBER_TURN);
  ASSERT_EQ(start(request), HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("turn":true)")) << view(record_);
  request.parent = slice("p");
  EXPECT_EQ(start(request), HEARTH_E_INVALID);
}

TEST_F(AbiFibersTest, ClientsHearOfATurn) {
  agent_.add_client(5, "ada");
  agent_.add_client(6, "no protocol").flags = Client::kNoProtocol;
  ASSERT_EQ(start(brief("t", HEARTH_FIBER_TURN)), HEARTH_OK);
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
  for (const char* const id : {"u", "t"}) ASSERT_EQ(start(brief(id, HEARTH_FIBER_TURN)), HEARTH_OK);
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), Lines{}) << "they run";
  durable::Fibers& fibers = agent_.work().fibers();
  die(fibers, agent_.database(), "t", "too often");
  const Lines frames = {
      R"({"type":"session.error","turn":"t","error":{"type":"turn_interrupted",)"
      R"("retry_status":"exhausted","message":"too often"}})",
      R"({"type":"session.status_idle","turn":"t","stop_reason":{"type":"retries_exhausted"}})"};
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), frames);
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), frames) << "each that comes";
  ASSERT_EQ(start(brief("v", HEARTH_FIBER_TURN)), HEARTH_OK);
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
  ASSERT_EQ(start(with(brief(), &Request::key, slice("k"))), HEARTH_OK);
  ASSERT_EQ(fibers_.cancel(host_, kAgent, kNothing, slice("k"), slice("\xff"), &record_),
            HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("status":"aborted")")) << view(record_);
  EXPECT_EQ(fibers_.inspect(host_, kAgent, kNothing, slice("k"), &record_), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(fibers_.settle(host_, kAgent, fiber_, HEARTH_FIBER_COMPLETED, kNothing, &record_),
            HEARTH_E_GONE);
}

}  // namespace
}  // namespace hearth::extensions
