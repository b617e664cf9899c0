// hearth.keep_alive/1 and hearth.fibers/1.

#include "plugins/generation/abi_host_fixture.hpp"

#include <hearth/ext/fibers.h>
#include <hearth/ext/keep_alive.h>

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <utility>

namespace hearth::plugins {
namespace {

using namespace testing;

// A function of a table, called with good arguments for the agent that is given.
struct Function {
  const char* name;
  std::function<hearth_status(const hearth_host*, hearth_agent)> call;
};

class AbiDurableTest : public AbiHostTest {
 protected:
  const hearth_keep_alive_v1& keep_alive_ = extension<hearth_keep_alive_v1>(HEARTH_EXT_KEEP_ALIVE);
  const hearth_fibers_v1& fibers_ = extension<hearth_fibers_v1>(HEARTH_EXT_FIBERS);
  hearth_fiber fiber_ = 0;
  hearth_bytes id_{};

  using Host = const hearth_host*;
  const std::array<Function, 8> functions_ = {{
      {"list_dead",
       [this](Host host, hearth_agent agent) {
         return fibers_.list_dead(host, agent, kNothing, 0, &id_);
       }},
      {"acquire",
       [this](Host host, hearth_agent agent) { return keep_alive_.acquire(host, agent); }},
      {"release",
       [this](Host host, hearth_agent agent) { return keep_alive_.release(host, agent); }},
      {"start",
       [this](Host host, hearth_agent agent) {
         return fibers_.start(host, agent, slice("work"), kNothing, &fiber_, &id_);
       }},
      {"stash", [this](Host host,
                       hearth_agent agent) { return fibers_.stash(host, agent, 5, slice("{}")); }},
      {"finish", [this](Host host, hearth_agent agent) { return fibers_.finish(host, agent, 5); }},
      {"fail",
       [this](Host host, hearth_agent agent) {
         return fibers_.fail(host, agent, 5, slice("no such page"));
       }},
      {"retry",
       [this](Host host, hearth_agent agent) { return fibers_.retry(host, agent, slice("id")); }},
  }};
};

// ---- every function ----

TEST_F(AbiDurableTest, EveryFunctionWantsALiveAgentOnItsThreadAndAHost) {
  for (const Function& function : functions_) {
    EXPECT_EQ(function.call(host_, 1), HEARTH_E_GONE) << function.name;
    EXPECT_EQ(function.call(host_, FakeAgentDirectory::kElsewhere), HEARTH_E_WRONG_THREAD)
        << function.name;
    EXPECT_EQ(function.call(nullptr, kAgent), HEARTH_E_INVALID) << function.name;
  }
  EXPECT_TRUE(agent_.calls.empty());
}

TEST_F(AbiDurableTest, FailuresOfTheRuntimeBecomeStatusesWithTheirWords) {
  for (const auto& [code, status] : {std::pair{Errc::kInvalidArgument, HEARTH_E_INVALID},
                                     std::pair{Errc::kLimitExceeded, HEARTH_E_LIMIT},
                                     std::pair{Errc::kClosing, HEARTH_E_CLOSING}}) {
    for (const Function& function : functions_) {
      const std::string words = std::string(function.name) + " said no";
      answer(code, words);
      EXPECT_EQ(function.call(host_, kAgent), status) << function.name;
      EXPECT_EQ(last_error(), words);
    }
  }
}

TEST_F(AbiDurableTest, WhatIsMissingIsNotFoundAndWhatHasEndedIsGone) {
  answer(Errc::kNotFound);
  EXPECT_EQ(fibers_.start(host_, kAgent, slice("work"), slice("old"), &fiber_, &id_),
            HEARTH_E_NOT_FOUND);
  EXPECT_EQ(fibers_.retry(host_, kAgent, slice("id")), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(fibers_.stash(host_, kAgent, 5, slice("{}")), HEARTH_E_GONE);
  EXPECT_EQ(fibers_.finish(host_, kAgent, 5), HEARTH_E_GONE);
  EXPECT_EQ(fibers_.fail(host_, kAgent, 5, slice("why")), HEARTH_E_GONE);
}

TEST_F(AbiDurableTest, AStorageErrorBreaksTheAgentAndCrossesAsIo) {
  agent_.storage_breaks = true;
  for (const Function& function : functions_) {
    agent_.broken.clear();
    EXPECT_EQ(function.call(host_, kAgent), HEARTH_E_IO) << function.name;
    EXPECT_EQ(agent_.broken, "the disk is gone") << function.name;
  }
}

// ---- hearth.keep_alive/1 ----

TEST_F(AbiDurableTest, ReferencesArePassedOn) {
  EXPECT_EQ(keep_alive_.acquire(host_, kAgent), HEARTH_OK);
  EXPECT_EQ(keep_alive_.release(host_, kAgent), HEARTH_OK);
  EXPECT_EQ(agent_.calls, (Calls{"acquire_keep_alive", "release_keep_alive"}));
}

// ---- hearth.fibers/1 ----

TEST_F(AbiDurableTest, StartGivesTheHandleAndTheId) {
  EXPECT_EQ(fibers_.start(host_, kAgent, slice("work"), kNothing, &fiber_, &id_), HEARTH_OK);
  EXPECT_EQ(fiber_, 5U);
  EXPECT_EQ(view(id_), "fiber id");
  EXPECT_EQ(fibers_.start(host_, kAgent, slice("w\xc3\xb6rk"), slice("old"), &fiber_, &id_),
            HEARTH_OK);
  EXPECT_EQ(agent_.calls, (Calls{"start_fiber work ", "start_fiber w\xc3\xb6rk old"}));
}

TEST_F(AbiDurableTest, StartNeedsAPlaceForTheHandleButNotForTheId) {
  EXPECT_EQ(fibers_.start(host_, kAgent, slice("work"), kNothing, nullptr, &id_), HEARTH_E_INVALID);
  EXPECT_TRUE(agent_.calls.empty()) << "a fiber that nobody can finish must not begin";
  EXPECT_EQ(fibers_.start(host_, kAgent, slice("work"), kNothing, &fiber_, nullptr), HEARTH_OK);
  EXPECT_EQ(fiber_, 5U);
}

TEST_F(AbiDurableTest, AFailedStartGivesNothing) {
  answer(Errc::kLimitExceeded);
  EXPECT_EQ(fibers_.start(host_, kAgent, slice("work"), kNothing, &fiber_, &id_), HEARTH_E_LIMIT);
  EXPECT_EQ(fiber_, 0U);
  EXPECT_EQ(id_.len, 0U);
}

TEST_F(AbiDurableTest, CheckpointsEndsAndRetriesArePassedOn) {
  EXPECT_EQ(fibers_.stash(host_, kAgent, 5, slice(R"({"done":3})")), HEARTH_OK);
  EXPECT_EQ(fibers_.finish(host_, kAgent, 6), HEARTH_OK);
  EXPECT_EQ(fibers_.retry(host_, kAgent, slice("some id")), HEARTH_OK);
  EXPECT_EQ(agent_.calls,
            (Calls{R"(stash 5 {"done":3})", "finish_fiber 6", "retry_fiber some id"}));
}

TEST_F(AbiDurableTest, AFailureIsPassedOnWhateverBytesItsTextHas) {
  EXPECT_EQ(fibers_.fail(host_, kAgent, 5, slice("no such page")), HEARTH_OK);
  EXPECT_EQ(fibers_.fail(host_, kAgent, 6, slice(kNotUtf8)), HEARTH_OK);
  EXPECT_EQ(fibers_.fail(host_, kAgent, 7, kNothing), HEARTH_OK);
  EXPECT_EQ(agent_.calls, (Calls{"fail_fiber 5 no such page",
                                 "fail_fiber 6 " + std::string(kNotUtf8), "fail_fiber 7 "}));
}

TEST_F(AbiDurableTest, APageOfDeadFibersIsLent) {
  EXPECT_EQ(fibers_.list_dead(host_, kAgent, slice("x"), 7, &id_), HEARTH_OK);
  EXPECT_EQ(view(id_), "its record");
  EXPECT_EQ(fibers_.list_dead(host_, kAgent, kNothing, 0, nullptr), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.list_dead(host_, kAgent, slice(kNotUtf8), 0, &id_), HEARTH_E_INVALID);
  EXPECT_EQ(agent_.calls, (Calls{"list_dead_fibers x 7"}));
}

TEST_F(AbiDurableTest, EmptyTextsAreForTheRuntimeToJudge) {
  EXPECT_EQ(fibers_.start(host_, kAgent, kNothing, kNothing, &fiber_, &id_), HEARTH_OK);
  EXPECT_EQ(fibers_.stash(host_, kAgent, 5, kNothing), HEARTH_OK);
  EXPECT_EQ(fibers_.retry(host_, kAgent, kNothing), HEARTH_OK);
  EXPECT_EQ(agent_.calls, (Calls{"start_fiber  ", "stash 5 ", "retry_fiber "}));
}

TEST_F(AbiDurableTest, BadSlicesAreRefusedBeforeAnythingIsDone) {
  for (const hearth_bytes bad : {kNullWithLength, slice(kNotUtf8), hearth_bytes{"x", SIZE_MAX}}) {
    EXPECT_EQ(fibers_.start(host_, kAgent, bad, kNothing, &fiber_, &id_), HEARTH_E_INVALID);
    EXPECT_EQ(fibers_.start(host_, kAgent, slice("work"), bad, &fiber_, &id_), HEARTH_E_INVALID);
    EXPECT_EQ(fibers_.stash(host_, kAgent, 5, bad), HEARTH_E_INVALID);
    EXPECT_EQ(fibers_.retry(host_, kAgent, bad), HEARTH_E_INVALID);
    EXPECT_NE(last_error(), "");
  }
  for (const hearth_bytes bad : {kNullWithLength, hearth_bytes{"x", SIZE_MAX}}) {
    EXPECT_EQ(fibers_.fail(host_, kAgent, 5, bad), HEARTH_E_INVALID);
  }
  EXPECT_TRUE(agent_.calls.empty());
}

}  // namespace
}  // namespace hearth::plugins
