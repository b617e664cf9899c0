#pragma once
// The audit log: what happened to objects, libraries and settings, alarms that failed, and what
// administrators did.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "config/config.hpp"
#include "runtime/blocking_pool.hpp"
#include "server/audit_file.hpp"
#include "storage/audit_store.hpp"
#include "telemetry/metrics.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::server {

// The audit name of a log event: "object.created" is ObjectCreated.
[[nodiscard]] std::string audit_name(std::string_view event);

// Passes all lines to the server's logger, and keeps those given to record(). The fields "class",
// "agent" and "actor" have columns of their own; the other fields are the detail. Without an actor
// it is "administrator" for admin.*, and "server" for other events. Entries of agents themselves
// (hearth.audit/1) are AgentAudit, with {"what":word,"detail":object} as their detail.
//
// Promises
//  P1 No waiting   No caller waits for the disk: a thread of the log writes.
//  P2 Honest       Entries that find no room or cannot be written are counted and logged
//                  (audit.lost), but kill -9 loses the last entries without a count.
//  P3 Bounded      On disk by number and age, an entry by kMaxDetail; in memory by kMaxWaiting.
//  P4 Apart        What clients and agents cause displaces no entry of administrators or of the
//                  server (storage::AuditKind).
//
// P4: Callers limit how often such entries come (extensions::kAuditLimit).
//
// Threads    As Logger; read() from any. The thread that made it calls open() and stop(), each
//            once.
// Lifetime   The logger, the clock and the metrics outlive it.
class AuditLog final : public Logger {
 public:
  static constexpr std::size_t kMaxWaiting = 10'000;
  static constexpr std::size_t kMaxDetail = 4096;  // bytes; a longer text is cut
  static constexpr std::size_t kMaxPage = 1000;

  AuditLog(Logger& next, const Clock& clock, config::AuditConfig options, Metrics& metrics);
  ~AuditLog() override;

  // Begins to write, also what was recorded before.
  void open(const std::filesystem::path& store);
  // Writes the waiting entries. Entries that are recorded later are lost.
  void stop();

  using Logger::write;
  [[nodiscard]] bool enabled(LogLevel level) const override { return next_.enabled(level); }
  void write(LogLevel level, std::string_view event, std::span<const LogField> fields) override {
    next_.write(level, event, fields);
  }
  [[nodiscard]] DroppedLines dropped() const override { return next_.dropped(); }

  // Answers on the writer's thread, after writing what was recorded before the call. False: too
  // many requests wait, or the log has stopped; `answer` is not called.
  using Page = Result<std::vector<storage::AuditEntry>>;
  bool read(storage::AuditQuery query, std::function<void(Page)> answer);

 protected:
  void keep(std::string_view event, std::span<const LogField> fields) override;

 private:
  void begin_writing() REQUIRES(mutex_);
  void write_waiting();
  void store(std::vector<storage::AuditEntry>& entries);
  void trim(storage::AuditStore& store);
  // Older entries are not kept and not returned.
  [[nodiscard]] std::int64_t oldest_ms() const;
  void lose(std::size_t entries, std::string_view reason);

  Logger& next_;
  const Clock& clock_;
  const config::AuditConfig options_;
  Counter& lost_;
  Mutex mutex_;
  std::vector<storage::AuditEntry> waiting_ GUARDED_BY(mutex_);
  bool is_open_ GUARDED_BY(mutex_) = false;
  bool is_writing_ GUARDED_BY(mutex_) = false;
  // ---- only the writer's thread ----
  std::optional<storage::AuditStore> store_;
  std::optional<AuditFile> file_;
  // After this many entries trim() runs again. It runs at once the first time.
  static constexpr std::size_t kTrimEvery = 1000;
  std::size_t since_trim_ = kTrimEvery;
  runtime::BlockingPool writer_{1, 64};  // last: its jobs use the fields above
};

}  // namespace hearth::server
