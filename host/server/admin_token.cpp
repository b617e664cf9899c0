#include "server/admin_token.hpp"

#include "base/escape.hpp"
#include "base/files.hpp"
#include "base/secret.hpp"

#include <algorithm>
#include <system_error>

namespace hearth::server {
namespace {

bool is_token(std::string_view text) {
  return text.size() >= kMinTokenBytes && text.size() <= kMaxTokenBytes &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

Result<AdminToken> read_admin_token(const std::filesystem::path& file) {
  auto text = read_file(file, kMaxTokenBytes + 2);
  if (!text) return text.error();
  AdminToken read;
  read.token = *std::move(text);
  while (read.token.ends_with('\n') || read.token.ends_with('\r')) read.token.pop_back();
  if (!is_token(read.token)) {
    return Error{Errc::kInvalidArgument,
                 show_name(file.native()) +
                     " holds no administrators' token: one line of 16 to 512 printable "
                     "characters without a space, such as `openssl rand -hex 32` prints"};
  }
  std::error_code failure;
  using std::filesystem::perms;
  const perms mode = std::filesystem::status(file, failure).permissions();
  read.readable_by_others =
      !failure && (mode & (perms::group_read | perms::others_read)) != perms::none;
  return read;
}

Result<AdminToken> admin_token_or_create(const std::filesystem::path& file, Random& random) {
  auto read = read_admin_token(file);
  if (read || read.error().code != Errc::kNotFound) return read;
  AdminToken fresh;
  fresh.token = make_secret(random);
  if (const auto written = write_admin_token(file, fresh.token); !written) return written.error();
  return fresh;
}

Result<void> write_admin_token(const std::filesystem::path& file, std::string_view token) {
  return write_file_atomically(file, std::string(token) + "\n", std::filesystem::perms{0600});
}

}  // namespace hearth::server
