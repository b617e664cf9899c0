#pragma once
// The facts about versions, as files in a data directory.

#include "base/error.hpp"
#include "plugins/versions/version_facts.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace hearth::plugins {

// <data>/versions.json         the facts
// <data>/trials/<sha256>.so    the bytes of the versions to go back to
//
// A list that is not in the file is empty. Unknown members are ignored.

[[nodiscard]] std::filesystem::path version_file(const std::filesystem::path& data);
[[nodiscard]] std::filesystem::path version_bytes_directory(const std::filesystem::path& data);
[[nodiscard]] std::filesystem::path version_bytes(const std::filesystem::path& data,
                                                  std::string_view sha256);

// The facts in a data directory; none if it has no file. Entries that no server writes and trials
// of content without its bytes are left out.
//   Failure   The file cannot be read, or no server writes such a file. The error names it.
[[nodiscard]] Result<VersionFacts> read_versions(const std::filesystem::path& data);

// The text of versions.json.
[[nodiscard]] std::string versions_text(const VersionFacts& facts);

}  // namespace hearth::plugins
