#pragma once
// One mapping of a file, read key by key into typed fields. Every mistake is reported and the field
// keeps its value, so that one pass finds them all.

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

// Both ends belong to it.
template <class T>
struct Bounds {
  T min;
  T max;
};

// What a setting of a few values may be, with the word for each.
template <class T>
using Words = std::vector<std::pair<std::string_view, T>>;

// A path of a file, taken from `directory` when it is relative. Dots are resolved in the text
// alone: "../data" beside a linked file is beside the link, as whoever wrote it sees it.
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
  // `path` is what stands before the keys in messages: "" or "limits.". A node that is nothing is
  // an empty mapping: somebody commented its lines out. Any other kind is reported.
  MappingReader(const YamlNode& node, std::string path, Report& report);

  // The value of `key`, or null when the file does not have it. Whatever was not asked for when
  // finish() is called is unknown.
  [[nodiscard]] const YamlNode* find(std::string_view key);

  // The same of a key that has been asked for.
  [[nodiscard]] const YamlNode* look(std::string_view key) const;

  // The scalar of `key`; null when the file does not have it, or when it is no scalar, which is
  // reported as a mistake of someone who should have written `form`.
  [[nodiscard]] const YamlNode* find_scalar(std::string_view key, std::string_view form);

  // Each of these leaves `out` as it is when the file does not have the key or has it wrong.
  void read_duration(std::string_view key, std::chrono::milliseconds& out,
                     Bounds<std::chrono::milliseconds> bounds);
  void read_size(std::string_view key, std::size_t& out, Bounds<std::size_t> bounds);
  void read_count(std::string_view key, std::uint32_t& out, Bounds<std::uint32_t> bounds);

  // Relative paths are taken from `directory`.
  void read_path(std::string_view key, std::filesystem::path& out,
                 const std::filesystem::path& directory);
  void read_paths(std::string_view key, std::vector<std::filesystem::path>& out,
                  const std::filesystem::path& directory);

  // A list of texts, each of which `is_valid`; `form` says of what, with an example.
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

  // Reports each key that nobody asked for, with the nearest one that somebody did.
  void finish();

 private:
  // Where in `words` the value of `key` stands; words.size() when there is none, or none of them.
  [[nodiscard]] std::size_t choose(std::string_view key,
                                   const std::vector<std::string_view>& words);

  const YamlNode& node_;
  const std::string path_;
  Report& report_;
  std::vector<std::string_view> known_;  // the caller's literals
};

}  // namespace hearth::config
