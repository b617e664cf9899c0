#include "storage/sync_service.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <future>
#include <utility>

namespace hearth::storage {
namespace {

// `directory` and the directories above it, below `root`: their names must be on the device for the
// files in `directory` to be found. None if it is not below `root`.
std::vector<std::filesystem::path> named_above(const std::filesystem::path& directory,
                                               const std::filesystem::path& root) {
  std::vector<std::filesystem::path> names;
  for (std::filesystem::path at = directory; at != root; at = at.parent_path()) {
    if (!at.has_relative_path()) return {};
    names.push_back(at);
  }
  return names;
}

}  // namespace

SyncService::SyncService(SyncCalls& calls, std::filesystem::path root, Thread thread)
    : calls_(calls), root_(std::move(root)), thread_kind_(thread) {
  if (thread == Thread::kOwn) thread_ = std::thread([this] { work(); });
}

SyncService::~SyncService() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  request_came_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (thread_kind_ == Thread::kCallers) run_pending();
}

std::shared_ptr<SyncTarget> SyncService::open(const std::filesystem::path& wal,
                                              std::unique_ptr<SyncedFile> first_page) {
  return std::make_shared<SyncTarget>(calls_.open(wal), wal.parent_path(), std::move(first_page));
}

void SyncService::submit(SyncTargets targets, std::function<void(bool)> done) {
  {
    const MutexLock lock(mutex_);
    HEARTH_ASSERT(!stopping_, "a sync is requested of a service that is being destroyed");
    waiting_.push_back({std::move(targets), std::move(done)});
    ++counts_.requests;
  }
  request_came_.notify_one();
}

bool SyncService::wait(SyncTargets targets, std::chrono::milliseconds timeout) {
  if (hangs_) return false;
  // Shared: the answer may come after this call has timed out.
  const auto answer = std::make_shared<std::promise<bool>>();
  std::future<bool> answered = answer->get_future();
  submit(std::move(targets), [answer](bool durable) { answer->set_value(durable); });
  if (thread_kind_ == Thread::kCallers) run_pending();
  if (answered.wait_for(timeout) == std::future_status::ready) return answered.get();
  hangs_ = true;
  if (answered.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  hangs_ = false;  // the answer came just now, so the batch has ended
  return answered.get();
}

std::size_t SyncService::run_pending() {
  std::vector<Request> batch;
  {
    const MutexLock lock(mutex_);
    batch.swap(waiting_);
  }
  const std::size_t size = batch.size();
  if (size > 0) sync_and_answer(std::move(batch));
  return size;
}

SyncService::Counts SyncService::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

void SyncService::work() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && waiting_.empty()) request_came_.wait(mutex_);
      if (waiting_.empty()) return;
    }
    run_pending();
  }
}

// ---- one batch ----------------------------------------------------------------------------------

void SyncService::sync_and_answer(std::vector<Request> batch) {
  SyncTargets targets;  // in the order of the requests, each once
  std::set<const SyncTarget*> known;
  for (const Request& request : batch) {
    for (const auto& target : request.targets) {
      if (!target->failed() && known.insert(target.get()).second) targets.push_back(target);
    }
  }
  sync(targets);
  hangs_ = false;

  const auto durable = [](const Request& request) {
    return std::ranges::none_of(request.targets, &SyncTarget::failed);
  };
  {
    const MutexLock lock(mutex_);
    ++counts_.batches;
    counts_.calls += std::exchange(calls_made_, 0);
    counts_.failures += static_cast<std::uint64_t>(std::ranges::count_if(
        batch, [&durable](const Request& request) { return !durable(request); }));
  }
  for (const Request& request : batch) request.done(durable(request));
  hangs_ = false;  // if a wait() timed out meanwhile
}

void SyncService::sync(std::span<const std::shared_ptr<SyncTarget>> targets) {
  if (targets.size() >= kEverythingFrom && sync_all(targets)) return;
  std::map<std::filesystem::path, int> directories;  // synced in this batch, with the errno
  for (const auto& target : targets) {
    target->doubts_heard_ = doubts_;
    const auto sync_file = [this](const std::unique_ptr<SyncedFile>& file) {
      if (file == nullptr) return true;
      ++calls_made_;
      return file->sync_data() == 0;
    };
    if (!sync_file(target->wal_) || !sync_file(target->first_page_) ||
        !list(*target, directories)) {
      target->fail();
    } else {
      note_listed(*target);
    }
  }
}

// One call for all targets. False: the state of each target is unknown.
bool SyncService::sync_all(std::span<const std::shared_ptr<SyncTarget>> targets) {
  const auto is_covered = [this](const std::shared_ptr<SyncTarget>& target) {
    // The file system reports each error once. An error in a batch without this file may have been
    // about this file, so this file must be synced alone then.
    return target->wal_->covered_by_sync_everything() && target->doubts_heard_ == doubts_;
  };
  if (!std::ranges::all_of(targets, is_covered)) return false;
  ++calls_made_;
  if (calls_.sync_everything() != 0) {
    ++doubts_;
    return false;
  }
  for (const auto& target : targets) note_listed(*target);
  return true;
}

// Brings the names that lead to the target to the device.
bool SyncService::list(const SyncTarget& target, std::map<std::filesystem::path, int>& done) {
  if (target.listed_) return true;
  const auto sync_once = [this, &done](const std::filesystem::path& directory) {
    const auto [at, is_new] = done.try_emplace(directory, 0);
    if (is_new) {
      ++calls_made_;
      at->second = calls_.sync_directory(directory);
    }
    return at->second == 0;
  };
  if (!sync_once(target.directory_)) return false;
  return std::ranges::all_of(named_above(target.directory_, root_), [&](const auto& directory) {
    return named_.contains(directory) || sync_once(directory.parent_path());
  });
}

void SyncService::note_listed(SyncTarget& target) {
  if (target.listed_) return;
  target.first_page_.reset();
  for (std::filesystem::path& directory : named_above(target.directory_, root_)) {
    named_.insert(std::move(directory));
  }
  target.listed_ = true;
}

}  // namespace hearth::storage
