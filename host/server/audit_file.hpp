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

// An entry as one object: "id", "at" (RFC 3339, UTC, milliseconds), "event", "actor", and if there
// are any "class", "agent" and "detail". Without a line feed.
[[nodiscard]] std::string audit_line(const storage::AuditEntry& entry);

// Only ever appends. A file that was renamed or removed (logrotate) is made anew with the next
// entry; it can be read and written by its owner alone. An entry begins a line, also behind one
// that a full disk, or the end of the process, has cut off.
//
// Threads   One at a time. Waits for the device's queue, not for the device.
// Failure   kUnavailable, with the file and what the system says. Part of the entries may be there.
class AuditFile {
 public:
  explicit AuditFile(std::filesystem::path file);

  [[nodiscard]] Result<void> append(std::span<const storage::AuditEntry> entries);

 private:
  // False: errno says why not.
  [[nodiscard]] bool open();
  // Whether what is open is what the path means.
  [[nodiscard]] bool is_current() const;
  [[nodiscard]] Error failure(const char* what) const;

  const std::filesystem::path file_;
  FileDescriptor open_;
  bool is_cut_off_ = false;  // the file's last line has no end
};

}  // namespace hearth::server
