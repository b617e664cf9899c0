#include "cli/text_table.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <utility>

namespace hearth::cli {
namespace {

// In characters, not bytes: most take one column.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::vector<std::string> escaped_all(std::vector<std::string> cells) {
  for (std::string& cell : cells) {
    std::string escaped;
    append_escaped(escaped, cell, EscapeStyle::kHuman);
    cell = std::move(escaped);
  }
  return cells;
}

}  // namespace

TextTable::TextTable(std::vector<std::string> heads) {
  rows_.push_back(escaped_all(std::move(heads)));
}

void TextTable::add(std::vector<std::string> cells) {
  HEARTH_ASSERT(cells.size() == rows_.front().size(), "a row of a table has a cell for each head");
  rows_.push_back(escaped_all(std::move(cells)));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (std::size_t column = 0; column < widths.size(); ++column) {
    for (std::size_t row = 1; row < rows_.size(); ++row)
      widths[column] = std::max(widths[column], width(rows_[row][column]));
    if (widths[column] != 0)
      widths[column] = std::max(widths[column], width(rows_.front()[column]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t column = 0; column < widths.size(); ++column) {
      if (widths[column] == 0) continue;
      line += row[column];
      line.append(widths[column] - width(row[column]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string moment_text(std::int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&seconds, &parts) != nullptr)
    (void)std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string with_options(std::string command, const std::string& options) {
  // Behind the word `--` nothing is an option.
  command.insert(std::min(command.find(" -- "), command.size()), options);
  return command;
}

std::string one_line(const std::string& text) {
  std::string safe;
  append_escaped(safe, text, EscapeStyle::kHuman);
  std::string shown;
  for (std::size_t i = 0; i < safe.size(); ++i) {
    if (safe[i] == '\\' && i + 1 < safe.size() && (safe[i + 1] == '"' || safe[i + 1] == '\\')) ++i;
    shown += safe[i];
  }
  return shown;
}

}  // namespace hearth::cli
