#pragma once
// Which shards have done what all of them were asked to do.

#include "base/mutex.hpp"
#include "runtime/version_news.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace hearth::runtime {

// A shard may answer late, because the code of some agent holds it up: so the wait has a limit.
//
// Threads    All members from any thread.
// Lifetime   Shared by the caller and by the tasks posted to the shards.
class ShardAnswers {
 public:
  // `news` rings when all shards have answered; null: no ring.
  explicit ShardAnswers(unsigned shards, std::shared_ptr<VersionNews> news = nullptr)
      : news_(std::move(news)), answered_(shards, false), open_(shards) {}

  // The shard has done it. Once for each shard.
  void add(unsigned shard);

  [[nodiscard]] bool complete() const;
  // Waits until all shards have answered, at most `patience`. False: some have not.
  bool wait_for(std::chrono::milliseconds patience) const;
  // The shards that have not answered, in order.
  [[nodiscard]] std::vector<unsigned> missing() const;

 private:
  const std::shared_ptr<VersionNews> news_;
  mutable Mutex mutex_;
  mutable Condition all_;
  std::vector<bool> answered_ GUARDED_BY(mutex_);
  std::size_t open_ GUARDED_BY(mutex_);
};

}  // namespace hearth::runtime
