#pragma once
// config/hearth.yaml: which keys it has and what their values may be.

#include "config/config.hpp"
#include "config/diagnostic.hpp"
#include "config/setting.hpp"
#include "config/yaml.hpp"

#include <cstddef>
#include <filesystem>
#include <string>

namespace hearth::config {

// The rows of the server file. Immutable, made at the first call.
[[nodiscard]] const Settings<ServerConfig>& server_settings();

// Their reference, for config/README.md.
[[nodiscard]] std::string server_reference();

// The values of a tree, with the default for each key that is missing or wrong; what is wrong goes
// to `report`. Relative paths, the default ones too, are taken from `directory`: they are relative
// to the current directory when it was.
[[nodiscard]] ServerConfig read_server_file(const YamlNode& root,
                                            const std::filesystem::path& directory, Report& report);

// What is no mistake and hardly meant, with what to do; empty: nothing. All agents are objects, and
// the limit of objects, which is far lower than that of agents, is the default. Or the server
// listens on the network without TLS, and asks clients for no proof. Or a row of `routes` is below
// /agents, where none counts.
[[nodiscard]] std::string doubts(const ServerConfig& server);

// Event loops: one a core if the configuration leaves it open.
[[nodiscard]] std::size_t shard_count(const ServerConfig& server);

// The words of `log.level` and `log.format`, and of the flags for them.
[[nodiscard]] const Words<LogLevel>& log_levels();
[[nodiscard]] const Words<LogFormat>& log_formats();

}  // namespace hearth::config
