#pragma once
// data/server.db: what a server keeps that belongs to no agent.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hearth::storage {

class Connection;

// How much a class has used of something, in one stretch of time.
struct ClassCount {
  std::string agent_class;
  std::string counter;      // "fetch.requests"
  std::int64_t window = 0;  // which stretch; only the last one is kept
  std::int64_t used = 0;

  friend bool operator==(const ClassCount&, const ClassCount&) = default;
};

// On disk   class_counts(class, counter, window, used): a row for each class and counter. The file
//           is made by the first store().
// Threads   One at a time.
// Failure   StorageError, also for a file of a newer server.
class ServerStore {
 public:
  explicit ServerStore(std::filesystem::path file);
  ~ServerStore();
  ServerStore(const ServerStore&) = delete;
  ServerStore& operator=(const ServerStore&) = delete;

  // In the order of classes and counters.
  [[nodiscard]] std::vector<ClassCount> class_counts();
  // On the device when it returns, all or none. Waits for it: not for a shard's thread.
  void store(const std::vector<ClassCount>& counts);

 private:
  [[nodiscard]] Connection& opened();

  const std::filesystem::path file_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace hearth::storage
