#pragma once
// The facts about versions as they lie in a data directory.

#include "base/error.hpp"
#include "plugins/versions/version_facts.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace hearth::plugins {

// <data>/versions.json         the facts
// <data>/trials/<sha256>.so    the bytes of the versions to go back to
//
// A list that the file lacks is empty: an earlier server did not keep it. Members with other names
// are left alone.
// Servers before this file had <data>/trials/trials.json and <data>/quarantine.json: they are read
// where there is no versions.json that can be read.

[[nodiscard]] std::filesystem::path version_file(const std::filesystem::path& data);
[[nodiscard]] std::vector<std::filesystem::path> earlier_version_files(
    const std::filesystem::path& data);
[[nodiscard]] std::filesystem::path version_bytes_directory(const std::filesystem::path& data);
[[nodiscard]] std::filesystem::path version_bytes(const std::filesystem::path& data,
                                                  std::string_view sha256);

// What a data directory says. Of a file that cannot be read, or is not what a server writes,
// nothing is taken; its entries that are not are left out one by one, and so are places without
// their bytes.
struct StoredVersions {
  VersionFacts facts;
  bool is_taken_over = false;  // from files of an earlier server
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
