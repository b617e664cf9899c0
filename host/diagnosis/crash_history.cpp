#include "diagnosis/crash_history.hpp"

#include "base/escape.hpp"
#include "base/files.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

namespace hearth::diagnosis {
namespace {

namespace fs = std::filesystem;

// Names sort by age: thirteen digits until the year 2286. The clock may have been set back since
// the `last` record.
std::string file_name(const CrashRecord& record, const fs::path* last) {
  const auto name_of = [](std::int64_t number) {
    std::string digits = std::to_string(number);
    if (digits.size() < 13) digits.insert(0, 13 - digits.size(), '0');
    return digits + ".crash";
  };
  std::string name = name_of(record.time_ms);
  if (last == nullptr || name > last->filename().native()) return name;
  return name_of(std::strtoll(last->stem().c_str(), nullptr, 10) + 1);
}

}  // namespace

Result<void> CrashHistory::make_directory() const {
  std::error_code failure;
  fs::create_directory(directory_, failure);
  if (failure)
    return Error{Errc::kUnavailable, directory_.native() + " cannot be made: " + failure.message()};
  return {};
}

Result<std::optional<CrashRecord>> CrashHistory::take_pending() {
  if (const auto made = make_directory(); !made) return made.error();
  std::error_code failure;
  const auto text = read_file(pending(), kMaxCrashFile);
  if (!text && text.error().code == Errc::kNotFound) return std::optional<CrashRecord>();
  std::optional<CrashRecord> found;
  if (text) {
    if (auto record = parse_crash(*text)) found = *std::move(record);
  }
  if (!found) {
    fs::remove(pending(), failure);
  } else {
    if (found->stack.empty()) name_stack(*text, *found);
    const std::vector<fs::path> earlier = files();
    fs::rename(pending(),
               directory_ / file_name(*found, earlier.empty() ? nullptr : &earlier.back()),
               failure);
    forget_old();
  }
  if (failure)
    return Error{Errc::kUnavailable, pending().native() + " cannot be moved: " + failure.message()};
  return found;
}

// The private copies of the crashed server's libraries are still there: it had no time to remove
// them.
void CrashHistory::name_stack(const std::string& text, CrashRecord& record) const {
  const std::vector<CodePlace> frames = parse_frames(text);
  if (frames.empty()) return;
  record.stack = cut_text(join_stack(name_places(frames)), kMaxCrashStack);
  std::ofstream(pending(), std::ios::app) << format_stack(record.stack);
}

std::vector<CrashRecord> CrashHistory::all() const {
  std::vector<CrashRecord> records;
  for (const fs::path& file : files()) {
    const auto text = read_file(file, kMaxCrashFile);
    if (!text) continue;
    if (auto record = parse_crash(*text)) records.push_back(*std::move(record));
  }
  std::ranges::reverse(records);
  return records;
}

std::vector<fs::path> CrashHistory::files() const {
  std::vector<fs::path> found;
  std::error_code failure;
  fs::directory_iterator entry(directory_, failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    if (entry->path().extension() == ".crash") found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

void CrashHistory::forget_old() {
  const std::vector<fs::path> kept = files();
  std::error_code failure;  // ignored: a record that stays is small
  for (std::size_t i = 0; i + kKept < kept.size(); ++i) fs::remove(kept[i], failure);
}

}  // namespace hearth::diagnosis
