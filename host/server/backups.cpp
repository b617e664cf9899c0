#include "server/backups.hpp"

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"
#include "server/shard_questions.hpp"
#include "storage/connection.hpp"
#include "storage/copy_mark.hpp"
#include "storage/directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <exception>
#include <functional>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <utility>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;
using storage::AgentKey;

constexpr std::size_t kMaxBackupBody = 16384;

struct BackupOrder {
  fs::path directory;
  std::uint64_t rate = Backups::kDefaultRate;
};

Result<BackupOrder> read_order(const std::string& body) {
  Error wrong{
      Errc::kInvalidArgument,
      R"(expected {"directory":"/an/absolute/path","rate":bytes a second, 16384 at least})"};
  if (body.size() > kMaxBackupBody) return wrong;
  const auto json = parse_client_json(body, 4);
  if (!json || !json->is_object()) return wrong;
  BackupOrder order;
  for (const auto& [name, value] : json->items()) {
    if (name == "directory" && value.is_string()) {
      order.directory = fs::path(value.get<std::string>()).lexically_normal();
    } else if (name == "rate" && value.is_number_unsigned() &&
               value.get<std::uint64_t>() >= Backups::kLeastRate) {
      order.rate = value.get<std::uint64_t>();
    } else {
      return wrong;
    }
  }
  if (!order.directory.is_absolute()) return wrong;
  if (!order.directory.has_filename()) order.directory = order.directory.parent_path();
  return order;
}

// Runs `work` while no event loop runs. False: a loop does not answer.
bool in_a_pause(runtime::Runtime& runtime, const std::function<void()>& work) {
  constexpr std::chrono::milliseconds kPatience{50};  // the loops that answer wait as long
  struct Pause {
    Mutex mutex;
    Condition news;
    unsigned waiting GUARDED_BY(mutex) = 0;
    bool is_over GUARDED_BY(mutex) = false;
  };
  const auto pause = std::make_shared<Pause>();
  for (unsigned index = 0; index < runtime.shard_count(); ++index) {
    runtime.loop(index).post([pause] {
      const MutexLock lock(pause->mutex);
      ++pause->waiting;
      pause->news.notify_all();
      while (!pause->is_over) pause->news.wait(pause->mutex);
    });
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const MutexLock lock(pause->mutex);
  while (pause->waiting < runtime.shard_count() && pause->news.wait_until(pause->mutex, until)) {
  }
  const bool all_wait = pause->waiting == runtime.shard_count();
  if (all_wait) work();
  pause->is_over = true;
  pause->news.notify_all();
  return all_wait;
}

}  // namespace

// One backup, from the mark to its name.
class Backups::Backup {
 public:
  Backup(const storage::DataDirectory& data, BackupOrder order)
      : order_(std::move(order)), data_(data), to_(order_.directory / kUnfinishedBackup) {}

  // Makes and locks the directory.
  Result<void> open();
  // These two throw StorageError. Afterwards comes end(), whatever has failed.
  Result<void> set_mark(runtime::Runtime& runtime);
  void copy();

  void end(std::string failure) {
    data_.copy_mark().end();
    std::error_code ignored;
    fs::remove_all(to_, ignored);
    lock_.reset();
    const MutexLock lock(mutex_);
    failure_ = std::move(failure);
    is_over_ = true;
  }
  [[nodiscard]] bool is_over() {
    const MutexLock lock(mutex_);
    return is_over_;
  }
  void stop() { progress_.must_stop = true; }
  [[nodiscard]] Json to_json();
  [[nodiscard]] const fs::path& directory() const { return order_.directory; }

 private:
  void copy_store(const char* name);
  void copy_audit();

  const BackupOrder order_;
  const storage::DataDirectory& data_;
  const fs::path to_;
  fs::path last_;
  FileDescriptor lock_;  // of the directory
  BackupProgress progress_;
  BackupManifest manifest_;
  Mutex mutex_;
  fs::path result_ GUARDED_BY(mutex_);
  std::string failure_ GUARDED_BY(mutex_);
  bool is_over_ GUARDED_BY(mutex_) = false;
};

