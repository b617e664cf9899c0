#pragma once
// Which classes a server expects before it has loaded any library, and what it keeps of those that
// it serves.

#include "base/logger.hpp"
#include "config/config.hpp"
#include "runtime/class_registry.hpp"
#include "storage/data_directory.hpp"

namespace hearth::server {

// The registry expects the classes that have agents or `settings`, whatever libraries there are:
// clients of one whose library is missing or refused must come back, not stop. It knows which of
// them had a library in an earlier life of the server, and each class that is served from now on is
// written down for the next one. A class that cannot be written down is served all the same.
//
// Lifetime   `data` and `logger` outlive the registry.
// Failure    StorageError: the directory of agents cannot be read.
void expect_classes(runtime::ClassRegistry& classes, const storage::DataDirectory& data,
                    const config::ClassConfigs& settings, Logger& logger);

}  // namespace hearth::server
