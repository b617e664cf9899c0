#include "plugins/versions/version_ledger.hpp"

#include "base/escape.hpp"
#include "base/file_descriptor.hpp"
#include "base/files.hpp"
#include "base/utf8.hpp"
#include "plugins/admission/staging.hpp"
#include "plugins/versions/version_files.hpp"
#include "protocol/class_segment.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace hearth::plugins {
namespace {

namespace fs = std::filesystem;

// One name for a file, however its directory is spelled. If the file is a link, it is the name of
// the link, not of the target.
Subject code_in(const fs::path& file) {
  std::error_code failure;
  const fs::path directory = fs::canonical(file.parent_path(), failure);
  return {.name = failure ? file.native() : (directory / file.filename()).native()};
}

bool is_of_code(const Trial& trial) {
  return trial.of.kind == Subject::Kind::kCode;
}

// So that the file survives a loss of power.
int sync_file(const fs::path& file) {
  const FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  return fd.is_open() && ::fsync(fd.get()) == 0 ? 0 : errno;
}

bool is_named(const VersionFacts& facts, std::string_view sha256) {
  return std::ranges::any_of(facts.trials, [sha256](const Trial& each) {
    return each.proven.hash == sha256 || each.superseded.hash == sha256;
  });
}

bool is_out(const Trial& trial) {
  return is_of_code(trial) && !is_there(trial.of.name);
}

// Keeps the last kMaxGone trials whose libraries are gone.
void drop_gone(VersionFacts& facts) {
  for (auto gone = std::ranges::count_if(facts.trials, is_out);
       std::cmp_greater(gone, VersionLedger::kMaxGone); --gone)
    facts.trials.erase(std::ranges::find_if(facts.trials, is_out));
}

}  // namespace

// ---- the start ----------------------------------------------------------------------------------

VersionLedger::VersionLedger(fs::path data, std::string host)
    : data_(std::move(data)), host_(std::move(host)) {
  // Files in this directory may be loaded later. On a full disk the first trial makes it.
  if (const auto made = make_private_directory(version_bytes_directory(data_)); !made) {
    no_bytes_ = made.error();
    problems_.push_back(made.error());
  }
  read();
}

void VersionLedger::read() {
  const auto stored = read_versions(data_);
  if (!stored) {
    problems_.push_back(stored.error());
    fs::path aside = version_file(data_);
    aside += ".damaged";
    std::error_code failure;
    fs::rename(version_file(data_), aside, failure);
    if (!failure) problems_.back().message += "; it was put aside as " + show_name(aside.native());
  }
  {
    const MutexLock one_at_a_time(changing_);
    const MutexLock lock(mutex_);
    if (stored) facts_ = *stored;
    if (no_bytes_) std::erase_if(facts_.trials, is_of_code);
  }
  if (const auto begun = change(HostStarted{host_}, Unwritten::kHoldsAnyway); !begun)
    problems_.push_back(begun.error());
}

// ---- questions ----------------------------------------------------------------------------------

VersionFacts VersionLedger::facts() const {
  const MutexLock lock(mutex_);
  return facts_;
}

std::optional<VersionLedger::Refusal> VersionLedger::refusal(const fs::path& file,
                                                             std::string_view sha256) const {
  const Subject code = code_in(file);
  const MutexLock lock(mutex_);
  if (const auto* const what = facts_.find_condemned(code, sha256))
    return Refusal{.rule = "R1", .reason = what->reason};
  const ContentFacts* const content = facts_.find_content(sha256);
  if (content != nullptr && !content->rule.empty())
    return Refusal{.rule = content->rule, .reason = content->reason};
  const ClassFacts* const held = facts_.find_barred(sha256);
  if (held == nullptr) return std::nullopt;
  return Refusal{.rule = "R2",
                 .reason = "it is in quarantine and not loaded: it ended the server (" +
                           held->reason + " in " + held->call +
                           "). Replace it, or run `hearth quarantine release " + held->agent_class +
                           "`"};
}

bool VersionLedger::is_quarantined(std::string_view agent_class, std::string_view sha256) const {
  const MutexLock lock(mutex_);
  const ClassFacts* const known = facts_.find_class(agent_class, sha256);
  return known != nullptr && known->is_quarantined;
}

