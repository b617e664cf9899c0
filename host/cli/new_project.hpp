#pragma once
// hearth new: a project for a library of agents.

#include "cli/command_line.hpp"

#include <span>
#include <string>
#include <string_view>

namespace hearth::cli {

// One file of the project before its names are filled in. Both texts may hold placeholders:
//   @NAME@        chat-room   the library, the class's URL segment, the directory
//   @FILE@        chat_room   the source file's stem
//   @CLASS@       ChatRoom    the C++ class
struct TemplateFile {
  std::string_view path;  // within the project: "@FILE@.cpp"
  std::string_view text;
};

// The files of plugin-api/template, compiled into this program.
[[nodiscard]] std::span<const TemplateFile> template_files();

// Why a project cannot be called that; empty if it can. 1 to 40 lower-case letters, digits and
// hyphens, the first a letter, no hyphen at the end or beside another: such a name is a file name
// and a CMake target as it is. The URL segment of the class that is made of it must be the name
// again, and neither CMake nor what the template includes may have the name for something else.
[[nodiscard]] std::string project_name_problem(std::string_view name);

// `text` with the names for `name` in the place of its placeholders. What stands between other @
// signs stays.
[[nodiscard]] std::string fill_in(std::string_view text, std::string_view name);

// Writes the project and answers with the next steps.
//   Promises  Nothing that exists is changed: the directory must be absent or empty.
//   Failure   kExitBadUsage for a name that cannot be and a directory that is in use; kExitFailed
//             when the disk refuses, after which what was written stays.
[[nodiscard]] Answer make_project(const NewCommand& command);

}  // namespace hearth::cli
