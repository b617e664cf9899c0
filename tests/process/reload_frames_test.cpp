// Frames of clients while their agent is between two versions of its library: they wait, in order
// and within bounds.
//
// The agent leaves the old version when a test lets it: its on_evict waits for a file, with enough
// time for that.
#include "json/json.hpp"
#include "process/versioned_fixture.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

// About how many frames of one connection wait in the server at most. The server does not read
// more.
constexpr int kFewerThanThat = 10;
constexpr int kFarMore = 40;

class ReloadFramesTest : public VersionedTest {
 protected:
  void start_with_gate(const std::string& limits = "") {
    put("classes/versioned.yaml",
        "class: Versioned\nevict_grace: 60s\noptions: {evict_gate: \"" + gate("left") + "\"}\n");
    start("reload: {quiet_time: 50ms}\nlimits: {shutdown_grace: 100ms" + limits + "}\n");
  }
  // Until the live agent is on its way out, where it stays until open("left").
  void begin_leaving_for(const std::string& version) const {
    replace(version);
    server_->wait_for_log("leaving");
  }
  static void send_and_wait_until_read(Client& client, int first, int count) {
    client.send_numbers(first, count);
    client.ping();
    EXPECT_EQ(client.read(), "pong");
  }
  // Answered by the new version, each once, in this order, and nothing else.
  static void expect_numbers(Client& client, int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(client.read(), "2.0.0 " + std::to_string(i));
    client.send("the end");
    EXPECT_EQ(client.read(), "2.0.0 the end");
  }
};

TEST_F(ReloadFramesTest, FramesThatWaitForTheNewVersionAreAnsweredByItInOrder) {
  start_with_gate();
  Client client(*server_, "a", "1.0.0");
  begin_leaving_for("2");
  send_and_wait_until_read(client, 0, kFewerThanThat);
  client.send_numbers(kFewerThanThat, kFarMore);
  open("left");
  expect_numbers(client, kFewerThanThat + kFarMore);
}

TEST_F(ReloadFramesTest, SoAreThoseOfEachOfTwoClients) {
  start_with_gate();
  Client one(*server_, "a", "1.0.0");
  Client two(*server_, "a", "1.0.0");
  begin_leaving_for("2");
  send_and_wait_until_read(one, 0, kFewerThanThat);
  send_and_wait_until_read(two, 0, kFewerThanThat);
  for (int i = 0; i < kFarMore; ++i) {
    one.send_numbers(kFewerThanThat + i, 1);
    two.send_numbers(kFewerThanThat + i, 1);
  }
  open("left");
  expect_numbers(one, kFewerThanThat + kFarMore);
  expect_numbers(two, kFewerThanThat + kFarMore);
}

TEST_F(ReloadFramesTest, CallsAndFramesOfOneClientKeepTheirOrderToo) {
  start_with_gate();
  Client client(*server_, "a", "1.0.0");
  begin_leaving_for("2");
  for (int i = 0; i < kFewerThanThat; ++i) {
    client.begin_as(std::to_string(i), "add");
    client.send(std::to_string(i));
  }
  open("left");
  for (int i = 0; i < kFewerThanThat; ++i) {
    const Json answer = client.answer();
    EXPECT_EQ(answer.at("id"), std::to_string(i));
    EXPECT_EQ(answer.value("result", Json()), i + 1) << dump_json(answer);
    ASSERT_EQ(client.read(), "2.0.0 " + std::to_string(i));
  }
}

// A client that has always some frames on their way.
struct Talker {
  VersionedClient client;
  int sent = 0;
  int read = 0;
  bool has_moved = false;

  void send_some(int count) {
    client.send_numbers(sent, count);
    sent += count;
  }
  // The next answer: by the old version until one came from the new.
  void read_one() {
    const std::string number = std::to_string(read++);
    const std::string answer = client.read();
    has_moved = has_moved || answer == "2.0.0 " + number;
    ASSERT_EQ(answer, (has_moved ? "2.0.0 " : "1.0.0 ") + number);
  }
};

