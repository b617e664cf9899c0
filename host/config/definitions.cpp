#include "config/definitions.hpp"

#include "base/sha256.hpp"
#include "config/class_file.hpp"
#include "config/yaml.hpp"

#include <cmath>
#include <cstdint>
#include <utility>

namespace hearth::config {
namespace {

constexpr const char* kSeconds = "idle_timeout_seconds";
constexpr double kMostSeconds = 365.0 * 24 * 3600;

Error wrong_definition(std::string why) {
  return {Errc::kInvalidArgument, std::move(why)};
}

}  // namespace

std::filesystem::path definitions_directory(const std::filesystem::path& data) {
  return data / "definitions";
}

std::filesystem::path definition_file(const std::filesystem::path& directory,
                                      std::string_view segment) {
  return directory / (sha256_hex(segment) + ".yaml");
}

std::string path_is_taken(std::string_view segment) {
  if (segment != kDefinitionsSegment) return {};
  return '"' + std::string(kDefinitionsSegment) +
         "\" is no segment for a class of objects: /objects/definitions is the path of the "
         "definitions of classes";
}

Result<Definition> read_definition(std::string_view body, const ForClasses& server) {
  auto json = parse_client_json(body);
  if (!json || !json->is_object()) return wrong_definition("the body must be a JSON object");
  for (const char* const key : {"image", "init_command"}) {
    if (json->contains(key))
      return Error{Errc::kUnsupported, std::string(key) +
                                           ": there are no classes in processes of "
                                           "their own yet; a library has the class"};
  }
  if (const auto seconds = json->find(kSeconds); seconds != json->end()) {
    const double value = seconds->is_number() ? seconds->get<double>() : -1;
    if (!(value >= 0 && value <= kMostSeconds) || json->contains("idle_timeout"))
      return wrong_definition(
          "idle_timeout_seconds: a number of seconds, at most a year, in place of idle_timeout");
    json->erase(seconds);
    (*json)["idle_timeout"] = std::to_string(std::llround(value * 1000)) + "ms";
  }
  json->emplace("objects", true);
  Definition definition{.agent_class = {}, .text = dump_json(*json)};
  Report report{std::string()};
  if (const auto root = parse_yaml(definition.text, report))
    definition.agent_class = read_class_file(*root, report, server, true).name;
  if (!report.empty()) return wrong_definition(report.take().front().message);
  return definition;
}

Json shown_definition(std::string_view text) {
  auto json = parse_json(text);
  if (!json || !json->is_object()) return nullptr;
  json->erase("options");
  return *std::move(json);
}

}  // namespace hearth::config
