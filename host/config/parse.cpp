#include "config/parse.hpp"

#include "base/escape.hpp"
#include "base/files.hpp"
#include "config/class_file.hpp"
#include "config/definitions.hpp"
#include "config/egress_section.hpp"
#include "config/server_file.hpp"
#include "config/tracing_section.hpp"
#include "config/yaml.hpp"

#include <algorithm>
#include <iterator>
#include <map>
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

// The class files, sorted by name, so that diagnostics are the same on every machine.
std::vector<fs::path> list_class_files(const fs::path& directory, bool must_exist,
                                       Position named_at, Report& report) {
  std::error_code error;
  std::vector<fs::path> files;
  fs::directory_iterator entry(directory, error);
  if (error == std::errc::no_such_file_or_directory && !must_exist) return files;
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

// The class files that were read so far.
struct ReadClasses {
  // A segment or an alias of a class.
  struct Segment {
    std::string class_name;
    bool is_alias = false;
  };

  const ClassSegment& segment;
  const ForClasses& server;
  fs::path definitions = {};
  ClassConfigs classes = {};
  std::map<std::string, Segment> segments = {};  // that those classes have
};

void refuse_path_of_definitions(const ClassFile& file, std::string_view segment, Report& report) {
  if (!file.config.settings.is_object) return;
  if (const std::string why = path_is_taken(segment); !why.empty())
    report.add(file.name_at, "class: " + why);
  for (const std::string& alias : file.config.settings.aliases) {
    if (const std::string why = path_is_taken(alias); !why.empty())
      report.add(alias_at(file.config, alias), "aliases: " + why);
  }
}

void add_class(ClassFile file, ReadClasses& read, Report& report) {
  const std::string segment = read.segment ? read.segment(file.name) : file.name;
  refuse_path_of_definitions(file, segment, report);
  const auto [known, is_new] = read.segments.try_emplace(segment, ReadClasses::Segment{file.name});
  if (!is_new) {
    const auto& [other, is_alias] = known->second;
    const std::string other_file = quote_text(read.classes.at(other).file, 300);
    const std::string why = is_alias ? " is an alias of the class " + quote_text(other) + " in " +
                                           other_file + ": remove one of the two"
                                     : " already has a file, " + other_file +
                                           (other == file.name ? "" : ", as " + quote_text(other));
    return report.add(file.name_at, "class: " + quote_text(file.name) + why);
  }
  for (const std::string& alias : file.config.settings.aliases) {
    const auto [taken, is_free] = read.segments.try_emplace(
        alias, ReadClasses::Segment{.class_name = file.name, .is_alias = true});
    if (!is_free)
      report.add(alias_at(file.config, alias), alias_is_taken(alias, taken->second.class_name));
  }
  read.classes.emplace(std::move(file.name), std::move(file.config));
}

std::optional<YamlNode> read_draft(const std::string& text, Report& report) {
  if (text.size() <= kMaxConfigFileBytes) return parse_yaml(text, report);
  report.add({}, "larger than " + std::to_string(kMaxConfigFileBytes) + " bytes");
  return std::nullopt;
}

void load_class_file(const fs::path& path, const Drafts& drafts, ReadClasses& read,
                     Diagnostics& all) {
  Report report(path.string());
  const auto draft = drafts.find(path);
  const auto root =
      draft == drafts.end() ? read_yaml_file(path, report) : read_draft(draft->second, report);
  if (root) {
    ClassFile file =
        read_class_file(*root, report, read.server,
                        !read.definitions.empty() && path.parent_path() == read.definitions);
    if (!file.name.empty()) add_class(std::move(file), read, report);
  }
  append(all, report);
}

// Comes last, so that diagnostics show paths as the files have them.
void make_absolute(ServerConfig& server) {
  server.data = fs::absolute(server.data);
  for (fs::path& directory : server.plugins) directory = fs::absolute(directory);
  server.classes = fs::absolute(server.classes);
  if (!server.admin.token_file.empty())
    server.admin.token_file = fs::absolute(server.admin.token_file);
  for (fs::path* const file :
       {&server.net.tls.certificate, &server.net.tls.key, &server.audit.file,
        &server.auth.token_file, &server.auth.keys_file, &server.objects.token_file}) {
    if (!file->empty()) *file = fs::absolute(*file);
  }
  for (auto& [name, file] : server.secrets) file = fs::absolute(file);
  if (!server.egress.ca_file.empty()) server.egress.ca_file = fs::absolute(server.egress.ca_file);
}

}  // namespace

LoadResult load_config(const std::optional<fs::path>& server_file,
                       const fs::path& current_directory, const ClassSegment& segment) {
  Diagnostics all;
  Config config;
  Report report(server_file ? server_file->string() : current_directory.string());

  std::optional<YamlNode> root = YamlNode{};
  if (server_file) root = read_yaml_file(*server_file, report);
  if (root) {
    const fs::path directory = server_file ? server_file->parent_path() : current_directory;
    config.server = read_server_file(*root, directory, report);
    check_secrets(config.server, report);
    check_tracing(config.server, report);
    const auto named = config.server.sources.find("classes");
    const bool is_named = named != config.server.sources.end();
    const auto class_files = list_class_files(config.server.classes, is_named,
                                              is_named ? named->second.at : Position{}, report);
    append(all, report);
    const ForClasses for_classes = config.server.for_classes();
    ReadClasses read{.segment = segment, .server = for_classes};
    for (const fs::path& path : class_files) load_class_file(path, {}, read, all);
    config.classes = std::move(read.classes);
  } else {
    append(all, report);
  }
  std::ranges::move(wrong_codes(config.classes, segment), std::back_inserter(all));
  if (!all.empty()) return all;
  make_absolute(config.server);
  return config;
}

ServerFileResult load_server_file(const std::optional<fs::path>& server_file,
                                  const fs::path& current_directory) {
  Report report(server_file ? server_file->string() : current_directory.string());
  std::optional<YamlNode> root = YamlNode{};
  if (server_file) root = read_yaml_file(*server_file, report);
  ServerConfig server;
  if (root) {
    const fs::path directory = server_file ? server_file->parent_path() : current_directory;
    server = read_server_file(*root, directory, report);
  }
  Diagnostics all;
  append(all, report);
  if (!all.empty()) return all;
  make_absolute(server);
  return server;
}

ClassFilesResult load_class_files(const fs::path& directory, bool must_exist,
                                  const ClassSegment& segment, const fs::path& definitions,
                                  const Drafts& drafts, const ForClasses& server) {
  Diagnostics all;
  ReadClasses read{.segment = segment, .server = server, .definitions = definitions};
  Report report(directory.string());
  auto files = list_class_files(directory, must_exist, {}, report);
  if (!definitions.empty()) {
    auto further = list_class_files(definitions, false, {}, report);
    for (const auto& [path, text] : drafts) {
      if (std::ranges::find(further, path) == further.end()) further.push_back(path);
    }
    std::ranges::sort(further);
    std::ranges::move(further, std::back_inserter(files));
  }
  append(all, report);
  for (const fs::path& path : files) load_class_file(path, drafts, read, all);
  std::ranges::move(wrong_codes(read.classes, segment), std::back_inserter(all));
  if (!all.empty()) return all;
  return std::move(read.classes);
}

}  // namespace hearth::config
