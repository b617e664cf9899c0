// Every library as it is built: loads, serves an agent, and leaves the process when it is unloaded.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

namespace {

using hearth::Json;
using hearth::testing::AgentHandle;
using hearth::testing::Host;

bool mapped(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(path)) return true;
  }
  return false;
}

std::vector<std::string> lines(const char* list) {
  std::vector<std::string> all;
  std::string rest = list;
  for (std::size_t at = 0; (at = rest.find('|')) != std::string::npos; rest.erase(0, at + 1))
    all.push_back(rest.substr(0, at));
  if (!rest.empty()) all.push_back(rest);
  return all;
}

class LibraryTest : public ::testing::TestWithParam<std::string> {};

TEST_P(LibraryTest, ServesAnAgentAndUnloadsCompletely) {
  const std::string path = GetParam();
  {
    Host host;
    auto library = host.load(path);
    ASSERT_TRUE(mapped(path));
    {
      Host inner;  // a second host in the process must not disturb the library
    }
    for (std::uint32_t i = 0; i < library.plugin().class_count; ++i) {
      const hearth_class& definition = *library.plugin().get_class(i);
      auto agent = host.create(definition, "a");
      EXPECT_EQ(agent.start("no such method").error(), "Method no such method does not exist");
      auto client = agent.connect();
      client.send("hello");
      client.close();
      agent.evict();
    }
    EXPECT_EQ(library.plugin().get_class(library.plugin().class_count), nullptr);
    static_cast<void>(library.unload());
  }
  EXPECT_FALSE(mapped(path));
}

INSTANTIATE_TEST_SUITE_P(
    All, LibraryTest, ::testing::ValuesIn(lines(HEARTH_TEST_LIBRARIES)), [](const auto& one) {
      std::string name = one.param.substr(one.param.rfind('/', one.param.rfind('/') - 1) + 1);
      for (char& c : name)
        c = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
      return name;
    });

class ProbeLibraryTest : public ::testing::TestWithParam<std::string> {};