TEST_F(ReloadFramesTest, ClientsThatNeverStopSendingGetEachAnswerOnceAndInOrder) {
  start("reload: {quiet_time: 50ms}\n");
  Client caller(*server_, "a");
  caller.begin("hold", arguments(gate("never")));
  Talker one{Client(*server_, "a")};
  Talker two{Client(*server_, "a")};
  wait_for_attempt(one.client, "hold");
  for (Talker* talker : {&one, &two}) talker->send_some(20);
  replace("2");
  const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
  while (!one.has_moved || !two.has_moved) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    for (Talker* talker : {&one, &two}) {
      ASSERT_NO_FATAL_FAILURE(talker->read_one());
      talker->send_some(1);
    }
  }
  for (Talker* talker : {&one, &two}) {
    while (talker->read < talker->sent) ASSERT_NO_FATAL_FAILURE(talker->read_one());
    talker->client.send("the end");
    EXPECT_EQ(talker->client.read(), "2.0.0 the end");
  }
  EXPECT_EQ(caller.answer().at("success"), false) << "the call that was in progress";
}

TEST_F(ReloadFramesTest, CallsBeyondTheBoundAreRefusedAndOthersAreNotHarmed) {
  start_with_gate(", max_waiting: 5");
  Client client(*server_, "a", "1.0.0");
  Client neighbour(*server_, "a", "1.0.0");
  begin_leaving_for("2");
  for (int i = 1; i <= 8; ++i) client.begin_as(std::to_string(i), "add");
  for (int i = 6; i <= 8; ++i) {
    const Json answer = client.answer();
    EXPECT_EQ(answer.at("id"), std::to_string(i));
    EXPECT_EQ(answer.value("error", ""), "too many requests wait for this agent");
  }
  const Reply refused = request(*server_, "GET", "/agents/versioned/a");
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(contains(refused.head, "Retry-After: "));
  EXPECT_TRUE(contains(refused.body, "too many requests wait for this agent"));
  // Frames of a client that has sent little wait all the same, and other agents go on.
  neighbour.send_numbers(0, kFewerThanThat);
  EXPECT_EQ(Client(*server_, "b").call("version"), "2.0.0");

  open("left");
  for (int i = 1; i <= 5; ++i) {
    const Json answer = client.answer();
    EXPECT_EQ(answer.at("id"), std::to_string(i));
    EXPECT_EQ(answer.value("result", Json()), i) << dump_json(answer);
  }
  EXPECT_EQ(client.call("add"), 6) << "what was refused has not run";
  expect_numbers(neighbour, kFewerThanThat);
}

TEST_F(ReloadFramesTest, AClientThatSendsTooMuchIsNotReadFromUntilItsAgentIsBack) {
  start_with_gate();
  Client client(*server_, "a", "1.0.0");
  Client neighbour(*server_, "a", "1.0.0");
  begin_leaving_for("2");
  client.send_numbers(0, kFarMore);
  client.ping();
  // A hundred turns of the loop that both are on: a server that still read would have reached the
  // ping.
  for (int i = 0; i < 100; ++i) {
    neighbour.ping();
    ASSERT_EQ(neighbour.read(), "pong");
  }
  neighbour.send_numbers(0, kFewerThanThat);
  open("left");
  expect_numbers(neighbour, kFewerThanThat);
  std::vector<std::string> answers;
  for (int i = 0; i < kFarMore + 1; ++i) answers.push_back(client.read());
  EXPECT_NE(answers.front(), "pong") << "all of it had been read";
  EXPECT_EQ(std::erase(answers, "pong"), 1U);
  for (int i = 0; i < kFarMore; ++i)
    EXPECT_EQ(answers[static_cast<std::size_t>(i)], "2.0.0 " + std::to_string(i));
}

}  // namespace
}  // namespace hearth::testing
