// hearth verify
#include "base/escape.hpp"
#include "base/file_descriptor.hpp"
#include "cli/backup_command.hpp"
#include "cli/commands.hpp"
#include "durable/jobs.hpp"
#include "server/backup_set.hpp"
#include "storage/agent_database.hpp"
#include "storage/connection.hpp"
#include "storage/data_directory.hpp"
#include "storage/data_format.hpp"
#include "storage/directory.hpp"
#include "storage/statement.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;
using durable::JobKind;
using server::BackupFile;
using server::BackupManifest;
using storage::AgentKey;

constexpr std::array<std::pair<JobKind, std::string_view>, 5> kKindsOfWork{
    {{JobKind::kFiber, "fibers"},
     {JobKind::kSchedule, "schedules"},
     {JobKind::kItem, "queue items"},
     {JobKind::kNotice, "notifications"},
     {JobKind::kAlarm, "alarms"}}};

class Verification {
 public:
  Verification(const fs::path& backup, const BackupManifest& manifest)
      : backup_(backup), manifest_(manifest) {
    remove_leftovers(backup.parent_path());
    // Another process may take it for a leftover before it is locked.
    for (int tries = 0; tries < 3 && !lock_.is_open(); ++tries) {
      std::error_code ignored;
      fs::remove_all(own_, ignored);
      std::string own = backup.parent_path() / (std::string(kOwnDirectory) + "XXXXXX");
      if (::mkdtemp(own.data()) == nullptr)
        throw StorageError("make " + own + ": " + std::generic_category().message(errno));
      own_ = own;
      lock_ = locked(own_);
    }
    scratch_ = own_ / "copy";
    for (const BackupFile& each : manifest_.files) files_.emplace(each.path, &each);
  }
  ~Verification() {
    std::error_code ignored;
    fs::remove_all(own_, ignored);
  }
  Verification(const Verification&) = delete;
  Verification& operator=(const Verification&) = delete;

  Answer run() {
    for (const auto& [path, file] : files_) {  // sorted: host.db comes after the agents
      try {
        check(*file);
      } catch (const StorageError& failure) {
        name_damage(path, failure.what());
      } catch (const fs::filesystem_error& failure) {
        name_damage(path, failure.what());
      }
      fs::remove_all(scratch_);
    }
    if (!files_.contains("host.db")) name_damage("host.db", "it is missing");
    std::string text = damage_ + backup_.native() + ": " + std::to_string(manifest_.files.size()) +
                       " files, " + std::to_string(agents_) + " agents. Would resume: ";
    for (std::size_t i = 0; i < kKindsOfWork.size(); ++i)
      text += (i == 0 ? "" : ", ") + std::to_string(work_[i]) + " " +
              std::string(kKindsOfWork[i].second);
    return {damage_.empty() ? kExitClean : kExitFailed, text + "\n"};
  }

 private:
  static constexpr std::string_view kOwnDirectory = ".verifying-";

