// Work that a turn leaves for after its end.
#include "one_agent.hpp"

#include <hearth/agent.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace after_turn_tests {
namespace {

using hearth::Json;
using hearth::Task;
using std::chrono::milliseconds;

class Tidy : public hearth::Agent {
 public:
  Tidy() { sql("CREATE TABLE IF NOT EXISTS done (what TEXT)"); }
  static void methods(hearth::Methods<Tidy>& m) {
    m.add("answer", &Tidy::answer);
    m.add("slow", &Tidy::slow);
    m.add("fails", &Tidy::fails);
    m.add("greet", &Tidy::greet);
    m.add("done", &Tidy::done);
  }
  int answer(const std::string& what) {
    after_turn([this, what] { note(what); });
    note("answered");
    return 5;
  }
  int slow() {
    after_turn([this]() -> Task<void> {
      co_await sleep(milliseconds(10));
      note("slow");
    });
    return 6;
  }
  void fails() {
    after_turn([] { throw std::runtime_error("too late to tell"); });
    throw std::runtime_error("the event itself");
  }
  void greet() {
    after_turn([this] { broadcast(caller() ? "to " + caller()->id() : "to nobody"); });
  }
  std::vector<std::string> done() {
    return sql("SELECT what FROM done ORDER BY rowid").rows<std::string>();
  }

 private:
  void note(const std::string& what) { sql("INSERT INTO done VALUES (?)", what); }
};

class AfterTurnTest : public OneAgent<Tidy> {};

TEST_F(AfterTurnTest, ComesWhenTheEventHasBeenAnswered) {
  EXPECT_EQ(agent_.call("answer", "swept"), 5);
  EXPECT_EQ(agent_.call("done"), Json({"answered", "swept"}));
  EXPECT_EQ(agent_.keep_alive(), 0U);
}

TEST_F(AfterTurnTest, MayWaitAndKeepsTheAgentUntilItHasEnded) {
  EXPECT_EQ(agent_.call("slow"), 6);
  EXPECT_EQ(agent_.keep_alive(), 1U);
  host_.advance(milliseconds(10));
  EXPECT_EQ(agent_.call("done"), Json({"slow"}));
  EXPECT_EQ(agent_.keep_alive(), 0U);
}

TEST_F(AfterTurnTest, ItsFailureGoesToTheLogAndThatOfTheEventDoesNotStopIt) {
  EXPECT_EQ(agent_.start("fails").error(), "the event itself");
  host_.advance(milliseconds(0));
  EXPECT_EQ(host_.log().back(), "error after_turn() failed: too late to tell");
}

TEST_F(AfterTurnTest, KnowsWhoseEventItBelongsTo) {
  auto client = agent_.connect("", "ada");
  client.call("greet");
  host_.advance(milliseconds(0));
  EXPECT_EQ(client.received().back(), "to ada");
  EXPECT_EQ(client.received().size(), 1U) << "asking takes nothing away";
  EXPECT_EQ(client.take_received().size(), 1U);
  EXPECT_TRUE(client.received().empty());
}

TEST_F(AfterTurnTest, AnEvictionTakesItAlong) {
  agent_.call("slow");
  agent_.evict();
  host_.advance(milliseconds(20));
  EXPECT_EQ(agent_.call("done"), Json::array());
}

}  // namespace
}  // namespace after_turn_tests
