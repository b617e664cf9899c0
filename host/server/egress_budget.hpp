#pragma once
// How much classes have used of their limits on requests to other servers. It survives restarts.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "extensions/class_settings.hpp"
#include "runtime/blocking_pool.hpp"
#include "storage/server_store.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::server {

// Promises
//  P1 Limit     In a minute of the wall clock a class gets at most its limit of requests, and none
//               once it has used its bytes of the day.
//  P2 Restart   A request is granted only after its share is reserved on the device.
//  P3 Refused   A request does not count if it is refused, or if it is given back before its minute
//               is over (its body: before the day is over).
//  P4 No wait   Only stop() waits for the device.
//
// P2: if the process is killed, all that was reserved counts as used. stop() gives back the unused
// rest. P4: portions (a sixteenth of a limit) are reserved ahead, on a thread that may wait. A
// request without a reserved share is answered later.
//
// Bytes of answers count when they come. So bytes that come while a portion is written are reserved
// late.
//
// Threads   enter() to spend(): any. The rest: the thread that made it.
// Failure   If the file cannot be written, requests that need a portion get kUnavailable, and the
//           log has `fetch.limits_unwritten`.
class EgressBudget {
 public:
  // Reads the file. Throws StorageError.
  EgressBudget(const std::filesystem::path& file, const Clock& clock, Logger& logger);
  ~EgressBudget();
  EgressBudget(const EgressBudget&) = delete;
  EgressBudget& operator=(const EgressBudget&) = delete;

  using Answer = std::function<void(const Result<void>&)>;

  // Counts one more request of the class in progress; leave() ends it. kLimitExceeded: too many are
  // in progress.
  [[nodiscard]] Result<void> enter(const std::string& agent_class,
                                   const extensions::EgressLimits& limits);
  void leave(const std::string& agent_class);

  // Asks for one request with a body of `body` bytes. kLimitExceeded, or kTooLarge for the limit of
  // the day, names the limit, and when there is more. Absent: `later` is called once, on another
  // thread, unless stop() comes first.
  [[nodiscard]] std::optional<Result<void>> ask(const std::string& agent_class,
                                                const extensions::EgressLimits& limits,
                                                std::uint64_t body, Answer later);
  // A granted request and its body were certainly not sent. `asked`: when ask() was called.
  void give_back(const std::string& agent_class, const extensions::EgressLimits& limits,
                 std::uint64_t body, WallTime asked);
  // Bytes of bodies that have come. They count in any case; kTooLarge: they exceed the limit.
  [[nodiscard]] Result<void> spend(const std::string& agent_class,
                                   const extensions::EgressLimits& limits, std::uint64_t bytes);

  // Waits for a write in progress, and writes what was used. Call ask() no more.
  void stop();

 private:
  struct Count {
    std::int64_t window = 0;
    std::uint64_t used = 0;
    std::uint64_t reserved = 0;  // on the device
    std::uint64_t wanted = 0;    // to be reserved by the next write
  };
  using CountKey = std::pair<std::string, std::string_view>;  // class, counter
  struct Waiting {
    std::string agent_class;
    extensions::EgressLimits limits;
    std::uint64_t body = 0;
    Answer answer;
  };

  [[nodiscard]] Count& count(const std::string& agent_class, std::string_view counter)
      REQUIRES(mutex_);
  void take_off(const std::string& agent_class, std::string_view counter, std::uint64_t amount,
                WallTime asked) REQUIRES(mutex_);
  // Absent: the share of a limit is not reserved yet.
  [[nodiscard]] std::optional<Result<void>> judge(const std::string& agent_class,
                                                  const extensions::EgressLimits& limits,
                                                  std::uint64_t body) REQUIRES(mutex_);
  // `needed`: the share of the request that is asked for now.
  void reserve_ahead(Count& count, std::uint64_t limit, std::uint64_t needed) REQUIRES(mutex_);
  void begin_writing() REQUIRES(mutex_);
  void write();
  void answer_waiting(std::optional<Error> failure);
  [[nodiscard]] Error exhausted(std::string_view why, std::string_view counter,
                                std::uint64_t limit) const;

  const Clock& clock_;
  Logger& logger_;
  storage::ServerStore store_;  // one thread at a time: the pool's, or the caller of stop()
  Mutex mutex_;
  std::map<CountKey, Count> counts_ GUARDED_BY(mutex_);
  std::map<std::string, std::uint32_t, std::less<>> running_ GUARDED_BY(mutex_);  // by class
  std::vector<Waiting> waiting_ GUARDED_BY(mutex_);
  bool dirty_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;
  runtime::BlockingPool writer_{1, 1};
};

}  // namespace hearth::server
