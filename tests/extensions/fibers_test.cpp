// hearth.fibers/1.

#include "extensions/durable_calls.hpp"
#include "storage/statement.hpp"

#include <hearth/ext/fibers.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiFibersTest : public DurableCallsTest {
 protected:
  hearth_status start(hearth_bytes replaces = kNothing) {
    return fibers_.start(host_, kAgent, slice("work"), replaces, &fiber_, &id_);
  }

  const hearth_fibers_v1& fibers_ = extension<hearth_fibers_v1>(HEARTH_EXT_FIBERS);
  hearth_fiber fiber_ = 0;
  hearth_bytes id_{};
};

TEST_F(AbiFibersTest, EveryFunctionKeepsTheCommonRules) {
  using Host = const hearth_host*;
  const DurableCall functions[] = {
      {"start", true,
       [this](Host host, hearth_agent agent) {
         return fibers_.start(host, agent, slice("work"), kNothing, &fiber_, &id_);
       }},
      {"stash", true,
       [this](Host host, hearth_agent agent) {
         return fibers_.stash(host, agent, 5, slice("{}"));
       }},
      {"finish", true,
       [this](Host host, hearth_agent agent) { return fibers_.finish(host, agent, 5); }},
      {"fail", true,
       [this](Host host, hearth_agent agent) {
         return fibers_.fail(host, agent, 5, slice("no such page"));
       }},
      {"retry", true,
       [this](Host host, hearth_agent agent) { return fibers_.retry(host, agent, slice("id")); }},
      {"list_dead", false,
       [this](Host host, hearth_agent agent) {
         return fibers_.list_dead(host, agent, kNothing, 0, &id_);
       }},
  };
  expect_common_rules(functions);
  expect_io_error(functions[0]);
}

TEST_F(AbiFibersTest, StartGivesTheHandleAndTheIdAndIsOnDisk) {
  ASSERT_EQ(start(), HEARTH_OK) << last_error();
  EXPECT_NE(fiber_, 0U);
  EXPECT_FALSE(view(id_).empty());
  EXPECT_FALSE(agent_.database().dirty()) << "it was committed";
  EXPECT_TRUE(agent_.work_log().contains("fiber:run:started"));
  EXPECT_EQ(fibers_.start(host_, kAgent, slice("w\xc3\xb6rk"), kNothing, &fiber_, nullptr),
            HEARTH_OK)
      << "nobody must want the id";
}

TEST_F(AbiFibersTest, StartNeedsAPlaceForTheHandle) {
  EXPECT_EQ(fibers_.start(host_, kAgent, slice("work"), kNothing, nullptr, &id_), HEARTH_E_INVALID);
  EXPECT_FALSE(agent_.has_stored()) << "a fiber that nobody can finish must not begin";
}

