#pragma once
// Makes commits survive a loss of power: one thread that syncs for many agents at once.

#include "base/mutex.hpp"
#include "storage/sync_calls.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <thread>
#include <vector>

namespace hearth::storage {

// What must be on the device for the commits of one open database to survive: the bytes of its WAL,
// the names that lead to it, and the first page of a file that is new or may be. Made by
// SyncService::open() before the first write of a database's life.
//
// Promises   Final: once a sync of it has failed it is *failed* for ever, and every later request
//            for it is answered with no. Pages that could not be written may be gone from memory
//            too, so that the WAL may have a hole, and a commit behind a hole is lost though a
//            later sync succeeds. Only a new life of the database, which first empties the WAL into
//            the file, goes on.
// Threads    All.
class SyncTarget {
 public:
  SyncTarget(std::unique_ptr<SyncedFile> wal, std::filesystem::path directory,
             std::unique_ptr<SyncedFile> first_page)
      : wal_(std::move(wal)),
        directory_(std::move(directory)),
        first_page_(std::move(first_page)) {}

  [[nodiscard]] bool failed() const noexcept { return failed_; }
  void fail() noexcept { failed_ = true; }

  // Whether the names are on the device: that of the WAL, of the database, and of the directories
  // above; and the first page. Before that no checkpoint may be made: a loss of power could bring
  // back an older WAL under the same name, which would be replayed over the newer file.
  [[nodiscard]] bool listed() const noexcept { return listed_; }

 private:
  friend class SyncService;

  const std::unique_ptr<SyncedFile> wal_;
  const std::filesystem::path directory_;  // that holds the WAL
  std::atomic<bool> failed_{false};
  std::atomic<bool> listed_{false};
  // The service's thread:
  std::unique_ptr<SyncedFile> first_page_;  // null: it is on the device
  std::uint64_t doubts_heard_ = 0;
};

using SyncTargets = std::vector<std::shared_ptr<SyncTarget>>;

// Promises
//  P1 Answer     Each request is answered exactly once, in the order of the requests; yes means
//                that everything written to its targets before the request survives a loss of
//                power.
//  P2 Shared     All requests that come while a batch is being synced are the next batch. Each file
//                is synced once a batch; from kEverythingFrom files on, the whole file system once.
//  P3 Honest     An error of a target's file or of a directory above it is answered with no, and
//                fails the target. A failure of the file system as a whole is looked into file by
//                file, so that a bad file costs its own agent only.
//  P4 End        The destructor syncs and answers what was requested before.
//
// Directories below the root are never removed while the service lives: once it has synced the name
// of one, it does not again.
//
// Threads    All members from any thread. Answers come on the service's own, or on that of
//            run_pending().
// Lifetime   The calls outlive it; whoever is answered outlives it, or does not mind.
class SyncService {
 public:
  // kCallers: without a thread of its own; run_pending() and wait() do the work. For tests that
  // choose the order.
  enum class Thread { kOwn, kCallers };

  // A batch with so many files is synced by one call for the whole file system. Measured on ext4,
  // virtual disk, 4 KiB appended to each file: one file takes 0.2 ms alone and 0.3 ms by the one
  // call, 8 files 1.6 and 0.4 ms, 64 files 11 and 1.3 ms. The one call is faster from two files on,
  // but it also waits for what every other program has written; with eight files there is always
  // something to gain.
  static constexpr std::size_t kEverythingFrom = 8;

  // `root`: the data directory. The names below it are synced; its own is its maker's affair.
  SyncService(SyncCalls& calls, std::filesystem::path root, Thread thread = Thread::kOwn);
  ~SyncService();
  SyncService(const SyncService&) = delete;
  SyncService& operator=(const SyncService&) = delete;

  // For the WAL of a database that has not been written to in this life. `first_page`:
  // open_first_page() of the database, if nothing else brings that to the device. Throws
  // StorageError.
  [[nodiscard]] std::shared_ptr<SyncTarget> open(const std::filesystem::path& wal,
                                                 std::unique_ptr<SyncedFile> first_page = nullptr);
  // As SyncCalls::open_first_page().
  [[nodiscard]] std::unique_ptr<SyncedFile> open_first_page(const std::filesystem::path& database) {
    return calls_.open_first_page(database);
  }

  // Answers soon, never inside the call.
  void submit(SyncTargets targets, std::function<void(bool durable)> done);

  // The same, for callers that cannot go on without. False also when it takes longer than
  // `timeout`: then the targets may or may not be durable. While the service hangs in the system,
  // later calls say no at once.
  [[nodiscard]] bool wait(SyncTargets targets, std::chrono::milliseconds timeout = kMaxWait);
  static constexpr std::chrono::milliseconds kMaxWait{10'000};

  // kCallers only: syncs and answers what was requested. How many requests.
  std::size_t run_pending();

  // Since the start. `calls`: to the system. Requests over calls tells how well the wait is shared.
  struct Counts {
    std::uint64_t requests = 0;
    std::uint64_t batches = 0;
    std::uint64_t calls = 0;
    std::uint64_t failures = 0;  // requests answered with no
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Request {
    SyncTargets targets;
    std::function<void(bool)> done;
  };

  void work();
  void sync_and_answer(std::vector<Request> batch);
  void sync(std::span<const std::shared_ptr<SyncTarget>> targets);
  [[nodiscard]] bool sync_all(std::span<const std::shared_ptr<SyncTarget>> targets);
  [[nodiscard]] bool list(const SyncTarget& target, std::map<std::filesystem::path, int>& done);
  void note_listed(SyncTarget& target);

  SyncCalls& calls_;
  const std::filesystem::path root_;
  const Thread thread_kind_;

  mutable Mutex mutex_;
  Condition request_came_;
  std::vector<Request> waiting_ GUARDED_BY(mutex_);
  Counts counts_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::atomic<bool> hangs_{false};  // somebody waited in vain, and no batch has ended since

  // Of whoever syncs, one at a time.
  std::set<std::filesystem::path> named_;  // directories whose own name is on the device
  std::uint64_t doubts_ = 0;               // failures of the whole file system so far
  std::uint64_t calls_made_ = 0;

  std::thread thread_;
};

}  // namespace hearth::storage
