#pragma once
// data/audit.db: what was done on this server, by which actor, and when.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::storage {

class Connection;

// Whose acts an entry is about. Entries of one kind never displace those of another.
enum class AuditKind : std::uint8_t {
  kServer,          // libraries, settings, starts and stops
  kAdministrators,  // requests that need a key
  kUsers            // clients and agents: objects, alarms, agents' own entries
};

struct AuditEntry {
  std::int64_t id = 0;     // rises; given by the store
  std::int64_t at_ms = 0;  // Unix
  std::string event;       // "ObjectCreated"
  std::string actor;       // "server", "administrator", "console", "agent" or "client"
  std::string agent_class = {};
  std::string agent = {};               // its name; empty: the entry is not about an agent
  std::string detail = {};              // more details: a JSON object, or empty
  AuditKind kind = AuditKind::kServer;  // for trim(); not read back

  friend bool operator==(const AuditEntry&, const AuditEntry&) = default;
};

struct AuditQuery {
  std::int64_t after = 0;  // ids greater than this
  std::size_t limit = 100;
  bool newest = false;  // the last `limit` entries instead of the first
  // Empty or absent: any. The class in any spelling: `counter` is `Counter`, `chat-room` is
  // `ChatRoom`.
  std::string event = {};
  std::string actor = {};
  std::string agent_class = {};
  std::string agent = {};
  std::optional<std::int64_t> since_ms = {};  // at or after
  std::optional<std::int64_t> until_ms = {};  // before
};

// On disk   entries(id, at_ms, event, actor, class, agent, detail, kind). The first append() makes
//           the file. Commits are not synced: a loss of power may lose the last entries, but never
//           damages the file.
// Threads   One at a time.
// Failure   StorageError, also for a file of another format.
class AuditStore {
 public:
  explicit AuditStore(std::filesystem::path file);
  ~AuditStore();
  AuditStore(const AuditStore&) = delete;
  AuditStore& operator=(const AuditStore&) = delete;

  // All or none. The entries get their ids in this order.
  void append(std::vector<AuditEntry>& entries);
  // Removes entries before `before_ms`, and of each kind all but the newest `keep`. Ids are never
  // reused.
  void trim(std::size_t keep, std::int64_t before_ms);
  // In the order of ids.
  [[nodiscard]] std::vector<AuditEntry> read(const AuditQuery& query);

 private:
  [[nodiscard]] Connection& opened();

  const std::filesystem::path file_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace hearth::storage
