#include "plugins/check/check_record.hpp"

#include "base/assert.hpp"
#include "base/files.hpp"
#include "json/json.hpp"
#include "plugins/admission/required_check.hpp"

#include <hearth/abi.h>

#include <string>
#include <system_error>

namespace hearth::plugins {

namespace fs = std::filesystem;

Result<void> write_check_record(const fs::path& data, const CheckReport& report,
                                const Clock& clock) {
  HEARTH_ASSERT(report.passed(), "only what has passed is put down as passed");
  const fs::path directory = data / kCheckedDirectory;
  std::error_code failure;
  fs::create_directories(directory, failure);
  if (failure)
    return Error{Errc::kForbidden, directory.native() + " cannot be made: " + failure.message()};
  // A user that can write here decides which libraries a server loads.
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
  return write_file_atomically(check_record_file(directory, report.sha256),
                               dump_json(record) + "\n",
                               fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace hearth::plugins
