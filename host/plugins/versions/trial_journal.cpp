#include "plugins/versions/trial_journal.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "base/file_descriptor.hpp"
#include "base/files.hpp"
#include "base/utf8.hpp"
#include "json/json.hpp"

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

constexpr std::size_t kMaxFileBytes = std::size_t{8} << 20U;
constexpr std::size_t kMaxTrialReason = 1024;
constexpr std::size_t kHashDigits = 64;
constexpr const char* kListName = "trials.json";

// Whoever edits the list by hand must not lead us anywhere: a hash becomes a part of a path.
bool is_hash(std::string_view text) {
  return text.size() == kHashDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string cut_reason(std::string_view reason) {
  reason = reason.substr(0, kMaxTrialReason);
  return std::string(reason.substr(0, valid_utf8_prefix(reason)));
}

Trial::NotServed read_not_served(const Json& held) {
  const auto retry = held.find("may_retry");
  return {.sha256 = text_member(held, "sha256"),
          .reason = text_member(held, "reason"),
          .may_retry = retry != held.end() && retry->is_boolean() && retry->get<bool>()};
}

Json written(const Trial::NotServed& held) {
  return {{"sha256", held.sha256}, {"reason", held.reason}, {"may_retry", held.may_retry}};
}

void add_condemned(Trial& trial, const Trial::NotServed& what) {
  std::erase_if(trial.condemned, [&what](const auto& each) { return each.sha256 == what.sha256; });
  if (trial.condemned.size() >= TrialJournal::kMaxCondemned)
    trial.condemned.erase(trial.condemned.begin());
  trial.condemned.push_back(what);
}

std::optional<Trial> read_trial(const Json& each) {
  if (!each.is_object()) return std::nullopt;
  Trial trial{.file = text_member(each, "file"),
              .proven = text_member(each, "proven"),
              .on_trial = text_member(each, "on_trial"),
              .not_served = {},
              .condemned = {}};
  const auto held = each.find("not_served");
  if (held != each.end() && held->is_object()) trial.not_served = read_not_served(*held);
  const auto condemned = each.find("condemned");
  if (condemned != each.end() && condemned->is_array()) {
    for (const Json& what : *condemned) {
      if (what.is_object()) add_condemned(trial, read_not_served(what));
    }
  }
  const bool is_ours = !trial.file.empty() && is_hash(trial.proven);
  return is_ours ? std::optional(std::move(trial)) : std::nullopt;
}

Json written(const Trial& trial) {
  Json each = {
      {"file", trial.file.native()}, {"proven", trial.proven}, {"on_trial", trial.on_trial}};
  if (trial.not_served) each["not_served"] = written(*trial.not_served);
  for (const Trial::NotServed& what : trial.condemned) each["condemned"].push_back(written(what));
  return each;
}

// One name of a file, however its directory is spelled. The file itself may be a link: what that leads to is another one.
fs::path key_of(const fs::path& file) {
  std::error_code failure;
  const fs::path directory = fs::canonical(file.parent_path(), failure);
  return failure ? file : directory / file.filename();
}

// So that it is there when the power fails.
int sync_file(const fs::path& file) {
  const FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  return fd.is_open() && ::fsync(fd.get()) == 0 ? 0 : errno;
}

Error journal_refused(const fs::path& path, std::string_view what, int error) {
  return Error{Errc::kUnavailable, show_name(path.native()) + " " + std::string(what) + ": " +
                                       std::error_code(error, std::generic_category()).message()};
}

}  // namespace

Result<TrialJournal> TrialJournal::open(const fs::path& directory) {
  TrialJournal journal(directory);
  if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    if (is_out_of_room(errno)) return journal;  // made with the first trial
    return journal_refused(directory, "cannot be made", errno);
  }
  // What lies here is loaded one day.
  struct stat status{};
  if (::lstat(directory.c_str(), &status) != 0)
    return journal_refused(directory, "cannot be examined", errno);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid()) {
    return Error{Errc::kForbidden, show_name(directory.native()) + " is no directory of this user"};
  }
  if ((status.st_mode & ALLPERMS) != S_IRWXU && ::chmod(directory.c_str(), S_IRWXU) != 0)
    return journal_refused(directory, "cannot be made private", errno);

  const fs::path list = directory / kListName;
  const auto text = read_file(list, kMaxFileBytes);
  if (!text && text.error().code != Errc::kNotFound) return text.error();
  if (!text) return journal;
  const auto file = parse_json(*text);
  const auto found = file && file->is_object() ? file->find("trials") : Json::const_iterator();
  if (!file || !file->is_object() || found == file->end() || !found->is_array()) {
    return Error{Errc::kInvalidArgument,
                 show_name(list.native()) + " is not what the server writes"};
  }
  for (const Json& each : *found) {
    auto trial = read_trial(each);
    if (!trial || !is_there(journal.bytes_of(trial->proven))) continue;
    if (journal.trials_.size() < kMaxTrials) journal.trials_.push_back(*std::move(trial));
  }
  return journal;
}

