#include "server/audit_file.hpp"

#include "json/json.hpp"
#include "protocol/rfc3339.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <utility>

#include <poll.h>

namespace hearth::server {
namespace {

using std::chrono_literals::operator""ms;

// False also if it cannot be read, such as a pipe.
bool lacks_line_feed(int descriptor) {
  struct ::stat file{};
  char last = '\n';
  return ::fstat(descriptor, &file) == 0 && file.st_size > 0 &&
         ::pread(descriptor, &last, 1, file.st_size - 1) == 1 && last != '\n';
}

// As write_all(). A pipe that is full gets `patience` for its reader.
int write_soon(int descriptor, std::string_view text, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!text.empty()) {
    const ssize_t size = ::write(descriptor, text.data(), text.size());
    if (size >= 0) {
      text.remove_prefix(static_cast<std::size_t>(size));
    } else if (errno == EAGAIN) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      pollfd room{.fd = descriptor, .events = POLLOUT, .revents = 0};
      if (left.count() <= 0 || ::poll(&room, 1, static_cast<int>(left.count())) == 0) return EAGAIN;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

std::string audit_line(const storage::AuditEntry& entry) {
  Json line{{"id", entry.id},
            {"at", protocol::rfc3339(entry.at_ms)},
            {"event", entry.event},
            {"actor", entry.actor}};
  if (!entry.agent_class.empty()) line["class"] = entry.agent_class;
  if (!entry.agent.empty()) line["agent"] = entry.agent;
  if (auto detail = parse_host_json(entry.detail)) line["detail"] = *std::move(detail);
  return dump_json(line);
}

AuditFile::AuditFile(std::filesystem::path file) : file_(std::move(file)) {}

bool AuditFile::is_current() const {
  struct ::stat opened{};
  struct ::stat named{};
  return open_.is_open() && ::fstat(open_.get(), &opened) == 0 &&
         ::stat(file_.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

Error AuditFile::failure(const char* what) const {
  return Error{Errc::kUnavailable, std::string("cannot ") + what + " the audit file " +
                                       file_.native() + ": " + system_text(errno)};
}

bool AuditFile::open() {
  // O_NONBLOCK: a pipe without a reader fails, and holds up neither audit.db nor the stop.
  constexpr int kHow = O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  open_ = FileDescriptor(::open(file_.c_str(), O_RDWR | kHow, 0600));
  // Without permission to read: write only.
  if (!open_.is_open()) open_ = FileDescriptor(::open(file_.c_str(), O_WRONLY | kHow, 0600));
  if (!open_.is_open()) return false;
  is_cut_off_ = lacks_line_feed(open_.get());
  return true;
}

Result<void> AuditFile::append(std::span<const storage::AuditEntry> entries) {
  if (!is_current() && !open()) return failure("open");
  std::string lines(is_cut_off_ ? "\n" : "");
  for (const storage::AuditEntry& entry : entries) lines += audit_line(entry) + "\n";
  // A reader may be slow; one that was away before is not waited for again.
  const int error = write_soon(open_.get(), lines, is_full_ ? 0ms : 1000ms);
  is_full_ = error == EAGAIN;
  if (error != 0) {
    is_cut_off_ = error == EAGAIN || lacks_line_feed(open_.get());
    errno = error;
    return failure("write to");
  }
  is_cut_off_ = false;
  return {};
}

}  // namespace hearth::server
