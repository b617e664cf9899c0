#include "server/shard_questions.hpp"

#include "server/agent_visits.hpp"
#include "server/one_loop_fixture.hpp"
#include "storage/directory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

namespace hearth::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

class ShardQuestionsTest : public OneLoopTest {
 protected:
  ShardQuestionsTest() { loop_.start(); }
  ~ShardQuestionsTest() override { stop(); }

  // Until `release` is set.
  void hold_the_loop() {
    loop_.post([released = release_.get_future().share()] { released.wait(); });
  }
  // Releases the loop and waits until it has done what it has.
  void settle() {
    release_.set_value();
    ASSERT_TRUE(ask_home(runtime_, key_, minutes(1), [](runtime::Shard&) { return true; }));
  }

  const storage::AgentKey key_{"ChatRoom", "a"};
  std::promise<void> release_;
};

TEST_F(ShardQuestionsTest, AQuestionWhoseWaitIsOverIsNotAskedLater) {
  hold_the_loop();
  const auto is_asked = std::make_shared<std::atomic<bool>>(false);
  EXPECT_FALSE(ask_home(runtime_, key_, milliseconds(1),
                        [is_asked](runtime::Shard&) { return is_asked->exchange(true); }));
  settle();
  EXPECT_FALSE(*is_asked);
}

TEST_F(ShardQuestionsTest, AQuestionThatHasBegunIsWaitedForOnceMore) {
  Questions<bool> questions(milliseconds(1000));
  std::promise<void> begun;
  questions.ask(runtime_, 0, [&begun](runtime::Shard&) {
    begun.set_value();
    std::this_thread::sleep_for(milliseconds(1100));
    return true;
  });
  begun.get_future().wait();
  EXPECT_TRUE(questions.wait());
}

TEST_F(ShardQuestionsTest, ADestructionThatWasRefusedDoesNotTakePlaceLater) {
  storage::Directory directory(data_.directory_path(), data_.directory_vfs());
  directory.record(key_, 100);
  hold_the_loop();
  const auto destroyed = destroy_agent(runtime_, key_, milliseconds(1));
  ASSERT_FALSE(destroyed);
  EXPECT_EQ(destroyed.error().code, Errc::kUnavailable);
  settle();
  EXPECT_TRUE(directory.contains(key_));
  ASSERT_TRUE(destroy_agent(runtime_, key_, minutes(1)));
  EXPECT_FALSE(directory.contains(key_)) << "the test has destroyed nothing";
}

}  // namespace
}  // namespace hearth::server
