#pragma once
// Which library has which class. Two libraries never serve the same address.

#include "plugins/admission/file_rules.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// The segment of the class that has this alias; empty: no class has it.
using AliasedSegment = std::function<std::string(std::string_view)>;

// A value: the claims of the libraries that are being served. If two classes had one segment of
// URLs ("ChatRoom" and "chat-room"), clients could reach only one of them.
class ClassClaims {
 public:
  // `aliased` empty: there are no aliases.
  explicit ClassClaims(AliasedSegment aliased) : aliased_(std::move(aliased)) {}

  // C1, naming both files, if the segment of one of `classes` is taken: by a claim of another file,
  // by another class in the list, or by an alias. Claims nothing.
  [[nodiscard]] std::optional<Finding> conflict(const std::vector<std::string>& classes,
                                                const std::filesystem::path& file) const;

  // Claims those for `file` that no other file has claimed. They replace its claims before.
  void claim(const std::vector<std::string>& classes, const std::filesystem::path& file);

  // Ends all claims of `file`.
  void release(const std::filesystem::path& file);

 private:
  struct Owner {
    std::string class_name;
    std::filesystem::path file;
  };

  AliasedSegment aliased_;
  std::map<std::string, Owner, std::less<>> owners_;  // by segment
};

}  // namespace hearth::plugins
