#include "runtime/shard_answers.hpp"

#include "base/assert.hpp"

namespace hearth::runtime {

void ShardAnswers::add(unsigned shard) {
  {
    const MutexLock lock(mutex_);
    HEARTH_ASSERT(!answered_.at(shard), "a shard answers once");
    answered_[shard] = true;
    if (--open_ > 0) return;
    all_.notify_all();
  }
  if (news_) news_->ring();
}

bool ShardAnswers::complete() const {
  const MutexLock lock(mutex_);
  return open_ == 0;
}

bool ShardAnswers::wait_for(std::chrono::milliseconds patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(mutex_);
  while (open_ > 0) {
    if (!all_.wait_until(mutex_, end)) break;
  }
  return open_ == 0;
}

std::vector<unsigned> ShardAnswers::missing() const {
  const MutexLock lock(mutex_);
  std::vector<unsigned> shards;
  for (unsigned shard = 0; shard < answered_.size(); ++shard) {
    if (!answered_[shard]) shards.push_back(shard);
  }
  return shards;
}

}  // namespace hearth::runtime