std::vector<ClassFacts> VersionLedger::quarantined() const {
  std::vector<ClassFacts> held = facts().classes;
  std::erase_if(held, [](const ClassFacts& each) { return !each.is_quarantined; });
  return held;
}

std::optional<Trial> VersionLedger::find(const fs::path& file) const {
  return find(code_in(file));
}

std::optional<Trial> VersionLedger::find(const Subject& of) const {
  const MutexLock lock(mutex_);
  const Trial* const known = facts_.find_trial(of);
  return known == nullptr ? std::nullopt : std::optional(*known);
}

bool VersionLedger::is_on_trial(std::string_view sha256) const {
  const MutexLock lock(mutex_);
  return !sha256.empty() && std::ranges::any_of(facts_.trials, [&](const Trial& each) {
    return is_of_code(each) && each.on_trial == sha256;
  });
}

std::vector<Trial> VersionLedger::settings() const {
  std::vector<Trial> settings = facts().trials;
  std::erase_if(settings, is_of_code);
  return settings;
}

Result<Candidate> VersionLedger::go_back(const fs::path& file, const Clock& clock, uid_t user,
                                         std::string sha256) const {
  const auto known = find(file);
  if (!known) return Error{Errc::kNotFound, "no version before it is kept"};
  if (sha256.empty()) sha256 = known->way_back().hash;
  const fs::path bytes = version_bytes(data_, sha256);
  auto candidate = read_candidate(
      bytes, clock, {.user = user, .settle_time = std::chrono::milliseconds(0), .pause = {}});
  if (!candidate)
    return Error{Errc::kInternal, show_name(bytes.native()) + ": " + candidate.error().reason};
  if (candidate->sha256 != sha256)
    return Error{Errc::kInternal, show_name(bytes.native()) + " is damaged"};
  candidate->file = file;
  return *std::move(candidate);
}

// ---- changes ------------------------------------------------------------------------------------

VersionLedger::Counted VersionLedger::crashed(const diagnosis::CrashRecord& crash) {
  const std::vector<ClassFacts> before = quarantined();
  auto written = change(ProcessCrashed{crash}, Unwritten::kHoldsAnyway);
  const bool is_new = std::ranges::any_of(quarantined(), [&before](const ClassFacts& each) {
    return std::ranges::none_of(before, [&each](const ClassFacts& known) {
      return known.agent_class == each.agent_class && known.sha256 == each.sha256 &&
             known.is_barred == each.is_barred;
    });
  });
  return {.is_quarantined = is_new, .written = std::move(written)};
}

Result<std::vector<ClassFacts>> VersionLedger::release(const std::string& given,
                                                       const std::string& by) {
  constexpr std::size_t kMaxShown = 128;
  const std::string segment = protocol::kebab_case(given);
  std::vector<ClassFacts> held = quarantined();
  std::erase_if(held, [&segment](const ClassFacts& each) {
    return protocol::kebab_case(each.agent_class) != segment;
  });
  if (held.empty())
    return Error{Errc::kNotFound,
                 "the class " + quote_text(given, kMaxShown) + " is not in quarantine"};
  for (const ClassFacts& each : held) {
    const auto released =
        change(ClassReleased{.agent_class = each.agent_class, .by = by}, Unwritten::kUndone);
    if (!released) return released.error();
  }
  return held;
}

Result<void> VersionLedger::check_file(const fs::path& file) const {
  if (no_bytes_) return *no_bytes_;
  if (!is_valid_utf8(file.native())) {
    return Error{Errc::kInvalidArgument,
                 "the name " + show_name(file.native()) + " is not UTF-8, and cannot be noted"};
  }
  const Subject code = code_in(file);
  const MutexLock lock(mutex_);
  const auto known = std::ranges::count_if(facts_.trials, is_of_code);
  if (std::cmp_greater_equal(known, kMaxLibraries) && facts_.find_trial(code) == nullptr)
    return Error{Errc::kLimitExceeded, "too many libraries are on trial"};
  return {};
}

Result<void> VersionLedger::begin(const fs::path& file, const std::string& next,
                                  const Version& served) {
  if (auto checked = check_file(file); !checked) return checked;
  return change(TrialBegun{.of = code_in(file), .next = next, .served = {.hash = served.sha256}},
                Unwritten::kUndone, &served);
}

