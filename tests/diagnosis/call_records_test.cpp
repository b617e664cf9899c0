#include "diagnosis/call_records.hpp"

#include "base/sha256.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>

namespace hearth::diagnosis {
namespace {

class CallRecordsTest : public ::testing::Test {
 protected:
  // What runs now of our owner, on any thread.
  [[nodiscard]] std::vector<std::string> seen() const {
    std::vector<std::string> calls;
    for_each_call([this, &calls](const RunningCall& call) {
      if (call.owner == &owner_)
        calls.push_back(std::string(call.call) + " " + std::string(call.agent()));
    });
    return calls;
  }

  const CallOwner owner_{"/plugins/a.so", "0123", 7, "Room"};
};

TEST_F(CallRecordsTest, ACallIsSeenByItsOwnThreadAndByOthersUntilItEnds) {
  RunningCall call;
  EXPECT_FALSE(find_running_call(call));
  {
    const auto before = call_clock();
    const CallScope scope(owner_, "message", AgentLabel("lobby"));
    ASSERT_TRUE(find_running_call(call));
    EXPECT_EQ(call.owner, &owner_);
    EXPECT_EQ(call.call, "message");
    EXPECT_EQ(call.agent(), "lobby");
    EXPECT_GE(call.since, before);
    std::vector<std::string> others;
    std::thread([&] { others = seen(); }).join();
    EXPECT_EQ(others, std::vector<std::string>{"message lobby"});
  }
  EXPECT_FALSE(find_running_call(call));
  EXPECT_TRUE(seen().empty());
}

TEST_F(CallRecordsTest, EachThreadHasItsOwnAndNumbersItsCalls) {
  const CallScope mine(owner_, "create", AgentLabel("a"));
  RunningCall here;
  ASSERT_TRUE(find_running_call(here));
  std::thread([this, &here] {
    RunningCall there;
    EXPECT_FALSE(find_running_call(there));
    std::uint64_t last = 0;
    for (int i = 0; i < 2; ++i) {
      const CallScope scope(owner_, "offload", AgentLabel());
      ASSERT_TRUE(find_running_call(there));
      EXPECT_NE(there.thread, here.thread);
      EXPECT_NE(there.number, last);
      EXPECT_EQ(there.agent(), "");
      last = there.number;
    }
  }).join();
}

TEST_F(CallRecordsTest, OfACallInsideACallTheOuterOneIsSeen) {
  const CallScope outer(owner_, "message", AgentLabel("a"));
  {
    const CallScope inner(owner_, "destroy", AgentLabel("b"));
  }
  EXPECT_EQ(seen(), std::vector<std::string>{"message a"});
}

TEST_F(CallRecordsTest, AMethodIsSeenAndTheNextCallHasNothingOfIt) {
  RunningCall call;
  for (const std::string method : {"a_rather_long_method", "exactly8", "m", ""}) {
    const CallScope scope(owner_, "call", AgentLabel("lobby"), AgentLabel(method));
    ASSERT_TRUE(find_running_call(call));
    EXPECT_EQ(call.method(), method);
    EXPECT_EQ(call.agent(), "lobby");
  }
}

TEST_F(CallRecordsTest, TheWorkThatRunsIsSeenAndTheNextCallHasNothingOfIt) {
  RunningCall call;
  const auto seen_work = [&call] {
    EXPECT_TRUE(find_running_call(call));
    return call.work;
  };
  const std::optional<WorkMark> unknown;
  {
    CallScope scope(owner_, "on_result", AgentLabel("lobby"));
    EXPECT_EQ(seen_work(), unknown);
    for (const WorkMark work : {WorkMark{7}, WorkMark{3, 5}, WorkMark(), WorkMark{1}}) {
      scope.works_for(work);
      EXPECT_EQ(seen_work(), work);
    }
    CallScope inner(owner_, "on_result", AgentLabel("other"));
    inner.works_for(WorkMark{9});
    EXPECT_EQ(seen_work(), WorkMark{1}) << "of a call inside a call the outer one is seen";
  }
  {
    const CallScope scope(owner_, "on_result", AgentLabel("lobby"));
    EXPECT_EQ(seen_work(), unknown);
  }
  const CallScope scope(owner_, "fiber_recovered", AgentLabel("lobby"), {}, WorkMark{3});
  EXPECT_EQ(seen_work(), WorkMark{3});
}

TEST_F(CallRecordsTest, ALongNameIsCutBetweenCharacters) {
  const std::string name = std::string(63, 'x') + "\u00e9" + "z";
  const CallScope scope(owner_, "message", AgentLabel(name));
  RunningCall call;
  ASSERT_TRUE(find_running_call(call));
  EXPECT_EQ(call.agent(), std::string(63, 'x'));
}

TEST_F(CallRecordsTest, AnAgentIsToldFromThoseWhoseNamesBeginAsItsOwn) {
  const std::string name(100, 'x');
  RunningCall call;
  {
    const CallScope scope(owner_, "message", AgentLabel::with_digest(name));
    ASSERT_TRUE(find_running_call(call));
    EXPECT_EQ(call.agent(), std::string(64, 'x'));
    EXPECT_EQ(call.agent_digest, sha256_prefix(name));
  }
  const CallScope scope(owner_, "message", AgentLabel(name));
  ASSERT_TRUE(find_running_call(call));
  EXPECT_EQ(call.agent_digest, 0U) << "the next call has nothing of it";
}

TEST_F(CallRecordsTest, ThreadsThatEndGiveTheirRecordsBack) {
  // Many more than there are records.
  for (int i = 0; i < 2000; ++i) {
    std::thread([this] {
      const CallScope scope(owner_, "message", AgentLabel("a"));
      RunningCall call;
      ASSERT_TRUE(find_running_call(call));
    }).join();
  }
}

TEST_F(CallRecordsTest, AThreadThatHasCalledHasAStackForSignals) {
  std::thread([this] {
    {
      const CallScope scope(owner_, "message", AgentLabel("a"));
    }
    stack_t now{};
    ::sigaltstack(nullptr, &now);
    EXPECT_EQ(now.ss_flags & SS_DISABLE, 0);
    EXPECT_GE(now.ss_size, std::size_t{32} << 10);
  }).join();
}

TEST_F(CallRecordsTest, WhoLooksNeverSeesHalfOfACall) {
  // The label and the name of the call always belong together, and the owner lives.
  std::atomic<bool> over = false;
  std::latch begun(1);
  std::thread caller([&] {
    const AgentLabel first(std::string(64, 'a'));
    const AgentLabel second(std::string(64, 'b'));
    begun.count_down();
    while (!over) {
      const CallOwner passing("/plugins/b.so", "4567", 1, "Passing");
      {
        const CallScope scope(passing, "aa", first);
      }
      {
        const CallScope scope(passing, "bbb", second);
      }
    }
  });
  begun.wait();
  int looks = 0;
  for (int i = 0; i < 20'000 || looks == 0; ++i) {
    for_each_call([&looks](const RunningCall& call) {
      if (call.owner->agent_class != "Passing") return;
      ++looks;
      ASSERT_EQ(call.agent(), std::string(64, call.call == "aa" ? 'a' : 'b'));
    });
  }
  over = true;
  caller.join();
}

}  // namespace
}  // namespace hearth::diagnosis
