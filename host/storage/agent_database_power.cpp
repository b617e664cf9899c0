// AgentDatabase with durability `power`: the order in which data reach the device. See P7.
#include "storage/agent_database.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace hearth::storage {
namespace {

std::filesystem::path wal_of(const std::filesystem::path& path) {
  return path.native() + "-wal";
}

}  // namespace

void AgentDatabase::checkpoint_on_close(Connection& connection, bool wanted) noexcept {
  sqlite3_db_config(&connection.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, wanted ? 0 : 1,
                    nullptr);
}

// Call it before SQLite opens the file. It does not wait for the device: the target has everything
// that must be synced before an answer leaves, and no checkpoint runs before that.
//
// A new file: SQLite writes only the first page to it before the first checkpoint.
//
// A file with a WAL: an earlier object ended without close(). Its writes may be only in the
// system's memory, and after a failed sync a later sync does not write them. So this writes the WAL
// again, and the first page, which that object may have made. New commits follow in the same WAL.
// They cannot follow a hole, because answers wait for a sync of the whole WAL.
void AgentDatabase::prepare_for_power(bool is_new) {
  const bool has_left_wal = !is_new && write_wal_again(path_, options_.vfs);
  if (is_new || has_left_wal) first_page_ = options_.sync->open_first_page(path_);
  if (!has_left_wal) return;
  write_first_page_again(path_, options_.vfs);
  open_sync_target();
}

// Removes the file of an agent that has never committed, as a crash leaves it. It is not known
// whether its pages are on the device.
void AgentDatabase::start_over() {
  connection_.reset();
  target_.reset();
  first_page_.reset();
  for (const char* suffix : {"-wal", "-journal", ""}) {
    const std::string file = path_.native() + suffix;
    if (::unlink(file.c_str()) != 0 && errno != ENOENT)
      throw StorageError("remove " + file + ": " + std::generic_category().message(errno));
  }
}

// The WAL exists by now: an earlier object left it, or SQLite made it at its first read.
void AgentDatabase::open_sync_target() {
  if (target_ == nullptr) target_ = options_.sync->open(wal_of(path_), std::move(first_page_));
  check_sync_target();
}

void AgentDatabase::check_sync_target() const {
  if (target_ != nullptr && target_->failed())
    throw StorageError("an earlier sync of " + path_.string() + " failed");
}

// Whether pages of the WAL may overwrite pages of the file.
bool AgentDatabase::may_checkpoint() noexcept {
  if (target_ == nullptr) return true;  // this object has written nothing
  if (target_->failed()) return false;
  if (target_->listed() || options_.sync->wait({target_})) return true;
  target_->fail();
  return false;
}

}  // namespace hearth::storage
