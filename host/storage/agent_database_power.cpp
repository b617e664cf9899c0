// AgentDatabase with durability `power`: what must be on the device before what is done. See P7.
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

// Before SQLite opens the file. Nothing waits for the device here: what must be there before
// anything is told is part of the target, and nothing is moved into the file before that.
//
// A new file: its first page is all that SQLite writes to it before the first checkpoint.
//
// One with a WAL: an earlier life ended without close(). What it wrote may be in the system's
// memory only, with nothing left to sync after a failure; so it is written again. That goes for the
// first page too, if that life had made the file. What this life commits comes behind it in the
// same WAL, and cannot lie behind a hole in it: what is told depends on a sync of all of it.
void AgentDatabase::prepare_for_power(bool is_new) {
  const bool has_left_wal = !is_new && write_wal_again(path_, options_.vfs);
  if (is_new || has_left_wal) first_page_ = options_.sync->open_first_page(path_);
  if (!has_left_wal) return;
  write_first_page_again(path_, options_.vfs);
  open_sync_target();
}

// The file of an agent that has never committed, as a server that was cut short leaves it. Whether
// its pages are on the device nobody knows.
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

// The WAL is there by now: left, or SQLite makes it when it first reads.
void AgentDatabase::open_sync_target() {
  if (target_ == nullptr) target_ = options_.sync->open(wal_of(path_), std::move(first_page_));
  check_sync_target();
}

void AgentDatabase::check_sync_target() const {
  if (target_ != nullptr && target_->failed())
    throw StorageError("an earlier sync of " + path_.string() + " failed");
}

// Whether the pages in the WAL may be written over those in the file.
bool AgentDatabase::may_checkpoint() noexcept {
  if (target_ == nullptr) return true;  // nothing was written in this life
  if (target_->failed()) return false;
  if (target_->listed() || options_.sync->wait({target_})) return true;
  target_->fail();
  return false;
}

}  // namespace hearth::storage
