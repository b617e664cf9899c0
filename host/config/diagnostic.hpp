#pragma once
// The mistakes in configuration files, with their places.

#include "base/error.hpp"

#include <compare>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hearth::config {

// A place in a file. Lines and columns count from 1, columns in bytes, as in editors. Line 0 means
// the whole file.
struct Position {
  int line = 0;
  int column = 0;

  auto operator<=>(const Position&) const = default;
};

// One mistake in a file.
struct Diagnostic {
  std::string file;
  Position at;
  std::string message;  // one sentence, no full stop; found text is quoted and escaped
};

using Diagnostics = std::vector<Diagnostic>;

// "config/hearth.yaml:12:3: unknown key ...", or "config/hearth.yaml: ..." for the whole file.
// Always one line: the file's name and text are escaped.
[[nodiscard]] std::string to_string(const Diagnostic& diagnostic);

// boost::system::result calls this if value() is called on an error.
[[noreturn]] void throw_exception_from_error(const Diagnostics& diagnostics,
                                             const boost::source_location&);

// Collects the mistakes of one file.
//   Bounded   Keeps kMaxDiagnostics mistakes, and counts the others.
//   Threads   One thread.
class Report {
 public:
  // A file with more mistakes is no configuration file.
  static constexpr std::size_t kMaxDiagnostics = 100;

  explicit Report(std::string file) : file_(std::move(file)) {}
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void add(Position at, std::string message);
  [[nodiscard]] bool empty() const { return diagnostics_.empty(); }
  [[nodiscard]] const std::string& file() const { return file_; }

  // The mistakes, in the order of their lines. The last one says how many were left out.
  [[nodiscard]] Diagnostics take();

 private:
  const std::string file_;
  Diagnostics diagnostics_;  // sorted by place
  std::size_t left_out_ = 0;
};

}  // namespace hearth::config
