#pragma once
// Sends requests to the server that runs on a data directory.

#include "base/error.hpp"
#include "json/json.hpp"
#include "server/server_record.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace hearth::cli {

// Sends one request after another, each on its own connection.
//
// Bounded    An answer has at most 64 MiB. Waits a few seconds to connect, and a few minutes for
//            the answer, because the server may try libraries.
// Threads    One. Blocks.
class AdminClient {
 public:
  // Finds the server and its token.
  //   Failure   A sentence for people: no server runs there, or its token cannot be read.
  [[nodiscard]] static Result<AdminClient> on(const std::filesystem::path& data);

  // `target`: path and query, encoded. `body`: JSON, or nothing.
  //   Failure   A sentence for people: the server cannot be reached, or it refuses the request. The
  //             code is the server's if it has answered, otherwise kUnavailable.
  [[nodiscard]] Result<Json> ask(std::string_view method, std::string_view target,
                                 std::string_view body = {}) const;
  // Passes on what a server-sent stream says, in pieces of any size, until the server ends it.
  // `last_id`: where an earlier stream was; empty: a new one.
  //   Failure   As ask(). kUnavailable: the connection broke, or nothing came for minutes.
  [[nodiscard]] Result<void> follow(const std::string& target, const std::string& last_id,
                                    const std::function<void(std::string_view)>& take) const;

 private:
  AdminClient(server::ServerRecord record, std::string token);

  [[nodiscard]] std::string request_head(const std::string& line, const std::string& more) const;

  server::ServerRecord record_;
  std::string token_;
};

// Encodes a text for a path or a query: everything except letters, digits and `-._~`.
[[nodiscard]] std::string url_encoded(std::string_view text);

// An agent's name for a URL. The user may have encoded the name already, so characters that a URL
// allows stay, `%` included; so do the slashes of a sub-agent's name, as lists print it.
[[nodiscard]] std::string name_in_url(std::string_view name);

}  // namespace hearth::cli
