#include "api/edge_rules.hpp"
#include "base/escape.hpp"
#include "cli/commands.hpp"
#include "cli/configuration.hpp"
#include "cli/text_table.hpp"
#include "config/class_file.hpp"
#include "config/definitions.hpp"
#include "config/server_file.hpp"
#include "json/json.hpp"
#include "protocol/class_segment.hpp"
#include "server/admin_token.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::cli {
namespace {

using Effective = std::vector<config::EffectiveSetting>;

// The settings of the server, or of one class.
struct Part {
  std::string title;
  std::string agent_class;  // empty: the server
  std::string file;         // empty: there is none
  Effective settings;
  bool is_definition = false;  // the file came over HTTP
};

Part server_part(const config::Config& config, const ConfigCommand& command) {
  config::ServerConfig server = config.server;
  if (server.admin.token_file.empty()) {
    server.admin.token_file = server.data / server::kAdminTokenFile;
  }
  const std::string file = command.config ? command.config->string() : "";
  return {.title = file.empty() ? "The server (no server file)" : "The server",
          .agent_class = {},
          .file = file,
          .settings = effective_settings(config::server_settings(), server, server.sources)};
}

// The settings of a class, with those that it takes from the server.
config::ClassConfig completed(config::ClassConfig agent_class, const config::ServerConfig& server) {
  runtime::ClassSettings& settings = agent_class.settings;
  const auto take_sources = [&](std::string_view keys) {
    const auto is_one = [keys](const auto& each) { return each.first.starts_with(keys); };
    std::erase_if(agent_class.sources, is_one);
    std::ranges::copy_if(server.sources,
                         std::inserter(agent_class.sources, agent_class.sources.end()), is_one);
  };
  if (settings.max_frame == 0) {
    settings.max_frame = server.net.max_frame;
    take_sources("limits.max_frame");
  }
  if (settings.call_timeout.count() == 0) {
    settings.call_timeout = server.runtime.call_timeout;
    take_sources("limits.call_timeout");
  }
  api::EdgeRules edge;
  edge.auth = server.auth.rules;
  edge.cors = server.cors;
  const EntryRules own = settings.entry_rules();
  if (const CorsRules& holds = api::cors_of(edge, &own); &holds == &edge.cors) {
    settings.cors = holds;
    take_sources("cors.");
  }
  if (settings.auth.name) return agent_class;
  const api::EffectiveAuth holds = api::auth_of(edge, &own);
  if (!holds.name.empty()) take_sources("auth.name");
  settings.auth.name = std::string(holds.name);
  return agent_class;
}

Part class_part(const std::string& name, const config::ClassConfig& said,
                const config::ServerConfig& server) {
  const config::ClassConfig agent_class = completed(said, server);
  const auto definitions = config::definitions_directory(server.data);
  const bool is_definition = !agent_class.file.empty() &&
                             std::filesystem::path(agent_class.file).parent_path() == definitions;
  std::string_view note = is_definition ? " (defined over HTTP)" : "";
  if (agent_class.file.empty()) note = " (no class file)";
  return {.title = "The class " + quote_text(name) + std::string(note),
          .agent_class = name,
          .file = agent_class.file,
          .settings = effective_settings(config::class_settings(), agent_class.settings,
                                         agent_class.sources),
          .is_definition = is_definition};
}

// A class may be named as it is or as URLs spell it.
Part part_of(const std::string& name, const config::Config& config) {
  const std::string segment = protocol::kebab_case(name);
  for (const auto& [each, settings] : config.classes) {
    if (protocol::kebab_case(each) == segment) return class_part(each, settings, config.server);
  }
  return class_part(name, config::class_without_file(config.server.for_classes()), config.server);
}

// A list without brackets and quotes: the table would escape them.
std::string shown_in_table(const Json& value) {
  if (!value.is_array() || value.empty()) return config::shown_value(value);
  std::string text;
  for (const Json& each : value) {
    if (!text.empty()) text += ", ";
    text += config::shown_value(each);
  }
  return text;
}

std::string as_text(const std::vector<Part>& parts) {
  std::string text;
  for (const Part& part : parts) {
    if (!text.empty()) text += '\n';
    text += part.title + '\n';
    TextTable table({"SETTING", "VALUE", "FROM"});
    for (const config::EffectiveSetting& each : part.settings) {
      table.add({each.path, each.is_secret ? "(not shown)" : shown_in_table(each.value),
                 part.is_definition && !each.source.file.empty() ? std::string("definition")
                                                                 : to_string(each.source)});
    }
    text += table.text();
  }
  return text;
}

Json as_json(const config::EffectiveSetting& setting) {
  Json json = {{"key", setting.path}, {"from", "default"}};
  if (setting.is_secret) {
    json["hidden"] = true;
  } else {
    json["value"] = setting.value;
  }
  const config::Source& source = setting.source;
  if (!source.flag.empty()) {
    json["from"] = "flag";
    json["flag"] = source.flag;
  } else if (!source.file.empty()) {
    json["from"] = "file";
    json["file"] = source.file;
    json["line"] = source.at.line;
  }
  return json;
}

Json as_json(const Part& part) {
  Json settings = Json::array();
  for (const config::EffectiveSetting& each : part.settings) settings.push_back(as_json(each));
  Json json = {{"settings", std::move(settings)}};
  if (!part.file.empty()) json["file"] = part.file;
  if (part.is_definition) json["definition"] = true;
  if (!part.agent_class.empty()) json["class"] = part.agent_class;
  return json;
}

Json as_json(const std::vector<Part>& parts) {
  Json json = {{"classes", Json::array()}};
  for (const Part& part : parts) {
    if (part.agent_class.empty()) {
      json["server"] = as_json(part);
    } else {
      json["classes"].push_back(as_json(part));
    }
  }
  return json;
}

}  // namespace

Answer answer(const ConfigCommand& command) {
  if (command.reference == "server") return {kExitClean, config::server_reference()};
  if (command.reference == "class") return {kExitClean, config::class_reference()};
  const config::LoadResult loaded = load_with_flags(command);
  if (!loaded) return {kExitBadUsage, mistakes_text(loaded.error())};
  std::vector<Part> parts;
  if (command.agent_class.empty()) {
    parts.push_back(server_part(*loaded, command));
    for (const auto& [name, settings] : loaded->classes) {
      parts.push_back(class_part(name, settings, loaded->server));
    }
  } else {
    parts.push_back(part_of(command.agent_class, *loaded));
  }
  return {kExitClean, command.json ? dump_json(as_json(parts)) + '\n' : as_text(parts)};
}

}  // namespace hearth::cli
