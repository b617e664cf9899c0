#pragma once
// Keeps a secret out of what another server says.

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth {

// Replaces a secret by as many '*', also in a text that comes in pieces. The length of the text
// stays the same.
//
//     out += mask.feed(piece);  // for each piece
//     out += mask.end();
//
// A short secret stays: it may be a word that the text needs ("ollama").
class SecretMask {
 public:
  static constexpr std::size_t kShortest = 16;

  // Hides nothing.
  SecretMask() = default;
  explicit SecretMask(std::string_view secret)
      : secret_(secret.size() < kShortest ? std::string_view() : secret) {}

  // At most so many bytes wait.
  [[nodiscard]] std::size_t size() const noexcept { return secret_.size(); }
  // A whole text.
  [[nodiscard]] std::string hide(std::string text) const;
  // What can be told now: an end that may begin the secret waits for the next piece.
  [[nodiscard]] std::string feed(std::string_view piece);
  // What has waited.
  [[nodiscard]] std::string end();

 private:
  std::string secret_;
  std::string waiting_;
};

}  // namespace hearth
