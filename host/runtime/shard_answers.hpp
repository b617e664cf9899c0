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

// A shard that is held up by the code of some agent may take very long: the wait for it has a
// limit.
//
// Threads    All members from any thread.
// Lifetime   Shared by the caller and by what was posted to the shards.
class ShardAnswers {
 public:
  // `news` rings when all have answered; null: it does not.
  explicit ShardAnswers(unsigned shards, std::shared_ptr<VersionNews> news = nullptr)
      : news_(std::move(news)), answered_(shards, false), open_(shards) {}

  // The shard has done it. Once each.
  void add(unsigned shard);

  [[nodiscard]] bool complete() const;
  // Waits until all have, at most so long. False: some have not.
  bool wait_for(std::chrono::milliseconds patience) const;
  // Those that have not, in order.
  [[nodiscard]] std::vector<unsigned> missing() const;

 private:
  const std::shared_ptr<VersionNews> news_;
  mutable Mutex mutex_;
  mutable Condition all_;
  std::vector<bool> answered_ GUARDED_BY(mutex_);
  std::size_t open_ GUARDED_BY(mutex_);
};

}  // namespace hearth::runtime
