#pragma once
// An agent's file of schema version 1 after a kill of its server: work in every state
// (stored_work.sql).

#include <filesystem>
#include <string>

namespace hearth::testing {

// The last time of the file's clock, in Unix milliseconds.
inline constexpr long long kStoredWorkAtMs = 1'767'313'201'540;

// Makes the file anew, of class "Worker" and name "a". `more` is SQL that changes it afterwards.
void make_stored_work(const std::filesystem::path& path, const std::string& more = "");

}  // namespace hearth::testing
