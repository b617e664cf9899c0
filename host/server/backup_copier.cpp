#include "server/backup_copier.hpp"

#include "storage/agent_database.hpp"
#include "storage/copy_mark.hpp"
#include "storage/wal_format.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include <linux/close_range.h>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;

// An even smaller file costs as much time of the disk.
constexpr std::size_t kLeastCost = 4096;
constexpr int kBackupNiceness = 10;

// What belongs to no agent, besides databases. The others are of this process alone, or records of
// crashes.
constexpr const char* kSmallFiles[] = {"versions.json", "admin.token"};
constexpr const char* kSmallDirectories[] = {"definitions", "trials", "checked"};

constexpr std::uint64_t kWholeFile = std::numeric_limits<std::uint64_t>::max();

}  // namespace

BackupCopier::BackupCopier(const storage::DataDirectory& data, fs::path to, const fs::path& last,
                           std::uint64_t rate, BackupProgress& progress)
    : data_(data), to_(std::move(to)), last_(last), rate_(rate), progress_(progress) {
  if (last.empty()) return;
  auto manifest = read_manifest(last);
  if (!manifest) return;  // then nothing is linked
  for (BackupFile& each : manifest->files) {
    std::string path = each.path;
    last_files_.emplace(std::move(path), std::move(each));
  }
}

void BackupCopier::run() {
  if (::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_UNSHARE) != 0) {
    throw StorageError("close_range: " + std::generic_category().message(errno) +
                       ". Backups of a running server need Linux 5.9");
  }
  ::setpriority(PRIO_PROCESS, 0, kBackupNiceness);  // of this thread
  next_ = std::chrono::steady_clock::now();
  // First, because they are not held as they were at the mark.
  for (const char* const each : kSmallFiles) {
    std::error_code failure;  // a link to the token serves, too
    const fs::path file = fs::canonical(data_.path() / each, failure);
    copy_alone(failure ? data_.path() / each : file, each);
  }
  for (const char* const each : kSmallDirectories) copy_all_below(data_.path() / each);
  for (const auto& each : fs::directory_iterator(to_ / kRawCopies))
    copy(each.path(), each.path().filename());
  fs::remove_all(to_ / kRawCopies);
  while (const auto key = data_.copy_mark().next()) {
    copy_agent(*key);
    ++progress_.done;
  }
}

void BackupCopier::copy_agent(const storage::AgentKey& key) {
  const fs::path file = data_.agent_path(key);
  const std::string path = path_in_backup(file);
  const std::size_t before = files_.size();
  try {
    copy(file, path);
    copy_wal(file.native() + "-wal");
  } catch (const SourceUnreadable& failure) {  // neither is any use without the other
    for (const char* const part : {"", "-wal"}) fs::remove(to_ / (path + part));
    files_.resize(before);
    progress_.leave_out(failure.what());
    return;
  }
  copy_all_below(storage::AgentDatabase::files_beside(file));
}

// A commit may overwrite what an earlier use of the WAL has left, so a copy that was made before
// the first commit since the mark was known is made again.
void BackupCopier::copy_wal(const fs::path& wal) {
  storage::CopyMark& mark = data_.copy_mark();
  const std::string path = path_in_backup(wal);
  const std::size_t before = files_.size();
  auto pages = mark.pages();
  for (;;) {
    constexpr std::uint64_t kOne = storage::kWalFrameHeaderBytes + storage::kPageBytes;
    if (pages != 0)
      copy(wal, path,
           pages ? storage::kWalHeaderBytes + static_cast<std::uint64_t>(*pages) * kOne
                 : kWholeFile);
    const auto now = mark.pages();
    if (now == pages) return;
    pages = now;
    if (files_.size() > before) fs::remove(to_ / path);
    files_.resize(before);
  }
}

void BackupCopier::copy_all_below(const fs::path& directory) {
  std::error_code failure;
  for (fs::directory_iterator each(directory, failure), end; !failure && each != end;
       each.increment(failure)) {
    std::error_code gone;
    if (each->symlink_status(gone).type() == fs::file_type::directory) {
      copy_all_below(each->path());
    } else {
      copy_alone(each->path(), path_in_backup(each->path()));
    }
  }
  if (!failure || failure == std::errc::no_such_file_or_directory) return;
  const std::string why = "read " + directory.native() + ": " + failure.message();
  const bool is_of_process = failure == std::errc::too_many_files_open ||
                             failure == std::errc::too_many_files_open_in_system ||
                             failure == std::errc::not_enough_memory;
  if (is_of_process) throw StorageError(why);
  progress_.leave_out(why);
}

std::string BackupCopier::path_in_backup(const fs::path& file) const {
  return file.lexically_relative(data_.path());
}

void BackupCopier::copy_alone(const fs::path& file, const std::string& path) {
  try {
    copy(file, path);
  } catch (const SourceUnreadable& failure) {
    fs::remove(to_ / path);
    progress_.leave_out(failure.what());
  }
}

void BackupCopier::copy(const fs::path& file, const std::string& path, std::uint64_t limit) {
  const std::string source = limit == kWholeFile ? source_of(file) : std::string();
  const auto last = last_files_.find(path);
  if (last != last_files_.end() && !source.empty() && last->second.source == source &&
      link(last->second, to_ / path)) {
    pace(0);
    files_.push_back(last->second);
    return;
  }
  BackupFile copied;
  try {
    copied = copy_bytes(file, to_ / path, limit, [this](std::size_t bytes) { pace(bytes); });
  } catch (const SourceIsGone&) {
    return;
  }
  copied.path = path;
  copied.source = source;
  progress_.bytes += copied.bytes;
  files_.push_back(std::move(copied));
}

bool BackupCopier::link(const BackupFile& file, const fs::path& target) const {
  make_private_parents(target);
  const fs::path from = last_ / file.path;
  std::error_code failure;
  if (fs::file_size(from, failure) != file.bytes || ::link(from.c_str(), target.c_str()) != 0)
    return false;
  ++progress_.linked;
  return true;
}

// Waits so long that the average rate is kept.
void BackupCopier::pace(std::size_t bytes) {
  using std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLongestSleep{50};
  const double seconds =
      static_cast<double>(std::max(bytes, kLeastCost)) / static_cast<double>(rate_);
  next_ =
      std::max(next_, steady_clock::now() - kLongestSleep) +
      std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds));
  do {
    if (progress_.must_stop) throw StorageError("it was stopped");
    std::this_thread::sleep_until(std::min(next_, steady_clock::now() + kLongestSleep));
  } while (steady_clock::now() < next_);
}

}  // namespace hearth::server
