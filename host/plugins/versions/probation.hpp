#pragma once
// Which libraries are to run for a while before their versions count as proven, and until when.

#include "base/clock.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

namespace hearth::plugins {

// Told by their files. The time of a library that is put on probation again begins anew.
// Threads   One.
class Probation {
 public:
  void begin(const std::filesystem::path& file, SteadyTime ends) { ends_[file] = ends; }
  void end(const std::filesystem::path& file) { ends_.erase(file); }

  // When the next one is over. Absent: there is none.
  [[nodiscard]] std::optional<SteadyTime> next() const {
    const auto first =
        std::ranges::min_element(ends_, {}, [](const auto& each) { return each.second; });
    return first == ends_.end() ? std::nullopt : std::optional(first->second);
  }

  // Ends those that are over at `now`.
  [[nodiscard]] std::vector<std::filesystem::path> over(SteadyTime now) {
    std::vector<std::filesystem::path> files;
    std::erase_if(ends_, [&](const auto& each) {
      if (each.second > now) return false;
      files.push_back(each.first);
      return true;
    });
    return files;
  }

 private:
  std::map<std::filesystem::path, SteadyTime> ends_;
};

}  // namespace hearth::plugins
