#pragma once
// The audit log as lines of JSON, for other tools.

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "storage/audit_store.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace hearth::server {

// An entry as one object: "id", "at" (RFC 3339, UTC, milliseconds), "event", "actor", and if
// present "class", "agent" and "detail". Without a line feed.
[[nodiscard]] std::string audit_line(const storage::AuditEntry& entry);

// Only appends. If the file was renamed or removed (logrotate), the next entry makes a new one,
// which only its owner can read and write. Each entry begins a new line, also after an entry that a
// full disk or a crash has cut off.
//
// Threads   One at a time. Writes without fsync: it does not wait for the device.
// Failure   kUnavailable, with the file and the system's error. Some entries may have been written.
class AuditFile {
 public:
  explicit AuditFile(std::filesystem::path file);

  [[nodiscard]] Result<void> append(std::span<const storage::AuditEntry> entries);

 private:
  // False: errno has the reason.
  [[nodiscard]] bool open();
  // Whether the open file is still the file at the path.
  [[nodiscard]] bool is_current() const;
  [[nodiscard]] Error failure(const char* what) const;

  const std::filesystem::path file_;
  FileDescriptor open_;
  bool is_cut_off_ = false;  // the file's last line has no end
  bool is_full_ = false;     // a pipe, and its reader has not taken what was written last
};

}  // namespace hearth::server
