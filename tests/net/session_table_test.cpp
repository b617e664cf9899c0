#include "net/session_table.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

namespace hearth::net {
namespace {

using namespace std::chrono_literals;

class CountingSession final : public Session {
 public:
  void on_sweep(SteadyTime) override { ++sweeps; }
  void wind_down() override { ++wind_downs; }
  void cut() override { ++cuts; }
  int sweeps = 0;
  int wind_downs = 0;
  int cuts = 0;
};

class SessionTableTest : public ::testing::Test {
 protected:
  void run_until_swept(const CountingSession& session, int times) {
    loop_.restart();
    while (session.sweeps < times) loop_.run_one();
  }
  std::shared_ptr<CountingSession> add() {
    auto session = std::make_shared<CountingSession>();
    table_.add(session);
    return session;
  }

  asio::io_context loop_{1};
  SessionTable table_{loop_, 1ms};
};

TEST_F(SessionTableTest, SweepsEverySessionAgainAndAgain) {
  const auto first = add();
  const auto second = add();
  run_until_swept(*first, 3);
  EXPECT_GE(second->sweeps, 2);
  table_.remove(*first);
  const int before = first->sweeps;
  run_until_swept(*second, second->sweeps + 2);
  EXPECT_EQ(first->sweeps, before);
  table_.remove(*second);
}

TEST_F(SessionTableTest, LeavesTheLoopAloneWithoutSessions) {
  EXPECT_EQ(loop_.run(), 0U);
  const auto session = add();
  table_.remove(*session);
  loop_.restart();
  loop_.run();  // ends: no timer is left
  EXPECT_EQ(table_.size(), 0U);
}

TEST_F(SessionTableTest, OwnsItsSessions) {
  std::weak_ptr<CountingSession> watched = add();
  ASSERT_FALSE(watched.expired());
  table_.remove(*watched.lock());
  EXPECT_TRUE(watched.expired());
}

TEST_F(SessionTableTest, StopWindsDownWhatIsThereAndWhatComesLater) {
  const auto early = add();
  table_.stop(SteadyTime::max());
  const auto late = add();
  EXPECT_EQ(early->wind_downs, 1);
  EXPECT_EQ(late->wind_downs, 1);
  EXPECT_EQ(early->cuts, 0);
  table_.remove(*early);
  table_.remove(*late);
}

TEST_F(SessionTableTest, StopCutsAtTheDeadline) {
  const auto session = add();
  table_.stop(std::chrono::steady_clock::now());
  run_until_swept(*session, 1);
  EXPECT_GE(session->cuts, 1);
  table_.remove(*session);
}

TEST_F(SessionTableTest, ReportsQuietOnlyWithoutSessionsAndWithoutHandlers) {
  int quiet = 0;
  table_.when_quiet([&] { ++quiet; });
  EXPECT_EQ(quiet, 1) << "nothing was ever there";

  const auto session = add();
  table_.when_quiet([&] { ++quiet; });
  EXPECT_EQ(quiet, 1);
  table_.remove(*session);
  EXPECT_EQ(quiet, 1) << "the timer's handler is still to come";
  loop_.restart();
  loop_.run();
  EXPECT_EQ(quiet, 2);
}

using SessionTableDeathTest = SessionTableTest;

TEST_F(SessionTableDeathTest, MustBeEmptyWhenItIsDestroyed) {
  EXPECT_DEATH(
      {
        SessionTable forgotten(loop_, 1ms);
        forgotten.add(std::make_shared<CountingSession>());
      },
      "destroyed with sessions");
}

}  // namespace
}  // namespace hearth::net
