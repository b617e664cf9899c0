#include "storage/copy_mark.hpp"

#include <utility>

namespace hearth::storage {

void CopyMark::hold() {
  const MutexLock lock(mutex_);
  holds_all_ = true;
  while (checkpoints_ > 0) news_.wait(mutex_);
}

void CopyMark::set() {
  const MutexLock lock(mutex_);
  pages_.clear();  // a database that had not seen the mark before may have come since hold()
  marks_.fetch_add(1, std::memory_order_release);
}

void CopyMark::wait_for(std::unordered_set<AgentKey> agents) {
  const MutexLock lock(mutex_);
  to_copy_ = std::move(agents);
  holds_all_ = false;
}

std::optional<AgentKey> CopyMark::next() {
  const MutexLock lock(mutex_);
  in_copy_.reset();
  while (!in_copy_ && !first_.empty()) {
    if (to_copy_.erase(first_.back()) != 0) in_copy_ = std::move(first_.back());
    first_.pop_back();
  }
  if (!in_copy_ && !to_copy_.empty())
    in_copy_ = std::move(to_copy_.extract(to_copy_.begin()).value());
  return in_copy_;
}

std::optional<int> CopyMark::pages() {
  const MutexLock lock(mutex_);
  const auto found = in_copy_ ? pages_.find(*in_copy_) : pages_.end();
  return found == pages_.end() ? std::nullopt : std::optional(found->second);
}

void CopyMark::end() {
  const MutexLock lock(mutex_);
  holds_all_ = false;
  to_copy_.clear();
  first_.clear();
  in_copy_.reset();
  pages_.clear();
}

bool CopyMark::is_held(const AgentKey& key) const {
  return holds_all_ || in_copy_ == key || to_copy_.contains(key);
}

void CopyMark::note(const AgentKey& key, int pages, std::uint32_t& seen) {
  const MutexLock lock(mutex_);
  seen = marks_.load(std::memory_order_relaxed);
  if (is_held(key)) pages_.try_emplace(key, pages);  // an earlier database may have noted it
}

bool CopyMark::is_free(const AgentKey& key) {
  const bool is_free = !is_held(key);
  if (!is_free) first_.push_back(key);
  return is_free;
}

bool CopyMark::may_remove(const AgentKey& key) {
  const MutexLock lock(mutex_);
  return is_free(key);
}

bool CopyMark::may_begin(const AgentKey& key) {
  const MutexLock lock(mutex_);
  const bool is_allowed = is_free(key);
  if (is_allowed) ++checkpoints_;
  return is_allowed;
}

void CopyMark::ended() {
  const MutexLock lock(mutex_);
  if (--checkpoints_ == 0) news_.notify_all();
}

}  // namespace hearth::storage
