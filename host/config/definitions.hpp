#pragma once
// Definitions: class files that the server gets over HTTP while it runs. The server keeps them in
// its data directory, and reads them as the operator's class files.

#include "base/error.hpp"
#include "config/config.hpp"
#include "json/json.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::config {

// Where definitions are, below the directory `data`.
[[nodiscard]] std::filesystem::path definitions_directory(const std::filesystem::path& data);

// The file of a class in that directory. Its name is a hash, so no class name becomes part of a
// path. `segment`: the class as URLs spell it.
[[nodiscard]] std::filesystem::path definition_file(const std::filesystem::path& directory,
                                                    std::string_view segment);

// No class of objects can have this segment: objects are at /objects/SEGMENT/ID, and definitions at
// /objects/definitions/CLASS.
inline constexpr std::string_view kDefinitionsSegment = "definitions";

// Why a class of objects with this segment has no path; empty: it has one.
[[nodiscard]] std::string path_is_taken(std::string_view segment);

// A definition as clients send it.
struct Definition {
  std::string agent_class;
  std::string text;  // of the class file
};

// `body`: the content of a class file, as JSON. `idle_timeout_seconds`, a number, stands for
// `idle_timeout`. `objects` is true if it is left out. `egress.secrets` is a list of names from
// `secrets` of the server file.
//   Failure   kInvalidArgument: a mistake in the class file; the message says where. kUnsupported:
//             it has `image` or `init_command`, for classes in processes of their own.
[[nodiscard]] Result<Definition> read_definition(std::string_view body,
                                                 const ForClasses& server = {});

// A definition to show: without `options`, which may be secret.
[[nodiscard]] Json shown_definition(std::string_view text);

}  // namespace hearth::config
