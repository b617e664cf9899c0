#pragma once
// From files to a Config: the one way in.

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

// A configuration of this size is a mistake, or an attack on the parser.
inline constexpr std::size_t kMaxConfigFileBytes = 1U << 20U;

// Files in the directory of class files.
inline constexpr std::size_t kMaxClassFiles = 4096;

// How a class name is spelled in URLs. Names with one spelling are one class, which has one file.
// Empty: as they are.
using ClassSegment = std::function<std::string(std::string_view)>;

// All that the files say, or all that is wrong with them.
using LoadResult = boost::system::result<Config, Diagnostics>;

// Reads the server file, if there is one, and each *.yaml and *.yml file in its directory of
// classes (not below it; not those whose names begin with a dot).
//   Promises  Reports every mistake of every file in one go: the server file's first, then those of
//             the class files by name, each in the order of its lines. Relative paths in the server
//             file are taken from the directory that it stands in; without one, the defaults are
//             taken from `current_directory`. A directory of classes that does not exist is a
//             mistake only when the server file names it. Diagnostics name files as `server_file`
//             does.
//   Failure   A file that cannot be read is a diagnostic at line 0. Of text that is no YAML only
//             that is reported, and the other files are still looked at; in the server file it ends
//             the search, because the file would say where the others are.
//   Bounded   kMaxConfigFileBytes a file, kMaxClassFiles, kMaxYamlDepth, Report::kMaxDiagnostics a
//             file.
//   Threads   Blocks on the disk.
[[nodiscard]] LoadResult load_config(const std::optional<std::filesystem::path>& server_file,
                                     const std::filesystem::path& current_directory = ".",
                                     const ClassSegment& segment = {});

// Reads the server file alone, for those who want to know where a server is: a mistake in a class
// file must not keep them from it.
using ServerFileResult = boost::system::result<ServerConfig, Diagnostics>;
[[nodiscard]] ServerFileResult load_server_file(
    const std::optional<std::filesystem::path>& server_file,
    const std::filesystem::path& current_directory = ".");

// What all class files say, or all that is wrong with them.
using ClassFilesResult = boost::system::result<ClassConfigs, Diagnostics>;

// Reads the class files of a directory alone: as load_config() does, and with the same limits. A
// directory that does not exist has none, unless it `must_exist`. `definitions`: a further one,
// which need not exist (config/definitions.hpp); empty: none. `drafts`: texts that are not written
// yet, by their files in `definitions`: they are read in place of what is there. `all_are_objects`:
// ObjectsConfig::all_classes.
using Drafts = std::map<std::filesystem::path, std::string>;
[[nodiscard]] ClassFilesResult load_class_files(const std::filesystem::path& directory,
                                                bool must_exist, const ClassSegment& segment = {},
                                                const std::filesystem::path& definitions = {},
                                                const Drafts& drafts = {},
                                                bool all_are_objects = false);

}  // namespace hearth::config
