#pragma once
// Reads configuration files into a Config. Nothing else does.

#include "config/config.hpp"
#include "config/diagnostic.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::config {

// A larger configuration file is a mistake, or an attack on the parser.
inline constexpr std::size_t kMaxConfigFileBytes = 1U << 20U;

// Files in the directory of class files.
inline constexpr std::size_t kMaxClassFiles = 4096;

// Spells a class name as URLs do. Names with the same spelling are one class, which has one file.
// Empty: names are not changed.
using ClassSegment = std::function<std::string(std::string_view)>;

// The configuration, or all mistakes.
using LoadResult = boost::system::result<Config, Diagnostics>;

// Reads the server file, if there is one, and each *.yaml and *.yml file in its directory of
// classes. Ignores subdirectories, and names that begin with a dot.
//   Promises  Reports every mistake of every file: those of the server file first, then those of
//             the class files by name, each in the order of lines. Relative paths start at the
//             directory of the server file; without one, the defaults start at `current_directory`.
//             A missing directory of classes is a mistake only if the server file names it.
//             Diagnostics name files in the form of `server_file`.
//   Failure   A file that cannot be read is a diagnostic at line 0. A text that is no YAML is one
//             diagnostic, and the other files are still read. If the server file is no YAML, no
//             other file is read, because the server file names them.
//   Bounded   kMaxConfigFileBytes a file, kMaxClassFiles, kMaxYamlDepth, Report::kMaxDiagnostics a
//             file.
//   Threads   Blocks on the disk.
[[nodiscard]] LoadResult load_config(const std::optional<std::filesystem::path>& server_file,
                                     const std::filesystem::path& current_directory = ".",
                                     const ClassSegment& segment = {});

// Reads only the server file, for commands that look for a running server: a mistake in a class
// file must not stop them.
using ServerFileResult = boost::system::result<ServerConfig, Diagnostics>;
[[nodiscard]] ServerFileResult load_server_file(
    const std::optional<std::filesystem::path>& server_file,
    const std::filesystem::path& current_directory = ".");

// The settings of all class files, or all mistakes.
using ClassFilesResult = boost::system::result<ClassConfigs, Diagnostics>;

// Reads only the class files of a directory, as load_config() does, with the same limits.
// `must_exist`: a missing directory is a mistake; otherwise it counts as empty. `definitions`: a
// second directory, which need not exist (config/definitions.hpp); empty: none. `drafts`: texts
// that are not written yet, by their files in `definitions`; they replace the files.
using Drafts = std::map<std::filesystem::path, std::string>;
[[nodiscard]] ClassFilesResult load_class_files(const std::filesystem::path& directory,
                                                bool must_exist, const ClassSegment& segment = {},
                                                const std::filesystem::path& definitions = {},
                                                const Drafts& drafts = {},
                                                const ForClasses& server = {});

}  // namespace hearth::config
