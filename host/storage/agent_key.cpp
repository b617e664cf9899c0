#include "storage/agent_key.hpp"

#include "base/sha256.hpp"
#include "base/utf8.hpp"

#include <algorithm>

namespace hearth::storage {
namespace {

constexpr std::string_view kSlash = "%2F";
constexpr std::string_view kPercent = "%25";

std::string encode_name(std::string_view name) {
  std::string encoded;
  encoded.reserve(name.size());
  for (const char c : name) {
    if (c == '/') {
      encoded += kSlash;
    } else if (c == '%') {
      encoded += kPercent;
    } else {
      encoded += c;
    }
  }
  return encoded;
}

std::string decode_name(std::string_view encoded) {
  std::string name;
  name.reserve(encoded.size());
  while (!encoded.empty()) {
    const bool slash = encoded.starts_with(kSlash);
    const bool percent = encoded.starts_with(kPercent);
    if (slash || percent) {
      name += slash ? '/' : '%';
      encoded.remove_prefix(kSlash.size());
    } else {
      name += encoded.front();
      encoded.remove_prefix(1);
    }
  }
  return name;
}

// A URL writes all others as three bytes each.
bool is_plain_in_url(char c) {
  constexpr std::string_view kEncoded = "\"#<>?^`{}/%\\";
  return c > ' ' && c < 0x7f && kEncoded.find(c) == std::string_view::npos;
}

std::size_t bytes_in_url(std::string_view name) {
  const auto plain = static_cast<std::size_t>(std::ranges::count_if(name, is_plain_in_url));
  return plain + 3 * (name.size() - plain);
}

// Browsers take these for parts of a path, also as %2e.
bool is_dots(std::string_view name) {
  std::string dots;
  while (!name.empty()) {
    const bool is_encoded = name.starts_with("%2e") || name.starts_with("%2E");
    dots += is_encoded ? '.' : name.front();
    name.remove_prefix(is_encoded ? 3 : 1);
    if (dots.size() > 2) return false;
  }
  return dots == "." || dots == "..";
}

}  // namespace

unsigned AgentKey::depth() const {
  return static_cast<unsigned>(std::ranges::count(name, '/')) / 2;
}

bool AgentKey::is_sub_agent() const {
  const auto slashes = std::ranges::count(name, '/');
  return slashes > 0 && slashes % 2 == 0;
}

std::string AgentKey::own_name() const {
  return is_sub_agent() ? decode_name(std::string_view(name).substr(name.rfind('/') + 1)) : name;
}

std::optional<AgentKey> AgentKey::parent() const {
  if (!is_sub_agent()) return std::nullopt;
  const std::string_view above = std::string_view(name).substr(0, name.rfind('/'));
  const std::string_view its_name = above.substr(above.rfind('/') + 1);
  const std::string_view before = above.substr(0, above.rfind('/'));  // ends with its class
  const std::size_t at = before.rfind('/') + 1;                       // npos + 1: 0
  return AgentKey{std::string(before.substr(at)),
                  std::string(before.substr(0, at)) + std::string(its_name)};
}

AgentKey AgentKey::root() const {
  if (!is_sub_agent()) return *this;
  const std::size_t slash = name.find('/');
  return {name.substr(0, slash), name.substr(slash + 1, name.find('/', slash + 1) - slash - 1)};
}

AgentKey AgentKey::child(std::string_view child_class, std::string_view child_name) const {
  return {std::string(child_class), prefix_below() + encode_name(child_name)};
}

std::uint64_t AgentKey::digest() const {
  return sha256_prefix(agent_class + '\n' + name);
}

std::string AgentKey::prefix_below() const {
  if (!is_sub_agent()) return agent_class + '/' + name + '/';
  const std::size_t own = name.rfind('/') + 1;
  return name.substr(0, own) + agent_class + '/' + name.substr(own) + '/';
}

bool is_sub_agent_name(std::string_view name) noexcept {
  return !name.empty() && bytes_in_url(name) <= kMaxNameBytes && name != "." && name != ".." &&
         is_valid_utf8(name) && !has_control_character(name);
}

bool is_root_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && !is_dots(name) &&
         !has_control_character(name);
}

std::optional<std::string> decode_sub_agent_name(std::string_view encoded) {
  std::string name = decode_name(encoded);
  if (!is_sub_agent_name(name) || encode_name(name) != encoded) return std::nullopt;
  return name;
}

}  // namespace hearth::storage
