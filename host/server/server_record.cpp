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
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct flock lock = whole_file(F_RDLCK);
  return opened.is_open() && ::fcntl(opened.get(), F_OFD_GETLK, &lock) == 0 &&
         lock.l_type != F_UNLCK;
}

}  // namespace

PublishedRecord::~PublishedRecord() {
  std::error_code ignored;  // if the file stays, it is not locked any more
  if (lock_.is_open()) std::filesystem::remove(file_, ignored);
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
  FileDescriptor opened(::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct flock lock = whole_file(F_WRLCK);
  if (!opened.is_open() || ::fcntl(opened.get(), F_OFD_SETLK, &lock) != 0)
    return Error{Errc::kInternal, "cannot lock " + show_name(file.native()) + ": " +
                                      std::generic_category().message(errno)};
  return PublishedRecord(std::move(file), std::move(opened));
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
  auto json = parse_json(*text);
  const auto is = [&json](const char* name, Json::value_t type) {
    const auto found = json->find(name);
    return found != json->end() && found->type() == type;
  };
  using enum Json::value_t;
  if (!json || !json->is_object() || !is("address", string) || !is("token_file", string) ||
      !is("tls", boolean) || !is("pid", number_unsigned))
    return Error{Errc::kInvalidArgument, show_name(file.native()) + " is not what a server writes"};
  return ServerRecord{.address = (*json)["address"].get<std::string>(),
                      .token_file = (*json)["token_file"].get<std::string>(),
                      .pid = (*json)["pid"].get<std::int64_t>(),
                      .tls = (*json)["tls"].get<bool>()};
}

}  // namespace hearth::server
