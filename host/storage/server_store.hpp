#pragma once
// data/server.db: data of the server that belong to no agent.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hearth::storage {

class Connection;

// How much a class has used of something in one time window.
struct ClassCount {
  std::string agent_class;
  std::string counter;      // "fetch.requests"
  std::int64_t window = 0;  // the window's number; only the last window is stored
  std::int64_t used = 0;

  friend bool operator==(const ClassCount&, const ClassCount&) = default;
};

// On disk   class_counts(class, counter, window, used): a row for each class and counter. The first
//           store() makes the file.
// Threads   One at a time.
// Failure   StorageError, also for a file of another format.
class ServerStore {
 public:
  explicit ServerStore(std::filesystem::path file);
  ~ServerStore();
  ServerStore(const ServerStore&) = delete;
  ServerStore& operator=(const ServerStore&) = delete;

  // In the order of classes and counters.
  [[nodiscard]] std::vector<ClassCount> class_counts();
  // All or none. On the device when it returns: do not call it on a shard's thread.
  void store(const std::vector<ClassCount>& counts);

 private:
  [[nodiscard]] Connection& opened();

  const std::filesystem::path file_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace hearth::storage
