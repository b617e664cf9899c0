#include "server/admin_token.hpp"

#include "base/escape.hpp"
#include "base/files.hpp"
#include "base/secret.hpp"

#include <algorithm>

namespace hearth::server {
namespace {

bool is_token(std::string_view text) {
  return text.size() >= kMinTokenBytes && text.size() <= kMaxTokenBytes &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

Result<std::string> read_admin_token(const std::filesystem::path& file) {
  auto text = read_file(file, kMaxTokenBytes + 2);
  if (!text) return text.error();
  std::string read = *std::move(text);
  while (read.ends_with('\n') || read.ends_with('\r')) read.pop_back();
  if (!is_token(read)) {
    return Error{Errc::kInvalidArgument,
                 show_name(file.native()) +
                     " holds no token: one line of 16 to 512 printable "
                     "characters without a space, such as `openssl rand -hex 32` prints"};
  }
  return read;
}

Result<std::string> admin_token_or_create(const std::filesystem::path& file, Random& random) {
  auto read = read_admin_token(file);
  if (read || read.error().code != Errc::kNotFound) return read;
  std::string fresh = make_secret(random);
  if (const auto written = write_admin_token(file, fresh); !written) return written.error();
  return fresh;
}

Result<std::string> read_objects_token(const std::filesystem::path& file) {
  if (file.empty()) return std::string();
  auto token = read_admin_token(file);
  if (!token) return Error{token.error().code, "objects.token_file: " + token.error().message};
  return token;
}

Result<void> write_admin_token(const std::filesystem::path& file, std::string_view token) {
  return write_file_atomically(file, std::string(token) + "\n", std::filesystem::perms{0600});
}

}  // namespace hearth::server
