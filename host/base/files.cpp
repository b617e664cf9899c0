#include "base/files.hpp"

#include "base/file_descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace hearth {
namespace {

// In the names of files that are being written, before six random characters.
constexpr std::string_view kUnfinished = ".unfinished-";

Errc code_of(int error) {
  if (is_out_of_room(error)) return Errc::kUnavailable;
  switch (error) {
    case ENOENT:
    case ENOTDIR: return Errc::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS: return Errc::kForbidden;
    default: return Errc::kInternal;
  }
}

// "cannot read /x/y: No such file or directory"
Error system_failed(std::string_view attempted, const std::filesystem::path& path, int error) {
  std::string message = "cannot ";
  message += attempted;
  message += ' ';
  message += path.native();
  message += ": ";
  message += std::generic_category().message(error);
  return Error{code_of(error), std::move(message)};
}

int write_and_rename(int fd, const std::string& temporary, const std::filesystem::path& path,
                     std::string_view content, std::filesystem::perms mode) {
  if (const int error = write_all(fd, content); error != 0) return error;
  if (::fchmod(fd, static_cast<mode_t>(mode)) != 0) return errno;
  // Before the rename: otherwise the new name could point to an empty file after a loss of power.
  if (::fsync(fd) != 0) return errno;
  if (::rename(temporary.c_str(), path.c_str()) != 0) return errno;
  return 0;
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  // O_NONBLOCK has no effect on a regular file. Without it, a pipe without a writer would block.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.is_open()) return system_failed("open", path, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return system_failed("examine", path, errno);
  if (!S_ISREG(status.st_mode)) {
    return Error{Errc::kInvalidArgument,
                 "cannot read " + path.native() + ": it is not a regular file"};
  }

  // The size is a hint only: the file may grow or shrink while it is read.
  constexpr std::size_t kStep = std::size_t{64} << 10U;
  const std::size_t bound = max_bytes + 1;  // the extra byte shows that the file is too long
  const auto hint = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
  std::string content(std::min(bound, std::max(hint + 1, kStep)), '\0');
  std::size_t size = 0;
  while (size < bound) {
    if (size == content.size()) content.resize(std::min(bound, content.size() + kStep));
    const ssize_t got = ::read(fd.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failed("read", path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > max_bytes) {
    return Error{Errc::kLimitExceeded, "cannot read " + path.native() + ": it is longer than " +
                                           std::to_string(max_bytes) + " bytes"};
  }
  content.resize(size);
  return content;
}

Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view content,
                                   std::filesystem::perms mode) {
  // Beside the target, because a rename works only within one file system.
  std::string temporary = path.native() + std::string(kUnfinished) + "XXXXXX";
  const FileDescriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.is_open()) return system_failed("create a file beside", path, errno);
  if (const int error = write_and_rename(fd.get(), temporary, path, content, mode); error != 0) {
    ::unlink(temporary.c_str());
    return system_failed("write", path, error);
  }
  const std::filesystem::path parent = path.parent_path();
  // The rename itself must survive a loss of power.
  if (const int error = sync_directory(parent.empty() ? "." : parent); error != 0) {
    return system_failed("make durable", path, error);
  }
  return {};
}

int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

int sync_directory(const std::filesystem::path& directory) {
  const FileDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open() || ::fsync(fd.get()) != 0) return errno;
  return 0;
}

void remove_unfinished(const std::filesystem::path& directory) {
  constexpr std::size_t kRandom = 6;
  std::error_code failure;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(directory, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string& path = entry->path().native();
    const std::size_t at = path.rfind(kUnfinished);
    if (at != std::string::npos && at + kUnfinished.size() + kRandom == path.size())
      std::filesystem::remove(entry->path(), ignored);
  }
}

bool is_there(const std::filesystem::path& path) {
  std::error_code failure;
  return std::filesystem::symlink_status(path, failure).type() !=
         std::filesystem::file_type::not_found;
}

}  // namespace hearth
