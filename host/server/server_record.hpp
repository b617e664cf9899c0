#pragma once
// <data>/server.json: the address of the server that runs on a data directory, for commands.

#include "base/error.hpp"
#include "base/file_descriptor.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace hearth::server {

struct ServerRecord {
  std::string address;               // "127.0.0.1:8787", with the real port
  std::filesystem::path token_file;  // of its administrators; absolute
  std::int64_t pid = 0;
  bool tls = false;  // whether it speaks TLS
};

// Promises   While the object lives the file is there, for its user alone (0600), and locked. The
//            destructor removes it. If the process is killed, the file stays without a lock, and
//            find_server() ignores it: a command never sends its token to another program that has
//            the port now.
// Threads    One.
class PublishedRecord {
 public:
  //   Failure  kUnavailable: the disk is full. Otherwise the system's error.
  [[nodiscard]] static Result<PublishedRecord> publish(const std::filesystem::path& data,
                                                       const ServerRecord& record);
  PublishedRecord(PublishedRecord&& other) noexcept = default;
  PublishedRecord& operator=(PublishedRecord&&) = delete;
  ~PublishedRecord();

 private:
  PublishedRecord(std::filesystem::path file, FileDescriptor lock)
      : file_(std::move(file)), lock_(std::move(lock)) {}

  std::filesystem::path file_;
  FileDescriptor lock_;
};

// The server that runs on the directory.
//   Failure   kNotFound: no server runs on it. kForbidden: the file belongs to another user, and
//             could send this user's token to any address. (Root may ask servers of all users, and
//             must know the owner of the directory.) Otherwise the file cannot be read. Sentences
//             for an operator, with the directory.
[[nodiscard]] Result<ServerRecord> find_server(const std::filesystem::path& data);

}  // namespace hearth::server
