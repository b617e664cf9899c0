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

// The reference of these rows, for config/README.md.
[[nodiscard]] std::string server_reference();

// The values of a tree, with the default for each key that is missing or wrong. Mistakes go to
// `report`. Relative paths, also those of the defaults, start at `directory`. The results are
// relative if `directory` is.
[[nodiscard]] ServerConfig read_server_file(const YamlNode& root,
                                            const std::filesystem::path& directory, Report& report);

// Warnings about values that are allowed but hardly meant, with what to do; empty: none.
//   - All agents are objects, and the limit of objects has its default, which is far lower than the
//     limit of agents.
//   - The server listens on the network without TLS, and clients do not authenticate.
//   - A row of `routes` is below /agents, where it has no effect.
[[nodiscard]] std::string doubts(const ServerConfig& server);

// Event loops: one for each core by default.
[[nodiscard]] std::size_t shard_count(const ServerConfig& server);

// The words of `log.level` and `log.format`, and of the flags for them.
[[nodiscard]] const Words<LogLevel>& log_levels();
[[nodiscard]] const Words<LogFormat>& log_formats();

}  // namespace hearth::config
