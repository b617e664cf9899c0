#include "server/backup_set.hpp"

#include "base/escape.hpp"
#include "base/file_descriptor.hpp"
#include "base/files.hpp"
#include "base/sha256.hpp"
#include "storage/data_format.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <sstream>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopyPiece = std::size_t{256} << 10;
constexpr std::int64_t kBackupFormat = 1;
constexpr std::string_view kManifestHead = "hearth-backup";

template <class Failure = StorageError>
[[noreturn]] void copy_failed(std::string_view doing, const fs::path& path) {
  throw Failure(std::string(doing) + " " + path.native() + ": " +
                std::generic_category().message(errno));
}

bool is_below(const fs::path& path) {
  return !path.empty() && path.is_relative() && path == path.lexically_normal() &&
         path.has_filename() && *path.begin() != ".." && *path.begin() != "." &&
         path.native().find_first_of(std::string_view("\0\n", 2)) == std::string::npos;
}

// Not the fault of one file.
bool is_of_process(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

FileDescriptor open_source(const fs::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.is_open() && errno == ENOENT) copy_failed<SourceIsGone>("open", path);
  struct stat status{};
  if (!file.is_open() && is_of_process(errno)) copy_failed("open", path);
  if (!file.is_open() || ::fstat(file.get(), &status) != 0)
    copy_failed<SourceUnreadable>("open", path);
  if (!S_ISREG(status.st_mode)) throw SourceUnreadable(path.native() + " is no regular file");
  return file;
}

// As the server names backups: "20261128T051500Z", and "...Z-2" for the second one of a second.
bool is_backup_name(std::string_view name) {
  constexpr std::string_view kShape = "00000000T000000Z";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (name.size() < kShape.size()) return false;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] == '0' ? !is_digit(name[i]) : name[i] != kShape[i]) return false;
  }
  name.remove_prefix(kShape.size());
  return name.empty() ||
         (name.size() > 1 && name.front() == '-' && std::ranges::all_of(name.substr(1), is_digit));
}

// "...Z-10" comes after "...Z-9".
bool is_older(const fs::path& one, const fs::path& other) {
  const auto place = [](const std::string& name) {
    return std::tuple(std::string_view(name).substr(0, name.find('-')), name.size(),
                      std::string_view(name));
  };
  const std::string a = one.filename();
  const std::string b = other.filename();
  return place(a) < place(b);
}

}  // namespace

Result<fs::path> find_backup(const fs::path& given) {
  if (is_there(given / kManifestFile)) return given;
  fs::path newest;
  std::error_code failure;
  for (fs::directory_iterator each(given, failure), end; !failure && each != end;
       each.increment(failure)) {
    const fs::path& path = each->path();
    if (is_backup_name(path.filename().native()) && is_there(path / kManifestFile))
      newest = std::max(newest, path, is_older);
  }
  if (newest.empty()) {
    return Error{Errc::kNotFound, "there is no whole backup in " + given.native() +
                                      (failure ? ": " + failure.message() : std::string())};
  }
  return newest;
}

std::string backup_name(std::int64_t mark_ms, const fs::path& directory) {
  const std::time_t seconds = mark_ms / 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &utc);
  std::string name = text.data();
  std::uint64_t number = 1;
  const auto last = find_backup(directory);
  const std::string newest = last ? last->filename().native() : std::string();
  if (is_backup_name(newest) && newest.substr(0, name.size()) >= name) {
    name.assign(newest, 0, name.size());
    if (newest.size() > name.size())
      std::from_chars(&newest[name.size() + 1], newest.data() + newest.size(), number);
    ++number;
  }
  const auto numbered = [&] { return number == 1 ? name : name + '-' + std::to_string(number); };
  while (fs::exists(directory / numbered())) ++number;
  return numbered();
}

