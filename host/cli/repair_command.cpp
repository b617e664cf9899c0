#include "base/clock.hpp"
#include "base/escape.hpp"
#include "cli/commands.hpp"
#include "runtime/repair.hpp"
#include "storage/data_directory.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace hearth::cli {
namespace {

constexpr std::size_t kMaxShownName = 4096;

void add_lines(std::string& text, std::string_view what,
               const std::vector<storage::AgentKey>& agents) {
  for (const storage::AgentKey& each : agents) {
    text += std::string(what) + each.agent_class + " " + quote_text(each.name, kMaxShownName);
    text += '\n';
  }
}

std::string report_of(const runtime::RepairReport& report) {
  std::string text;
  if (!report.set_aside.empty()) {
    text += "host.db was damaged and is now " + report.set_aside.native() +
            ": agents whose destruction had begun are agents again\n";
  }
  add_lines(text, "listed     ", report.listed);
  add_lines(text, "scheduled  ", report.scheduled);
  add_lines(text, "forgotten  ", report.forgotten);
  add_lines(text, "MISSING    ", report.missing);
  for (const auto& [file, reason] : report.damaged) {
    text += "DAMAGED    ";
    append_escaped(text, file.native() + ": " + reason, EscapeStyle::kHuman);
    text += '\n';
  }
  text += std::to_string(report.agents) + " agents have files, " +
          std::to_string(report.listed.size()) + " of them were not listed\n";
  if (!report.missing.empty()) {
    text +=
        "Put the missing files back and run this again, or forget those agents with "
        "--forget-missing.\n";
  }
  if (!report.damaged.empty()) {
    text +=
        "Replace each damaged file by one of a backup, or give up its agent with `hearth "
        "destroy` once the server runs.\n";
  }
  return text;
}

}  // namespace

Answer repaired(const storage::DataDirectory& held, bool forget_missing,
                const storage::AgentKey* restored) {
  const runtime::RepairReport report =
      runtime::repair(held, forget_missing, SystemClock(), restored);
  const bool is_whole = report.missing.empty() && report.damaged.empty();
  return Answer{is_whole ? kExitClean : kExitFailed, report_of(report)};
}

Answer answer(const RepairCommand& command) {
  const FoundData found = find_data(command);
  if (found.mistake) return *found.mistake;
  if (const auto why = data_of_another_user(found.data)) return failed_answer(*why);
  // Holds the lock: no server can start until the end of this function.
  const auto held = storage::DataDirectory::open(found.data);
  if (!held) return failed_answer(held.error().message);
  try {
    return repaired(*held, command.forget_missing, nullptr);
  } catch (const StorageError& failure) {
    return failed_answer(failure.what());
  }
}

}  // namespace hearth::cli
