#pragma once
// Sends requests to the server that runs on a data directory.

#include "base/error.hpp"
#include "json/json.hpp"
#include "server/server_record.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

  server::ServerRecord record_;
  std::string token_;
};

// Encodes a text for a path or a query: everything except letters, digits and `-._~`.
[[nodiscard]] std::string url_encoded(std::string_view text);

// An agent's name for a URL. Lists print names as requests spell them, so this keeps what a request
// may have, `%` included, and the slashes of a sub-agent's name. It encodes the rest.
[[nodiscard]] std::string name_in_url(std::string_view name);

// The target with these values in its query, which has begun. Empty values are left out.
using QueryValues = std::initializer_list<std::pair<const char*, std::string_view>>;
[[nodiscard]] std::string with_query(std::string target, QueryValues values);

// Members of an answer, empty if they are missing or of another kind. A text may also be a number,
// or JSON.
[[nodiscard]] std::string text_in(const Json& object, const char* key);
[[nodiscard]] const Json& list_in(const Json& object, const char* key);
[[nodiscard]] std::optional<std::int64_t> number_in(const Json& object, const char* key);

}  // namespace hearth::cli
