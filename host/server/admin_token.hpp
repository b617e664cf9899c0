#pragma once
// The administrators' token and the token of /objects, in files.

#include "base/error.hpp"
#include "base/random.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace hearth::server {

// In the data directory, if the configuration names no file.
inline constexpr const char* kAdminTokenFile = "admin.token";

// A token is one line of printable characters without a space, of this length.
inline constexpr std::size_t kMinTokenBytes = 16;
inline constexpr std::size_t kMaxTokenBytes = 512;

// Reads the file.
//   Failure   There is no file, it cannot be read, or it holds no token. A sentence for the
//             operator with the file's name, never with its content.
[[nodiscard]] Result<std::string> read_admin_token(const std::filesystem::path& file);

// The same. If there is no file, makes it with a new token, for its user alone (0600).
//   Failure   Also kUnavailable: the disk is full.
[[nodiscard]] Result<std::string> admin_token_or_create(const std::filesystem::path& file,
                                                        Random& random);

// The key for /objects (config::ObjectsConfig); empty if `file` is empty.
//   Failure   As read_admin_token(), with the name of the setting.
[[nodiscard]] Result<std::string> read_objects_token(const std::filesystem::path& file);

// Makes the file, for its user alone.
[[nodiscard]] Result<void> write_admin_token(const std::filesystem::path& file,
                                             std::string_view token);

}  // namespace hearth::server
