#pragma once
// hearth new: a project for a library of agents.

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

// Why a project cannot have this name; empty: it can. A name has 1 to 40 lower-case letters, digits
// and hyphens. The first is a letter, and hyphens are single and not at the end. So the name is
// also a file name and a CMake target. The URL segment of its class must be the name again, and
// neither CMake nor the template's headers may use the name.
[[nodiscard]] std::string project_name_problem(std::string_view name);

// `text` with its placeholders replaced by the names for `name`. Text between other @ signs stays.
[[nodiscard]] std::string fill_in(std::string_view text, std::string_view name);

}  // namespace hearth::cli
