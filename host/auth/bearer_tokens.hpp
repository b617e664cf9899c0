#pragma once
// Tokens that an operator gives to clients, in a file.

#include "base/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::auth {

// Secrets   No error message quotes the text.
// Threads   Any: it does not change.
class BearerTokens {
 public:
  static constexpr std::size_t kMaxTokens = 64;
  static constexpr std::size_t kMinTokenBytes = 16;
  static constexpr std::size_t kMaxTokenBytes = 512;
  static constexpr std::size_t kMaxBytes = kMaxTokens * (kMaxTokenBytes + 64);

  // One token a line: 16 to 512 printable characters without a space. Empty lines and lines that
  // begin with `#` are skipped.
  //   Failure  kInvalidArgument: which line is wrong, or that the text has no token.
  [[nodiscard]] static Result<BearerTokens> parse(std::string_view text);

  // Whether `token` is one of them. The time that this takes depends only on lengths.
  [[nodiscard]] bool has(std::string_view token) const;

 private:
  std::vector<std::string> tokens_;
};

}  // namespace hearth::auth
