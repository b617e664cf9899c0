#pragma once
// Tables of edges: files with one row a line, its columns between " | ". A line that begins with #
// is a comment.

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::testing {

// The bytes of a column: \r \n \t \\ and \xHH stand for one byte each. Other backslashes stay.
inline std::string unescaped(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      bytes += text[at];
      continue;
    }
    const char kind = text[++at];
    if (kind == 'x') {
      bytes += static_cast<char>(std::stoi(std::string(text.substr(at + 1, 2)), nullptr, 16));
      at += 2;
    } else {
      if (std::string_view("rnt\\").find(kind) == std::string_view::npos) bytes += '\\';
      bytes += kind == 'r' ? '\r' : kind == 'n' ? '\n' : kind == 't' ? '\t' : kind;
    }
  }
  return bytes;
}

// The rows, each with `columns` columns.
inline std::vector<std::vector<std::string>> read_edge_table(const std::filesystem::path& file,
                                                             std::size_t columns) {
  constexpr std::string_view kBetween = " | ";
  std::vector<std::vector<std::string>> rows;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string>& row = rows.emplace_back();
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = line.find(kBetween, begin)) != std::string::npos;
         begin = end + kBetween.size())
      row.push_back(line.substr(begin, end - begin));
    row.push_back(line.substr(begin));
    if (row.size() != columns) throw std::runtime_error("a row with other columns: " + line);
  }
  if (rows.empty()) throw std::runtime_error("no rows in " + file.string());
  return rows;
}

}  // namespace hearth::testing
