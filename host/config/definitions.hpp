#pragma once
// Class files that a server was given while it runs, over HTTP. They are kept in its data
// directory, and read as the operator's own class files are.

#include "base/error.hpp"
#include "json/json.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::config {

// Where definitions are, below the directory `data`.
[[nodiscard]] std::filesystem::path definitions_directory(const std::filesystem::path& data);

// The file of a class there. Its name is a hash: no name of a class becomes part of a path.
// `segment`: the class as URLs spell it.
[[nodiscard]] std::filesystem::path definition_file(const std::filesystem::path& directory,
                                                    std::string_view segment);

// Objects are at /objects/SEGMENT/ID, and the definitions at /objects/definitions/CLASS: no class
// of objects can have this segment.
inline constexpr std::string_view kDefinitionsSegment = "definitions";

// Why a class of objects has no path; empty: it has one.
[[nodiscard]] std::string path_is_taken(std::string_view segment);

// A definition as clients send it.
struct Definition {
  std::string agent_class;
  std::string text;  // of the class file
};

// `body`: what a class file may say, as JSON. `idle_timeout_seconds`, a number, stands for
// `idle_timeout`; `objects` is true if it is left out.
//   Failure   kInvalidArgument: it is no right class file; the message says where. kUnsupported: it
//             has `image` or `init_command`, which are for classes in processes of their own.
[[nodiscard]] Result<Definition> read_definition(std::string_view body);

// A definition for people who may read settings: without `options`, which may be secret.
[[nodiscard]] Json shown_definition(std::string_view text);

}  // namespace hearth::config
