#pragma once
// What the configuration says, in the words of each layer that it is for. The layers below know nothing of
// configuration files, so this is the one place where a key meets what it does.

#include "config/config.hpp"
#include "net/options.hpp"
#include "runtime/class_settings.hpp"

#include <cstddef>

namespace hearth::server {

// All of these are pure and take each value as it is: config/ has checked the bounds.

// Limits that hold for every shard.
[[nodiscard]] runtime::RuntimeLimits runtime_limits(const config::ServerConfig& server);

// What one class may do. The options become JSON text.
[[nodiscard]] runtime::ClassSettings class_settings(const config::ClassConfig& agent_class);

// The address, limits and time-outs of the network layer. A ping interval of 0 means never.
[[nodiscard]] net::NetOptions net_options(const config::ServerConfig& server);

// One event loop a core if the configuration leaves it open; at least 1, at most what handles can number.
[[nodiscard]] std::size_t shard_count(const config::ServerConfig& server);

}  // namespace hearth::server
