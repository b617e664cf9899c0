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
  void on_sweep(SocketTime) override { ++sweeps; }
  void wind_down() override { ++wind_downs; }
  void cut() override { ++cuts; }
  [[nodiscard]] bool comes_back() const override { return is_socket; }
  bool is_socket = false;
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
  std::shared_ptr<CountingSession> add(bool is_socket = false) {
    auto session = std::make_shared<CountingSession>();
    session->is_socket = is_socket;
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
  table_.stop(SocketTime::max(), 100);
  const auto late = add();
  EXPECT_EQ(early->wind_downs, 1);
  EXPECT_EQ(late->wind_downs, 1);
  EXPECT_EQ(early->cuts, 0);
  table_.remove(*early);
  table_.remove(*late);
}

TEST_F(SessionTableTest, StopCutsAtTheDeadline) {
  const auto session = add();
  table_.stop(std::chrono::steady_clock::now(), 100);
  run_until_swept(*session, 1);
  EXPECT_GE(session->cuts, 1);
  table_.remove(*session);
}

TEST_F(SessionTableTest, StopTellsSocketsInSlicesIfTheyAreTooManyForOneMoment) {
  std::vector<std::shared_ptr<CountingSession>> sockets;
  std::vector<std::shared_ptr<CountingSession>> others;
  for (int i = 0; i < 60; ++i) {
    sockets.push_back(add(true));
    others.push_back(add(false));
  }
  const auto told = [](const auto& sessions) {
    int count = 0;
    for (const auto& session : sessions) count += session->wind_downs;
    return count;
  };
  const auto begun = std::chrono::steady_clock::now();
  table_.stop(begun + 1s, 50);
  EXPECT_EQ(told(others), 60);
  EXPECT_EQ(told(sockets), 3) << "one of twenty slices";

  // Meanwhile some sessions end by themselves, and a new one comes: it is told at once, and once.
  std::vector<std::shared_ptr<CountingSession>> staying;
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    if (i % 6 == 0) {
      table_.remove(*sockets[i]);
    } else {
      staying.push_back(sockets[i]);
    }
  }
  const auto late = add(true);
  EXPECT_EQ(late->wind_downs, 1);

  int steps = 0;
  loop_.restart();
  for (int before = told(staying); before < 50;) {
    loop_.run_one();
    const int now = told(staying);
    if (now != before) ++steps;
    before = now;
  }
  EXPECT_GE(steps, 5) << "told in one wave";
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 400ms) << "not spread over half of the time";
  EXPECT_EQ(late->cuts, 0) << "the others were told only after the deadline";
  EXPECT_EQ(late->wind_downs, 1);
  for (const auto& session : staying) {
    EXPECT_EQ(session->wind_downs, 1);
    table_.remove(*session);
  }
  for (const auto& other : others) table_.remove(*other);
  table_.remove(*late);
}

TEST_F(SessionTableTest, StopTellsAFewSocketsAtOnce) {
  std::vector<std::shared_ptr<CountingSession>> sockets;
  for (int i = 0; i < 50; ++i) sockets.push_back(add(true));
  table_.stop(SocketTime::max(), 50);
  for (const auto& socket : sockets) {
    EXPECT_EQ(socket->wind_downs, 1);
    table_.remove(*socket);
  }
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
