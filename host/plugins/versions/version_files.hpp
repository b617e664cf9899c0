#pragma once
// The facts about versions, as files in a data directory.

#include "base/error.hpp"
#include "plugins/versions/version_facts.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace hearth::plugins {

// <data>/versions.json         the facts
// <data>/trials/<sha256>.so    the bytes of the versions to go back to
//
// A list that is not in the file is empty. Unknown members are ignored.

[[nodiscard]] std::filesystem::path version_file(const std::filesystem::path& data);
[[nodiscard]] std::filesystem::path version_bytes_directory(const std::filesystem::path& data);
[[nodiscard]] std::filesystem::path version_bytes(const std::filesystem::path& data,
                                                  std::string_view sha256);

// The facts in a data directory. A file is ignored if it cannot be read, or if no server writes
// such a file. Within a file, entries that no server writes and trials of content without its bytes
// are left out.
struct StoredVersions {
  VersionFacts facts;
  struct Unreadable {
    std::filesystem::path file;
    Error why;  // names the file
  };
  std::vector<Unreadable> unreadable;
};
[[nodiscard]] StoredVersions read_versions(const std::filesystem::path& data);

// The text of versions.json.
[[nodiscard]] std::string versions_text(const VersionFacts& facts);

}  // namespace hearth::plugins