Result<BackupManifest> read_manifest(const fs::path& backup) {
  Result<std::string> text = read_file(backup / kManifestFile, SIZE_MAX - 1);
  if (!text) return text.error();  // it may be whole, and another user's
  Error damaged{Errc::kInvalidArgument, (backup / kManifestFile).native() + " is damaged"};
  std::istringstream in(*std::move(text));
  std::string head;
  std::int64_t version = 0;
  std::int64_t format = 0;
  std::size_t files = 0;
  BackupManifest manifest;
  in >> head >> version >> format >> manifest.mark_ms >> manifest.agents >> files;
  if (!in || head != kManifestHead) return damaged;
  if (version != kBackupFormat || format != storage::kDataFormat)
    return Error{Errc::kInvalidArgument, storage::wrong_format(backup.native(), format)};
  for (BackupFile file; in >> file.sha256 >> file.bytes >> file.source && in.get() == ' ' &&
                        std::getline(in, file.path);) {
    if (!is_below(file.path)) {
      return Error{Errc::kInvalidArgument,
                   damaged.message + ": it names a file that is not in the backup"};
    }
    manifest.files.push_back(file);
  }
  if (manifest.files.size() != files) return damaged;
  return manifest;
}

Result<void> write_manifest(const fs::path& backup, const BackupManifest& manifest) {
  std::ostringstream text;
  text << kManifestHead << ' ' << kBackupFormat << ' ' << storage::kDataFormat << ' '
       << manifest.mark_ms << ' ' << manifest.agents << ' ' << manifest.files.size() << '\n';
  for (const BackupFile& each : manifest.files) {
    text << each.sha256 << ' ' << each.bytes << ' ' << (each.source.empty() ? "-" : each.source)
         << ' ' << each.path << '\n';
  }
  return write_file_atomically(backup / kManifestFile, text.view(), fs::perms{0600});
}

std::string source_of(const fs::path& file) {
  constexpr std::time_t kSettled = 2;  // seconds; the times of some file systems are as coarse
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) return {};
  if (std::max(status.st_mtim.tv_sec, status.st_ctim.tv_sec) + kSettled > std::time(nullptr))
    return {};
  std::string text;
  for (const auto number :
       {static_cast<std::int64_t>(status.st_dev), static_cast<std::int64_t>(status.st_ino),
        static_cast<std::int64_t>(status.st_size), std::int64_t{status.st_mtim.tv_sec},
        std::int64_t{status.st_mtim.tv_nsec}, std::int64_t{status.st_ctim.tv_sec},
        std::int64_t{status.st_ctim.tv_nsec}})
    text += std::to_string(number) + ':';
  return text;
}

void make_private_parents(const fs::path& file) {
  const fs::path parent = file.parent_path();
  if (::mkdir(parent.c_str(), 0700) == 0 || errno == EEXIST) return;
  if (errno != ENOENT) copy_failed("make directory", parent);
  make_private_parents(parent);
  if (::mkdir(parent.c_str(), 0700) != 0 && errno != EEXIST) copy_failed("make directory", parent);
}

BackupFile copy_bytes(const fs::path& from, const fs::path& to, std::uint64_t limit,
                      const std::function<void(std::size_t)>& moved) {
  const FileDescriptor source = open_source(from);
  make_private_parents(to);
  const FileDescriptor target(
      ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!target.is_open()) copy_failed("make", to);
  BackupFile copy;
  Sha256 digest;
  std::string piece(kCopyPiece, '\0');
  while (copy.bytes < limit) {
    const std::size_t wanted = std::min<std::uint64_t>(piece.size(), limit - copy.bytes);
    const ssize_t size = ::read(source.get(), piece.data(), wanted);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) copy_failed<SourceUnreadable>("read", from);
    if (size == 0) break;
    const std::string_view bytes(piece.data(), static_cast<std::size_t>(size));
    if (write_all(target.get(), bytes) != 0) copy_failed("write", to);
    digest.update(bytes);
    copy.bytes += bytes.size();
    if (moved) moved(bytes.size());
  }
  copy.sha256 = to_hex(digest.finish());
  return copy;
}

void copy_checked(const fs::path& backup, const BackupFile& file, const fs::path& to) {
  const BackupFile copy = copy_bytes(backup / file.path, to);
  if (copy.bytes == file.bytes && copy.sha256 == file.sha256) return;
  throw StorageError((backup / file.path).native() +
                     " is damaged: it is not what was copied. Use an older backup");
}

void sync_file_system(const fs::path& directory) {
  const FileDescriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open() || ::syncfs(opened.get()) != 0) copy_failed("sync", directory);
}

}  // namespace hearth::server
