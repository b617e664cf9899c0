#include "plugins/admission/candidate.hpp"

#include "base/file_descriptor.hpp"
#include "base/sha256.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace hearth::plugins {
namespace {

using std::chrono::milliseconds;

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool unchanged(const struct stat& before, const struct stat& after) {
  return before.st_dev == after.st_dev && before.st_ino == after.st_ino &&
         before.st_size == after.st_size && before.st_mode == after.st_mode &&
         before.st_uid == after.st_uid && same_time(before.st_mtim, after.st_mtim) &&
         same_time(before.st_ctim, after.st_ctim);
}

milliseconds age(const struct stat& status, WallTime now) {
  // The later of both times: tools that keep the modification time (cp -p, rsync, tar) cannot keep
  // the time of change.
  const auto to_time = [](const timespec& t) {
    return WallTime(std::chrono::duration_cast<WallTime::duration>(
        std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec)));
  };
  const WallTime changed = std::max(to_time(status.st_mtim), to_time(status.st_ctim));
  return std::chrono::duration_cast<milliseconds>(now - changed);
}

// One look at the file: its bytes, or how long to wait before the next look.
struct Look {
  std::optional<milliseconds> wait = {};
  std::vector<std::byte> bytes = {};
};

// Reads up to `bytes.size()`; fewer at the end of the file, and -1 with errno set on failure.
ssize_t read_fully(int descriptor, std::span<std::byte> bytes) {
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n = ::read(descriptor, bytes.data() + got, bytes.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(got);
}

Checked<Look> look_at_file(const std::filesystem::path& file, const Clock& clock,
                           const ReadingPolicy& policy) {
  // O_NONBLOCK: opening a pipe without a writer would block. It has no effect on regular files.
  const FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) {
    if (errno == ELOOP) {
      return finding("F1", "it is a symbolic link: put the library itself there");
    }
    return finding("F7", "it cannot be opened: " + system_text(errno));
  }
  struct stat before{};
  if (::fstat(fd.get(), &before) != 0) {
    return finding("F7", "it cannot be examined: " + system_text(errno));
  }
  if (auto found = check_status(before, policy.user)) {
    // Every copy begins as an empty file.
    const milliseconds young = age(before, clock.wall_now());
    if (found->rule == "F5" && young < policy.settle_time) return Look{.wait = policy.settle_time};
    return *std::move(found);
  }
  const milliseconds quiet = age(before, clock.wall_now());
  // A time in the future is ignored: the comparison after reading must suffice.
  if (quiet >= milliseconds(0) && quiet < policy.settle_time)
    return Look{.wait = policy.settle_time - quiet};

  // One byte more than its size, to notice that it grew.
  std::vector<std::byte> bytes(static_cast<std::size_t>(before.st_size) + 1);
  const ssize_t got = read_fully(fd.get(), bytes);
  if (got < 0) return finding("F7", "it cannot be read: " + system_text(errno));
  struct stat after{};
  const bool stable = ::fstat(fd.get(), &after) == 0 && unchanged(before, after);
  if (!stable || std::cmp_not_equal(got, before.st_size)) return Look{.wait = policy.settle_time};
  bytes.resize(static_cast<std::size_t>(got));
  return Look{.bytes = std::move(bytes)};
}

}  // namespace

Checked<Candidate> read_candidate(const std::filesystem::path& file, const Clock& clock,
                                  const ReadingPolicy& policy) {
  for (int attempt = 0; attempt < policy.attempts; ++attempt) {
    auto look = look_at_file(file, clock, policy);
    if (!look) return look.error();
    if (const auto wait = look->wait) {
      if (policy.pause) policy.pause(*wait);
      continue;
    }
    Sha256 hash;
    hash.update(look->bytes);
    std::string digest = to_hex(hash.finish());
    return Candidate{.file = file, .bytes = std::move(look->bytes), .sha256 = std::move(digest)};
  }
  return finding("F6", "it is still being written: copy it under another name and rename it");
}

}  // namespace hearth::plugins
