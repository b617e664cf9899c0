#pragma once
// The token of a server's administrators, and that of /objects, in files.

#include "base/error.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace hearth::server {

// In the data directory, where the configuration names none.
inline constexpr const char* kAdminTokenFile = "admin.token";

// A token is one line of so many printable characters without a space.
inline constexpr std::size_t kMinTokenBytes = 16;
inline constexpr std::size_t kMaxTokenBytes = 512;

struct AdminToken {
  std::string token;
  bool readable_by_others = false;  // group or others may read the file
};

// What the file holds.
//   Failure   A sentence for the operator, which names the file and never says what is in it: there
//             is none, it cannot be read, it holds no token.
[[nodiscard]] Result<AdminToken> read_admin_token(const std::filesystem::path& file);

// The same; if there is no such file, it is made with a new token, for its user alone (0600).
//   Failure   Also kUnavailable: there is no room for it.
[[nodiscard]] Result<AdminToken> admin_token_or_create(const std::filesystem::path& file,
                                                       Random& random);

// The key that /objects asks for (config::ObjectsConfig); empty if `file` is.
//   Failure   As read_admin_token(), with the name of the setting.
[[nodiscard]] Result<std::string> read_objects_token(const std::filesystem::path& file,
                                                     Logger& logger);

// Tells the log if others can read the token. `what`: "the administrators' token".
void warn_of_readable(const AdminToken& token, const std::filesystem::path& file,
                      std::string_view what, Logger& logger);

// Makes the file, for its user alone.
[[nodiscard]] Result<void> write_admin_token(const std::filesystem::path& file,
                                             std::string_view token);

}  // namespace hearth::server
