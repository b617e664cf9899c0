// Requests whose body has not arrived.
#include "runtime/fakes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

namespace hearth::runtime::testing {
namespace {

using namespace std::chrono_literals;

class UnreadBodyTest : public ::testing::Test {
 protected:
  UnreadBodyTest() {
    shard_.script.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind != EventKind::kRequest) return complete(host, event);
      flags_ = event.flags;
      call_ = event.call;
      return {};
    };
  }
  std::shared_ptr<Answer> request() {
    auto answer = std::make_shared<Answer>();
    auto head = std::make_unique<RequestHead>();
    head->body = [](std::uint64_t) { return nullptr; };
    shard_.shard().request(kUsualAgent, "counter", "POST", "", std::move(head),
                           std::make_unique<FakeSink>(answer));
    shard_.settle();
    return answer;
  }

  ShardFixture shard_{[] {
    RuntimeLimits limits;
    limits.call_timeout = 30s;
    return limits;
  }()};
  std::uint32_t flags_ = 0;
  CallId call_ = 0;
};

TEST_F(UnreadBodyTest, OnlyAClassThatReadsBodiesGetsTheRequest) {
  EXPECT_EQ(request()->end, "error unavailable: the class has just changed");
  EXPECT_EQ(call_, 0U);
  shard_.script.reads_bodies = true;
  EXPECT_FALSE(request()->end);
  EXPECT_EQ(flags_, extensions::kUnreadBody);
}

TEST_F(UnreadBodyTest, EachPieceBeginsTheDeadlineAgain) {
  shard_.script.reads_bodies = true;
  const auto answer = request();
  for (int piece = 0; piece < 3; ++piece) {
    shard_.loop.advance(29s);
    EXPECT_FALSE(answer->end);
    shard_.script.host->body_came(call_);
  }
  shard_.loop.advance(30s);
  shard_.settle();
  EXPECT_EQ(answer->end, "error timeout: the agent did not answer in time");
}

}  // namespace
}  // namespace hearth::runtime::testing
