#pragma once
// Whether the data directory is still the directory that the server opened.

#include "base/logger.hpp"
#include "storage/data_directory.hpp"

#include <functional>

namespace hearth::server {

// For api::Readiness::watch(): a function that returns true once the directory is lost, and logs
// that once (server.data_lost).
//   Threads   The function: any.
//   Lifetime  `data` and `logger` outlive the function.
[[nodiscard]] std::function<bool()> loss_of(const storage::DataDirectory& data, Logger& logger);

}  // namespace hearth::server
