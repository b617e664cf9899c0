#include "cli/new_project.hpp"

#include "base/escape.hpp"
#include "base/files.hpp"
#include "cli/commands.hpp"
#include "protocol/class_segment.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <utility>

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxNameBytes = 40;

// Names whose project would not build, or not be served, each with spaces around it.
struct TakenNames {
  std::string_view names;
  std::string_view why;
};
constexpr std::array kTakenNames = std::to_array<TakenNames>({
    // In one of CMake's generators or versions, or if a project includes CPack. CMake's other
    // targets (ALL_BUILD, edit_cache ...) do not have the form of a project's name.
    {" all clean codegen depend help install package preinstall test ",
     "CMake has a target of that name"},
    {" dl ", "unit tests are linked with a library of that name"},
    {" null ", "YAML reads that as no name at all"},
    {" options state ", "the class would hold a struct of its own name"},
    {" hearth-plugin hearth-plugin-text ", "HEARTH_PLUGIN makes a type of that name"},
});

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// "chat-room" -> "ChatRoom"
std::string class_name(std::string_view name) {
  std::string result;
  bool starts_word = true;
  for (const char c : name) {
    if (c == '-') {
      starts_word = true;
      continue;
    }
    const bool raise = starts_word && c >= 'a' && c <= 'z';
    result += raise ? static_cast<char>(c - 'a' + 'A') : c;
    starts_word = false;
  }
  return result;
}

bool has_form_of_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  if (name.front() < 'a' || name.front() > 'z' || name.back() == '-') return false;
  if (name.find("--") != std::string_view::npos) return false;
  return std::ranges::all_of(name, [](char c) { return is_lower_or_digit(c) || c == '-'; });
}

Answer refuse(int status, const std::string& why) {
  return Answer{status, "hearth new: " + why + "\n"};
}

// Why the directory cannot be used, or nothing.
std::string problem_with(const fs::path& directory) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(directory, error);
  if (status.type() == fs::file_type::not_found) return {};
  const std::string quoted_path = quote_text(directory.native(), 300);
  if (!fs::is_directory(directory, error)) {
    return quoted_path + " exists and is no directory: give another one with --dir";
  }
  const bool is_empty = fs::is_empty(directory, error);
  if (error) return quoted_path + " cannot be read: " + error.message();
  if (!is_empty) return quoted_path + " is not empty: give another one with --dir";
  return {};
}

Result<void> write_project(const fs::path& directory, std::string_view name) {
  for (const TemplateFile& file : template_files()) {
    const fs::path path = directory / fill_in(file.path, name);
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error) {
      return Error{Errc::kUnavailable, "cannot make the directory " +
                                           quote_text(path.parent_path().native(), 300) + ": " +
                                           error.message()};
    }
    if (auto written = write_file_atomically(path, fill_in(file.text, name)); !written) {
      return written.error();
    }
  }
  return {};
}

std::string next_steps(const fs::path& directory, const std::string& name) {
  const std::string place = directory.string();
  return "wrote " + place + "\n\nNext:\n  cd " + place +
         "\n"
         "  hearth dev                                    build and serve it, again at each save\n"
         "  curl http://127.0.0.1:8787/agents/" +
         name +
         "/first\n"
         "  cmake --build --preset dev && ctest --preset dev    its unit tests\n"
         "\nCMake finds the installed Hearth, or the one of the hearth in PATH. For another one "
         "use "
         "-DCMAKE_PREFIX_PATH=DIR.\n";
}

}  // namespace

std::string project_name_problem(std::string_view name) {
  if (!has_form_of_name(name)) {
    return "expected up to 40 lower-case letters, digits and single hyphens, the first a letter, "
           "such as chat-room";
  }
  const std::string word = " " + std::string(name) + " ";
  for (const auto& [names, why] : kTakenNames) {
    if (names.find(word) != std::string_view::npos)
      return std::string(why) + "; take another one, such as " + std::string(name) + "-agent";
  }
  const std::string agent_class = class_name(name);
  const std::string segment = protocol::kebab_case(agent_class);
  if (segment != name) {
    return "the URL of its class " + agent_class + " would be /agents/" + segment + "; take " +
           segment;
  }
  return {};
}

std::string fill_in(std::string_view text, std::string_view name) {
  std::string file_stem(name);
  std::ranges::replace(file_stem, '-', '_');
  const std::array<std::pair<std::string_view, std::string>, 3> names{{
      {"@NAME@", std::string(name)},
      {"@FILE@", file_stem},
      {"@CLASS@", class_name(name)},
  }};
  std::string result;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find('@'), text.size());
    result += text.substr(0, at);
    text.remove_prefix(at);
    const auto found = std::ranges::find_if(
        names, [text](const auto& each) { return text.starts_with(each.first); });
    if (found != names.end()) {
      result += found->second;
      text.remove_prefix(found->first.size());
    } else if (!text.empty()) {
      result += '@';
      text.remove_prefix(1);
    }
  }
  return result;
}

Answer answer(const NewCommand& command) {
  if (const std::string problem = project_name_problem(command.name); !problem.empty()) {
    return refuse(kExitBadUsage, quote_text(command.name, 100) + " cannot be its name: " + problem);
  }
  if (const std::string problem = problem_with(command.directory); !problem.empty()) {
    return refuse(kExitBadUsage, problem);
  }
  if (const auto written = write_project(command.directory, command.name); !written) {
    return refuse(kExitFailed, written.error().message);
  }
  return Answer{kExitClean, next_steps(command.directory, command.name)};
}

}  // namespace hearth::cli
