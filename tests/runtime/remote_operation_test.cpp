// Operations of a live agent that run outside of it: when they start, and how their parts arrive.
#include "extensions/remote_operation.hpp"

#include "runtime/fakes.hpp"
#include "support/fake_sync_calls.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime::testing {
namespace {

constexpr std::uint32_t kFetch = 4;

// What was asked of a remote operation, which outlives it.
struct Asked {
  extensions::RemoteListener* listener = nullptr;  // set by start(), null once it is destroyed
  std::uint64_t credit = 0;
  bool cannot_keep = false;  // the database of the listener fails
};

class FakeRemote final : public extensions::RemoteOperation {
 public:
  explicit FakeRemote(std::shared_ptr<Asked> asked) : asked_(std::move(asked)) {}
  ~FakeRemote() override { asked_->listener = nullptr; }
  void start(extensions::RemoteListener& listener) override { asked_->listener = &listener; }
  void credit(std::uint64_t bytes) override { asked_->credit += bytes; }
  void telling(const Result<std::string>&, bool, std::uint32_t) override {
    if (asked_->cannot_keep) throw StorageError("for the test");
  }

 private:
  std::shared_ptr<Asked> asked_;
};

class RemoteOperationTest : public ::testing::Test {
 protected:
  explicit RemoteOperationTest(ClassSettings settings = {})
      : fixture_({}, std::move(settings), &calls_) {
    fixture_.script.on_event =
        do_on(EventKind::kMessage, [this](HostCalls& host, const AgentEvent& event) {
          if (event.body == "write") (void)host.set_state(0, "1");
          if (event.body == "fetch") {
            const auto id = host.submit(kFetch, std::make_unique<FakeRemote>(asked_), 7);
            EXPECT_TRUE(id);
            id_ = id ? *id : 0;
          }
          if (event.body == "write and fetch") {
            (void)host.set_state(0, "2");
            EXPECT_TRUE(host.submit(kFetch, std::make_unique<FakeRemote>(asked_), 7));
            EXPECT_EQ(asked_->listener, nullptr) << "before the commit";
          }
          if (event.body == "cancel") EXPECT_TRUE(host.cancel(id_));
          if (event.body == "credit") EXPECT_TRUE(host.credit(id_, 40));
          if (event.body == "leave") (void)host.evict();
        });
    fixture_.script.on_result = [this](HostCalls&, const OperationResult& result) {
      EXPECT_EQ(result.operation, kFetch);
      EXPECT_EQ(result.token, 7U);
      told_.push_back((result.is_final ? "end " : "part ") + std::to_string(result.flags) + " " +
                      (result.outcome ? std::string(*result.outcome)
                                      : "failed: " + result.outcome.error().message));
    };
    client_ = fixture_.join();
  }
  void say(const std::string& text) { fixture_.say(client_, text); }
  void fetch() {
    say("fetch");
    ASSERT_NE(asked_->listener, nullptr);
  }

  std::shared_ptr<Asked> asked_ = std::make_shared<Asked>();
  OperationId id_ = 0;
  std::vector<std::string> told_;
  hearth::testing::FakeSyncCalls calls_;
  ShardFixture fixture_;
  ShardFixture::Client client_;
};

class RemoteOperationPowerTest : public RemoteOperationTest {
 protected:
  RemoteOperationPowerTest() : RemoteOperationTest(power()) {}
};

TEST_F(RemoteOperationTest, PartsComeInOrderAndTheEndIsTheLast) {
  ASSERT_NO_FATAL_FAILURE(fetch());
  asked_->listener->part("head", 0x100);
  asked_->listener->part("a", 0);
  say("credit");
  EXPECT_EQ(asked_->credit, 40U);
  asked_->listener->end(std::string("rest"), 0x200);
  EXPECT_EQ(told_, (std::vector<std::string>{"part 256 head", "part 0 a", "end 512 rest"}));
  EXPECT_EQ(asked_->listener, nullptr) << "it is over";
}

TEST_F(RemoteOperationTest, AFailureHasItsTextAndItsFlags) {
  ASSERT_NO_FATAL_FAILURE(fetch());
  asked_->listener->end(Error{Errc::kTimeout, "too slow"}, 0x30000);
  EXPECT_EQ(told_, std::vector<std::string>{"end 196608 failed: too slow"});
}

TEST_F(RemoteOperationTest, WhatCannotBeKeptIsNotToldAndTheAgentIsEvicted) {
  ASSERT_NO_FATAL_FAILURE(fetch());
  asked_->cannot_keep = true;
  asked_->listener->part("a", 0);
  EXPECT_EQ(told_, std::vector<std::string>{});
  fixture_.settle();
  EXPECT_EQ(fixture_.script.alive, 0);
  EXPECT_EQ(asked_->listener, nullptr) << "it is given up";
}

TEST_F(RemoteOperationTest, ItStartsWithTheCommitOfItsTurn) {
  say("write and fetch");
  EXPECT_NE(asked_->listener, nullptr);
}

TEST_F(RemoteOperationPowerTest, WithPowerItStartsBehindTheSync) {
  calls_.hold();
  say("write and fetch");
  calls_.wait_until_somebody_waits();
  fixture_.settle();
  EXPECT_EQ(asked_->listener, nullptr);
  calls_.let_go();
  EXPECT_TRUE(fixture_.loop.settle_until([this] { return asked_->listener != nullptr; }));
}

TEST_F(RemoteOperationPowerTest, OneThatIsCancelledBeforeItsTurnIsDurableNeverStarts) {
  calls_.hold();
  say("write");
  calls_.wait_until_somebody_waits();
  say("fetch");
  const std::weak_ptr<Asked> asked = asked_;
  say("cancel");
  EXPECT_EQ(asked.use_count(), 1) << "the operation is gone";
  calls_.let_go();
  const auto answered = [this] { return !client_.sight->empty(); };
  EXPECT_TRUE(fixture_.loop.settle_until(answered));
  EXPECT_EQ(asked_->listener, nullptr);
}

TEST_F(RemoteOperationTest, AnEvictionGivesUpOnIt) {
  ASSERT_NO_FATAL_FAILURE(fetch());
  say("leave");
  EXPECT_EQ(asked_->listener, nullptr);
  EXPECT_TRUE(told_.empty());
}

TEST_F(RemoteOperationTest, AnAgentWithOneIsNotIdle) {
  ASSERT_NO_FATAL_FAILURE(fetch());
  fixture_.loop.advance(std::chrono::hours(1));
  EXPECT_EQ(fixture_.shard().counts().live, 1U);
  ASSERT_NE(asked_->listener, nullptr);
  asked_->listener->end(std::string(), 0);
  fixture_.loop.advance(std::chrono::hours(1));
  EXPECT_EQ(fixture_.shard().counts().live, 0U);
}

}  // namespace
}  // namespace hearth::runtime::testing
