#include "base/secret_mask.hpp"

#include <algorithm>
#include <utility>

namespace hearth {

std::string SecretMask::hide(std::string text) const {
  if (secret_.empty()) return text;
  for (std::size_t at = text.find(secret_); at != std::string::npos;
       at = text.find(secret_, at + secret_.size()))
    text.replace(at, secret_.size(), secret_.size(), '*');
  return text;
}

std::string SecretMask::feed(std::string_view piece) {
  std::string text = std::exchange(waiting_, {});
  text += piece;
  if (secret_.empty()) return text;
  text = hide(std::move(text));
  std::size_t held = std::min(text.size(), secret_.size() - 1);
  while (!text.ends_with(std::string_view(secret_).substr(0, held))) --held;
  waiting_ = text.substr(text.size() - held);
  text.resize(text.size() - held);
  return text;
}

std::string SecretMask::end() {
  return std::exchange(waiting_, {});
}

}  // namespace hearth
