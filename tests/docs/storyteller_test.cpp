// The streams of plugin-api/README.md, as printed: a client gets what it has missed.
#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

#include <storyteller.inc>

namespace {

using std::chrono::seconds;

TEST(StorytellerTest, AClientThatComesBackGetsTheRest) {
  hearth::testing::Host host;
  auto agent = host.create<Storyteller>("a");
  const hearth::Json story = agent.call("begin", 5);
  const auto first = agent.connect().start("follow", story, std::uint64_t{0});
  host.advance(seconds(2));
  EXPECT_EQ(first.parts().back(), hearth::Json({{"seq", 2}, {"text", "line 2"}}));
  agent.kill();
  host.advance(seconds(2));  // no client is connected
  const auto rest = agent.connect().start("follow", story, std::uint64_t{2});
  host.advance(seconds(60));
  ASSERT_TRUE(rest.done());
  ASSERT_EQ(rest.parts().size(), 3U);
  for (std::uint64_t seq = 3; seq <= 5; ++seq)
    EXPECT_EQ(rest.parts()[seq - 3].at("text"), "line " + std::to_string(seq));
}

}  // namespace
