#include "plugins/admission/required_check.hpp"

#include "base/files.hpp"
#include "json/json.hpp"

#include <hearth/abi.h>

#include <sys/stat.h>

#include <string>

namespace hearth::plugins {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxRecordBytes = std::size_t{64} << 10;

Finding refuse(std::string why) {
  return finding("K1", std::move(why));
}

}  // namespace

fs::path check_record_file(const fs::path& directory, std::string_view sha256) {
  return directory / (std::string(sha256) + ".ok.json");
}

std::optional<Finding> require_check_record(const fs::path& directory, std::string_view sha256,
                                            uid_t user) {
  const std::string advice = ": run `hearth check --data " + directory.parent_path().native() +
                             " LIB.so` and load it again";
  const fs::path file = check_record_file(directory, sha256);
  struct stat status{};
  if (::lstat(file.c_str(), &status) != 0)
    return refuse(
        "this server serves only libraries that have passed a check, and this one has not" +
        advice);
  const auto broken = check_status(status, user);
  const bool others_can_write = broken && broken->rule != "F5";  // F5: empty, so it is damaged
  if (others_can_write || !check_directory(directory, user))
    return refuse("other users could have written the record of its check" + advice);
  const auto text = read_file(file, kMaxRecordBytes);
  constexpr int kDepth = 8;
  const auto record = text ? parse_json(*text, kDepth) : Result<Json>(text.error());
  const auto says = [&record](const char* key, const Json& value) {
    const auto found = record->find(key);
    return found != record->end() && *found == value;
  };
  if (!record || !record->is_object() || !says("sha256", std::string(sha256)) ||
      !says("abi_major", HEARTH_ABI_MAJOR))
    return refuse("the record of its check is damaged, or of another version of the ABI" + advice);
  return std::nullopt;
}

}  // namespace hearth::plugins
