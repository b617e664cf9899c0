#pragma once
// The section `tracing` of the server file: the collector of traces.

#include "config/config.hpp"
#include "config/diagnostic.hpp"
#include "config/setting.hpp"

namespace hearth::config {

[[nodiscard]] Settings<ServerConfig> tracing_section();

// Files of headers that cannot be used.
void check_tracing(const ServerConfig& server, Report& report);

}  // namespace hearth::config
