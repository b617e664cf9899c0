#include "plugins/check/check.hpp"

#include "base/files.hpp"
#include "base/sha256.hpp"
#include "json/json.hpp"
#include "plugins/admission/file_rules.hpp"
#include "plugins/admission/probe.hpp"
#include "plugins/admission/trial_process.hpp"
#include "plugins/check/check_cases.hpp"
#include "plugins/check/check_child.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

namespace hearth::plugins {
namespace {

namespace fs = std::filesystem;
using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The rules for the file itself and those of the probe. Rules of a server's start (F4, F6, S1, C1,
// ...) do not depend on the library alone.
constexpr std::array<std::string_view, 4> kOfTheFile = {"F1", "F2", "F3", "F5"};
constexpr std::array<std::string_view, 7> kOfTheProbe = {"P1", "P2", "L1", "L2", "L3", "L4", "L5"};

bool is_static_rule(std::string_view id) {
  return id.starts_with('E') || id.starts_with('N') ||
         std::ranges::find(kOfTheFile, id) != kOfTheFile.end();
}

bool is_probe_rule(std::string_view id) {
  return std::ranges::find(kOfTheProbe, id) != kOfTheProbe.end();
}

struct VerdictWord {
  CheckVerdict verdict;
  std::string_view word;
};
constexpr std::array kVerdictWords = {VerdictWord{CheckVerdict::kPassed, "passed"},
                                      VerdictWord{CheckVerdict::kSkipped, "skipped"},
                                      VerdictWord{CheckVerdict::kWarning, "warning"},
                                      VerdictWord{CheckVerdict::kError, "error"},
                                      VerdictWord{CheckVerdict::kFailed, "failed"},
                                      VerdictWord{CheckVerdict::kCrashed, "crashed"},
                                      VerdictWord{CheckVerdict::kTimedOut, "timed_out"}};

constexpr const char* kOlderLibrary = "older.so";

// A private directory. It is removed when the check ends, with all that its children have left.
class WorkDirectory {
 public:
  static Result<WorkDirectory> make() {
    std::error_code failure;
    std::string pattern = (fs::temp_directory_path(failure) / "hearth-check-XXXXXX").native();
    if (failure || ::mkdtemp(pattern.data()) == nullptr) {
      const int error = failure ? failure.value() : errno;
      return Error{Errc::kUnavailable,
                   "no temporary directory can be made: " + std::generic_category().message(error)};
    }
    return WorkDirectory(pattern);
  }
  ~WorkDirectory() {
    if (path_.empty()) return;
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkDirectory(WorkDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  WorkDirectory& operator=(WorkDirectory&&) = delete;
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  explicit WorkDirectory(fs::path path) : path_(std::move(path)) {}

  fs::path path_;
};

CheckResult fresh(std::string_view id, std::string_view sentence) {
  CheckResult result;
  result.id = id;
  result.sentence = sentence;
  return result;
}

class Checker {
 public:
  Checker(const CheckOptions& options, CheckReport& report) : options_(options), report_(report) {}

  void add(CheckResult result) {
    report_.results.push_back(std::move(result));
    if (options_.on_result) options_.on_result(report_.results.back());
  }

  // Adds the result of a rule, with its finding if there is one.
  void add_rule(const Rule& of, const std::vector<Finding>& findings, bool judged) {
    const auto broken = std::ranges::find(findings, of.id, &Finding::rule);
    const bool is_basic = of.id == "E1" || of.id == "E2";
    if (!(is_basic && broken != findings.end()) && skip_excluded(of.id, of.sentence)) return;
    CheckResult result = fresh(of.id, of.sentence);
    if (broken != findings.end()) {
      // The owner and the rights of this file say nothing about the library. A server checks those
      // of its own file.
      const bool of_this_copy = of.id.starts_with('F') && of.id != "F5";
      result.verdict =
          fails_check(of) && !of_this_copy ? CheckVerdict::kFailed : CheckVerdict::kWarning;
      result.reason = broken->reason;
    } else if (!judged) {
      ++report_.untried;
      return;
    }
    add(std::move(result));
  }

  void look_at_file(const fs::path& file) {
    std::vector<Finding> findings;
    struct stat status{};
    if (::lstat(file.c_str(), &status) == 0) {
      if (S_ISLNK(status.st_mode))
        findings.push_back(
            finding("F1", "it is a symbolic link: a server wants the library itself"));
      if (::stat(file.c_str(), &status) == 0) {
        if (auto broken = check_status(status, ::geteuid())) findings.push_back(*std::move(broken));
      }
    }
    for (const Rule& each : rules()) {
      if (std::ranges::find(kOfTheFile, each.id) != kOfTheFile.end())
        add_rule(each, findings, true);
    }
  }

  // Whether the library can be tried.
  bool look_at_bytes(std::span<const std::byte> bytes) {
    Inspection inspection = inspect_library(bytes);
    const auto& findings = inspection.findings;
    const auto is_broken = [&findings](std::string_view id) {
      return std::ranges::find(findings, id, &Finding::rule) != findings.end();
    };
    const bool unreadable = is_broken("E1") || is_broken("E2");
    bool note_is_broken = unreadable;
    for (const Rule& each : rules()) {
      const bool of_note = each.id.starts_with('N');
      if (!each.id.starts_with('E') && !of_note) continue;
      const bool judged = of_note ? !note_is_broken : !unreadable || each.id == "E1";
      add_rule(each, findings, judged);
      if (of_note && is_broken(each.id)) note_is_broken = true;
    }
    if (inspection.note) {
      report_.plugin = inspection.note->manifest.plugin;
      report_.version = inspection.note->manifest.version;
      report_.classes = inspection.note->manifest.classes;
    }
    // An excluded rule does not stop the check, except for a file that cannot be read.
    return !unreadable && std::ranges::none_of(findings, [this](const Finding& each) {
      return each.severity == Severity::kRefusal && !is_excluded(each.rule);
    });
  }

  bool probe(const fs::path& copy, bool possible) {
    std::vector<Finding> findings;
    const auto before = steady_clock::now();
    if (possible) {
      if (auto broken =
              probe_library(copy, {.program = options_.program, .time_limit = options_.time_limit}))
        findings.push_back(*std::move(broken));
    }
    const auto took = duration_cast<milliseconds>(steady_clock::now() - before);
    // After L5 (a change of the process) a server refuses the library, but the check goes on.
    const bool has_loaded = possible && (findings.empty() || findings.front().rule == "L5");
    for (const Rule& each : rules()) {
      if (!is_probe_rule(each.id)) continue;
      add_rule(each, findings, has_loaded);
      if (report_.results.empty()) continue;
      CheckResult& last = report_.results.back();
      if (last.id != each.id) continue;
      last.took = took;
      if (last.verdict == CheckVerdict::kFailed) judge_probe(findings.front(), last);
    }
    return has_loaded || (possible && is_excluded(findings.front().rule));
  }

  void try_case(const CheckCase& one, const fs::path& copy, const fs::path& work, bool possible) {
    if (skip_excluded(one.id, one.sentence)) return;
    if (!possible) {
      ++report_.untried;
      return;
    }
    CheckResult result = fresh(one.id, one.sentence);
    const fs::path own = work / one.id;
    std::error_code failure;
    fs::create_directory(own, failure);
    if (failure) {
      result.verdict = CheckVerdict::kError;
      result.reason = "the check itself failed: " + own.native() + ": " + failure.message();
      return add(std::move(result));
    }
    const CheckSetting setting{.library = copy,
                               .directory = own,
                               .seed = options_.seed,
                               .options = options_.options,
                               .methods = options_.methods,
                               .may_call = options_.may_call,
                               .time = options_.time_limit,
                               .older = options_.older.empty() ? fs::path() : work / kOlderLibrary};
    const auto before = steady_clock::now();
    const TrialOutcome trial =
        run_trial({.program = options_.program,
                   .arguments = {kCheckArgument, std::string(one.id), to_argument(setting)},
                   .time_limit = options_.time_limit});
    result.took = duration_cast<milliseconds>(steady_clock::now() - before);
    fs::remove_all(own, failure);
    judge(trial, result);
    if (result.verdict == CheckVerdict::kWarning || result.verdict > CheckVerdict::kError)
      result.advice = one.advice;
    add(std::move(result));
  }

 private:
  [[nodiscard]] bool is_excluded(std::string_view id) const {
    return std::ranges::find(options_.excluded, id) != options_.excluded.end();
  }

  bool skip_excluded(std::string_view id, std::string_view sentence) {
    if (!is_excluded(id)) return false;
    CheckResult result = fresh(id, sentence);
    result.verdict = CheckVerdict::kSkipped;
    result.reason = "it is excluded";
    add(std::move(result));
    return true;
  }

  static void judge_probe(const Finding& broken, CheckResult& result) {
    if (is_untried(broken)) {
      result.verdict = CheckVerdict::kError;
      result.reason = "the check itself failed: " + broken.reason;
    } else if (broken.rule == "P1") {
      result.verdict = CheckVerdict::kCrashed;
    } else if (broken.rule == "P2") {
      result.verdict = CheckVerdict::kTimedOut;
    }
  }

  // What the child has reported, and how it ended.
  static void judge(const TrialOutcome& trial, CheckResult& result);

  const CheckOptions& options_;
  CheckReport& report_;
};

void Checker::judge(const TrialOutcome& trial, CheckResult& result) {
  if (!trial.not_started.empty()) {
    result.verdict = CheckVerdict::kError;
    result.reason = "the check itself failed: " + trial.not_started;
    return;
  }
  std::string where = "before it was loaded";
  std::string crash;          // the lent memory that it touched
  bool is_in_thread = false;  // it crashed on another thread than the first
  std::string verdict;
  for (const Json& line : trial.lines()) {
    if (std::string doing = text_member(line, "doing"); !doing.empty()) where = std::move(doing);
    if (std::string touched = text_member(line, "crash"); !touched.empty())
      crash = std::move(touched);
    is_in_thread = is_in_thread || !text_member(line, "crash_in").empty();
    if (std::string word = text_member(line, "verdict"); !word.empty()) {
      verdict = std::move(word);
      result.reason = text_member(line, "reason");
    }
  }
  const bool has_crashed = trial.in_time && trial.has_crashed();
  if (!trial.in_time || has_crashed || verdict.empty()) {
    result.verdict = trial.in_time ? CheckVerdict::kCrashed : CheckVerdict::kTimedOut;
    if (has_crashed && is_in_thread) {
      where = "in a thread of its own " + where;
    } else if (has_crashed && !crash.empty()) {
      where +=
          ", where it touched " + crash + " when that was not lent any more, or behind its end";
    }
    result.reason = trial.how_it_ended(where);
    return;
  }
  const auto known = std::ranges::find(kVerdictWords, verdict, &VerdictWord::word);
  result.verdict = known == kVerdictWords.end() ? CheckVerdict::kError : known->verdict;
}

}  // namespace

std::string_view to_string(CheckVerdict verdict) noexcept {
  return std::ranges::find(kVerdictWords, verdict, &VerdictWord::verdict)->word;
}

bool CheckReport::passed() const {
  return std::ranges::none_of(results,
                              [](const CheckResult& each) { return is_failure(each.verdict); });
}

std::size_t CheckReport::count(CheckVerdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(results, verdict, &CheckResult::verdict));
}

const CheckResult* CheckReport::find(std::string_view id) const {
  const auto found = std::ranges::find(results, id, &CheckResult::id);
  return found == results.end() ? nullptr : &*found;
}

bool is_check_id(std::string_view id) {
  const bool known = std::ranges::find(rules(), id, &Rule::id) != rules().end();
  return (known && (is_static_rule(id) || is_probe_rule(id))) || find_check_case(id) != nullptr;
}

Result<CheckReport> check_library(const fs::path& file, const CheckOptions& options) {
  const auto content = read_file(file, kMaxLibraryBytes);
  if (!content && content.error().code != Errc::kLimitExceeded) return content.error();
  const std::string bytes = content ? *content : std::string();
  CheckReport report;
  report.file = file;
  report.seed = options.seed;
  Sha256 hash;
  hash.update(std::as_bytes(std::span(bytes)));
  report.sha256 = to_hex(hash.finish());

  const auto work = WorkDirectory::make();
  if (!work) return work.error();
  const fs::path copy = work->path() / "library.so";
  constexpr fs::perms kOwnersOnly = fs::perms::owner_read | fs::perms::owner_write;
  if (auto written = write_file_atomically(copy, bytes, kOwnersOnly); !written)
    return written.error();

  if (!options.older.empty()) {
    const auto older = read_file(options.older, kMaxLibraryBytes);
    if (!older) return older.error();
    const auto written = write_file_atomically(work->path() / kOlderLibrary, *older, kOwnersOnly);
    if (!written) return written.error();
  }

  Checker checker(options, report);
  checker.look_at_file(file);
  bool possible = checker.look_at_bytes(std::as_bytes(std::span(bytes)));
  possible = checker.probe(copy, possible);
  for (const CheckCase& one : check_cases()) {
    const bool wanted =
        options.only.empty() || std::ranges::find(options.only, one.id) != options.only.end();
    if (wanted) checker.try_case(one, copy, work->path(), possible);
  }
  return report;
}

}  // namespace hearth::plugins