Result<Trial> TrialJournal::trial_of(const fs::path& file, const Version& served) {
  HEARTH_ASSERT(is_hash(served.sha256), "a hash has 64 digits");
  if (!is_valid_utf8(file.native())) {
    return Error{Errc::kInvalidArgument,
                 "the name " + show_name(file.native()) + " is not UTF-8, and cannot be noted"};
  }
  const Trial* const known = find(file);
  if (known != nullptr && (known->proven == served.sha256 || known->on_trial == served.sha256))
    return *known;
  if (known == nullptr && trials_.size() >= kMaxTrials)
    return Error{Errc::kLimitExceeded, "too many libraries are on trial"};
  if (const auto kept = keep_bytes(served); !kept) return kept.error();
  return Trial{.file = key_of(file),
               .proven = served.sha256,
               .on_trial = {},
               .not_served = {},
               .condemned = {}};
}

Result<void> TrialJournal::begin(const fs::path& file, const std::string& next,
                                 const Version& served) {
  HEARTH_ASSERT(is_hash(next), "a hash has 64 digits");
  auto begun = trial_of(file, served);
  if (!begun) return begun.error();
  return change(file, [&](std::optional<Trial>& trial) {
    trial = *std::move(begun);
    trial->on_trial = next;
    trial->not_served.reset();
    if (trial->proven == next) trial.reset();
  });
}

Result<void> TrialJournal::keep(const fs::path& file, const Version& served, std::string reason) {
  auto kept = trial_of(file, served);
  if (!kept) return kept.error();
  return change(file, [&](std::optional<Trial>& trial) {
    trial = *std::move(kept);
    if (!trial->not_served)
      trial->not_served = {.sha256 = {}, .reason = std::move(reason), .may_retry = true};
  });
}

Result<void> TrialJournal::condemn(const fs::path& file, const std::string& goes_on,
                                   Trial::NotServed what) {
  if (find(file) == nullptr) return {};
  what.reason = cut_reason(what.reason);
  return change(file, [&](std::optional<Trial>& trial) {
    trial->on_trial = goes_on == trial->proven ? std::string() : goes_on;
    if (!what.may_retry) add_condemned(*trial, what);
    trial->not_served = std::move(what);
  });
}

Result<void> TrialJournal::prove(const fs::path& file, const Version& version) {
  const Trial* const known = find(file);
  if (known == nullptr || known->on_trial != version.sha256) return {};
  if (known->not_served) {
    if (const auto kept = keep_bytes(version); !kept) return kept.error();
  }
  return change(file, [&](std::optional<Trial>& trial) {
    trial->on_trial.clear();
    trial->proven = version.sha256;
    if (!trial->not_served) trial.reset();
  });
}

Result<void> TrialJournal::settle(const fs::path& file) {
  const Trial* const known = find(file);
  if (known == nullptr || !known->not_served) return {};
  return change(file, [](std::optional<Trial>& trial) {
    trial->not_served.reset();
    if (trial->on_trial.empty()) trial.reset();
  });
}

Result<bool> TrialJournal::blame(const std::string& sha256, const std::string& reason) {
  const Trial::NotServed what{.sha256 = sha256, .reason = cut_reason(reason), .may_retry = false};
  std::vector<Trial> after = trials_;
  bool was_on_trial = false;
  for (Trial& trial : after) {
    if (trial.on_trial != sha256) continue;
    was_on_trial = true;
    trial.on_trial.clear();
    add_condemned(trial, what);
    if (!trial.not_served) trial.not_served = what;
  }
  if (!was_on_trial) return false;
  if (const auto replaced = replace(after); !replaced) {
    trials_ = std::move(after);
    return replaced.error();
  }
  return true;
}

Result<void> TrialJournal::allow(const std::string& sha256) {
  const auto is_meant = [&sha256](const auto& each) { return each.sha256 == sha256; };
  std::vector<Trial> after = trials_;
  bool is_known = false;
  for (Trial& trial : after) {
    is_known = std::erase_if(trial.condemned, is_meant) > 0 || is_known;
    if (!trial.not_served || !is_meant(*trial.not_served)) continue;
    trial.not_served->may_retry = true;
    is_known = true;
  }
  return is_known ? replace(std::move(after)) : Result<void>();
}

