#include "config/egress_section.hpp"

#include "base/authority.hpp"
#include "base/egress_rules.hpp"
#include "base/escape.hpp"
#include "base/files.hpp"
#include "extensions/fetch.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::config {
namespace {

using extensions::ClassSettings;
using extensions::EgressLimits;
using extensions::EgressSettings;

bool is_egress_pattern(std::string_view text) {
  const std::string pattern(text);
  return EgressRules::parse(std::span(&pattern, 1), {}).has_value();
}

Setting<ClassSettings> patterns(std::string path, std::vector<std::string> EgressSettings::* member,
                                std::string meaning) {
  return texts(std::move(path), at(&ClassSettings::egress, member),
               R"(hosts and networks such as ["api.example.com", "*.example.com", "10.0.0.0/8"])",
               is_egress_pattern, std::move(meaning));
}

// "http://proxy.example:3128". No user and password: they would be shown with the settings.
bool is_proxy(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  if (!text.starts_with(kScheme)) return false;
  const auto authority = parse_authority(text.substr(kScheme.size()));
  return authority && !authority->port.empty();
}

Setting<ClassSettings> proxy_setting() {
  constexpr std::string_view kForm = "a proxy such as http://proxy.example:3128";
  return row(
      "egress.proxy", "URL", "", at(&ClassSettings::egress, &EgressSettings::proxy),
      [=](const Reading& in, std::string& out) {
        const YamlNode* const node = in.reader.find_scalar(in.key, kForm);
        if (node == nullptr) return;
        if (!node->text.empty() && !is_proxy(node->text)) {
          return in.reader.complain(
              in.key, node->at,
              "expected " + std::string(kForm) + ", found " + quote_text(node->text));
        }
        out = node->text;
      },
      [](const std::string& value) { return Json(value); },
      "an HTTP proxy for all requests of the class. The rules do not judge the "
      "proxy's own address. The proxy resolves names, so the rules judge only names");
}

bool is_credential_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

}  // namespace

std::string credential_mistake(const std::filesystem::path& file) {
  const auto text = read_file(file, extensions::kMaxCredentialBytes);
  if (!text) return text.error().message;
  const auto header = extensions::credential_header(*text);
  return header ? std::string() : show_name(file.native()) + ' ' + header.error().message;
}

namespace {

void read_secret_files(const Reading& in, Secrets& out, bool are_checked) {
  const YamlNode* const node = in.reader.find(in.key);
  if (node == nullptr || node->kind == YamlNode::Kind::kRefused) return;
  if (node->kind != YamlNode::Kind::kMapping && node->kind != YamlNode::Kind::kNull) {
    return in.reader.complain(in.key, node->at,
                              "expected a mapping of names to files, found " + describe(*node));
  }
  Secrets secrets;
  MappingReader files(*node, are_checked ? "egress.secrets." : "secrets.", in.report);
  for (const YamlEntry& entry : node->entries) {
    if (!is_credential_name(entry.key)) {
      files.complain(entry.key, entry.at,
                     "a name has up to 64 letters, digits, \".\", \"_\" and \"-\"");
    }
    std::filesystem::path file;
    files.read_path(entry.key, file, in.directory);
    if (file.empty()) continue;
    if (are_checked && !in.directory.empty()) {
      if (const std::string mistake = credential_mistake(file); !mistake.empty())
        files.complain(entry.key, entry.value.at, mistake);
    }
    secrets.emplace(entry.key, std::move(file));
  }
  out = std::move(secrets);
}

// A definition names credentials of the server file. With paths it could have any file of the
// machine sent to any host.
void read_secret_names(const Reading& in, Secrets& out) {
  std::vector<std::string> names;
  in.reader.read_texts(in.key, names,
                       R"(names of credentials that the server file has in `secrets`: ["openai"])",
                       is_credential_name);
  for (const std::string& name : names) {
    const auto found = in.secrets->find(name);
    if (found == in.secrets->end()) {
      in.reader.complain(in.key, in.reader.look(in.key)->at,
                         "the server file has no credential " + quote_text(name) + " in `secrets`");
      continue;
    }
    out.insert(*found);
  }
}

void read_secrets(const Reading& in, Secrets& out) {
  if (in.secrets != nullptr) return read_secret_names(in, out);
  read_secret_files(in, out, true);
}

Json shown_secrets(const Secrets& value) {
  Json shown = Json::object();
  for (const auto& [name, file] : value) shown[name] = file.string();
  return shown;
}

Setting<ClassSettings> secrets_setting() {
  return row("egress.secrets", "mapping of names to paths", "",
             at(&ClassSettings::egress, &EgressSettings::secrets), read_secrets, shown_secrets,
             "[credentials](#credentials) that the server adds to requests: `openai: "
             "openai.key`. The plugin knows only the names. A [definition](#objects) has a list of "
             "names under `secrets` of the server file instead");
}

void read_limits(const Reading& in, EgressLimits& out) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  const YamlNode* const node = in.reader.find(in.key);
  if (node == nullptr) return;
  MappingReader limits(*node, "egress.limits.", in.report);
  limits.read_count("requests_per_minute", out.requests_per_minute, {0, kMost});
  limits.read_count("concurrent", out.concurrent, {1, 100'000});
  limits.read_size("bytes_per_day", out.bytes_per_day, {0, std::size_t{1} << 50U});
  limits.finish();
}

Setting<ClassSettings> limits_setting() {
  return row(
      "egress.limits", "mapping", "", at(&ClassSettings::egress, &EgressSettings::limits),
      read_limits,
      [](const EgressLimits& value) {
        return Json{{"requests_per_minute", value.requests_per_minute},
                    {"concurrent", value.concurrent},
                    {"bytes_per_day", format_size(value.bytes_per_day)}};
      },
      "what all agents of the class may use together: `requests_per_minute` (of the "
      "clock; `0`: no limit), `concurrent` (requests in progress, 1 to 100000), "
      "`bytes_per_day` (bodies of requests and answers, a day of UTC; `0`: no "
      "limit). Each redirect that is followed counts as a request. The counts "
      "survive a restart");
}

}  // namespace

Setting<ServerConfig> server_secrets_setting() {
  return row(
      "secrets", "mapping of names to paths", "", at(&ServerConfig::secrets),
      [](const Reading& in, Secrets& out) { read_secret_files(in, out, false); }, shown_secrets,
      "[credentials](#credentials) that [definitions](#objects) of classes may use by their "
      "names: `openai: openai.key`");
}

void check_secrets(const ServerConfig& server, Report& report) {
  for (const auto& [name, file] : server.secrets) {
    const std::string path = "secrets." + name;
    const std::string mistake = credential_mistake(file);
    if (!mistake.empty())
      report.add(server.sources.at(path).at, std::string(path).append(": ").append(mistake));
  }
}

Settings<ClassSettings> egress_section() {
  return {
      patterns("egress.allow", &EgressSettings::allow,
               "where agents may send [requests](#requests-to-other-servers): hosts "
               "(`\"api.example.com\"`, `\"*.example.com\"`, `\"*\"`), addresses and "
               "networks, each with a port or without. Empty: every public address"),
      patterns("egress.deny", &EgressSettings::deny,
               "where agents may not send requests, in the same form; it wins over `allow`"),
      proxy_setting(),
      secrets_setting(),
      limits_setting(),
      yes_or_no("egress.http2", at(&ClassSettings::egress, &EgressSettings::http2),
                "whether requests that ask for HTTP/2 get it, over TLS and if the other side "
                "has it. `false`: HTTP/1.1 for all; a slowly read stream of HTTP/2 costs the "
                "server more memory"),
  };
}

}  // namespace hearth::config
