#pragma once
// Asks the server that runs on a data directory.

#include "base/error.hpp"
#include "json/json.hpp"
#include "server/server_record.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace hearth::cli {

// One request after the other, each on a connection of its own.
//
// Bounded    An answer of at most 64 MiB; a few seconds to connect, and a few minutes for the
//            answer: libraries are tried meanwhile.
// Threads    One. Blocks.
class AdminClient {
 public:
  // Finds the server and its token.
  //   Failure   A sentence for a person: no server runs there, its token cannot be read.
  [[nodiscard]] static Result<AdminClient> on(const std::filesystem::path& data);

  // `target`: path and query, encoded. `body`: JSON, or nothing.
  //   Failure   A sentence for a person: the server cannot be reached, or what it says against the
  //             request. The code is the server's if it has answered, and kUnavailable if not.
  [[nodiscard]] Result<Json> ask(std::string_view method, std::string_view target,
                                 std::string_view body = {}) const;

 private:
  AdminClient(server::ServerRecord record, std::string token);

  server::ServerRecord record_;
  std::string token_;
};

// What stands for a text within a path or a query: everything but letters, digits and `-._~` is
// encoded.
[[nodiscard]] std::string url_encoded(std::string_view text);

// An agent's name as it stands in its URL. Whoever writes it may have encoded it: what may stand
// there stays, `%` included.
[[nodiscard]] std::string name_in_url(std::string_view name);

}  // namespace hearth::cli
