// Files: of operators, and of authors.
#include "base/egress_rules.hpp"
#include "config/class_file.hpp"
#include "config/server_file.hpp"
#include "config/yaml.hpp"
#include "extensions/fetch.hpp"
#include "fuzz/targets.hpp"
#include "plugins/admission/elf_image.hpp"
#include "plugins/admission/plugin_note.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace hearth::fuzz {
namespace {

std::span<const std::byte> as_file(std::string_view bytes) {
  return std::as_bytes(std::span(bytes));
}

}  // namespace

void server_file(std::string_view bytes) {
  config::Report report("hearth.yaml");
  const auto tree = config::parse_yaml(bytes, report);
  if (tree) (void)config::read_server_file(*tree, "/etc/hearth", report);
  for (const config::Diagnostic& each : report.take()) {
    require(to_string(each).find('\n') == std::string::npos, "a diagnostic is one line");
  }
}

void class_file(std::string_view bytes) {
  config::Report report("counter.yaml");
  const auto tree = config::parse_yaml(bytes, report);
  if (!tree) return;
  const config::ClassFile file = config::read_class_file(*tree, report);
  if (!report.empty()) return;
  const auto read = config::read_settings_text(config::settings_text(file.config.settings));
  require(read.has_value(), "settings that a file may have can be kept as a text");
}

void settings_text(std::string_view bytes) {
  const auto settings = config::read_settings_text(bytes);
  if (!settings) return;
  const auto again = config::read_settings_text(config::settings_text(*settings));
  require(again && config::settings_text(*again) == config::settings_text(*settings),
          "settings read as what they were");
}

void elf_image(std::string_view bytes) {
  const auto image = plugins::parse_elf_image(as_file(bytes));
  if (!image) return;
  for (const auto note : plugins::find_plugin_notes(*image)) {
    (void)plugins::decode_note_header(note);
    (void)plugins::decode_manifest(note);
  }
}

void plugin_note(std::string_view bytes) {
  (void)plugins::decode_note_header(as_file(bytes));
  const auto manifest = plugins::decode_manifest(as_file(bytes));
  if (!manifest) return;
  require(plugins::is_valid_plugin_name(manifest->plugin), "a plugin's name keeps the rules");
  require(!manifest->classes.empty(), "a plugin has a class");
}

void credential(std::string_view bytes) {
  const auto header = extensions::credential_header(bytes);
  if (!header) return;
  const std::string text = header->first + header->second;
  require(text.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos,
          "a credential's header is one line");
}

// A pattern a line; those behind an empty line are refused ones.
void egress_rules(std::string_view bytes) {
  std::vector<std::string> allow;
  std::vector<std::string> deny;
  std::vector<std::string>* list = &allow;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    if (line.empty()) {
      list = &deny;
    } else {
      list->emplace_back(line);
    }
  }
  const auto rules = EgressRules::parse(allow, deny);
  if (!rules) return;
  const auto address = parse_ip_address("10.0.0.1");
  require(!allow.empty() || !rules->may_connect(*address, 80),
          "what is inside needs to be allowed");
  for (const std::string& each : allow) (void)rules->may_ask(each, 443);
}

}  // namespace hearth::fuzz