Result<void> Backups::Backup::open() {
  const auto refuse = [&](std::string_view why) {
    return Error{Errc::kInvalidArgument, order_.directory.native() + ": " + std::string(why)};
  };
  if (::mkdir(order_.directory.c_str(), 0700) != 0 && errno != EEXIST)
    return refuse("cannot be made: " + std::generic_category().message(errno) +
                  ". The server makes it, as its own user");
  std::error_code failure;
  const fs::path directory = fs::canonical(order_.directory, failure);
  const fs::path data = fs::canonical(data_.path(), failure);
  if (!failure && !directory.lexically_relative(data).native().starts_with(".."))
    return refuse("is in the data directory, and would be lost with it");
  lock_ = FileDescriptor(::open(order_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status{};
  if (!lock_.is_open() || ::fstat(lock_.get(), &status) != 0)
    return refuse(std::generic_category().message(errno));
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return refuse("must belong to the server's user, and no other user may write to it");
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return Error{Errc::kConflict, order_.directory.native() + " is in use by another backup"};
  if (const auto last = find_backup(order_.directory)) last_ = *last;
  fs::remove_all(to_, failure);
  if (::mkdir(to_.c_str(), 0700) != 0 || ::mkdir((to_ / kRawCopies).c_str(), 0700) != 0)
    return refuse("cannot be written: " + std::generic_category().message(errno));
  return {};
}

Result<void> Backups::Backup::set_mark(runtime::Runtime& runtime) {
  constexpr int kTries = 30;
  constexpr std::chrono::milliseconds kBetween{100};  // all loops run
  storage::CopyMark& mark = data_.copy_mark();
  storage::Connection from(data_.directory_path(),
                           {.vfs = data_.directory_vfs(), .busy_timeout = std::chrono::seconds(5)});
  mark.hold();
  std::exception_ptr failed;
  const auto set = [&] {
    try {
      mark.set();
      manifest_.mark_ms = unix_millis(SystemClock().wall_now());
      from.execute("BEGIN; SELECT 1 FROM agents LIMIT 1");  // all that it reads is of this moment
    } catch (const StorageError&) {
      failed = std::current_exception();
    }
  };
  for (int tries = 1; !in_a_pause(runtime, set); ++tries) {
    if (tries == kTries) return no_loop();
    std::this_thread::sleep_for(kBetween);
  }
  if (failed) std::rethrow_exception(failed);
  const fs::path copy = to_ / kRawCopies / "host.db";
  storage::copy_content(from, copy);
  storage::Directory copied(copy);
  std::unordered_set<AgentKey> agents;
  constexpr std::size_t kPage = 1000;
  for (const std::string& agent_class : copied.classes()) {
    std::string after;
    for (auto page = copied.list(agent_class, after, kPage); !page.empty();
         page = copied.list(agent_class, after, kPage)) {
      after = page.back().key.name;
      for (auto& entry : page) agents.insert(std::move(entry.key));
    }
  }
  for (const AgentKey& each : copied.condemned()) agents.erase(each);
  manifest_.agents = agents.size();
  progress_.agents = agents.size();
  mark.wait_for(std::move(agents));
  return {};
}

void Backups::Backup::copy_store(const char* name) {
  std::error_code ignored;
  if (!fs::exists(data_.path() / name, ignored)) return;
  storage::Connection from(data_.path() / name, {.busy_timeout = std::chrono::seconds(5)});
  storage::copy_content(from, to_ / kRawCopies / name);
}

// The server works without it, so its damage must not prevent backups.
void Backups::Backup::copy_audit() {
  try {
    copy_store("audit.db");
  } catch (const DiskFull&) {
    throw;
  } catch (const StorageError& failure) {
    fs::remove(to_ / kRawCopies / "audit.db");
    progress_.leave_out(failure.what());
  }
}

void Backups::Backup::copy() {
  copy_store("server.db");
  copy_audit();
  BackupCopier copier(data_, to_, last_, order_.rate, progress_);
  std::exception_ptr failed;
  std::thread([&] {
    try {
      copier.run();
    } catch (const std::exception&) {
      failed = std::current_exception();
    }
  }).join();
  if (failed) std::rethrow_exception(failed);
  data_.copy_mark().end();
  manifest_.files = copier.take_files();
  sync_file_system(to_);
  if (const auto written = write_manifest(to_, manifest_); !written)
    throw StorageError(written.error().message);
  if (progress_.must_stop) throw StorageError("it was stopped");
  const fs::path result = order_.directory / backup_name(manifest_.mark_ms, order_.directory);
  fs::rename(to_, result);
  sync_file_system(order_.directory);
  const MutexLock lock(mutex_);
  result_ = result;
}

Json Backups::Backup::to_json() {
  const MutexLock lock(mutex_);
  const char* const state = !is_over_ ? "running" : failure_.empty() ? "done" : "failed";
  const std::size_t left_out = progress_.left_out;
  const std::string& reason = failure_.empty() && left_out > 0 ? progress_.why_left_out : failure_;
  return {{"state", state},
          {"directory", result_.empty() ? order_.directory.native() : result_.native()},
          {"mark_ms", manifest_.mark_ms},
          {"agents", progress_.agents.load()},
          {"done", progress_.done.load()},
          {"bytes", progress_.bytes.load()},
          {"linked", progress_.linked.load()},
          {"left_out", left_out},
          {"reason", reason.empty() ? Json() : Json(reason)}};
}

// ---- requests -----------------------------------------------------------------------------------

Result<void> Backups::may_begin() {
  const MutexLock lock(mutex_);
  if (backup_ && !backup_->is_over())
    return Error{Errc::kConflict, "a backup is in progress: hearth backup waits for none"};
  if (thread_.joinable()) thread_.join();
  return {};
}

Result<Json> Backups::begin(const api::RouteCall& call) {
  auto order = read_order(call.exchange->request().body);
  if (!order) return order.error();
  if (const auto refused = may_begin(); !refused) return refused.error();
  audit_.record(LogLevel::kInfo, "admin.backup",
                {{"directory", order->directory.native()},
                 {"peer", call.exchange->request().peer},
                 {"actor", call.actor}});
  const auto backup = std::make_shared<Backup>(data_, *std::move(order));
  Result<void> begun = backup->open();
  const bool is_open = begun.has_value();  // if not, another backup may be what is there
  try {
    if (is_open) begun = backup->set_mark(runtime_);
  } catch (const StorageError& failure) {
    begun = Error{Errc::kUnavailable, failure.what()};
  }
  if (!begun) {
    if (is_open) backup->end(begun.error().message);
    note_end(*backup, begun.error().message);
    return begun.error();
  }
  {
    const MutexLock lock(mutex_);
    backup_ = backup;
  }
  thread_ = std::thread([this, backup] { run(*backup); });
  return backup->to_json();
}

void Backups::run(Backup& backup) {
  std::string failure;
  try {
    backup.copy();
  } catch (const std::exception& failed) {  // StorageError, filesystem_error
    failure = failed.what();
  }
  backup.end(failure);
  note_end(backup, failure);
}

void Backups::note_end(Backup& backup, const std::string& failure) {
  const Json told = backup.to_json();
  const auto left_out = told["left_out"].get<std::uint64_t>();
  audit_.record(failure.empty() && left_out == 0 ? LogLevel::kInfo : LogLevel::kError,
                failure.empty() ? "backup.done" : "backup.failed",
                {{"directory", told["directory"].get<std::string>()},
                 {"agents", told["done"].get<std::uint64_t>()},
                 {"bytes", told["bytes"].get<std::uint64_t>()},
                 {"linked", told["linked"].get<std::uint64_t>()},
                 {"left_out", left_out},
                 {"reason", failure.empty() ? text_member(told, "reason") : failure}});
}

Result<Json> Backups::status(const api::RouteCall& /*call*/) {
  const MutexLock lock(mutex_);
  return backup_ ? backup_->to_json() : Json{{"state", "none"}};
}

Result<Json> Backups::cancel(const api::RouteCall& call) {
  std::shared_ptr<Backup> backup;
  {
    const MutexLock lock(mutex_);
    backup = backup_;
  }
  if (!backup || backup->is_over()) return Error{Errc::kNotFound, "no backup is in progress"};
  backup->stop();
  audit_.record(LogLevel::kInfo, "admin.backup_cancel",
                {{"peer", call.exchange->request().peer}, {"actor", call.actor}});
  return backup->to_json();
}

void Backups::stop() {
  {
    const MutexLock lock(mutex_);
    if (backup_) backup_->stop();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace hearth::server
