#pragma once
// The classes that a server expects before it loads libraries, and the record of classes that it
// serves.

#include "base/logger.hpp"
#include "config/config.hpp"
#include "runtime/class_registry.hpp"
#include "storage/data_directory.hpp"

namespace hearth::server {

// The registry expects the classes that have agents or `settings`, with or without a library:
// clients of a class whose library is missing or refused must retry, not stop. It also learns which
// of them had a library in an earlier run of the server. Each class that is served from now on is
// recorded for the next run; if that fails, it is served all the same.
//
// Lifetime   `data` and `logger` outlive the registry.
// Failure    StorageError: the directory of agents cannot be read.
void expect_classes(runtime::ClassRegistry& classes, const storage::DataDirectory& data,
                    const config::ClassConfigs& settings, Logger& logger);

}  // namespace hearth::server
