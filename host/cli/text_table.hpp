#pragma once
// Columns for people on a terminal.

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::cli {

// Promises   Each row is one line, because cells are escaped. Columns are as wide as their widest
//            cell. A column with only empty cells is left out. Nothing is cut.
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

// Escapes a text, such as a sentence or JSON, to one line. Quotes and backslashes stay as they are.
[[nodiscard]] std::string one_line(const std::string& text);

// A command for a shell, with these options: " --json".
[[nodiscard]] std::string with_options(std::string command, const std::string& options);

}  // namespace hearth::cli
