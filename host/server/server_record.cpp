#include "server/server_record.hpp"

#include "base/escape.hpp"
#include "base/files.hpp"
#include "json/json.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace hearth::server {
namespace {

constexpr const char* kFile = "server.json";
constexpr std::size_t kMaxRecordFileBytes = std::size_t{64} << 10;

struct flock whole_file(short kind) {
  struct flock lock{};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  return lock;
}

Error no_server(const std::filesystem::path& data) {
  return Error{Errc::kNotFound, "no server runs on the data directory " + show_name(data.native()) +
                                    ": name another one with --data or --config"};
}

// Whether the file may be trusted: its owner decides which token file is sent to which address.
// Root trusts the files of all users.
bool is_trusted(const std::filesystem::path& file) {
  struct stat status{};
  const uid_t user = ::geteuid();
  return ::lstat(file.c_str(), &status) == 0 &&
         (user == 0 || status.st_uid == user || status.st_uid == 0);
}

// Whether some process holds the lock of PublishedRecord. Takes no lock itself.
bool is_held(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  struct flock lock = whole_file(F_RDLCK);
  const bool held = ::fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(descriptor);
  return held;
}

}  // namespace

PublishedRecord::PublishedRecord(std::filesystem::path file, int lock)
    : file_(std::move(file)), lock_(lock) {}

PublishedRecord::PublishedRecord(PublishedRecord&& other) noexcept
    : file_(std::move(other.file_)), lock_(std::exchange(other.lock_, -1)) {}

PublishedRecord::~PublishedRecord() {
  if (lock_ < 0) return;
  std::error_code ignored;  // if the file stays, it is not locked any more
  std::filesystem::remove(file_, ignored);
  ::close(lock_);
}

Result<PublishedRecord> PublishedRecord::publish(const std::filesystem::path& data,
                                                 const ServerRecord& record) {
  std::filesystem::path file = data / kFile;
  const Json json{{"address", record.address},
                  {"token_file", record.token_file.native()},
                  {"pid", record.pid},
                  {"tls", record.tls}};
  const auto written =
      write_file_atomically(file, dump_json(json) + "\n", std::filesystem::perms{0600});
  if (!written) return written.error();
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  struct flock lock = whole_file(F_WRLCK);
  if (descriptor < 0 || ::fcntl(descriptor, F_OFD_SETLK, &lock) != 0) {
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    return Error{Errc::kInternal, "cannot lock " + show_name(file.native()) + ": " +
                                      std::generic_category().message(error)};
  }
  return PublishedRecord(std::move(file), descriptor);
}

Result<ServerRecord> find_server(const std::filesystem::path& data) {
  const std::filesystem::path file = data / kFile;
  std::error_code failure;
  if (std::filesystem::exists(file, failure) && !is_trusted(file)) {
    return Error{Errc::kForbidden,
                 show_name(file.native()) +
                     " is another user's: only that user and root may ask the server"};
  }
  const auto text = read_file(file, kMaxRecordFileBytes);
  if (!text) {
    if (text.error().code == Errc::kNotFound) return no_server(data);
    return text.error();
  }
  if (!is_held(file)) return no_server(data);
  const auto json = parse_json(*text);
  Error wrong{Errc::kInvalidArgument, show_name(file.native()) + " is not what a server writes"};
  if (!json || !json->is_object()) return wrong;
  ServerRecord record;
  const auto address = json->find("address");
  const auto token_file = json->find("token_file");
  const auto pid = json->find("pid");
  if (address == json->end() || !address->is_string()) return wrong;
  if (token_file == json->end() || !token_file->is_string()) return wrong;
  const auto tls = json->find("tls");
  if (tls == json->end() || !tls->is_boolean()) return wrong;
  if (pid == json->end() || !pid->is_number_integer()) return wrong;
  record.address = address->get<std::string>();
  record.token_file = token_file->get<std::string>();
  record.tls = tls->get<bool>();
  record.pid = pid->get<std::int64_t>();
  return record;
}

}  // namespace hearth::server
