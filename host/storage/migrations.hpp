#pragma once
// Bringing a file's tables to the form that this build knows.

#include <span>
#include <string_view>

namespace hearth::storage {

class Connection;

// Step i (from 0) takes the schema from version i to version i + 1. Steps are appended, never
// changed: files out there have run them. The version is kept in PRAGMA user_version.
//
// A step is SQL text of any number of statements, without BEGIN or COMMIT.
using Migrations = std::span<const char* const>;

// Runs the steps that `connection`'s file has not had yet.
//
// Atomic    All missing steps are one transaction: the file has the old version or the newest.
// Threads   Several connections may do this at once: one does the work, the others wait for it.
// Failure   StorageError; in particular a file with a version newer than steps.size(): an older
//           server must not touch what a newer one wrote. The text says so.
void migrate(Connection& connection, Migrations steps);

}  // namespace hearth::storage
