// What is sent to /objects: calls, ids, definitions of classes.
#include "config/definitions.hpp"
#include "fuzz/targets.hpp"
#include "json/json_scanner.hpp"
#include "json/json_text.hpp"
#include "protocol/object_address.hpp"

#include <algorithm>
#include <string>

namespace hearth::fuzz {
namespace {

void check_arguments(const std::string& arguments) {
  require(arguments.starts_with('[') && arguments.ends_with(']'), "arguments are a list");
  require(is_json(without_lone_surrogates(arguments).value_or(arguments)), "arguments are JSON");
}

}  // namespace

void object_call(std::string_view bytes) {
  if (const auto call = protocol::read_object_call(bytes)) check_arguments(call->arguments);
  if (const auto arguments = protocol::read_object_arguments(bytes)) check_arguments(*arguments);
}

void object_name(std::string_view bytes) {
  const std::string name = protocol::object_name(bytes);
  require(protocol::object_name(name) == name, "a name is a spelling of its id");
  require(protocol::object_name_of_text(protocol::object_id(name)) == name, "an id has one name");
  require(protocol::object_id(protocol::object_name_of_text(bytes)) == bytes,
          "an id that is no part of a path is what it was");
  const bool is_segment = std::ranges::all_of(
      name, [](char c) { return c > ' ' && c < '\x7f' && c != '/' && c != '?' && c != '#'; });
  require(is_segment, "a name is a segment of a path");
}

void definition(std::string_view bytes) {
  const auto definition = config::read_definition(bytes);
  if (!definition) return;
  require(!definition->agent_class.empty(), "a definition names its class");
  const auto again = config::read_definition(definition->text);
  require(again && again->text == definition->text && again->agent_class == definition->agent_class,
          "what is kept reads as what it was");
  require(!config::shown_definition(definition->text).contains("options"), "options may be secret");
}

}  // namespace hearth::fuzz
