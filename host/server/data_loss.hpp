#pragma once
// Whether the data directory is still the one that the server has opened.

#include "base/logger.hpp"
#include "storage/data_directory.hpp"

#include <functional>

namespace hearth::server {

// For api::Readiness::watch(): true once the directory is lost, which is logged once
// (server.data_lost).
//   Threads   What is returned: any.
//   Lifetime  Both outlive what is returned.
[[nodiscard]] std::function<bool()> loss_of(const storage::DataDirectory& data, Logger& logger);

}  // namespace hearth::server
