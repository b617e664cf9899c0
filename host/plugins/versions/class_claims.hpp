#pragma once
// Which library has which class, so that two libraries never serve the same address.

#include "plugins/admission/file_rules.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// How a class name stands in a URL: "ChatRoom" -> "chat-room". Two classes with one segment cannot
// both be reached.
using ClassSegment = std::function<std::string(std::string_view)>;

// The segment of the class that has a segment as an alias; empty: none has.
using AliasedSegment = std::function<std::string(std::string_view)>;

// A value: the claims of the libraries that are being served.
class ClassClaims {
 public:
  // `segment` empty: names are compared as they are. `aliased` empty: there are no aliases.
  explicit ClassClaims(ClassSegment segment, AliasedSegment aliased = {})
      : segment_(std::move(segment)), aliased_(std::move(aliased)) {}

  // C1, naming both files, if a class of `classes` has the segment of one that another file than
  // `file` claims, or of another one in the list, or one that is an alias. Claims nothing.
  [[nodiscard]] std::optional<Finding> conflict(const std::vector<std::string>& classes,
                                                const std::filesystem::path& file) const;

  // Claims them for `file`, in the place of what it has claimed before. Requires  No conflict.
  void claim(const std::vector<std::string>& classes, const std::filesystem::path& file);

  // The same for those of them that no other file has claimed meanwhile.
  void claim_what_is_free(const std::vector<std::string>& classes,
                          const std::filesystem::path& file);

  // What `file` has claimed is free again.
  void release(const std::filesystem::path& file);

 private:
  struct Owner {
    std::string class_name;
    std::filesystem::path file;
  };

  [[nodiscard]] std::string segment_of(std::string_view class_name) const;

  ClassSegment segment_;
  AliasedSegment aliased_;
  std::map<std::string, Owner, std::less<>> owners_;  // by segment
};

}  // namespace hearth::plugins