  // Not open: it is gone, or another process holds it.
  static FileDescriptor locked(const fs::path& directory) {
    FileDescriptor held(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (held.is_open() && ::flock(held.get(), LOCK_EX | LOCK_NB) != 0) held.reset();
    return held;
  }
  // Of one that was killed.
  static void remove_leftovers(const fs::path& directory) {
    std::error_code ignored;
    for (const auto& each : fs::directory_iterator(directory, ignored)) {
      if (!each.path().filename().native().starts_with(kOwnDirectory)) continue;
      if (const FileDescriptor held = locked(each.path()); held.is_open())
        fs::remove_all(each.path(), ignored);
    }
  }

  void name_damage(const std::string& path, std::string_view why) {
    damage_ += "DAMAGED    ";
    append_escaped(damage_, (backup_ / path).native() + ": " + std::string(why),
                   EscapeStyle::kHuman);
    damage_ += '\n';
  }

  void check(const BackupFile& file) {
    const fs::path copy = scratch_ / file.path;
    server::copy_checked(backup_, file, copy);
    if (copy.extension() != ".db") return;  // a WAL is checked with its database
    if (const auto wal = files_.find(file.path + "-wal"); wal != files_.end())
      server::copy_checked(backup_, *wal->second, copy.native() + "-wal");
    if (file.path.starts_with("agents/")) return check_agent(file.path, copy);
    storage::Connection opened(copy, {});
    check_structure(opened.handle());
    storage::check_format(opened);
    if (file.path == "host.db") look_for_agents(copy);
  }

  static void check_structure(sqlite3& handle) {
    storage::Statement check(handle, "PRAGMA integrity_check(1)");
    storage::Rows rows = check.query();
    if (!rows.next() || rows.text(0) != "ok")
      throw StorageError(std::string("integrity_check: ") + std::string(rows.text(0)));
  }

  void check_agent(const std::string& path, const fs::path& copy) {
    const auto key = storage::AgentDatabase::owner_of(copy);
    if (!key) return void(empty_.insert(path));
    storage::AgentDatabase database(copy, *key, {.must_exist = true});
    check_structure(database.connection());
    if (storage::DataDirectory::agent_path_below({}, *key) != path)
      throw StorageError("it is the file of another agent: " + key->agent_class + " " + key->name);
    ++agents_;
    if (durable::Jobs(database).exists()) count_work(database);
    database.close();
  }

  void count_work(storage::AgentDatabase& database) {
    storage::Statement counts(database.connection(),
                              "SELECT kind, count(*) FROM cf_agents_jobs WHERE NOT dead "
                              "AND state < 2 AND ended_at IS NULL GROUP BY kind");
    for (storage::Rows rows = counts.query(); rows.next();) {
      for (std::size_t i = 0; i < kKindsOfWork.size(); ++i) {
        if (static_cast<JobKind>(rows.integer(0)) == kKindsOfWork[i].first)
          work_[i] += rows.integer(1);
      }
    }
  }

  // Agents that have stored data must have a file.
  void look_for_agents(const fs::path& copy) {
    constexpr std::size_t kPage = 1000;
    storage::Directory directory(copy);
    std::set<AgentKey> condemned;
    for (AgentKey& each : directory.condemned()) condemned.insert(std::move(each));
    for (const std::string& agent_class : directory.classes()) {
      std::string after;
      for (auto page = directory.list(agent_class, after, kPage); !page.empty();
           page = directory.list(agent_class, after, kPage)) {
        for (const auto& [key, created_at_ms] : page) {
          const std::string path = storage::DataDirectory::agent_path_below({}, key).native();
          if ((!files_.contains(path) || empty_.contains(path)) && !condemned.contains(key) &&
              directory.kept(key) != storage::Kept::kUnknown)
            name_damage(path, "it is missing: " + key.agent_class + " " + key.name);
        }
        after = page.back().key.name;
      }
    }
  }

  const fs::path backup_;
  const BackupManifest& manifest_;
  fs::path own_;
  fs::path scratch_;  // in it
  FileDescriptor lock_;
  std::map<std::string, const BackupFile*> files_;
  std::set<std::string> empty_;  // agents' files without data
  std::string damage_;
  std::size_t agents_ = 0;
  std::array<std::int64_t, kKindsOfWork.size()> work_{};
};

}  // namespace

Answer verify(const BackupCommand& command) {
  const auto backup = server::find_backup(command.directory);
  if (!backup) return failed_answer(backup.error().message);
  const auto manifest = server::read_manifest(*backup);
  if (!manifest) return failed_answer(manifest.error().message);
  try {
    return Verification(fs::absolute(*backup), *manifest).run();
  } catch (const std::exception& failure) {  // StorageError, filesystem_error: of `.verifying-...`
    return failed_answer(failure.what());
  }
}

}  // namespace hearth::cli
