#pragma once
// Migrates a file's tables to the version of this build.

#include <span>
#include <string_view>

namespace hearth::storage {

class Connection;

// Step i (from 0) migrates the schema from version i to version i + 1. Steps are appended, never
// changed, because existing files have run them. PRAGMA user_version has the version.
//
// A step is SQL text of any number of statements, without BEGIN or COMMIT.
using Migrations = std::span<const char* const>;

// Runs the steps that `connection`'s file has not run yet.
//
// Atomic    All missing steps are one transaction: the file has the old version or the newest.
// Threads   Several connections may call this at once: one does the work, the others wait for it.
// Failure   StorageError; also for a file with a version above steps.size(), which a newer server
//           wrote. The text says so.
void migrate(Connection& connection, Migrations steps);

}  // namespace hearth::storage
