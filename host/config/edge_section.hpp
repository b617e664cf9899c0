#pragma once
// `auth`, `cors` and `routes`: who may connect, which pages may read answers, which paths lead to
// agents.

#include "config/config.hpp"
#include "config/setting.hpp"
#include "extensions/class_settings.hpp"

namespace hearth::config {

// The rows of a server file.
[[nodiscard]] Settings<ServerConfig> server_edge_section();

// The rows of a class file.
[[nodiscard]] Settings<extensions::ClassSettings> class_edge_section();

// What only several rows together have wrong: a proof that is asked for and cannot be checked.
void check_auth(const ServerConfig& server, Report& report);

}  // namespace hearth::config
