#pragma once
// A YAML file as a plain tree, in which every key and value has its place in the file.
//
// A configuration needs mappings, lists and scalars. The parser refuses the rest of YAML: anchors,
// aliases, tags, several documents, keys that are no scalars. Aliases can make a large tree from a
// small file, and the others are mostly mistakes.

#include "config/diagnostic.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::config {

// Levels of mappings and lists. The server's settings need three; a plugin's options may need more.
inline constexpr int kMaxYamlDepth = 32;

struct YamlEntry;

struct YamlNode {
  enum class Kind {
    kNull,     // nothing, ~ or null
    kScalar,   // `text`
    kList,     // `items`
    kMapping,  // `entries`, in the file's order, no key twice
    kRefused,  // already reported: readers report nothing more about it
  };

  Kind kind = Kind::kNull;
  Position at;             // of a kNull: the place of its key
  std::string text;        // valid UTF-8; may hold any character that YAML can escape
  bool is_quoted = false;  // in quotes or a block: always a string
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;
};

struct YamlEntry {
  std::string key;
  Position at;  // of the key
  YamlNode value;
};

// The tree, or nothing if the text gives no tree. Mistakes go to `report`, also if there is a tree:
// its correct parts can still be read. An empty text is a kNull.
//   Bounded   The tree has at most one node for each byte of `text`, and kMaxYamlDepth levels. The
//             caller bounds the text.
[[nodiscard]] std::optional<YamlNode> parse_yaml(std::string_view text, Report& report);

// "a mapping", "a list", "nothing", or the quoted text of a scalar: for messages.
[[nodiscard]] std::string describe(const YamlNode& node);

}  // namespace hearth::config
