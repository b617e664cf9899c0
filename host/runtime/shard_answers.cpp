#include "runtime/shard_answers.hpp"

#include "base/assert.hpp"

namespace hearth::runtime {

void ShardAnswers::add(unsigned shard) {
  const std::scoped_lock lock(mutex_);
  HEARTH_ASSERT(!answered_.at(shard), "a shard answers once");
  answered_[shard] = true;
  if (--open_ == 0) all_.notify_all();
}

bool ShardAnswers::complete() const {
  const std::scoped_lock lock(mutex_);
  return open_ == 0;
}

bool ShardAnswers::wait_for(std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  return all_.wait_for(lock, patience, [this] { return open_ == 0; });
}

std::vector<unsigned> ShardAnswers::missing() const {
  const std::scoped_lock lock(mutex_);
  std::vector<unsigned> shards;
  for (unsigned shard = 0; shard < answered_.size(); ++shard) {
    if (!answered_[shard]) shards.push_back(shard);
  }
  return shards;
}

}  // namespace hearth::runtime
