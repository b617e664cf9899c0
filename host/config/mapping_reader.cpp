#include "config/mapping_reader.hpp"

#include "base/escape.hpp"
#include "config/edit_distance.hpp"
#include "config/units.hpp"

#include <algorithm>

namespace hearth::config {
namespace {

constexpr std::string_view kPathForm = "a path";

// "a, b or c"
std::string listed(const std::vector<std::string_view>& words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last : ", ";
    text += words[i];
  }
  return text;
}

std::string out_of_bounds(std::string_view min, std::string_view max, std::string_view found) {
  std::string message = "must be from ";
  message += min;
  message += " to ";
  message += max;
  message += ", found ";
  message += quote_text(found);
  return message;
}

// Why a text cannot be a path, or nothing.
std::string_view path_mistake(std::string_view text) {
  if (text.empty()) return "expected a path, found an empty text";
  if (text.find('\0') != std::string_view::npos) return "a path cannot hold a NUL";
  return {};
}

}  // namespace

std::filesystem::path resolved_path(const std::filesystem::path& directory,
                                    const std::filesystem::path& path) {
  return (directory / path).lexically_normal();
}

MappingReader::MappingReader(const YamlNode& node, std::string path, Report& report)
    : node_(node), path_(std::move(path)), report_(report) {
  const bool fits = node.kind == YamlNode::Kind::kMapping || node.kind == YamlNode::Kind::kNull ||
                    node.kind == YamlNode::Kind::kRefused;
  if (fits) return;
  std::string where(path_, 0, path_.empty() ? 0 : path_.size() - 1);  // without the dot
  if (!where.empty()) where += ": ";
  report.add(node.at,
             where + "expected a mapping (lines of \"key: value\"), found " + describe(node));
}

const YamlNode* MappingReader::find(std::string_view key) {
  known_.push_back(key);
  return look(key);
}

const YamlNode* MappingReader::look(std::string_view key) const {
  const auto found = std::ranges::find(node_.entries, key, &YamlEntry::key);
  return found == node_.entries.end() ? nullptr : &found->value;
}

const YamlNode* MappingReader::find_scalar(std::string_view key, std::string_view form) {
  const YamlNode* const node = find(key);
  if (node == nullptr || node->kind == YamlNode::Kind::kRefused) return nullptr;
  if (node->kind == YamlNode::Kind::kScalar) return node;
  std::string message = "expected ";
  message += form;
  message += ", found ";
  message += describe(*node);
  complain(key, node->at, message);
  return nullptr;
}

void MappingReader::read_duration(std::string_view key, std::chrono::milliseconds& out,
                                  Bounds<std::chrono::milliseconds> bounds) {
  const YamlNode* const node = find_scalar(key, kDurationForm);
  if (node == nullptr) return;
  const auto value = parse_duration(node->text);
  if (!value) return complain(key, node->at, value.error().message);
  if (*value < bounds.min || *value > bounds.max) {
    return complain(
        key, node->at,
        out_of_bounds(format_duration(bounds.min), format_duration(bounds.max), node->text));
  }
  out = *value;
}

void MappingReader::read_size(std::string_view key, std::size_t& out, Bounds<std::size_t> bounds) {
  const YamlNode* const node = find_scalar(key, kSizeForm);
  if (node == nullptr) return;
  const auto value = parse_size(node->text);
  if (!value) return complain(key, node->at, value.error().message);
  if (*value < bounds.min || *value > bounds.max) {
    return complain(key, node->at,
                    out_of_bounds(format_size(bounds.min), format_size(bounds.max), node->text));
  }
  out = *value;
}

