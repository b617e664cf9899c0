#include "config/parse.hpp"

#include "base/escape.hpp"
#include "base/files.hpp"
#include "config/class_file.hpp"
#include "config/server_file.hpp"
#include "config/yaml.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hearth::config {
namespace {

namespace fs = std::filesystem;

void append(Diagnostics& all, Report& report) {
  std::ranges::move(report.take(), std::back_inserter(all));
}

std::optional<YamlNode> read_yaml_file(const fs::path& path, Report& report) {
  auto text = read_file(path, kMaxConfigFileBytes);
  if (!text) {
    report.add({}, text.error().message);
    return std::nullopt;
  }
  return parse_yaml(*text, report);
}

bool is_class_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return !name.starts_with('.') && (name.ends_with(".yaml") || name.ends_with(".yml"));
}

// The class files, by name: the same tree gives the same diagnostics on every machine.
std::vector<fs::path> list_class_files(const fs::path& directory, Position named_at,
                                       Report& report) {
  std::error_code error;
  std::vector<fs::path> files;
  fs::directory_iterator entry(directory, error);
  const bool is_default = named_at.line == 0;
  if (error == std::errc::no_such_file_or_directory && is_default) return files;
  while (!error && entry != fs::directory_iterator()) {
    if (is_class_file(entry->path())) files.push_back(entry->path());
    if (files.size() > kMaxClassFiles) {
      report.add(named_at, "classes: more than " + std::to_string(kMaxClassFiles) + " files in " +
                               quote_text(directory.native(), 300));
      return {};
    }
    entry.increment(error);
  }
  if (error) {
    report.add(named_at, "classes: cannot read the directory " +
                             quote_text(directory.native(), 300) + ": " + error.message());
  }
  std::ranges::sort(files);
  return files;
}

void load_class_file(const fs::path& path, Config& config, Diagnostics& all) {
  Report report(path.string());
  if (const auto root = read_yaml_file(path, report)) {
    ClassFile file = read_class_file(*root, report);
    const auto known = config.classes.find(file.name);
    if (known != config.classes.end()) {
      report.add(file.name_at, "class: " + quote_text(file.name) + " already has a file, " +
                                   quote_text(known->second.file, 300));
    } else if (!file.name.empty()) {
      config.classes.emplace(std::move(file.name), std::move(file.config));
    }
  }
  append(all, report);
}

// Last, so that diagnostics show paths as they were given.
void make_absolute(ServerConfig& server) {
  server.data = fs::absolute(server.data);
  for (fs::path& directory : server.plugins) directory = fs::absolute(directory);
  server.classes = fs::absolute(server.classes);
}

}  // namespace

LoadResult load_config(const std::optional<fs::path>& server_file,
                       const fs::path& current_directory) {
  Diagnostics all;
  Config config;
  Report report(server_file ? server_file->string() : current_directory.string());

  std::optional<YamlNode> root = YamlNode{};
  if (server_file) root = read_yaml_file(*server_file, report);
  if (root) {
    const fs::path directory = server_file ? server_file->parent_path() : current_directory;
    ServerFile file = read_server_file(*root, directory, report);
    config.server = std::move(file.config);
    const auto class_files = list_class_files(config.server.classes, file.classes_at, report);
    append(all, report);
    for (const fs::path& path : class_files) load_class_file(path, config, all);
  } else {
    append(all, report);
  }
  if (!all.empty()) return all;
  make_absolute(config.server);
  return config;
}

}  // namespace hearth::config
