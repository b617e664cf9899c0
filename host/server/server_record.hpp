#pragma once
// <data>/server.json: where the server that runs on a data directory answers, for the commands that
// ask it.

#include "base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace hearth::server {

struct ServerRecord {
  std::string address;               // "127.0.0.1:8787", the port as it really is
  std::filesystem::path token_file;  // of its administrators; absolute
  std::int64_t pid = 0;
  bool tls = false;  // whether it speaks TLS
};

// Promises   While the object lives the file is there, for its user alone (0600), and locked; then
//            it is removed. After the process was killed the file is left, and its lock is not:
//            find_server() does not take it for a server. So a token is never sent to whoever has
//            the port now.
// Threads    One.
class PublishedRecord {
 public:
  //   Failure  kUnavailable: there is no room. Else what the system says.
  [[nodiscard]] static Result<PublishedRecord> publish(const std::filesystem::path& data,
                                                       const ServerRecord& record);
  PublishedRecord(PublishedRecord&& other) noexcept;
  PublishedRecord& operator=(PublishedRecord&&) = delete;
  ~PublishedRecord();

 private:
  PublishedRecord(std::filesystem::path file, int lock);

  std::filesystem::path file_;
  int lock_;  // descriptor that holds the lock; -1 after being moved from
};

// The server that runs on the directory.
//   Failure   kNotFound: none does. kForbidden: the file is another user's, who could have our
//             token sent anywhere; root asks anybody's, and must know whose directory it names.
//             Else the file cannot be read. Sentences for a person, with the directory.
[[nodiscard]] Result<ServerRecord> find_server(const std::filesystem::path& data);

}  // namespace hearth::server
