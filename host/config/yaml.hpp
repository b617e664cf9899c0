#pragma once
// A YAML file as a plain tree in which every key and value knows where it stands.
//
// A configuration needs mappings, lists and scalars. What YAML has besides (anchors, aliases, tags,
// several documents, keys that are no scalars) is refused: aliases are how a small file becomes a
// large tree, and the others are mistakes far more often than they are meant.

#include "config/diagnostic.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::config {

// Levels of mappings and lists. Ours need three; a plugin's options may need some more.
inline constexpr int kMaxYamlDepth = 32;

struct YamlEntry;

struct YamlNode {
  enum class Kind {
    kNull,     // nothing, ~ or null
    kScalar,   // `text`
    kList,     // `items`
    kMapping,  // `entries`, in the file's order, no key twice
    kRefused,  // already reported: whoever meets it stays silent
  };

  Kind kind = Kind::kNull;
  Position at;             // for nothing: where its key stands
  std::string text;        // valid UTF-8; may hold any character that YAML can escape
  bool is_quoted = false;  // in quotes or a block: a string, whatever it looks like
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;
};

struct YamlEntry {
  std::string key;
  Position at;  // of the key
  YamlNode value;
};

// The tree, or nothing when no tree can be made of the text. What is wrong goes to `report`, also
// when there is a tree: its sound parts can still be looked at. An empty text is a kNull.
//   Bounded   The tree has at most one node for each byte of `text`, kMaxYamlDepth levels deep.
//             Bounding the text is the caller's part.
[[nodiscard]] std::optional<YamlNode> parse_yaml(std::string_view text, Report& report);

// "a mapping", "a list", "nothing", or the quoted text of a scalar: for messages.
[[nodiscard]] std::string describe(const YamlNode& node);

}  // namespace hearth::config
