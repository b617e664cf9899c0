#include "config/setting.hpp"

namespace hearth::config {
namespace {

bool has_same(const Json& mapping, const std::string& key, const Json& value) {
  const auto found = mapping.find(key);
  return found != mapping.end() && dump_json(*found) == dump_json(value);
}

Source source_of(const Sources& sources, std::string_view path) {
  const auto found = sources.find(path);
  return found == sources.end() ? Source{} : found->second;
}

}  // namespace

SplitPath split_path(std::string_view path) {
  const std::size_t key = path.find('.') + 1;  // 0 without a dot
  return {.section = path.substr(0, key), .key = path.substr(key)};
}

void note_source(Sources& sources, const std::string& path, const YamlNode& node,
                 const std::string& file) {
  sources[path] = {.flag = {}, .file = file, .at = node.at};
  const std::string prefix = path + '.';
  for (const YamlEntry& entry : node.entries) {
    sources[prefix + entry.key] = {.flag = {}, .file = file, .at = entry.at};
  }
  for (const YamlNode& item : node.items) {
    if (item.kind == YamlNode::Kind::kScalar)
      sources[prefix + item.text] = {.flag = {}, .file = file, .at = item.at};
  }
}

void add_changes(const std::string& path, const Json& before, const Json& after,
                 std::vector<std::string>& paths) {
  if (!before.is_object()) {
    if (dump_json(before) != dump_json(after)) paths.push_back(path);
    return;
  }
  const std::string prefix = path + '.';
  for (const auto& [key, value] : after.items()) {
    if (!has_same(before, key, value)) paths.push_back(prefix + key);
  }
  for (const auto& [key, value] : before.items()) {
    if (!after.contains(key)) paths.push_back(prefix + key);
  }
}

std::string shown_value(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

std::string reference_line(std::string_view path, std::string_view kind,
                           std::string_view default_words, std::string_view bounds,
                           std::string_view meaning) {
  std::string line = "| `";
  line.append(path).append("` |");
  for (const std::string_view cell : {kind, default_words, bounds, meaning}) {
    if (!cell.empty()) line.append(" ").append(cell);
    line += " |";
  }
  return line + '\n';
}

void add_effective(EffectiveSetting setting, const Sources& sources,
                   std::vector<EffectiveSetting>& settings) {
  setting.source = source_of(sources, setting.path);
  if (!setting.is_secret) {
    settings.push_back(std::move(setting));
    return;
  }
  const std::string prefix = setting.path + '.';
  for (const auto& [key, value] : setting.value.items()) {
    const std::string path = prefix + key;
    settings.push_back(
        {.path = path, .value = nullptr, .source = source_of(sources, path), .is_secret = true});
  }
}

}  // namespace hearth::config
