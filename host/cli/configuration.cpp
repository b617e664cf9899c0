#include "cli/configuration.hpp"

#include "config/definitions.hpp"
#include "config/edge_section.hpp"
#include "config/parse.hpp"
#include "protocol/class_segment.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

namespace hearth::cli {
namespace {

// The libraries that were installed with this binary. Empty: none were.
std::filesystem::path bundled_plugins() {
  std::error_code failure;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return {};
  auto directory = (binary.parent_path() / HEARTH_BUNDLED_PLUGINS).lexically_normal();
  return std::filesystem::is_directory(directory, failure) ? directory : std::filesystem::path();
}

// Adds the definitions (over HTTP) in the data directory, which a flag may name.
config::LoadResult with_definitions(config::LoadResult loaded) {
  const auto definitions = config::definitions_directory(loaded->server.data);
  std::error_code failure;
  if (!std::filesystem::exists(definitions, failure)) return loaded;
  auto classes = config::load_class_files(loaded->server.classes, false, protocol::kebab_case,
                                          definitions, {}, loaded->server.for_classes());
  if (!classes) return std::move(classes).error();
  loaded->classes = *std::move(classes);
  return loaded;
}

}  // namespace

config::LoadResult load_with_flags(const ConfigurationFlags& flags) {
  config::LoadResult loaded = config::load_config(flags.config, ".", protocol::kebab_case);
  if (!loaded) return loaded;
  config::ServerConfig& server = loaded->server;
  const auto from_flag = [&server](const char* path, const char* flag) {
    server.sources[path] = {.flag = flag, .file = {}, .at = {}};
  };
  if (flags.listen) {
    server.net.host = flags.listen->host;
    server.net.port = flags.listen->port;
    from_flag("listen", "--listen");
  }
  if (flags.data) {
    server.data = std::filesystem::absolute(*flags.data);
    from_flag("data", "--data");
  }
  if (!flags.plugins.empty()) {
    server.plugins.clear();
    for (const auto& directory : flags.plugins) {
      server.plugins.push_back(std::filesystem::absolute(directory));
    }
    from_flag("plugins", "--plugins");
  } else if (std::error_code failure; !server.sources.contains("plugins") &&
                                      !std::filesystem::exists(server.plugins.front(), failure)) {
    if (auto bundled = bundled_plugins(); !bundled.empty()) server.plugins = {std::move(bundled)};
  }
  if (flags.shards) {
    server.shards = flags.shards;
    from_flag("shards", "--shards");
  }
  if (flags.log_level) {
    server.log.level = *flags.log_level;
    from_flag("log.level", "--log-level");
  }
  if (flags.log_format) {
    server.log.format = *flags.log_format;
    from_flag("log.format", "--log-format");
  }
  server.runtime.show_failures = flags.show_failures;
  loaded = with_definitions(std::move(loaded));
  if (!loaded) return loaded;
  auto mistakes =
      config::check_routes(*loaded, protocol::kebab_case, flags.config.value_or(".").string());
  if (!mistakes.empty()) return mistakes;
  return loaded;
}

std::string mistakes_text(const config::Diagnostics& mistakes) {
  std::string text;
  for (const config::Diagnostic& mistake : mistakes) text += to_string(mistake) + '\n';
  return text + "hearth: " + std::to_string(mistakes.size()) +
         (mistakes.size() == 1 ? " mistake" : " mistakes") + " in the configuration\n";
}

}  // namespace hearth::cli
