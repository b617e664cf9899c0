#include "runtime/agent_operations.hpp"

#include "runtime/fakes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime::testing {
namespace {

using std::chrono::milliseconds;

// What became of an operation outside, which outlives it.
struct Outside {
  extensions::RemoteListener* listener = nullptr;  // from start() on
  std::uint64_t credit = 0;
  bool is_over = false;
  const std::vector<std::string>* told = nullptr;
  std::vector<std::string> kept{};  // what it was asked to keep, and how much was told before
};

class OutsideOperation final : public extensions::RemoteOperation {
 public:
  explicit OutsideOperation(Outside& outside) : outside_(outside) {}
  ~OutsideOperation() override { outside_.is_over = true; }
  void start(extensions::RemoteListener& listener) override { outside_.listener = &listener; }
  void credit(std::uint64_t bytes) override { outside_.credit += bytes; }
  void telling(const Result<std::string>& outcome, bool is_end, std::uint32_t /*flags*/) override {
    outside_.kept.push_back((is_end ? "end " : "part ") +
                            (outcome ? *outcome : outcome.error().message) + " after " +
                            std::to_string(outside_.told->size()));
  }

 private:
  Outside& outside_;
};

class WaitingSink final : public CallSink {
 public:
  [[nodiscard]] bool abandoned() const override { return is_abandoned; }
  void part(const ResponseHead& /*head*/, std::string_view /*body*/) override {}
  void when_drained(std::function<void()> notice) override { drained = std::move(notice); }
  void finish(const ResponseHead& /*head*/, const Result<std::string_view>& /*result*/) override {}

  bool is_abandoned = false;
  std::function<void()> drained;
};

class WaitingPort final : public ConnectionPort {
 public:
  void send(std::string_view /*payload*/, FrameKind /*kind*/) override {}
  void send_handshake(const Handshake& /*handshake*/) override {}
  void close(std::uint16_t /*code*/, std::string_view /*reason*/) override {}
  void set_reading(bool /*reading*/) override {}
  void when_drained(std::function<void()> notice) override { drained = std::move(notice); }
  [[nodiscard]] bool is_open() const override { return open; }

  bool open = true;
  std::function<void()> drained;
};

// An agent that has written, or not, and whose outbox opens with commit().
class AgentOperationsTest : public ::testing::Test, protected EffectPort {
 protected:
  ~AgentOperationsTest() override { outbox_.discard_all(); }

  // EffectPort
  void apply(Effect& effect) override {
    const auto* const job = std::get_if<OffloadEffect>(&effect);
    if (job != nullptr && !operations_.let_out(*job))
      told_.push_back("drop " + std::to_string(job->job));
    if (const auto* drain = std::get_if<DrainEffect>(&effect)) operations_.let_out(*drain);
    if (const auto* remote = std::get_if<RemoteEffect>(&effect)) operations_.let_out(*remote);
  }
  void discard(Effect& /*effect*/) override {}

  void commit() {
    dirty_ = false;
    (void)outbox_.committed(true);
  }

  using Told = std::vector<std::string>;
  Told told() {
    loop_.settle();
    loop_.settle();  // what the end of a turn of the loop has added
    return std::exchange(told_, {});
  }
  std::unique_ptr<OutsideOperation> outside_operation() {
    return std::make_unique<OutsideOperation>(outside_);
  }

  AgentOperations::Parts parts() {
    return {.loop = loop_,
            .outbox = outbox_,
            .connections = connections_,
            .loan = loan_,
            .run_offloaded =
                [this](const OffloadEffect& job, std::function<void(Result<void>)> done) {
                  if (!is_full_) jobs_.emplace_back(job, std::move(done));
                  return !is_full_;
                },
            .tell = [this](const OperationNews& news) { hear(news); }};
  }
  void hear(const OperationNews& news) {
    if (news.remote != nullptr && news.notice.empty())
      news.remote->telling(news.outcome, news.is_final, news.flags);
    told_.push_back((news.notice.empty()
                         ? (news.is_final ? "end " : "part ") + std::to_string(news.of.token) +
                               " of " + std::to_string(news.of.call)
                         : "notice " + news.notice) +
                    ": " + (news.outcome ? *news.outcome : news.outcome.error().message));
  }
  WaitingPort* connect() {
    auto port = std::make_unique<WaitingPort>();
    WaitingPort* const its_port = port.get();
    client_ = connections_.add(nullptr, {}, std::move(port)).id;
    return its_port;
  }

  const AgentOperations::Submitted kSubmitted{3, 7, 9};

