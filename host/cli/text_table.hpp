#pragma once
// Columns for people on a terminal.

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::cli {

// Promises   Each row is one line, whatever its cells hold: they are escaped. Columns are as wide
//            as their widest cell; a column without any text in its cells is left out; nothing is
//            cut.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> heads);

  // One cell for each head.
  void add(std::vector<std::string> cells);

  // The heads and the rows; ends with a line feed.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the first: the heads
};

// "2026-01-02T12:00:00Z"
[[nodiscard]] std::string moment_text(std::int64_t unix_ms);

// Text that quotes something, such as a sentence or JSON: escaped to stand on one line, with its
// quotes and backslashes as they are.
[[nodiscard]] std::string one_line(const std::string& text);

}  // namespace hearth::cli