// The same coroutines from each compiler.
TEST_P(ProbeLibraryTest, CoroutinesWaitAndAreDestroyed) {
  Host host;
  auto library = host.load(GetParam());
  {
    auto agent = host.create(library.find_class("ProbeAgent"), "p");
    auto slow = agent.start("slow", 50);
    auto stream = agent.start("stream_fail", 3);
    host.advance(std::chrono::milliseconds(50));
    EXPECT_EQ(slow.value(), 50);
    EXPECT_EQ(stream.parts().size(), 3U);
    EXPECT_EQ(stream.error(), "stream failed as asked");
    EXPECT_EQ(agent.call("offload_add", 1, 2), 3);
    for (int i = 0; i < 400; ++i) {
      static_cast<void>(agent.start("never"));
      static_cast<void>(agent.start("slow", 1000));
    }
    agent.evict();
    EXPECT_EQ(agent.call("add", 1, 2), 3);
    agent.evict();
  }
  EXPECT_TRUE(library.unload());
  EXPECT_FALSE(mapped(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, ProbeLibraryTest, ::testing::ValuesIn(lines(HEARTH_PROBE_LIBRARIES)),
                         [](const auto& one) { return one.index == 0 ? "Own" : "Gcc"; });

// Durable work from each compiler, on through an eviction and a kill.
class ResearchLibraryTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ResearchLibraryTest, ManagedWorkIsRecoveredAndWaitedFor) {
  Host host;
  auto library = host.load(GetParam());
  {
    auto agent = host.create(library.find_class("Research"), "r");
    const Json run = agent.call("start_once", "key", "moss", 6, 100);
    agent.call("start", "ferns", 6, 100);
    host.advance(std::chrono::milliseconds(150));
    auto cut_short = agent.start("result", "key");
    agent.evict();
    agent.wake();
    host.advance(std::chrono::milliseconds(150));
    agent.kill();
    host.advance(std::chrono::milliseconds(0));
    auto result = agent.start("result", "key");
    host.advance(std::chrono::milliseconds(600));
    EXPECT_FALSE(cut_short.done());
    EXPECT_EQ(result.value().at("recoveries"), 2);
    EXPECT_EQ(agent.call("steps", run), Json({1, 2, 3, 4, 5, 6}));
    EXPECT_TRUE(agent.fibers().empty());
    agent.evict();
  }
  EXPECT_TRUE(library.unload());
  EXPECT_FALSE(mapped(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, ResearchLibraryTest,
                         ::testing::ValuesIn(lines(HEARTH_RESEARCH_LIBRARIES)),
                         [](const auto& one) { return one.index == 0 ? "Own" : "Gcc"; });

class WorkerCTest : public ::testing::Test {
 protected:
  Host host_;
  hearth::testing::Library library_ = host_.load(HEARTH_WORKER_C);
  AgentHandle agent_ = host_.create(library_.find_class("WorkerC"), "w");
  void TearDown() override { agent_.evict(); }
  Json ticks() { return agent_.call("status").at("ticks"); }
};

TEST_F(WorkerCTest, TicksComeFromASchedule) {
  agent_.call("tick_in", 500);
  agent_.kill();
  host_.advance(std::chrono::milliseconds(500));
  EXPECT_EQ(ticks(), Json({"schedule"}));
  EXPECT_EQ(agent_.schedules(), Json::array());
  EXPECT_EQ(agent_.start("tick_in", -5).status(), HEARTH_E_INVALID);
  EXPECT_EQ(agent_.start("tick_in", "x").status(), HEARTH_E_INVALID);
}

TEST_F(WorkerCTest, TicksComeFromTheQueue) {
  agent_.call("tick_next");
  EXPECT_EQ(ticks(), Json({"queue"}));
  EXPECT_EQ(agent_.queue(), Json::array());
}

class EchoCTest : public ::testing::Test {
 protected:
  Host host_;
  hearth::testing::Library library_ = host_.load(HEARTH_ECHO_C);
  AgentHandle agent_ = host_.create(library_.find_class("EchoC"), "e");
  void TearDown() override { agent_.evict(); }
};

TEST_F(EchoCTest, EchoesFramesAndCountsThem) {
  auto client = agent_.connect();
  EXPECT_EQ(client.state(), Json({{"echoed", 0}}));
  client.send("hello");
  client.send_binary(std::string("\0\x01", 2));
  const auto frames = client.take_received();
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0], "hello");
  EXPECT_EQ(frames[1].payload, std::string("\0\x01", 2));
  EXPECT_EQ(client.state(), Json({{"echoed", 2}}));
  agent_.evict();
  client.send("again");
  EXPECT_EQ(client.state(), Json({{"echoed", 3}}));
}

TEST_F(EchoCTest, ReversesPlainTextAndRefusesTheRest) {
  EXPECT_EQ(agent_.call("reverse", "stressed"), "desserts");
  EXPECT_EQ(agent_.call("reverse", ""), "");
  for (const Json& bad :
       {Json(5), Json("a\"b"), Json("a\\b"), Json("é"), Json(nullptr), Json::array()}) {
    EXPECT_EQ(agent_.start("reverse", bad).status(), HEARTH_E_INVALID) << hearth::to_text(bad);
  }
  EXPECT_EQ(agent_.start_raw("reverse", "[]").status(), HEARTH_E_INVALID);
  EXPECT_EQ(agent_.start_raw("reverse", "[\"a\",\"b\"]").status(), HEARTH_E_INVALID);
}

TEST_F(EchoCTest, AStateThatItDoesNotUnderstandCountsAsNothing) {
  auto client = agent_.connect();
  client.set_state("garbage");
  client.send("one");
  EXPECT_EQ(client.state(), Json({{"echoed", 1}}));
  client.set_state(std::string(1000, 'x'));
  client.send("one");
  EXPECT_EQ(client.state(), Json({{"echoed", 1}}));
}

}  // namespace
