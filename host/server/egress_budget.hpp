#pragma once
// What classes have used of their limits on requests to other servers. Restarts do not give it
// back.

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
//  P1 Limit     In one minute of the wall clock no more requests of a class are granted than its
//               limit; none is once the class has used its bytes of the day.
//  P2 Restart   What is granted is reserved on the device before. What was reserved when the
//               process was killed counts as used; stop() gives back what was not used.
//  P3 Refused   A request that is refused does not count, nor one that is given back before its
//               minute is over (its body: before the day is).
//  P4 No wait   No function but stop() waits for the device. Portions (a sixteenth of a limit) are
//               reserved ahead, on a thread that may wait. A request for which nothing is reserved
//               yet is answered later.
//
// Bytes of answers are counted as they come. So those that come while a portion is being written
// are reserved late.
//
// Threads   enter() to spend(): any. The rest: the one that made it.
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

  // A place among the requests of the class that are in progress; leave() gives it back.
  // kLimitExceeded: all are taken.
  [[nodiscard]] Result<void> enter(const std::string& agent_class,
                                   const extensions::EgressLimits& limits);
  void leave(const std::string& agent_class);

  // One request with a body of so many bytes. kLimitExceeded says which limit, and when there is
  // more. Nothing: `later` is called once, on another thread, unless stop() comes before.
  [[nodiscard]] std::optional<Result<void>> ask(const std::string& agent_class,
                                                const extensions::EgressLimits& limits,
                                                std::uint64_t body, Answer later);
  // That a request that was granted, and its body, were certainly not sent. `asked`: when ask() was
  // called.
  void give_back(const std::string& agent_class, const extensions::EgressLimits& limits,
                 std::uint64_t body, WallTime asked);
  // Bytes of bodies that have come. They count whatever the answer; kLimitExceeded: these are too
  // many.
  [[nodiscard]] Result<void> spend(const std::string& agent_class,
                                   const extensions::EgressLimits& limits, std::uint64_t bytes);

  // Waits for what is being written, and writes what was used. Nothing is asked afterwards.
  void stop();

 private:
  struct Count {
    std::int64_t window = 0;
    std::uint64_t used = 0;
    std::uint64_t reserved = 0;  // on the device
    std::uint64_t wanted = 0;    // there soon
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
  // Nothing: a portion of a limit is not reserved yet.
  [[nodiscard]] std::optional<Result<void>> judge(const std::string& agent_class,
                                                  const extensions::EgressLimits& limits,
                                                  std::uint64_t body) REQUIRES(mutex_);
  // `needed`: of what is asked for now.
  void reserve_ahead(Count& count, std::uint64_t limit, std::uint64_t needed) REQUIRES(mutex_);
  void begin_writing() REQUIRES(mutex_);
  void write();
  void answer_waiting(std::optional<Error> failure);
  [[nodiscard]] Error exhausted(std::string_view why, std::string_view counter,
                                std::uint64_t limit) const;

  const Clock& clock_;
  Logger& logger_;
  storage::ServerStore store_;  // used by one thread at a time: the pool's, or stop()'s
  Mutex mutex_;
  std::map<CountKey, Count> counts_ GUARDED_BY(mutex_);
  std::map<std::string, std::uint32_t, std::less<>> running_ GUARDED_BY(mutex_);  // by class
  std::vector<Waiting> waiting_ GUARDED_BY(mutex_);
  bool dirty_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;
  runtime::BlockingPool writer_{1, 1};
};

}  // namespace hearth::server
