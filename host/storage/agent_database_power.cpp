// AgentDatabase with durability `power`: what must be on the device before what is done. See P7.
#include "storage/agent_database.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

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

// An earlier life ended without close(). What it wrote may be in the system's memory only, with
// nothing left to sync after a failure. Before SQLite reads it, it is brought to the device, so that
// it can be moved into the file; and before anything new is written behind a hole in it.
void AgentDatabase::save_left_wal() {
  if (!write_wal_again(path_, options_.vfs)) return;
  target_ = options_.sync->open(wal_of(path_));
  if (!may_checkpoint())
    throw StorageError(path_.string() + ": what an earlier life has left cannot be synced");
}

void AgentDatabase::open_for_power(Connection& connection, bool is_new) {
  // Unlike the other durability's: SQLite syncs the new file, under a journal, so that a loss of power
  // leaves it whole or empty. Its name, and the journal's going, are brought to the device with the
  // first commit (SyncTarget::listed).
  connection.execute(is_new
                         ? "PRAGMA page_size=4096; PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL"
                         : "PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL");
  if (target_ != nullptr) take_up_left_wal(connection);
  connection.execute("PRAGMA synchronous=OFF");
}

// With synchronous=FULL. It is on the device: without room for it in the file it can be read where it is, until something is written.
void AgentDatabase::take_up_left_wal(Connection& connection) {
  sqlite3& db = connection.handle();
  const int moved =
      sqlite3_wal_checkpoint_v2(&db, "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  wal_is_left_ = moved != SQLITE_OK && is_full(db);
  if (wal_is_left_) return;
  if (moved != SQLITE_OK || !sync_wal(db))
    throw_storage_error(db, "take up what an earlier life has left");
  target_.reset();  // this life has written nothing yet
}

void AgentDatabase::take_up_before_writing() {
  if (!wal_is_left_) return;
  connection_->execute("PRAGMA synchronous=FULL");
  take_up_left_wal(*connection_);
  connection_->execute("PRAGMA synchronous=OFF");
  if (wal_is_left_)
    throw DiskFull(
        path_.string() +
        ": there is no room to take up what an earlier life has left, and so for no write");
}

// The file of an agent that has never committed, as a server that was cut short leaves it. Whether its
// pages are on the device nobody knows.
void AgentDatabase::start_over() {
  connection_.reset();
  for (const char* suffix : {"-wal", "-journal", ""}) {
    const std::string file = path_.native() + suffix;
    if (::unlink(file.c_str()) != 0 && errno != ENOENT)
      throw StorageError("remove " + file + ": " + std::generic_category().message(errno));
  }
}

// The WAL is there by now: SQLite makes it when it first reads.
void AgentDatabase::open_sync_target() {
  if (target_ == nullptr) target_ = options_.sync->open(wal_of(path_));
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
