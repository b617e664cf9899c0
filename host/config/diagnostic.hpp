#pragma once
// What is wrong in a configuration file, and where.

#include "base/error.hpp"

#include <compare>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hearth::config {

// A place in a file. Lines and columns count from 1, columns in bytes, as editors' "go to" takes
// them; line 0 means the file as a whole.
struct Position {
  int line = 0;
  int column = 0;

  auto operator<=>(const Position&) const = default;
};

// One mistake of the person who wrote the file.
struct Diagnostic {
  std::string file;
  Position at;
  std::string message;  // one sentence, no full stop; what was found is quoted and escaped
};

using Diagnostics = std::vector<Diagnostic>;

// "config/hearth.yaml:12:3: unknown key ...", or "config/hearth.yaml: ..." for the whole file. One
// line, whatever the file and its name hold.
[[nodiscard]] std::string to_string(const Diagnostic& diagnostic);

// boost::system::result asks how to throw when value() is called on an error.
[[noreturn]] void throw_exception_from_error(const Diagnostics& diagnostics,
                                             const boost::source_location&);

// Gathers the mistakes of one file.
//   Bounded   Keeps kMaxDiagnostics of them; the rest are counted.
//   Threads   One thread.
class Report {
 public:
  // A file that is wrong in more ways than this is no configuration file.
  static constexpr std::size_t kMaxDiagnostics = 100;

  explicit Report(std::string file) : file_(std::move(file)) {}
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void add(Position at, std::string message);
  [[nodiscard]] bool empty() const { return diagnostics_.empty(); }
  [[nodiscard]] const std::string& file() const { return file_; }

  // What was added, in the order of the lines, and one more that says how many were left out.
  [[nodiscard]] Diagnostics take();

 private:
  const std::string file_;
  Diagnostics diagnostics_;  // sorted by place
  std::size_t left_out_ = 0;
};

}  // namespace hearth::config
