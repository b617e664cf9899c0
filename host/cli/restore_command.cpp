// hearth restore
#include "api/admin_requests.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/names.hpp"
#include "cli/admin_client.hpp"
#include "cli/backup_command.hpp"
#include "cli/commands.hpp"
#include "protocol/class_segment.hpp"
#include "server/backup_set.hpp"
#include "storage/agent_database.hpp"
#include "storage/data_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;
using server::BackupFile;
using server::BackupManifest;
using storage::AgentKey;
using storage::DataDirectory;

std::string name_beside(const fs::path& path) {
  return path.native() + ".before-" + std::to_string(unix_millis(SystemClock().wall_now()));
}

// Puts `fresh` in the place of `path`, at once; what was there is `beside` then. A kill leaves
// `fresh` or the old one under that name, never neither. After a failure all is as before.
void put_in_place(const fs::path& fresh, const fs::path& path, const std::string& beside) {
  fs::rename(fresh, beside);
  if (::renameat2(AT_FDCWD, beside.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return;
  const int failure = errno;
  if (failure == ENOENT) return fs::rename(beside, path);
  fs::rename(beside, fresh);
  if (failure == EINVAL || failure == ENOSYS) {
    throw StorageError("replace " + path.native() +
                       ": its file system cannot exchange two names at once, as --replace does. "
                       "Move the old one away, and restore without --replace");
  }
  throw StorageError("replace " + path.native() + ": " + std::generic_category().message(failure));
}

// A directory that nothing can be renamed over.
bool is_mount_point(const fs::path& path) {
  struct stat here{};
  struct stat above{};
  return ::stat(path.c_str(), &here) == 0 && ::stat((path / "..").c_str(), &above) == 0 &&
         here.st_dev != above.st_dev;
}

Answer restore_all(const fs::path& backup, const BackupManifest& manifest, const fs::path& target,
                   bool replaces) {
  std::error_code failure;
  const bool is_empty = !fs::exists(target, failure) || fs::is_empty(target, failure);
  if (failure) return failed_answer(target.native() + ": " + failure.message());
  if (!is_empty && !replaces) {
    return failed_answer(target.native() +
                         " is not empty. Restore to another directory, or keep it beside the "
                         "restored one with --replace");
  }
  if (is_mount_point(target)) {
    return failed_answer(target.native() +
                         " is a mount point, which no restored directory can replace: restore to a "
                         "directory in it, and name that one to the server");
  }
  // Held to the end: no server runs there, and none starts.
  auto old =
      is_empty ? Result<DataDirectory>(Error{Errc::kNotFound, {}}) : DataDirectory::open(target);
  if (!is_empty && !old) return failed_answer(old.error().message);
  const fs::path fresh = target.native() + ".restoring";
  const auto held = DataDirectory::open(fresh);  // one restore at a time
  if (!held) return failed_answer(held.error().message);
  for (const auto& each : fs::directory_iterator(fresh)) {  // of one that was killed
    if (each.path().filename() != "lock") fs::remove_all(each.path());
  }
  try {
    for (const BackupFile& file : manifest.files)
      server::copy_checked(backup, file, fresh / file.path);
    server::sync_file_system(fresh);
    if (is_empty) {
      fs::rename(fresh, target);  // also over an empty directory
    } else {
      put_in_place(fresh, target, name_beside(target));
    }
  } catch (const std::exception&) {  // it holds the administrators' token
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    throw;
  }
  server::sync_file_system(target);
  return {kExitClean, "restored " + std::to_string(manifest.agents) + " agents of " +
                          backup.native() + " to " + target.native() + "\n"};
}

// ---- one agent ----------------------------------------------------------------------------------

// Copies the agent to `fresh`.db; its files go to `fresh`.files.
bool copy_one(const fs::path& backup, const BackupManifest& manifest, const std::string& path,
              const fs::path& fresh) {
  const std::string files = fs::path(path).replace_extension(".files").native() + "/";
  bool is_found = false;
  for (const BackupFile& each : manifest.files) {
    if (each.path == path || each.path == path + "-wal") {
      server::copy_checked(backup, each, fresh.native() + each.path.substr(path.size() - 3));
      is_found = true;
    } else if (each.path.starts_with(files)) {
      server::copy_checked(backup, each,
                           fresh.native() + ".files/" + each.path.substr(files.size()));
    }
  }
  return is_found;
}

// Is gone at the end, also after a failure.
class PassingDirectory {
 public:
  explicit PassingDirectory(fs::path path) : path_(std::move(path)) { fs::remove_all(path_); }
  ~PassingDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PassingDirectory(const PassingDirectory&) = delete;
  PassingDirectory& operator=(const PassingDirectory&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  const fs::path path_;
};

// The class of the backup that is named as it is or as in URLs; else the name that was given.
std::string class_in(const BackupManifest& manifest, const std::string& given) {
  constexpr std::string_view kAgents = "agents/";
  std::string found = given;
  for (const BackupFile& each : manifest.files) {
    if (!each.path.starts_with(kAgents)) continue;
    const std::string name =
        each.path.substr(kAgents.size(), each.path.find('/', kAgents.size()) - kAgents.size());
    if (name == given) return given;
    if (protocol::kebab_case(name) == protocol::kebab_case(given)) found = name;
  }
  return found;
}

// A kill leaves the old file, or the copy; run again then, it does what is left to do. The files of
// operations come first and one by one: the old ones stay, since one of the same operation is not
// older than its copy, and the others disturb nothing.
Answer restore_one(const fs::path& backup, const BackupManifest& manifest, const fs::path& data,
                   const BackupCommand& command) {
  const std::size_t slash = command.agent.find('/');
  const AgentKey key{class_in(manifest, command.agent.substr(0, slash)),
                     slash == std::string::npos
                         ? std::string()
                         : api::name_of_key(name_in_url(command.agent.substr(slash + 1)))};
  if (!is_class_name(key.agent_class) || key.name.empty())
    return failed_answer("--agent is CLASS/NAME: ChatRoom/lobby");
  const auto held = DataDirectory::open(data);
  if (!held) return failed_answer(held.error().message);
  const fs::path file = held->agent_path(key);
  if (is_there(file) && !command.replace) {
    return failed_answer(
        "the agent exists. Keep its file beside the restored one with --replace, also to go on "
        "after a restore that was interrupted");
  }
  const PassingDirectory fresh(held->path() / ".restoring");
  const fs::path copy = fresh.path() / "agent";
  if (!copy_one(backup, manifest, file.lexically_relative(held->path()).native(), copy))
    return failed_answer("the backup has no such agent");
  // Closing it leaves one file, so that one rename replaces the agent.
  storage::AgentDatabase(copy.native() + ".db", key, {.must_exist = true}).close();
  server::sync_file_system(fresh.path());
  const std::string beside = name_beside(file);
  const fs::path wal = file.native() + "-wal";
  const std::string kept_wal = beside + "-wal";  // SQLite removes the WAL of a damaged file
  if (is_there(wal)) fs::create_hard_link(wal, kept_wal);
  try {  // the same for the old one
    if (is_there(file)) storage::AgentDatabase(file, key).close();
    fs::remove(kept_wal);
  } catch (const StorageError& failure) {
    std::fprintf(stderr, "hearth: the file that is replaced keeps its WAL: %s\n", failure.what());
    fs::remove(wal);
  }
  const fs::path files = storage::AgentDatabase::files_beside(file);
  server::make_private_parents(file);
  std::error_code none;
  for (const auto& each : fs::directory_iterator(copy.native() + ".files", none)) {
    const fs::path to = files / each.path().filename();
    server::make_private_parents(to);
    if (!is_there(to)) fs::rename(each, to);
  }
  put_in_place(copy.native() + ".db", file, beside);
  Answer listed = repaired(*held, false, &key);
  listed.text.insert(0, "restored " + command.agent + " of " + backup.native() + "\n");
  return listed;
}

}  // namespace

Answer restore(const BackupCommand& command) {
  ::umask(077);
  const bool is_one = !command.agent.empty();
  const FoundData found = find_data(command, is_one);
  if (found.mistake) return *found.mistake;
  const auto backup = server::find_backup(command.directory);
  if (!backup) return failed_answer(backup.error().message);
  const auto manifest = server::read_manifest(*backup);
  if (!manifest) return failed_answer(manifest.error().message);
  std::error_code failure;  // a link stays, and what it leads to is replaced
  fs::path data = fs::weakly_canonical(fs::absolute(found.data), failure);
  if (failure) return failed_answer(found.data.native() + ": " + failure.message());
  if (!data.has_filename()) data = data.parent_path();
  if (const auto why = data_of_another_user(data)) return failed_answer(*why);
  try {
    return is_one ? restore_one(*backup, *manifest, data, command)
                  : restore_all(*backup, *manifest, data, command.replace);
  } catch (const StorageError& failure) {
    return failed_answer(failure.what());
  } catch (const fs::filesystem_error& failure) {
    return failed_answer(failure.what());
  }
}

}  // namespace hearth::cli