  ManualLoop loop_;
  ClientMemory memory_{std::size_t{1} << 20};
  Outbox outbox_{*this, [this] { return dirty_; }, false, memory_};
  Metrics metrics_;
  hearth::testing::RecordingLogger logger_;
  Connections connections_{{metrics_.gauge("clients", "Clients.", {}),
                            metrics_.counter("dropped_total", "Clients.", {}), logger_, memory_}};
  Loan loan_;
  AgentOperations operations_{parts()};
  ConnectionId client_ = 0;
  WaitingPort* const port_ = connect();
  bool dirty_ = false, is_full_ = false;
  Told told_;
  std::vector<std::pair<OffloadEffect, std::function<void(Result<void>)>>> jobs_;
  Outside outside_{.told = &told_};
};

TEST_F(AgentOperationsTest, P3_ASleepEndsLaterAlsoOneOfNoTime) {
  (void)operations_.sleep(kSubmitted, milliseconds(0));
  EXPECT_EQ(told_, Told{});
  EXPECT_EQ(told(), Told{"end 7 of 9: "});
  (void)operations_.sleep(kSubmitted, milliseconds(50));
  loop_.advance(milliseconds(49));
  EXPECT_EQ(told(), Told{});
  loop_.advance(milliseconds(1));
  EXPECT_EQ(told(), Told{"end 7 of 9: "});
  EXPECT_TRUE(operations_.empty());
}

TEST_F(AgentOperationsTest, P1_WhatReachesTheOutsideLeavesWithTheCommit) {
  dirty_ = true;
  ASSERT_TRUE(operations_.run_offloaded(kSubmitted, 1, false));
  (void)operations_.start(kSubmitted, outside_operation());
  EXPECT_TRUE(jobs_.empty());
  EXPECT_EQ(outside_.listener, nullptr);
  ASSERT_TRUE(operations_.run_offloaded(kSubmitted, 2, true));
  ASSERT_EQ(jobs_.size(), 1U) << "at once";
  commit();
  EXPECT_EQ(jobs_.size(), 2U);
  EXPECT_NE(outside_.listener, nullptr);
}

TEST_F(AgentOperationsTest, AJobKeepsWhoseWorkHasSubmittedIt) {
  auto submitted = kSubmitted;
  for (const bool at_once : {true, false}) {
    dirty_ = true;
    submitted.work = WorkMark{at_once ? 5 : 6};
    ASSERT_TRUE(operations_.run_offloaded(submitted, 1, at_once));
    commit();
    EXPECT_EQ(jobs_.back().first.work, submitted.work);
  }
  EXPECT_EQ(jobs_.size(), 2U);
}

TEST_F(AgentOperationsTest, AJobForWhichThereIsNoRoomIsRefusedOrItsWaiterIsTold) {
  is_full_ = true;
  const auto refused = operations_.run_offloaded(kSubmitted, 1, false);
  ASSERT_TRUE(refused.has_error());
  EXPECT_EQ(refused.error().code, Errc::kLimitExceeded);
  EXPECT_TRUE(operations_.empty());
  dirty_ = true;
  ASSERT_TRUE(operations_.run_offloaded(kSubmitted, 2, false));
  commit();
  EXPECT_EQ(told(), (Told{"drop 2", "end 7 of 9: too many jobs wait"}));
}

TEST_F(AgentOperationsTest, ADrainEndsWhenItsClientHasTakenAllOrHasLeft) {
  const auto sink = std::make_shared<WaitingSink>();
  (void)operations_.drain(kSubmitted, sink, client_);
  EXPECT_EQ(told(), Told{});
  sink->drained();
  EXPECT_EQ(told(), Told{"end 7 of 9: "});
  (void)operations_.drain(kSubmitted, sink, client_ + 1);
  EXPECT_EQ(told(), Told{"end 7 of 9: the client has left"});
  sink->is_abandoned = true;
  (void)operations_.drain(kSubmitted, sink, 0);
  EXPECT_EQ(told(), Told{"end 7 of 9: the client has left"});
}

TEST_F(AgentOperationsTest, ADrainOfAClientWaitsBehindItsFramesAndEndsWithIt) {
  dirty_ = true;
  (void)operations_.drain(kSubmitted, nullptr, client_);
  EXPECT_FALSE(port_->drained) << "the frames have not left";
  commit();
  EXPECT_EQ(told(), Told{});
  port_->drained();
  EXPECT_EQ(told_, Told{}) << "not inside the port's call";
  EXPECT_EQ(told(), Told{"end 7 of 9: "});
  (void)operations_.drain(kSubmitted, nullptr, client_);
  port_->open = false;
  port_->drained();
  EXPECT_EQ(told(), Told{"end 7 of 9: the client has left"});
  port_->drained = nullptr;
  for (const ConnectionId closed : {client_, client_ + 1}) {
    (void)operations_.drain(kSubmitted, nullptr, closed);
    EXPECT_EQ(told(), Told{"end 7 of 9: the client has left"});
  }
  EXPECT_FALSE(port_->drained);
}

TEST_F(AgentOperationsTest, ADrainOfTheTurnWaitsForTheTurnsEnd) {
  (void)operations_.drain_turn(kSubmitted);
  EXPECT_EQ(told(), Told{});
  operations_.end_turn();
  EXPECT_EQ(told(), Told{"end 7 of 9: "});
}

TEST_F(AgentOperationsTest, P2_PartsComeBeforeTheOneEnd) {
  const OperationId id = operations_.start(kSubmitted, outside_operation());
  ASSERT_TRUE(operations_.credit(id, 40));
  EXPECT_EQ(outside_.credit, 40U);
  outside_.listener->part("a", 0);
  outside_.listener->end(Error{Errc::kTimeout, "too slow"}, 0);
  EXPECT_EQ(told(), (Told{"part 7 of 9: a", "end 7 of 9: too slow"}));
  EXPECT_TRUE(outside_.is_over);
  EXPECT_EQ(operations_.credit(id, 1).error().code, Errc::kNotFound);
}

TEST_F(AgentOperationsTest, AnOperationKeepsWhatItIsToldBeforeTheCodeIs) {
  (void)operations_.start(kSubmitted, outside_operation());
  outside_.listener->part("a", 0);
  outside_.listener->end(std::string("b"), 0);
  EXPECT_EQ(outside_.kept, (Told{"part a after 0", "end b after 1"}));
  EXPECT_EQ(told(), (Told{"part 7 of 9: a", "end 7 of 9: b"}));
}

TEST_F(AgentOperationsTest, P4_ANotificationIsTheHosts) {
  const OperationId before = operations_.sleep(kSubmitted, milliseconds(10));
  operations_.send_notice("n1", outside_operation());
  for (OperationId id = before + 1; id < before + 100; ++id) {
    EXPECT_TRUE(operations_.cancel(id).has_error());
    EXPECT_TRUE(operations_.credit(id, 1).has_error());
  }
  ASSERT_FALSE(outside_.is_over);
  outside_.listener->part("unheard", 0);
  outside_.listener->end(std::string("done"), 0);
  EXPECT_EQ(told_, Told{"notice n1: done"});
}

TEST_F(AgentOperationsTest, P5_WhileTheDatabaseIsLentResultsWaitInOrder) {
  (void)operations_.start(kSubmitted, outside_operation());
  (void)operations_.sleep({3, 8, 9}, milliseconds(0));
  loan_.begin(SteadyTime{});
  outside_.listener->part("a", 0);
  EXPECT_EQ(told(), Told{});
  for (const auto& step : loan_.end()) step();
  EXPECT_EQ(told(), (Told{"part 7 of 9: a", "end 8 of 9: "}));
}

TEST_F(AgentOperationsTest, NothingIsToldOfWhatIsCancelledOrAbandoned) {
  const OperationId slept = operations_.sleep(kSubmitted, milliseconds(10));
  const auto job = operations_.run_offloaded(kSubmitted, 1, false);
  const OperationId remote = operations_.start(kSubmitted, outside_operation());
  for (const OperationId id : {slept, *job, remote}) {
    EXPECT_TRUE(operations_.cancel(id)) << id;
    EXPECT_EQ(operations_.cancel(id).error().code, Errc::kNotFound);
  }
  EXPECT_TRUE(outside_.is_over);
  EXPECT_TRUE(*jobs_.front().first.abandoned);
  jobs_.front().second({});
  loop_.advance(milliseconds(20));
  EXPECT_EQ(told(), Told{});

  (void)operations_.sleep(kSubmitted, milliseconds(10));
  outside_.is_over = false;
  (void)operations_.start(kSubmitted, outside_operation());
  operations_.abandon();
  EXPECT_TRUE(outside_.is_over);
  loop_.advance(milliseconds(20));
  EXPECT_EQ(told(), Told{});
}

TEST_F(AgentOperationsTest, WhatComesAfterItsEndIsIgnored) {
  {
    AgentOperations gone(parts());
    (void)gone.sleep(kSubmitted, milliseconds(0));
    ASSERT_TRUE(gone.run_offloaded(kSubmitted, 1, false));
  }
  jobs_.back().second({});
  EXPECT_EQ(told(), Told{});
}

}  // namespace
}  // namespace hearth::runtime::testing