Result<void> VersionLedger::keep(const fs::path& file, const Version& served,
                                 const std::string& reason) {
  if (auto checked = check_file(file); !checked) return checked;
  return change(FileLost{.of = code_in(file), .served = {.hash = served.sha256}, .reason = reason},
                Unwritten::kUndone, &served);
}

Result<void> VersionLedger::lose(const fs::path& file, const std::string& goes_on,
                                 Trial::NotServed what) {
  return change(
      TrialLost{.of = code_in(file), .goes_on = {.hash = goes_on}, .what = std::move(what)},
      Unwritten::kHoldsAnyway);
}

Result<void> VersionLedger::prove(const fs::path& file, const Version& version) {
  return change(TrialPassed{.of = code_in(file), .version = {.hash = version.sha256}},
                Unwritten::kUndone, &version);
}

Result<void> VersionLedger::settle(const fs::path& file) {
  return change(TrialSettled{code_in(file)}, Unwritten::kUndone);
}

Result<void> VersionLedger::meet(const fs::path& file, const std::string& sha256) {
  return change(TrialMet{.of = code_in(file), .hash = sha256}, Unwritten::kUndone);
}

Result<void> VersionLedger::refuse(const std::string& sha256, const std::string& rule,
                                   const std::string& reason) {
  return change(ContentRefused{.sha256 = sha256, .rule = rule, .reason = reason, .host = host_},
                Unwritten::kHoldsAnyway);
}

Result<void> VersionLedger::allow(const std::string& sha256) {
  return change(ContentAllowed{sha256}, Unwritten::kHoldsAnyway);
}

Result<void> VersionLedger::note(const VersionEvent& event) {
  return change(event, Unwritten::kHoldsAnyway);
}

bool VersionLedger::catch_up() {
  const MutexLock one_at_a_time(changing_);
  if (is_behind_) is_behind_ = !write(facts(), nullptr);
  return !is_behind_;
}

Result<void> VersionLedger::change(const VersionEvent& event, Unwritten unwritten,
                                   const Version* kept) {
  const MutexLock one_at_a_time(changing_);
  const VersionFacts before = facts();
  VersionFacts next = after(before, event);
  drop_gone(next);
  if (next == before && !is_behind_) return {};
  const auto written = write(next, kept);
  if (!written && unwritten == Unwritten::kUndone) return written;
  is_behind_ = !written;
  const MutexLock lock(mutex_);
  facts_ = std::move(next);
  return written;
}

Result<void> VersionLedger::write(const VersionFacts& after, const Version* kept) {
  if (kept != nullptr && is_named(after, kept->sha256) && !is_named(facts(), kept->sha256)) {
    if (auto done = keep_bytes(*kept); !done) return done;
  }
  if (auto saved =
          write_file_atomically(version_file(data_), versions_text(after), fs::perms{0600});
      !saved)
    return saved;
  tidy(after);
  return {};
}

// A second name for the loaded copy: its first name is removed when the version is unloaded.
Result<void> VersionLedger::keep_bytes(const Version& version) const {
  const fs::path directory = version_bytes_directory(data_);
  if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return system_refused(directory, "cannot be made", errno);
  const fs::path bytes = version_bytes(data_, version.sha256);
  std::error_code failure;
  fs::remove(bytes, failure);  // left by a process that ended before it wrote versions.json
  fs::create_hard_link(version.copy, bytes, failure);
  if (failure) {
    failure.clear();
    fs::copy_file(version.copy, bytes, failure);  // a file system without links
  }
  if (failure) return system_refused(bytes, "cannot be made", failure.value());
  if (const int error = sync_file(bytes); error != 0)
    return system_refused(bytes, "cannot be brought to the disk", error);
  return {};
}

void VersionLedger::tidy(const VersionFacts& after) const {
  if (no_bytes_) return;
  std::error_code failure;
  for (fs::directory_iterator entry(version_bytes_directory(data_), failure);
       !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    const fs::path& path = entry->path();
    std::error_code ignored;
    if (path.extension() == ".so" && !is_named(after, path.stem().native()))
      fs::remove(path, ignored);
  }
}

}  // namespace hearth::plugins
