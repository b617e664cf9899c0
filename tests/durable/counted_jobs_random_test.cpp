// Lanes under random steps: pushes, tries, removals, crashes, ends on purpose, and a clock that is
// set. At each step at most one job of a lane is in progress, and it is the first; at the end every
// job has ended.
#include "durable/counted_jobs.hpp"
#include "durable/notices.hpp"
#include "durable/queue.hpp"
#include "support/manual_clock.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace hearth::durable {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// The agent's database, its clocks, and how an instance begins.
struct RandomWorld {
  hearth::testing::TempDirectory directory;
  hearth::testing::ManualClock clock;
  hearth::testing::SeededRandom random{7};
  std::unique_ptr<storage::AgentDatabase> database;
};

// A kind with lanes.
class LaneKind {
 public:
  virtual ~LaneKind() = default;
  virtual CountedJobs& part() = 0;
  virtual std::string push(const std::string& lane) = 0;
  virtual std::string begin() = 0;  // the id; empty: nothing begins
  virtual TryEnd end(const std::string& id, bool done) = 0;
  virtual void remove(const std::string& id) = 0;
};

std::string push_to(Notices& notices, const std::string& lane) {
  return notices.push({"Room", lane, "m", "[]", ""}).value();
}
std::string push_to(Queue& queue, const std::string& /*lane*/) {
  return queue
      .push({.callback = "c", .max_attempts = 5, .retry_base_ms = 1'000, .retry_max_ms = 300'000})
      .value()
      .id;
}

template <class Part>
class LanesOf final : public LaneKind {
 public:
  template <class... Settings>
  explicit LanesOf(RandomWorld& world, const Settings&... settings)
      : part_(*world.database, world.clock, world.random, settings...) {
    part_.load();
  }
  CountedJobs& part() override { return part_; }
  std::string push(const std::string& lane) override { return push_to(part_, lane); }
  std::string begin() override {
    const auto next = part_.begin_next();
    return next ? next->id : std::string();
  }
  TryEnd end(const std::string& id, bool done) override {
    return part_.ended(id, done ? TryOutcome::kDone : TryOutcome::kFailed, "away").next;
  }
  void remove(const std::string& id) override { ASSERT_TRUE(part_.remove(id)); }

 private:
  Part part_;
};

struct LaneRow {
  const char* name;
  unsigned lanes;
  std::function<std::unique_ptr<LaneKind>(RandomWorld&)> open;
};

// What must be so, beside what is so.
class LaneWalk {
 public:
  LaneWalk(const LaneRow& row, unsigned seed) : row_(row), generator_(seed) { open(); }

