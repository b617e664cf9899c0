#pragma once
// The command line as values. What is wrong with it, and help, are values too.

#include "base/logger.hpp"
#include "config/config.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hearth::app {

// What a process tells whoever started it. Scripts depend on these: they do not change.
inline constexpr int kExitClean = 0;  // did what was asked
inline constexpr int kExitFailed =
    1;  // could not: a port in use, a directory that cannot be written
inline constexpr int kExitBadUsage = 2;  // was asked wrongly: a flag or a configuration file

// hearth serve. What is absent is left to the configuration file, and then to the defaults.
struct ServeCommand {
  std::optional<std::filesystem::path> config;
  std::optional<config::ListenAddress> listen;
  std::optional<std::filesystem::path> data;
  std::vector<std::filesystem::path> plugins;  // empty: absent; replaces the file's list
  std::optional<unsigned> shards;
  std::optional<LogLevel> log_level;
  std::optional<LogFormat> log_format;
  bool check_config = false;
};

// hearth new
struct NewCommand {
  std::string name;
  std::filesystem::path directory;  // of the project; absent on the command line: ./NAME
};

// Nothing is left to do but to print this and end.
struct Answer {
  int status = kExitClean;
  std::string text;  // to stdout if the status is clean, else to stderr; ends with a line feed
};

using Command = std::variant<ServeCommand, NewCommand, Answer>;

// Help, the version and every mistake are an Answer. Looks at no file.
[[nodiscard]] Command parse_command_line(int argc, const char* const* argv);

}  // namespace hearth::app