void MappingReader::read_count(std::string_view key, std::uint32_t& out,
                               Bounds<std::uint32_t> bounds) {
  const YamlNode* const node = find_scalar(key, kCountForm);
  if (node == nullptr) return;
  if (node->is_quoted) {
    return complain(key, node->at,
                    "expected a whole number, found the text " + quote_text(node->text) +
                        " (a number has no quotes)");
  }
  const auto value = parse_count(node->text);
  if (!value) return complain(key, node->at, value.error().message);
  if (*value < bounds.min || *value > bounds.max) {
    return complain(
        key, node->at,
        out_of_bounds(std::to_string(bounds.min), std::to_string(bounds.max), node->text));
  }
  out = static_cast<std::uint32_t>(*value);
}

void MappingReader::read_path(std::string_view key, std::filesystem::path& out,
                              const std::filesystem::path& directory) {
  const YamlNode* const node = find_scalar(key, kPathForm);
  if (node == nullptr) return;
  if (const auto mistake = path_mistake(node->text); !mistake.empty()) {
    return complain(key, node->at, mistake);
  }
  out = resolved_path(directory, node->text);
}

void MappingReader::read_paths(std::string_view key, std::vector<std::filesystem::path>& out,
                               const std::filesystem::path& directory) {
  const YamlNode* const node = find(key);
  if (node == nullptr || node->kind == YamlNode::Kind::kRefused) return;
  if (node->kind != YamlNode::Kind::kList) {
    return complain(key, node->at,
                    "expected a list of paths such as [\"plugins\"], found " + describe(*node));
  }
  std::vector<std::filesystem::path> paths;
  for (const YamlNode& item : node->items) {
    if (item.kind == YamlNode::Kind::kRefused) continue;
    if (item.kind != YamlNode::Kind::kScalar) {
      complain(key, item.at, "expected a path, found " + describe(item));
    } else if (const auto mistake = path_mistake(item.text); !mistake.empty()) {
      complain(key, item.at, mistake);
    } else {
      paths.push_back(resolved_path(directory, item.text));
    }
  }
  out = std::move(paths);
}

void MappingReader::read_texts(std::string_view key, std::vector<std::string>& out,
                               std::string_view form, bool (*is_valid)(std::string_view)) {
  const YamlNode* const node = find(key);
  if (node == nullptr || node->kind == YamlNode::Kind::kRefused) return;
  const std::string expected = "expected a list of " + std::string(form) + ", found ";
  if (node->kind != YamlNode::Kind::kList) {
    return complain(key, node->at, expected + describe(*node));
  }
  std::vector<std::string> texts;
  for (const YamlNode& item : node->items) {
    if (item.kind == YamlNode::Kind::kRefused) continue;
    if (item.kind != YamlNode::Kind::kScalar || !is_valid(item.text)) {
      complain(key, item.at, expected + describe(item));
    } else {
      texts.push_back(item.text);
    }
  }
  out = std::move(texts);
}

void MappingReader::complain(std::string_view key, Position at, std::string_view message) {
  std::string text = path_;
  text += key;
  text += ": ";
  text += message;
  report_.add(at, std::move(text));
}

void MappingReader::finish() {
  for (const YamlEntry& entry : node_.entries) {
    if (std::ranges::find(known_, entry.key) != known_.end()) continue;
    std::string message = "unknown key " + quote_text(path_ + entry.key);
    const std::string_view near = nearest(entry.key, known_);
    if (near.empty()) {
      message += "; the keys here are " + listed(known_, " and ");
    } else {
      message += "; did you mean \"";
      message += near;
      message += "\"?";
    }
    report_.add(entry.at, std::move(message));
  }
}

std::size_t MappingReader::choose(std::string_view key,
                                  const std::vector<std::string_view>& words) {
  const std::string form = listed(words, " or ");
  const YamlNode* const node = find_scalar(key, form);
  if (node == nullptr) return words.size();
  const auto found = std::ranges::find(words, node->text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string message = "expected " + form + ", found " + quote_text(node->text);
  if (const std::string_view near = nearest(node->text, words); !near.empty()) {
    message += "; did you mean \"";
    message += near;
    message += "\"?";
  }
  complain(key, node->at, message);
  return words.size();
}

}  // namespace hearth::config