Result<TrialJournal::Standing> TrialJournal::meet(const fs::path& file, const std::string& sha256) {
  const Trial* const known = find(file);
  if (known == nullptr) return Standing::kUnknown;
  if (find_condemned(file, sha256) != nullptr) return Standing::kCondemned;
  if (known->on_trial == sha256 && !known->not_served) return Standing::kOnTrial;
  const auto changed = change(file, [&](std::optional<Trial>& trial) {
    trial->on_trial = sha256;
    trial->not_served.reset();
    if (trial->proven == sha256) trial.reset();
  });
  if (!changed) return changed.error();
  return find(file) == nullptr ? Standing::kUnknown : Standing::kOnTrial;
}

Result<Candidate> TrialJournal::proven(const fs::path& file, const Clock& clock, uid_t user) const {
  const Trial* const known = find(file);
  if (known == nullptr) return Error{Errc::kNotFound, "no version before it is kept"};
  const fs::path bytes = bytes_of(known->proven);
  auto candidate = read_candidate(
      bytes, clock, {.user = user, .settle_time = std::chrono::milliseconds(0), .pause = {}});
  if (!candidate)
    return Error{Errc::kInternal, show_name(bytes.native()) + ": " + candidate.error().reason};
  if (candidate->sha256 != known->proven)
    return Error{Errc::kInternal, show_name(bytes.native()) + " is damaged"};
  candidate->file = file;
  return *std::move(candidate);
}

const Trial::NotServed* TrialJournal::find_condemned(const fs::path& file,
                                                     std::string_view sha256) const {
  const Trial* const known = find(file);
  if (known == nullptr) return nullptr;
  const auto found = std::ranges::find(known->condemned, sha256, &Trial::NotServed::sha256);
  return found == known->condemned.end() ? nullptr : &*found;
}

const Trial* TrialJournal::find(const fs::path& file) const {
  const auto found = std::ranges::find(trials_, key_of(file), &Trial::file);
  return found == trials_.end() ? nullptr : &*found;
}

fs::path TrialJournal::bytes_of(std::string_view sha256) const {
  return directory_ / (std::string(sha256) + ".so");
}

// A second name for what was loaded: its first one goes when it is unloaded.
Result<void> TrialJournal::keep_bytes(const Version& version) const {
  if (std::ranges::find(trials_, version.sha256, &Trial::proven) != trials_.end()) return {};
  if (::mkdir(directory_.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return journal_refused(directory_, "cannot be made", errno);
  const fs::path bytes = bytes_of(version.sha256);
  std::error_code failure;
  fs::remove(bytes, failure);  // left by somebody who ended between this and the list
  fs::create_hard_link(version.copy, bytes, failure);
  if (failure) {
    failure.clear();
    fs::copy_file(version.copy, bytes, failure);  // a file system without links
  }
  if (failure) return journal_refused(bytes, "cannot be made", failure.value());
  if (const int error = sync_file(bytes); error != 0)
    return journal_refused(bytes, "cannot be brought to the disk", error);
  return {};
}

Result<void> TrialJournal::change(const fs::path& file,
                                  const std::function<void(std::optional<Trial>&)>& change) {
  std::vector<Trial> after = trials_;
  const auto found = std::ranges::find(after, key_of(file), &Trial::file);
  std::optional<Trial> trial;
  if (found != after.end()) {
    trial = std::move(*found);
    after.erase(found);
  }
  change(trial);
  if (trial) after.push_back(*std::move(trial));
  return replace(std::move(after));
}

Result<void> TrialJournal::replace(std::vector<Trial> trials) {
  // The latest change comes last: of those whose files are gone the first ones go.
  const auto is_gone = [](const Trial& each) { return !is_there(each.file); };
  for (auto gone = std::ranges::count_if(trials, is_gone); std::cmp_greater(gone, kMaxGone); --gone)
    trials.erase(std::ranges::find_if(trials, is_gone));
  Json list = Json::array();
  for (const Trial& each : trials) list.push_back(written(each));
  const Json file = {{"trials", std::move(list)}};
  if (auto saved =
          write_file_atomically(directory_ / kListName, dump_json(file) + "\n", fs::perms{0600});
      !saved)
    return saved.error();
  trials_ = std::move(trials);

  std::error_code failure;
  for (fs::directory_iterator entry(directory_, failure);
       !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    const fs::path& path = entry->path();
    const bool is_named = std::ranges::any_of(
        trials_, [&](const Trial& each) { return path == bytes_of(each.proven); });
    std::error_code ignored;
    if (path.extension() == ".so" && !is_named) fs::remove(path, ignored);
  }
  return {};
}

}  // namespace hearth::plugins