TEST_F(AbiFibersTest, AFailedStartGivesNothing) {
  EXPECT_EQ(start(slice("old")), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(fibers_.start(host_, kAgent, kNothing, kNothing, &fiber_, &id_), HEARTH_E_INVALID)
      << "a name is no empty text";
  EXPECT_EQ(fiber_, 0U);
  EXPECT_EQ(id_.len, 0U);
}

TEST_F(AbiFibersTest, ACheckpointIsOnDiskAndTheEndWaitsForTheTurn) {
  ASSERT_EQ(start(), HEARTH_OK);
  EXPECT_EQ(fibers_.stash(host_, kAgent, fiber_, slice(R"({"done":3})")), HEARTH_OK);
  EXPECT_FALSE(agent_.database().dirty());
  EXPECT_EQ(fibers_.stash(host_, kAgent, fiber_, slice("{")), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.stash(host_, kAgent, fiber_, kNothing), HEARTH_E_INVALID);
  const std::string large = '"' + std::string(ClassSettings::kMaxValue, 'x') + '"';
  EXPECT_EQ(fibers_.stash(host_, kAgent, fiber_, slice(large)), HEARTH_E_LIMIT);
  EXPECT_EQ(fibers_.finish(host_, kAgent, fiber_), HEARTH_OK);
  EXPECT_TRUE(agent_.database().dirty());
  EXPECT_TRUE(agent_.work_log().contains("fiber:run:completed"));
}

TEST_F(AbiFibersTest, WhatHasEndedIsGoneAndWhatIsMissingNotFound) {
  ASSERT_EQ(start(), HEARTH_OK);
  ASSERT_EQ(fibers_.finish(host_, kAgent, fiber_), HEARTH_OK);
  EXPECT_EQ(fibers_.stash(host_, kAgent, fiber_, slice("{}")), HEARTH_E_GONE);
  EXPECT_EQ(fibers_.finish(host_, kAgent, fiber_), HEARTH_E_GONE);
  EXPECT_EQ(fibers_.fail(host_, kAgent, fiber_, slice("why")), HEARTH_E_GONE);
  EXPECT_EQ(fibers_.retry(host_, kAgent, slice("id")), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(fibers_.retry(host_, kAgent, kNothing), HEARTH_E_NOT_FOUND);
}

TEST_F(AbiFibersTest, WorkCanFailWhateverBytesItsTextHas) {
  for (const hearth_bytes why : {slice("no such page"), slice(kNotUtf8), kNothing}) {
    ASSERT_EQ(start(), HEARTH_OK);
    EXPECT_EQ(fibers_.fail(host_, kAgent, fiber_, why), HEARTH_OK) << last_error();
  }
  EXPECT_TRUE(agent_.work_log().contains("no such page"));
}

TEST_F(AbiFibersTest, TheDeadAreListedInPages) {
  ASSERT_EQ(start(), HEARTH_OK);
  EXPECT_EQ(fibers_.list_dead(host_, kAgent, kNothing, 7, &id_), HEARTH_OK);
  EXPECT_EQ(view(id_), "[]");
  EXPECT_EQ(fibers_.list_dead(host_, kAgent, slice("x"), 7, &id_), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(fibers_.list_dead(host_, kAgent, kNothing, 101, &id_), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.list_dead(host_, kAgent, kNothing, 7, nullptr), HEARTH_E_INVALID);
}

TEST_F(AbiFibersTest, ADeadOneIsListedAndOfferedAgainWhenItIsRetried) {
  ASSERT_EQ(start(), HEARTH_OK);
  EXPECT_EQ(fibers_.retry(host_, kAgent, id_), HEARTH_E_NOT_FOUND) << "it runs";
  agent_.database().begin_write();  // as an earlier instance has left it
  storage::Statement(agent_.database().connection(),
                     "INSERT INTO cf_agents_jobs(kind, state, id, name, created_at, attempts, "
                     "dead, ended_at, keep) VALUES(1, 2, 'd', 'poison', 1, 10, 1, 2, 'dead')")
      .execute();
  ASSERT_EQ(fibers_.list_dead(host_, kAgent, kNothing, 0, &id_), HEARTH_OK) << last_error();
  EXPECT_EQ(text_in(id_, "id"), "d");
  EXPECT_EQ(text_in(id_, "name"), "poison");
  EXPECT_EQ(fibers_.list_dead(host_, kAgent, slice("d"), 1, &id_), HEARTH_OK);
  EXPECT_EQ(view(id_), "[]") << "none is behind it";
  EXPECT_EQ(fibers_.list_dead(host_, kAgent, slice(kNotUtf8), 0, &id_), HEARTH_E_INVALID);
  EXPECT_EQ(fibers_.retry(host_, kAgent, slice("d")), HEARTH_OK) << last_error();
  EXPECT_EQ(fibers_.list_dead(host_, kAgent, kNothing, 0, &id_), HEARTH_OK);
  EXPECT_EQ(view(id_), "[]");
  const auto offered = agent_.work().next(true);
  ASSERT_TRUE(offered);
  EXPECT_EQ(offered->id, "d");
}

TEST_F(AbiFibersTest, BadSlicesAreRefusedBeforeAnythingIsDone) {
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
  EXPECT_FALSE(agent_.has_stored());
}

}  // namespace
}  // namespace hearth::extensions
