#pragma once
// /admin/backup: copies all data of a running server, one backup at a time.

#include "api/routes.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "json/json.hpp"
#include "runtime/runtime.hpp"
#include "server/audit_log.hpp"
#include "server/backup_copier.hpp"
#include "server/backup_set.hpp"
#include "storage/data_directory.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

namespace hearth::server {

// POST /admin/backup   body: {"directory":"/absolute","rate":bytes a second}. Answers once the mark
//                      is set (storage/copy_mark.hpp); the copies follow
// GET  /admin/backup   {"state":"none", "running", "done" or "failed","directory","mark_ms",
//                      "agents","done","bytes","linked","reason"} of the last backup
// DELETE /admin/backup   the one in progress fails soon. kNotFound: there is none
//
// The backup is a new directory in `directory` (backup_set.hpp), which is made with 0700 if it is
// absent, and whose last backup lends what has not changed as hard links. It appears under its name
// when all of it is on the device.
//
// host.db is of the mark too. server.db and audit.db are copied right after it: they may have
// entries that are later.
//
// Failure    kConflict: a backup is in progress. kInvalidArgument: the directory cannot be used.
//            kUnavailable: an event loop does not answer, so no mark can be set.
// Logged     admin.backup, and at the end backup.done or backup.failed.
// Threads    begin() on a thread that may wait, one at a time; status() from any.
// Lifetime   The arguments outlive it. stop() before the loops stop.
class Backups {
 public:
  static constexpr std::uint64_t kDefaultRate = std::uint64_t{32} << 20;
  static constexpr std::uint64_t kLeastRate = std::uint64_t{16} << 10;

  Backups(runtime::Runtime& runtime, const storage::DataDirectory& data, AuditLog& audit)
      : runtime_(runtime), data_(data), audit_(audit) {}
  ~Backups() { stop(); }
  Backups(const Backups&) = delete;
  Backups& operator=(const Backups&) = delete;

  [[nodiscard]] Result<Json> begin(const api::RouteCall& call);
  [[nodiscard]] Result<Json> status(const api::RouteCall& call);
  [[nodiscard]] Result<Json> cancel(const api::RouteCall& call);
  // The backup in progress fails.
  void stop();

 private:
  class Backup;
  // Ends the last backup's thread, or says why not.
  [[nodiscard]] Result<void> may_begin();
  void run(Backup& backup);
  void note_end(Backup& backup, const std::string& failure);

  runtime::Runtime& runtime_;
  const storage::DataDirectory& data_;
  AuditLog& audit_;
  Mutex mutex_;
  std::shared_ptr<Backup> backup_ GUARDED_BY(mutex_);  // the last one
  std::thread thread_;
};

}  // namespace hearth::server
