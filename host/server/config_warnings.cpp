#include "server/config_warnings.hpp"

#include "api/edge_rules.hpp"
#include "auth/signing_keys.hpp"
#include "base/escape.hpp"
#include "base/files.hpp"
#include "config/class_file.hpp"
#include "config/server_file.hpp"
#include "json/json.hpp"
#include "server/admin_token.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;
using fs::perms;
using Warnings = std::vector<ConfigWarning>;

bool others_have(perms access, const fs::path& file) {
  std::error_code failure;
  const perms mode = fs::status(file, failure).permissions();
  return !file.empty() && !failure && (mode & access) != perms::none;
}

bool others_may_read(const fs::path& file) {
  return others_have(perms::group_read | perms::others_read, file);
}

// Whether other users that read the keys could sign tokens with them.
bool holds_secret(std::string_view keys) {
  if (keys.find("PRIVATE KEY-----") != std::string_view::npos) return true;
  const auto json = parse_json(keys);
  if (!json || !json->is_object()) return false;
  const auto is_secret = [](const Json& key) {
    return key.is_object() && (key.value("kty", Json()) == "oct" || key.contains("d"));
  };
  const auto set = json->find("keys");
  return set == json->end() ? is_secret(*json) : std::ranges::any_of(*set, is_secret);
}

void warn_of_readable(const config::ServerConfig& server, Warnings& all) {
  if (others_have(perms::group_all | perms::others_all, server.data)) {
    all.push_back(
        {"server.data_readable",
         {{"data", server.data.native()},
          {"advice", "other users of this machine have access to the data directory: chmod 700 " +
                         show_name(server.data.native())}}});
  }
  const auto look = [&all](const char* event, const fs::path& file, std::string_view what) {
    if (!others_may_read(file)) return;
    all.push_back({event,
                   {{"file", file.native()},
                    {"advice", "other users of this machine can " + std::string(what) +
                                   ": chmod 600 the file"}}});
  };
  const bool is_named = !server.admin.token_file.empty();
  look("admin.token_readable", is_named ? server.admin.token_file : server.data / kAdminTokenFile,
       "read the administrators' token");
  look("admin.token_readable", server.objects.token_file, "read the token of objects");
  look("auth.tokens_readable", server.auth.token_file, "read the tokens");
  const auto keys = read_file(server.auth.keys_file, auth::SigningKeys::kMaxBytes);
  if (keys && holds_secret(*keys))
    look("auth.keys_readable", server.auth.keys_file, "sign tokens with what they read there");
  for (const auto& [name, file] : server.secrets)
    look("server.secret_readable", file, "read the credential " + quote_text(name));
  for (const auto& file : server.tracing.headers)
    look("server.secret_readable", file, "read a header of tracing.headers");
}

// Why no client gets in; empty: some may.
std::string_view why_closed(const config::ServerConfig& server, const AuthRules& own,
                            ProofKind type) {
  const config::AuthConfig& auth = server.auth;
  if (type == ProofKind::kToken && auth.token_file.empty())
    return "its auth.type needs auth.token_file of the server";
  if (type == ProofKind::kJwt && auth.keys_file.empty() && auth.keys_url.empty())
    return "its auth.type needs auth.keys_file or auth.keys_url of the server";
  if (type == ProofKind::kObjectsKey && server.objects.token_file.empty())
    return "its auth.type needs objects.token_file of the server";
  if (type != ProofKind::kJwt && own.name && !own.name->empty())
    return "its auth.name needs the auth.type jwt, which it does not have from the server";
  return {};
}

void warn_of_class(const std::string& name, const config::ClassConfig& its,
                   const config::ServerConfig& server, Warnings& all) {
  const auto add = [&](const char* event, std::string_view advice) {
    if (advice.empty()) return;
    all.push_back({event, {{"class", name}, {"file", its.file}, {"advice", std::string(advice)}}});
  };
  add("config.doubtful", config::doubts(its));
  api::EdgeRules edge;
  edge.auth = server.auth.rules;
  const EntryRules own = its.settings.entry_rules();
  const ProofKind type = api::auth_of(edge, &own).type;
  add("class.nobody_may_connect", why_closed(server, own.auth, type));
  if (its.settings.is_object && !server.objects.token_file.empty() && type == ProofKind::kNone)
    add("class.objects_open",
        "its objects need the key of objects.token_file at /objects, and none at /agents, where "
        "clients call the same methods: leave auth.type out, or set another one");
  for (const auto& [credential, file] : its.settings.egress.secrets) {
    if (!others_may_read(file) || server.secrets.contains(credential)) continue;
    all.push_back(
        {"class.secret_readable",
         {{"class", name},
          {"credential", credential},
          {"file", file.native()},
          {"advice", "other users of this machine can read the credential: chmod 600 the file"}}});
  }
}

}  // namespace

std::vector<ConfigWarning> config_warnings(const config::Config& config) {
  Warnings all;
  if (std::string doubts = config::doubts(config.server); !doubts.empty())
    all.push_back({"config.doubtful", {{"advice", std::move(doubts)}}});
  warn_of_readable(config.server, all);
  for (const auto& [name, its] : config.classes) warn_of_class(name, its, config.server, all);
  return all;
}

ConfigWarning no_plugins_warning(const config::ServerConfig& server) {
  std::string looked_in;
  for (const std::filesystem::path& directory : server.plugins)
    looked_in += (looked_in.empty() ? "" : ", ") + directory.native();
  return {"server.no_plugins",
          {{"plugins", std::move(looked_in)},
           {"advice",
            "no class is served yet: put libraries (*.so) there, or name another directory with "
            "`hearth serve --plugins DIR` or `plugins` in the configuration; `hearth new NAME` "
            "begins a library of your own"}}};
}

void write(const ConfigWarning& warning, Logger& logger) {
  std::vector<LogField> fields;
  fields.reserve(warning.fields.size());
  for (const auto& [key, value] : warning.fields) fields.emplace_back(key, value);
  if (logger.enabled(LogLevel::kWarn)) logger.write(LogLevel::kWarn, warning.event, fields);
}

std::string to_string(const ConfigWarning& warning) {
  std::string text;
  std::string rest;
  for (const auto& [key, value] : warning.fields) {
    if (key == "file") {
      text = value + ": ";
    } else if (key != "advice") {
      rest += ' ' + key + '=' + show_name(value);
    }
  }
  return text + warning.fields.back().second + " (" + warning.event + rest + ')';
}

}  // namespace hearth::server
