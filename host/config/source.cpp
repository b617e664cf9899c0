#include "config/source.hpp"

#include "base/escape.hpp"

namespace hearth::config {

std::string to_string(const Source& source) {
  if (!source.flag.empty()) return source.flag;
  if (source.file.empty()) return "default";
  std::string text;
  append_escaped(text, source.file, EscapeStyle::kHuman);
  return text + ':' + std::to_string(source.at.line);
}

}  // namespace hearth::config
