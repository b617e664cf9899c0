// hearth.fibers/2.

#include "extensions/durable_calls.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/managed_fibers.hpp"

#include <hearth/ext/fibers_2.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiFibers2Test : public DurableCallsTest {
 protected:
  static hearth_fiber_start good_start() {
    hearth_fiber_start request{};
    request.struct_size = sizeof request;
    request.name = slice("work");
    return request;
  }
  hearth_status start(const hearth_fiber_start& request) {
    return fibers_.start(host_, kAgent, &request, &fiber_, &record_);
  }

  const hearth_fibers_v2& fibers_ = extension<hearth_fibers_v2>(HEARTH_EXT_FIBERS_2);
  hearth_fiber fiber_ = 0;
  hearth_bytes record_{};
  std::uint32_t is_first_ = 7;
};

TEST_F(AbiFibers2Test, ItsOwnFunctionsKeepTheCommonRules) {
  const auto request = good_start();
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
      {"cancel", true,
       [&](Host host, hearth_agent agent) {
         return fibers_.cancel(host, agent, slice("i"), kNothing, slice("why"), &record_);
       }},
      {"revive", true,
       [&](Host host, hearth_agent agent) { return fibers_.revive(host, agent, slice("i")); }},
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

TEST_F(AbiFibers2Test, EveryFieldOfAStartArrives) {
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
                                      .retry_max_ms = 5};
  EXPECT_EQ(fibers_.start(host_, kAgent, &request, nullptr, &record_), HEARTH_E_INVALID)
      << "work that nobody can settle must not begin";
  EXPECT_EQ(start(request), HEARTH_E_GONE) << "no fiber has the parent's id";
  auto parent = good_start();
  parent.id = slice("p");
  ASSERT_EQ(start(parent), HEARTH_OK);
  ASSERT_EQ(start(request), HEARTH_OK) << last_error();
  EXPECT_NE(fiber_, 0U);
  for (const char* part : {R"("id":"i")", R"("key":"k")", R"("name":"work")", R"("input":[1])",
                           R"("metadata":{"m":2})", R"("max_retries":3)"})
    EXPECT_TRUE(has(record_, part)) << part << " in " << view(record_);
  EXPECT_FALSE(has(record_, "brief"));
}

TEST_F(AbiFibers2Test, ACancelNamesTheInnerFibersThatEndWithIt) {
  auto request = good_start();
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

TEST_F(AbiFibers2Test, PoliciesAndFlagsThatThereAreNotAreRefused) {
  auto request = good_start();
  request.policy = HEARTH_FIBER_REPLACE_FAILED + 1;
  EXPECT_EQ(start(request), HEARTH_E_INVALID);
  request = good_start();
  request.flags = 8;
  EXPECT_EQ(start(request), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.start(host_, kAgent, nullptr, &fiber_, &record_), HEARTH_E_INVALID);
}

TEST_F(AbiFibers2Test, ATurnSaysSoAndIsNobodysPart) {
  auto request = good_start();
  request.flags = HEARTH_FIBER_TURN;
  ASSERT_EQ(start(request), HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("turn":true)")) << view(record_);
  request.parent = slice("p");
  EXPECT_EQ(start(request), HEARTH_E_INVALID);
}

TEST_F(AbiFibers2Test, ClientsHearOfATurn) {
  agent_.add_client(5, "ada");
  agent_.add_client(6, "no protocol").flags = Client::kNoProtocol;
  auto request = good_start();
  request.flags = HEARTH_FIBER_TURN;
  request.id = slice("t");
  ASSERT_EQ(start(request), HEARTH_OK);
  tell_clients_of_turns(agent_.clients(), agent_.work());
  EXPECT_TRUE(agent_.told.empty());
  (void)agent_.work().managed().died("t", "too often");
  tell_clients_of_turns(agent_.clients(), agent_.work());
  EXPECT_EQ(
      agent_.told,
      (Lines{R"(send 0 {"type":"session.error","turn":"t","error":{"type":"turn_interrupted",)"
             R"("retry_status":"exhausted","message":"too often"}} to 5)",
             R"(send 0 {"type":"session.status_idle","turn":"t","stop_reason":)"
             R"({"type":"retries_exhausted"}} to 5)"}));
}

TEST_F(AbiFibers2Test, AClientThatComesLaterHearsOfATurnThatWasGivenUp) {
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), Lines{});
  auto request = good_start();
  request.flags = HEARTH_FIBER_TURN;
  for (const char* const id : {"u", "t"}) {
    request.id = slice(id);
    ASSERT_EQ(start(request), HEARTH_OK);
  }
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), Lines{}) << "they run";
  durable::ManagedFibers& fibers = agent_.work().managed();
  (void)fibers.died("t", "too often");
  const Lines frames = {
      R"({"type":"session.error","turn":"t","error":{"type":"turn_interrupted",)"
      R"("retry_status":"exhausted","message":"too often"}})",
      R"({"type":"session.status_idle","turn":"t","stop_reason":{"type":"retries_exhausted"}})"};
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), frames);
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), frames) << "each that comes";
  request.id = slice("v");
  ASSERT_EQ(start(request), HEARTH_OK);
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), Lines{}) << "a later one says how it stands";
  (void)fibers.died("v", "too often");
  EXPECT_EQ(frames_of_standing_turns(agent_.work()).size(), 2U);
  ASSERT_TRUE(fibers.resolve("v", R"({"status":"completed"})"));
  EXPECT_EQ(frames_of_standing_turns(agent_.work()), Lines{}) << "somebody has seen to it";
}

TEST_F(AbiFibers2Test, WhoseWorkRunsIsTold) {
  EXPECT_EQ(fibers_.works_for(host_, kAgent, 3, 0), HEARTH_OK);
  EXPECT_EQ(fibers_.works_for(host_, kAgent, 0, 4), HEARTH_OK);
  EXPECT_EQ(agent_.told, (Lines{"works for 3 0", "works for 0 4"}));
}

TEST_F(AbiFibers2Test, AMarkIsNewOnce) {
  ASSERT_EQ(start(good_start()), HEARTH_OK);
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

TEST_F(AbiFibers2Test, ACancelTellsTheRecordAndABriefOneGoes) {
  ASSERT_EQ(start(good_start()), HEARTH_OK);
  EXPECT_TRUE(has(record_, R"("brief":true)")) << view(record_);
  ASSERT_EQ(fibers_.stash(host_, kAgent, fiber_, slice("5")), HEARTH_OK);
  auto request = good_start();
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
