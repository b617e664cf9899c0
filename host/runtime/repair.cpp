#include "runtime/repair.hpp"

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"
#include "base/stop_point.hpp"
#include "extensions/durable_events.hpp"
#include "extensions/durable_work.hpp"
#include "runtime/class_settings.hpp"
#include "storage/agent_database.hpp"
#include "storage/connection.hpp"
#include "storage/data_directory.hpp"
#include "storage/directory.hpp"
#include "storage/statement.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace hearth::runtime {
namespace {

namespace fs = std::filesystem;
using storage::AgentKey;

class Repair {
 public:
  Repair(const storage::DataDirectory& data, const Clock& clock, const AgentKey* restored)
      : data_(data), clock_(clock), directory_(open_directory()) {
    directory_.empty_wal();
    for (storage::WakeEntry& each : directory_.wakes())
      known_wakes_[std::move(each.key)] = {each.working, each.at_ms, each.unknown_operations,
                                           each.needs_person};
    for (AgentKey& each : directory_.condemned()) {
      if (restored != nullptr && each == *restored) {
        directory_.forget_condemned(each);
      } else {
        condemned_.insert(std::move(each));
      }
    }
  }

  // Once.
  RepairReport run(bool forget_missing) {
    data_.each_agent_file([this](const fs::path& file) {
      look_at(file);
      return true;
    });
    look_for_files(forget_missing);
    // The files are on the device before the entries that refer to them.
    sync_files();
    for (const AgentKey& key : report_.forgotten) data_.remove_agent(key);
    directory_.rebuild(found_, wakes_, report_.forgotten);
    for (const storage::ObjectEntry& each : objects_) {
      if (directory_.contains(each.key))
        directory_.record_object(each.key, each.uuid, each.created_at_ms);
    }
    for (const AgentKey& key : report_.listed) list_object(key);
    directory_.empty_wal();
    return std::move(report_);
  }

 private:
  storage::Directory open_directory() {
    const fs::path path = data_.directory_path();
    storage::write_wal_again(path, {});
    if (!storage::damage_of(path).empty()) set_aside(path);
    return storage::Directory(path);
  }

  void set_aside(const fs::path& path) {
    const std::string suffix = ".damaged-" + std::to_string(unix_millis(clock_.wall_now()));
    for (const char* const part : {"", "-wal", "-shm"}) {
      const fs::path from = path.native() + part;
      if (::rename(from.c_str(), (path.native() + suffix + part).c_str()) != 0 && errno != ENOENT)
        throw StorageError("rename " + from.native() + ": " + system_text(errno));
    }
    report_.set_aside = path.native() + suffix;
    keep_objects(report_.set_aside);
  }

  // The ids of objects, as far as the damaged file still reads.
  void keep_objects(const fs::path& damaged) {
    try {
      storage::Connection from(damaged, {});
      storage::Statement all(from.handle(), "SELECT class, name, uuid, created_at FROM objects");
      for (storage::Rows rows = all.query(); rows.next();) {
        objects_.push_back({.key = {std::string(rows.text(0)), std::string(rows.text(1))},
                            .uuid = std::string(rows.text(2)),
                            .created_at_ms = rows.integer(3)});
      }
    } catch (const StorageError&) {  // NOLINT(bugprone-empty-catch): the rest get new ids
    }
  }

  void look_at(const fs::path& file) {
    try {
      const std::optional<AgentKey> key = storage::AgentDatabase::owner_of(file);
      if (!key) {  // no commit was made, or it is lost
        without_data_.insert(file);
        return;
      }
      if (condemned_.contains(*key)) return;
      if (data_.agent_path(*key) != file) {
        report_.damaged.push_back({file, "it is the file of another agent, and belongs at " +
                                             data_.agent_path(*key).native()});
        return;
      }
      note(*key, wake_of(*key, file));
    } catch (const StorageError& failure) {
      report_.damaged.push_back({file, failure.what()});
    }
  }

