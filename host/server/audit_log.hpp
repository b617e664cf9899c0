#pragma once
// The record of what was done here: objects, alarms that failed, libraries, settings, and what
// administrators have asked for.

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

// How the record names an event of the log: "object.created" is ObjectCreated.
[[nodiscard]] std::string audit_name(std::string_view event);

// Stands before the server's logger and keeps what it is told to record(). Of the fields of an
// event "class", "agent" and "actor" have a place of their own; the others are its detail. Without
// an actor it is "administrator" for admin.* and "server" for the rest. The entries of agents
// themselves (hearth.audit/1) are AgentAudit, with {"what":word,"detail":object} as their detail.
//
// Promises
//  P1 No waiting   Nobody waits for the disk: a thread of its own writes.
//  P2 Honest       What finds no room, or cannot be written, is counted and told (audit.lost).
//                  kill -9 takes the entries of the last moments with it.
//  P3 Bounded      On disk by number and age, an entry by kMaxDetail; in memory by kMaxWaiting.
//
// Threads    As Logger; read() any. open() and stop() by whoever made it, once each.
// Lifetime   The logger, the clock and the metrics outlive it.
class AuditLog final : public Logger {
 public:
  static constexpr std::size_t kMaxWaiting = 10'000;
  static constexpr std::size_t kMaxDetail = 4096;  // bytes; a longer text is cut
  static constexpr std::size_t kMaxPage = 1000;

  AuditLog(Logger& next, const Clock& clock, config::AuditConfig options, Metrics& metrics);
  ~AuditLog() override;

  // What was recorded before is written now.
  void open(const std::filesystem::path& store);
  // Writes what waits. What is recorded afterwards is lost.
  void stop();

  using Logger::write;
  [[nodiscard]] bool enabled(LogLevel level) const override { return next_.enabled(level); }
  void write(LogLevel level, std::string_view event, std::span<const LogField> fields) override {
    next_.write(level, event, fields);
  }
  [[nodiscard]] DroppedLines dropped() const override { return next_.dropped(); }

  // Answers on the writer's thread, with what was recorded before the call among it. False: too
  // much is asked at once, or it has stopped; there is no answer.
  using Page = Result<std::vector<storage::AuditEntry>>;
  bool read(storage::AuditQuery query, std::function<void(Page)> answer);

 protected:
  void keep(std::string_view event, std::span<const LogField> fields) override;

 private:
  void begin_writing() REQUIRES(mutex_);
  void write_waiting();
  void store(std::vector<storage::AuditEntry>& entries);
  void trim(storage::AuditStore& store);
  // What is older is not kept, and not told of.
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
  // ---- the writer's ----
  std::optional<storage::AuditStore> store_;
  std::optional<AuditFile> file_;
  // Entries between two looks at what is too old or too much; the first look comes at once.
  static constexpr std::size_t kTrimEvery = 1000;
  std::size_t since_trim_ = kTrimEvery;
  runtime::BlockingPool writer_{1, 64};  // last: its jobs use the fields above
};

}  // namespace hearth::server
