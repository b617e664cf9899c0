#include "loader/check_record.hpp"

#include "base/assert.hpp"
#include "base/files.hpp"
#include "json/json.hpp"

#include <hearth/abi.h>

#include <sys/stat.h>

#include <string>
#include <system_error>

namespace hearth::loader {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxRecordBytes = std::size_t{64} << 10;

fs::path record_name(std::string_view sha256) {
  return std::string(sha256) + ".ok.json";
}

Finding refuse(std::string why) {
  return finding("K1", std::move(why));
}

}  // namespace

Result<void> write_check_record(const fs::path& data, const CheckReport& report,
                                const Clock& clock) {
  HEARTH_ASSERT(report.passed(), "only what has passed is put down as passed");
  const fs::path directory = data / kCheckedDirectory;
  std::error_code failure;
  fs::create_directories(directory, failure);
  if (failure)
    return Error{Errc::kForbidden, directory.native() + " cannot be made: " + failure.message()};
  // Who can write here decides what a server loads.
  fs::permissions(directory, fs::perms::owner_all, failure);
  Json notes = Json::array();
  for (const CheckResult& each : report.results) {
    if (each.verdict == CheckVerdict::kPassed) continue;
    notes.push_back(
        Json{{"id", each.id}, {"verdict", to_string(each.verdict)}, {"reason", each.reason}});
  }
  const Json record{{"schema", 1},
                    {"sha256", report.sha256},
                    {"plugin", report.plugin},
                    {"version", report.version},
                    {"abi_major", HEARTH_ABI_MAJOR},
                    {"abi_minor", HEARTH_ABI_MINOR},
                    {"seed", report.seed},
                    {"checked_at", unix_millis(clock.wall_now())},
                    {"not_passed", std::move(notes)}};
  return write_file_atomically(directory / record_name(report.sha256), dump_json(record) + "\n",
                               fs::perms::owner_read | fs::perms::owner_write);
}

std::optional<Finding> require_check_record(const fs::path& directory, std::string_view sha256,
                                            uid_t user) {
  const std::string advice = ": run `hearth check --data " + directory.parent_path().native() +
                             " LIB.so` and load it again";
  const fs::path file = directory / record_name(sha256);
  struct stat status{};
  if (::lstat(file.c_str(), &status) != 0)
    return refuse(
        "this server serves only libraries that have passed a check, and this one has not" +
        advice);
  const auto broken = check_status(status, user);
  const bool others_can_write = broken && broken->rule != "F5";  // an empty one is only damaged
  if (others_can_write || !check_directory(directory, user))
    return refuse("the record of its check could have been written by anybody" + advice);
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

}  // namespace hearth::loader