  void note(const AgentKey& key, const durable::Wake& wake) {
    ++report_.agents;
    if (!directory_.contains(key)) report_.listed.push_back(key);
    found_.push_back({.key = key, .created_at_ms = unix_millis(clock_.wall_now())});
    const auto known = known_wakes_.find(key);
    const durable::Wake before = known == known_wakes_.end() ? durable::Wake{} : known->second;
    if (!wake.earlier_than(before)) return;
    if (!wake.none()) report_.scheduled.push_back(key);
    const durable::Wake earlier = durable::either(wake, before);
    wakes_.push_back({.key = key,
                      .at_ms = earlier.at_ms,
                      .working = earlier.working,
                      .unknown_operations = earlier.unknown_operations,
                      .needs_person = earlier.needs_person});
  }

  // An agent whose class has objects is one. Which classes have them, only their rows tell here.
  void list_object(const AgentKey& key) {
    if (key.is_sub_agent() || directory_.list_objects(key.agent_class, {}, 1).empty()) return;
    directory_.record_object(key, make_uuid(random_), unix_millis(clock_.wall_now()));
  }

  // When the agent's rows want it to be awake. Changes that loading makes to the rows are not kept.
  durable::Wake wake_of(const AgentKey& key, const fs::path& file) {
    storage::AgentDatabase database(file, key, {.must_exist = true});
    extensions::DurableWork work(database, key, clock_, random_, settings_, events_, stops_);
    work.load(std::nullopt, false, false);
    durable::Wake wake = work.wake();
    wake.needs_person = durable::Jobs(database).any_needs_person();
    // Loading changes rows according to the class's settings, which are unknown here: the agent
    // should wake at once.
    if (database.dirty() && !wake.none()) wake.at_ms = unix_millis(clock_.wall_now());
    work.close();
    database.close();
    return wake;
  }

  // Finds agents with an entry and no file.
  void look_for_files(bool forget_missing) {
    constexpr std::size_t kPage = 1000;
    for (const std::string& agent_class : directory_.classes()) {
      std::string after;
      for (auto page = directory_.list(agent_class, after, kPage); !page.empty();
           page = directory_.list(agent_class, after, kPage)) {
        for (const storage::DirectoryEntry& entry : page) look_for_file(entry.key, forget_missing);
        after = page.back().key.name;
      }
    }
  }

  void look_for_file(const AgentKey& key, bool forget_missing) {
    if (condemned_.contains(key) || has_data(data_.agent_path(key))) return;
    // An agent that may never have stored anything is no loss.
    const bool is_lost = directory_.kept(key) != storage::Kept::kUnknown;
    if (forget_missing) {
      report_.forgotten.push_back(key);
    } else if (is_lost) {
      report_.missing.push_back(key);
    }
  }

  // StorageError: a file that cannot be examined does not count as missing.
  [[nodiscard]] bool has_data(const fs::path& file) {
    std::error_code failure;
    const auto size = fs::file_size(file, failure);
    if (failure == std::errc::no_such_file_or_directory) return false;
    if (failure == std::errc::is_a_directory) {
      report_.damaged.push_back({file, "it is a directory"});
      return true;
    }
    if (failure) throw StorageError("look at " + file.native() + ": " + failure.message());
    return size > 0 && !without_data_.contains(file);
  }

  void sync_files() const {
    const int root = ::open(data_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int error = root < 0 || ::syncfs(root) != 0 ? errno : 0;
    if (root >= 0) ::close(root);
    if (error != 0) throw StorageError("sync " + data_.path().native() + ": " + system_text(error));
  }

  const storage::DataDirectory& data_;
  const Clock& clock_;
  // Before the directory, whose file may be set aside.
  RepairReport report_;
  std::vector<storage::ObjectEntry> objects_;  // of that file
  storage::Directory directory_;
  SystemRandom random_;
  const std::unique_ptr<Logger> logger_ = make_null_logger();  // repair reads no log lines
  extensions::DurableLog events_{*logger_};
  StopPointsAtCommit stops_;
  const ClassSettings settings_;
  std::unordered_map<AgentKey, durable::Wake> known_wakes_;
  std::set<AgentKey> condemned_;
  std::set<fs::path> without_data_;
  std::vector<storage::DirectoryEntry> found_;
  std::vector<storage::WakeEntry> wakes_;
};

}  // namespace

RepairReport repair(const storage::DataDirectory& data, bool forget_missing, const Clock& clock,
                    const AgentKey* restored) {
  return Repair(data, clock, restored).run(forget_missing);
}

}  // namespace hearth::runtime
