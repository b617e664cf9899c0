#pragma once
// Makes commits survive a loss of power: one thread syncs for many agents at once.

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

// The files and names of one open database that must be on the device for its commits to survive:
// its WAL, the names that lead to it, and the first page of a file that is or may be new.
// SyncService::open() makes a target before the first write to an open database.
//
// Promises   Final: after one failed sync it is *failed* for ever, and every later request for it
//            is answered with no. The system may have dropped the pages that it could not write.
//            The WAL may then have a hole, and a commit behind the hole is lost even if a later
//            sync succeeds. Only a new AgentDatabase over the file can continue: it writes the WAL
//            again first.
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

  // Whether the first page and all names are on the device: those of the WAL, the database and the
  // directories above. No checkpoint may be made before that: a loss of power could bring back an
  // older WAL under the same name, and SQLite would replay it over the newer file.
  [[nodiscard]] bool listed() const noexcept { return listed_; }

 private:
  friend class SyncService;

  const std::unique_ptr<SyncedFile> wal_;
  const std::filesystem::path directory_;  // of the WAL
  std::atomic<bool> failed_{false};
  std::atomic<bool> listed_{false};
  // Only for the service's thread:
  std::unique_ptr<SyncedFile> first_page_;  // null: it is on the device
  std::uint64_t doubts_heard_ = 0;
};

using SyncTargets = std::vector<std::shared_ptr<SyncTarget>>;

// Promises
//  P1 Answer     Each request is answered exactly once, in the order of the requests; yes means
//                that all writes to its targets before the request survive a loss of power.
//  P2 Shared     Requests that arrive while a batch is synced are the next batch, and each file is
//                synced once a batch.
//  P3 Honest     An error of a target's file, or of a directory above it, fails the target and is
//                answered with no.
//  P4 End        The destructor syncs and answers all earlier requests.
//
// P2: a batch of kEverythingFrom files or more is synced with one call for the whole file system.
//
// P3: if that call fails, each file is synced alone, so that a bad file affects only its own agent.
//
// Directories below the root are never removed while the service lives, so it syncs the name of
// each only once.
//
// Threads    All members from any thread. Answers come on the service's own thread, or on the
//            thread of run_pending().
// Lifetime   `calls` outlives the service. `done` must stay valid until it is called.
class SyncService {
 public:
  // kCallers: no own thread; run_pending() and wait() do the work. For tests that choose the order.
  enum class Thread { kOwn, kCallers };

  // A batch with this many files is synced with one call for the whole file system. Measured on
  // ext4, virtual disk, 4 KiB appended to each file:
  //
  //   files   one call each   one call for all
  //       1          0.2 ms             0.3 ms
  //       8          1.6 ms             0.4 ms
  //      64           11 ms             1.3 ms
  //
  // One call for all also waits for the writes of other programs, so it is not used for few files.
  static constexpr std::size_t kEverythingFrom = 8;

  // `root`: the data directory. The service syncs the names below it, not its own name.
  SyncService(SyncCalls& calls, std::filesystem::path root, Thread thread = Thread::kOwn);
  ~SyncService();
  SyncService(const SyncService&) = delete;
  SyncService& operator=(const SyncService&) = delete;

  // For the WAL of a database that was not written to since it was opened. `first_page`:
  // open_first_page() of the database, if no other code syncs the first page. Throws StorageError.
  [[nodiscard]] std::shared_ptr<SyncTarget> open(const std::filesystem::path& wal,
                                                 std::unique_ptr<SyncedFile> first_page = nullptr);
  // As SyncCalls::open_first_page().
  [[nodiscard]] std::unique_ptr<SyncedFile> open_first_page(const std::filesystem::path& database) {
    return calls_.open_first_page(database);
  }

  // Calls `done` later, never inside the call.
  void submit(SyncTargets targets, std::function<void(bool durable)> done);

  // The same, for callers that must wait for the answer. False also after `timeout`: the targets
  // may or may not be durable then. While the service hangs in a system call, later calls return
  // false at once.
  [[nodiscard]] bool wait(SyncTargets targets, std::chrono::milliseconds timeout = kMaxWait);
  static constexpr std::chrono::milliseconds kMaxWait{10'000};

  // kCallers only: syncs and answers the waiting requests. Returns their number.
  std::size_t run_pending();

  // Since the start. `calls`: system calls. Requests divided by calls show how well syncs are
  // shared.
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

  std::atomic<bool> hangs_{false};  // a wait() timed out, and no batch has ended since

  // For the thread that syncs, one at a time.
  std::set<std::filesystem::path> named_;  // directories whose own name is on the device
  std::uint64_t doubts_ = 0;               // failures of the whole file system so far
  std::uint64_t calls_made_ = 0;

  std::thread thread_;
};

}  // namespace hearth::storage
