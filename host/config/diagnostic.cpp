#include "config/diagnostic.hpp"

#include "base/escape.hpp"

#include <algorithm>
#include <stdexcept>

namespace hearth::config {

std::string to_string(const Diagnostic& diagnostic) {
  std::string text;
  append_escaped(text, diagnostic.file, EscapeStyle::kHuman);
  if (diagnostic.at.line > 0) {
    text += ':' + std::to_string(diagnostic.at.line) + ':' + std::to_string(diagnostic.at.column);
  }
  text += ": ";
  text += diagnostic.message;
  return text;
}

void throw_exception_from_error(const Diagnostics& diagnostics, const boost::source_location&) {
  throw std::logic_error("unchecked configuration: " + (diagnostics.empty()
                                                            ? std::string("no diagnostics")
                                                            : to_string(diagnostics.front())));
}

void Report::add(Position at, std::string message) {
  if (diagnostics_.size() >= kMaxDiagnostics) {
    ++left_out_;
    return;
  }
  // After mistakes with the same place: mistakes of one key stay in the order in which they came.
  const auto next = std::ranges::upper_bound(diagnostics_, at, {}, &Diagnostic::at);
  diagnostics_.insert(next, {.file = file_, .at = at, .message = std::move(message)});
}

Diagnostics Report::take() {
  if (left_out_ > 0) {
    diagnostics_.push_back({.file = file_,
                            .at = {},
                            .message = "and " + std::to_string(left_out_) + " mistakes more"});
    left_out_ = 0;
  }
  return std::move(diagnostics_);
}

}  // namespace hearth::config
