#pragma once
// Whether the data directory is still the directory that the server opened, and whole.

#include "base/logger.hpp"
#include "storage/data_directory.hpp"

#include <functional>
#include <string>

namespace hearth::server {

// For api::Readiness::watch(): a function that returns true once the directory is lost, and logs
// that once (server.data_lost).
//   Threads   The function: any.
//   Lifetime  `data` and `logger` outlive the function.
[[nodiscard]] std::function<bool()> loss_of(const storage::DataDirectory& data, Logger& logger);

// Before the directory of agents is opened: logs damage to its write-ahead log
// (server.directory_damaged), and returns it as a part of a sentence; empty: there is none.
[[nodiscard]] std::string damage_of(const storage::DataDirectory& data, Logger& logger);

}  // namespace hearth::server
