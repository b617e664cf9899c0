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
                     " holds no token: one line of 16 to 512 printable "
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

Result<std::string> read_objects_token(const std::filesystem::path& file, Logger& logger) {
  if (file.empty()) return std::string();
  auto token = read_admin_token(file);
  if (!token) return Error{token.error().code, "objects.token_file: " + token.error().message};
  warn_of_readable(*token, file, "the token of objects", logger);
  return std::move(token->token);
}

void warn_of_readable(const AdminToken& token, const std::filesystem::path& file,
                      std::string_view what, Logger& logger) {
  if (!token.readable_by_others) return;
  logger.write(LogLevel::kWarn, "admin.token_readable",
               {{"file", file.native()},
                {"advice", "other users of this machine can read " + std::string(what) +
                               ": chmod 600 the file"}});
}

Result<void> write_admin_token(const std::filesystem::path& file, std::string_view token) {
  return write_file_atomically(file, std::string(token) + "\n", std::filesystem::perms{0600});
}

}  // namespace hearth::server