  void step() {
    switch (below(10)) {
      case 0:
      case 1:
      case 2: return push();
      case 3:
      case 4: return void(begin());
      case 5: return end_one();
      case 6: return remove_one();
      case 7: return world_.clock.advance(milliseconds(below(400'000)));
      case 8: return set_clock();
      default: return restart(below(2) == 0);
    }
  }
  // No job waits for ever, whatever the steps were.
  void drain() {
    constexpr milliseconds kLongest{375'001};
    for (int tries = 0; tries < 3'000 && !::testing::Test::HasFailure(); ++tries) {
      while (!running_.empty()) end(std::string(*running_.begin()), true);
      if (!begin() && left() > 0) {
        ASSERT_FALSE(kind_->part().wake().none()) << left() << " are left, and none wakes";
        world_.clock.advance(kLongest);
        ASSERT_TRUE(begin()) << "after the longest wait";
      }
      for (const GivenUp& job : kind_->part().take_given_up()) forget(job.id);
      if (running_.empty() && left() == 0) break;
    }
    EXPECT_EQ(left(), 0U);
    EXPECT_TRUE(kind_->part().wake().none());
  }

 private:
  unsigned below(unsigned most) { return static_cast<unsigned>(generator_() % most); }

  void open() {
    kind_.reset();
    world_.database.reset();
    world_.database = std::make_unique<storage::AgentDatabase>(world_.directory.path() / "a.db",
                                                               storage::AgentKey{"Worker", "a"});
    kind_ = row_.open(world_);
    world_.database->commit();
  }
  void push() {
    const std::string lane(1, static_cast<char>('a' + below(row_.lanes)));
    const std::string id = kind_->push(lane);
    world_.database->commit();
    lane_of_[id] = lane;
    lanes_[lane].push_back(id);
  }
  bool begin() {
    const std::string id = kind_->begin();
    world_.database->commit();
    if (id.empty()) return false;
    const std::string& lane = lane_of_.at(id);
    for (const std::string& other : running_) EXPECT_NE(lane_of_.at(other), lane) << "two at once";
    EXPECT_TRUE(!lanes_[lane].empty() && lanes_[lane].front() == id) << "out of turn";
    running_.insert(id);
    return true;
  }
  void end(const std::string& id, bool done) {
    const TryEnd how = kind_->end(id, done);
    world_.database->commit();
    running_.erase(id);
    if (removed_.erase(id) > 0) {
      EXPECT_EQ(how, TryEnd::kRemoved);
      return;
    }
    if (how == TryEnd::kDone || how == TryEnd::kDead) forget(id);
  }
  void end_one() {
    if (running_.empty()) return;
    auto chosen = running_.begin();
    std::advance(chosen, below(static_cast<unsigned>(running_.size())));
    end(std::string(*chosen), below(2) == 0);
  }
  void remove_one() {
    std::vector<std::string> all;
    for (const auto& [lane, ids] : lanes_) all.insert(all.end(), ids.begin(), ids.end());
    if (all.empty()) return;
    const std::string& id = all[below(static_cast<unsigned>(all.size()))];
    kind_->remove(id);
    world_.database->commit();
    forget(id);
    if (running_.contains(id)) removed_.insert(id);
  }
  void set_clock() {
    const auto by =
        hours(below(2) == 0 ? -1 - static_cast<int>(below(50)) : 1 + static_cast<int>(below(20)));
    world_.clock.set_wall(world_.clock.wall_now() + by);
  }
  void restart(bool on_purpose) {
    if (on_purpose) {
      kind_->part().interrupt_on_purpose();
      world_.database->commit();
      kind_->part().close();
    }
    open();
    running_.clear();
    removed_.clear();
  }
  void forget(const std::string& id) { std::erase(lanes_[lane_of_[id]], id); }
  [[nodiscard]] std::size_t left() const {
    std::size_t count = 0;
    for (const auto& [lane, ids] : lanes_) count += ids.size();
    return count;
  }

  const LaneRow& row_;
  std::mt19937 generator_;
  RandomWorld world_;
  std::unique_ptr<LaneKind> kind_;
  std::map<std::string, std::deque<std::string>> lanes_;  // those that have not ended, in order
  std::map<std::string, std::string> lane_of_;            // by id
  std::set<std::string> running_;
  std::set<std::string> removed_;  // of running_
};

class CountedJobsRandomTest : public ::testing::TestWithParam<LaneRow> {};

TEST_P(CountedJobsRandomTest, P1_P2_AJobHasItsTurnInItsLaneAndNoneIsLost) {
  for (unsigned seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    LaneWalk walk(GetParam(), seed);
    for (int step = 0; step < 120 && !HasFailure(); ++step) walk.step();
    walk.drain();
  }
}

template <class Part, class... Settings>
LaneRow lanes(const char* name, unsigned count, const Settings&... settings) {
  return {name, count,
          [=](RandomWorld& world) { return std::make_unique<LanesOf<Part>>(world, settings...); }};
}

INSTANTIATE_TEST_SUITE_P(Kinds, CountedJobsRandomTest,
                         ::testing::Values(lanes<Notices>("Notices", 3),
                                           lanes<Queue>("Queue", 1, QueueSettings{})),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace hearth::durable
