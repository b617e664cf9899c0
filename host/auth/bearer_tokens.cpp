#include "auth/bearer_tokens.hpp"

#include "base/secret.hpp"

#include <algorithm>

namespace hearth::auth {

Result<BearerTokens> BearerTokens::parse(std::string_view text) {
  BearerTokens read;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const bool is_token = line.size() >= kMinTokenBytes && line.size() <= kMaxTokenBytes &&
                          std::ranges::all_of(line, [](char c) { return c > ' ' && c < '\x7f'; });
    if (!is_token) {
      return Error{Errc::kInvalidArgument,
                   "line " + std::to_string(number) +
                       " is no token: 16 to 512 printable characters without a space, such as "
                       "`openssl rand -hex 32` prints"};
    }
    if (read.tokens_.size() == kMaxTokens)
      return Error{Errc::kInvalidArgument, "more than 64 tokens"};
    read.tokens_.emplace_back(line);
  }
  if (read.tokens_.empty()) return Error{Errc::kInvalidArgument, "no token"};
  return read;
}

bool BearerTokens::has(std::string_view token) const {
  bool found = false;
  for (const std::string& each : tokens_) found = is_same_secret(each, token) || found;
  return found;
}

}  // namespace hearth::auth
