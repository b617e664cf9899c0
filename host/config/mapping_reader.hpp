#pragma once
// Reads one mapping of a file, key by key, into typed fields. A wrong value is reported and the
// field keeps its value, so one pass finds all mistakes.

#include "config/diagnostic.hpp"
#include "config/yaml.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::config {

// A range; both ends are allowed.
template <class T>
struct Bounds {
  T min;
  T max;
};

// The values of a setting that has a few, each with its word.
template <class T>
using Words = std::vector<std::pair<std::string_view, T>>;

// A path of a file. A relative path starts at `directory`. Dots are resolved in the text alone:
// with a linked file, "../data" starts at the link, not at its target.
[[nodiscard]] std::filesystem::path resolved_path(const std::filesystem::path& directory,
                                                  const std::filesystem::path& path);

// Reads one section. The caller asks for each key that may stand there and calls finish() last:
//
//   MappingReader reader(node, "limits.", report);
//   reader.read_count("max_waiting", limits.max_waiting, {1, 1000});
//   reader.finish();
//
//   Lifetime  Borrows the node and the report; keys are literals.
//   Threads   One thread.
class MappingReader {
 public:
  // `path` stands before the keys in messages: "" or "limits.". A null node is an empty mapping:
  // its lines may be commented out. Any other kind is reported.
  MappingReader(const YamlNode& node, std::string path, Report& report);

  // The value of `key`, or null if the file does not have it. finish() reports the keys of the file
  // that no call has asked for as unknown.
  [[nodiscard]] const YamlNode* find(std::string_view key);

  // The same for a key that find() has already asked for.
  [[nodiscard]] const YamlNode* look(std::string_view key) const;

  // The scalar of `key`. Null: the file does not have it, or it is no scalar; then a mistake is
  // reported that expects `form`.
  [[nodiscard]] const YamlNode* find_scalar(std::string_view key, std::string_view form);

  // These leave `out` as it is if the file does not have the key or its value is wrong.
  void read_duration(std::string_view key, std::chrono::milliseconds& out,
                     Bounds<std::chrono::milliseconds> bounds);
  void read_size(std::string_view key, std::size_t& out, Bounds<std::size_t> bounds);
  void read_count(std::string_view key, std::uint32_t& out, Bounds<std::uint32_t> bounds);

  // Relative paths start at `directory`.
  void read_path(std::string_view key, std::filesystem::path& out,
                 const std::filesystem::path& directory);
  void read_paths(std::string_view key, std::vector<std::filesystem::path>& out,
                  const std::filesystem::path& directory);

  // A list of texts that are valid by `is_valid`. `form` describes them, with an example.
  void read_texts(std::string_view key, std::vector<std::string>& out, std::string_view form,
                  bool (*is_valid)(std::string_view));

  // One word of a few.
  template <class T>
  void read_choice(std::string_view key, T& out, const Words<T>& words) {
    std::vector<std::string_view> names;
    for (const auto& word : words) names.push_back(word.first);
    const std::size_t chosen = choose(key, names);
    if (chosen < names.size()) out = words[chosen].second;
  }

  // Reports "<path><key>: <message>" at `at`.
  void complain(std::string_view key, Position at, std::string_view message);

  // Reports each key of the file that no call has asked for, with the nearest known key.
  void finish();

 private:
  // The index of the value of `key` in `words`. words.size(): no value, or an unknown word.
  [[nodiscard]] std::size_t choose(std::string_view key,
                                   const std::vector<std::string_view>& words);

  const YamlNode& node_;
  const std::string path_;
  Report& report_;
  std::vector<std::string_view> known_;  // the caller's literals
};

}  // namespace hearth::config
