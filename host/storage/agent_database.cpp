#include "storage/agent_database.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "base/file_descriptor.hpp"
#include "base/stop_point.hpp"
#include "storage/agent_schema.hpp"
#include "storage/copy_mark.hpp"
#include "storage/data_format.hpp"
#include "storage/single_owner_vfs.hpp"
#include "storage/statement.hpp"
#include "storage/wal_damage.hpp"
#include "storage/wal_format.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

namespace hearth::storage {
namespace {

// The id of the one row of cf_agents_state.
#define HEARTH_STATE_ROW "'cf_state_row_id'"

constexpr char kCreateMeta[] =
    "CREATE TABLE cf_agents_meta(key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID";
constexpr char kCreateState[] =
    "CREATE TABLE cf_agents_state(id TEXT PRIMARY KEY NOT NULL, state TEXT) WITHOUT ROWID";

// 0 for a file that does not exist.
std::int64_t bytes_of(const std::filesystem::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) return status.st_size;
  if (errno == ENOENT || errno == ENOTDIR) return 0;
  throw StorageError("look at " + path.string() + ": " + std::generic_category().message(errno));
}

bool has_bytes(const std::filesystem::path& path) {
  return bytes_of(path) > 0;
}

constexpr std::string_view kMagic("SQLite format 3\0", 16);

// The first 32 bytes, filled up with zeros. Empty if the file cannot be read: SQLite meets the same
// error, and reports it.
std::string first_bytes(const std::filesystem::path& path) {
  std::string bytes(32, '\0');
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (::read(file.get(), bytes.data(), bytes.size()) < 0) bytes.clear();
  return bytes;
}

// Whether a crash or a loss of power came between the creation of this file and its first commit.
// The first commit makes cf_agents_meta, whose page is the second, in the file or in the WAL. After
// a loss of power the first page may hold no database. If the first page counts more pages, the
// file has lost them: SQLite opens it, and reports it as corrupt.
bool was_in_the_making(const std::filesystem::path& path) {
  if (bytes_of(path) > kPageBytes || has_bytes(path.native() + "-wal")) return false;
  constexpr std::size_t kPageCountAt = 28;  // big endian; sqlite.org/fileformat2.html, 1.3
  const std::string header = first_bytes(path);
  if (header.empty()) return false;
  if (!header.starts_with(kMagic)) return true;
  std::uint32_t pages = 0;
  for (std::size_t i = 0; i < sizeof pages; ++i)
    pages = pages << 8U | static_cast<unsigned char>(header.at(kPageCountAt + i));
  return pages <= 1;
}

// Whether neither the first page nor the WAL has a database.
bool has_lost_its_beginning(const std::filesystem::path& path, const std::string& vfs) {
  if (bytes_of(path) > kPageBytes || !has_bytes(path.native() + "-wal")) return false;
  if (const std::string header = first_bytes(path); header.empty() || header.starts_with(kMagic))
    return false;
  sqlite3* opened = nullptr;
  sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE,
                  vfs.empty() ? kSingleOwnerVfs : vfs.c_str());
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> probe(opened, &sqlite3_close);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return sqlite3_exec(opened, "PRAGMA locking_mode=EXCLUSIVE; SELECT 1 FROM sqlite_schema", nullptr,
                      nullptr, nullptr) == SQLITE_NOTADB;
}

// Makes the directories above an agent's file. The data directory itself exists.
void make_parents(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error)
    throw StorageError("make directory " + path.parent_path().string() + ": " + error.message());
}

// If the sync of an emptied or blank WAL has failed, the device still has the old content. A write
// to that WAL and then a loss of power could leave the beginning of the old content, and SQLite
// would replay it over newer pages. So the file is removed, and SQLite makes a new one. If the old
// file comes back, it is complete, and all of it is already in the database.
void remove_empty_wal(const std::filesystem::path& path) {
  const std::string wal = path.native() + "-wal";
  if (has_bytes(wal)) {
    errno = 0;
    const std::string header = first_bytes(wal);
    if (header.empty()) {  // it may be a blank WAL, which must not be written to
      const std::string text = "read " + wal + ": " + std::generic_category().message(errno);
      if (errno == EMFILE || errno == ENFILE) throw OutOfDescriptors(text);
      throw StorageError(text);
    }
    if (header.find_first_not_of('\0') != std::string::npos) return;
  }
  if (::unlink(wal.c_str()) == 0 || errno == ENOENT) return;
  throw StorageError("remove " + wal + ": " + std::generic_category().message(errno));
}

// Brings the file itself to the device. False: the sync failed.
bool sync_file(sqlite3& connection) {
  sqlite3_file* file = nullptr;
  return sqlite3_file_control(&connection, "main", SQLITE_FCNTL_FILE_POINTER,
                              static_cast<void*>(&file)) == SQLITE_OK &&
         file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) == SQLITE_OK;
}

// Resets statements that are in the middle of writing, because SQLite refuses to commit while they
// run. They do all their writes before their first row, so only rows are lost.
void reset_busy_writers(sqlite3& connection) {
  for (sqlite3_stmt* stmt = sqlite3_next_stmt(&connection, nullptr); stmt != nullptr;
       stmt = sqlite3_next_stmt(&connection, stmt)) {
    if (sqlite3_stmt_busy(stmt) != 0 && sqlite3_stmt_readonly(stmt) == 0) sqlite3_reset(stmt);
  }
}

}  // namespace

// Breaks the database if the operation in its scope does not succeed.
class AgentDatabase::FailStop {
 public:
  explicit FailStop(AgentDatabase& database) : database_(database) {
    database.check_usable();
    database.broken_ = true;
  }
  void succeeded() { database_.broken_ = false; }

 private:
  AgentDatabase& database_;
};

AgentDatabase::AgentDatabase(std::filesystem::path path, AgentKey key, AgentDatabaseOptions options)
    : path_(std::move(path)), key_(std::move(key)), options_(std::move(options)) {
  if (options_.must_exist) {
    check_not_lost();
  } else {
    if (!has_bytes(path_)) return;  // P1: a new agent, until it writes
    // With `power` no answer left before the first page was on the device. So a file without a
    // first page holds no promised data, except if the directory says so (must_exist).
    const bool may_be_lost = options_.sync != nullptr;
    if (was_in_the_making(path_) || (may_be_lost && has_lost_its_beginning(path_, options_.vfs))) {
      start_over();
      return;
    }
  }
  open_file();
  check_identity();
}

std::optional<AgentKey> AgentDatabase::owner_of(const std::filesystem::path& path) {
  if (!has_bytes(path) || was_in_the_making(path)) return std::nullopt;
  write_wal_again(path, {});
  Connection connection(path, {.vfs = kSingleOwnerVfs});
  if (connection.query_integer("SELECT count(*) FROM sqlite_schema") == 0) return std::nullopt;
  AgentKey key;
  Statement meta(connection.handle(),
                 "SELECT key, value FROM cf_agents_meta WHERE key IN ('class', 'name')");
  for (Rows rows = meta.query(); rows.next();)
    (rows.text(0) == "class" ? key.agent_class : key.name) = rows.text(1);
  if (!is_class_name(key.agent_class) || key.name.empty())
    throw StorageError(path.string() + " is no agent's database");
  return key;
}

AgentDatabase::~AgentDatabase() {
  if (closed_ || connection_ == nullptr) return;
  close_connection();
  remove_if_unwritten();
}

void AgentDatabase::open_file() {
  const bool is_new = !has_bytes(path_);
  if (is_new) make_parents(path_);
  remove_empty_wal(path_);
  if (options_.sync != nullptr) prepare_for_power(is_new);
  // kSingleOwnerVfs excludes other connections itself, at a lower cost.
  const bool own_vfs = options_.vfs.empty();
  auto connection = std::make_unique<Connection>(
      path_, ConnectionOptions{.create = true,
                               .vfs = own_vfs ? kSingleOwnerVfs : options_.vfs,
                               .cache_pages = options_.cache_pages,
                               .exclusive = !own_vfs});
  checkpoint_on_close(*connection, false);  // close_connection() allows it after it has checked
  // On a new file this writes the first page; a file in WAL mode does not change. It does not wait
  // for the first write, because SQLite cannot change the mode while a plugin's cursor is open. The
  // journal is in memory: one on disk that comes back after a loss of power would empty the file.
  connection->execute(is_new ? "PRAGMA page_size=4096; PRAGMA synchronous=OFF; "
                               "PRAGMA journal_mode=MEMORY; PRAGMA journal_mode=WAL"
                             : "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF");
  // SQLite's own checkpoints would wait for the device inside a commit, and ignore their failures.
  sqlite3_wal_hook(&connection->handle(), &AgentDatabase::after_commit, this);
  checkpoint_at_ = options_.checkpoint_pages;
  wal_pages_ = -1;
  if (options_.max_pages > 0)
    connection->execute(("PRAGMA max_page_count=" + std::to_string(options_.max_pages)).c_str());
  connection_ = std::move(connection);
  struct stat status{};
  if (own_vfs && ::stat(path_.c_str(), &status) == 0) {
    inode_ = status.st_ino;
    device_ = status.st_dev;
  } else {
    inode_ = 0;
  }
}

sqlite3& AgentDatabase::connection() {
  check_usable();
  if (connection_ == nullptr) open_file();
  return connection_->handle();
}

// ---- the agent that the file belongs to --------------------------------------------------------

void AgentDatabase::check_identity() {
  bool any_table = false;
  {
    Statement tables(connection_->handle(), "SELECT name FROM sqlite_schema WHERE type = 'table'");
    has_state_ = false;
    for (Rows rows = tables.query(); rows.next(); any_table = true) {
      if (rows.text(0) == "cf_agents_meta") has_meta_ = true;
      if (rows.text(0) == "cf_agents_state") has_state_ = true;
    }
  }
  if (!any_table) {  // the server died between making the file and its first commit
    if (options_.must_exist) refuse_loss("has lost what was in it");
    if (options_.sync != nullptr) start_over();
    return;
  }
  if (!has_meta_) throw StorageError(path_.string() + " is no agent's database");

  AgentKey found;
  std::int64_t format = 0;
  std::int64_t class_schema = 0;
  Statement meta(connection_->handle(), "SELECT key, value FROM cf_agents_meta");
  for (Rows rows = meta.query(); rows.next();) {
    if (rows.text(0) == "class") found.agent_class = rows.text(1);
    if (rows.text(0) == "name") found.name = rows.text(1);
    if (rows.text(0) == "schema") format = rows.integer(1);
    if (rows.text(0) == "class_schema") class_schema = rows.integer(1);
  }
  if (found != key_) {
    throw StorageError(path_.string() + " belongs to agent " + quote_text(found.name) +
                       " of class " + quote_text(found.agent_class) + ", not to " +
                       quote_text(key_.name) + " of class " + quote_text(key_.agent_class));
  }
  if (format != kDataFormat) throw StorageError(wrong_format(path_.string(), format));
  if (class_schema < 0 || class_schema > std::numeric_limits<std::uint32_t>::max())
    throw StorageError(path_.string() + " has a damaged class_schema");
  class_schema_ = static_cast<std::uint32_t>(class_schema);
}

void AgentDatabase::check_not_lost() const {
  if (!has_bytes(path_)) {
    std::error_code ignored;
    refuse_loss(std::filesystem::exists(path_, ignored) ? "is empty" : "is missing");
  }
  if (was_in_the_making(path_)) refuse_loss("has lost what was in it");
}

// Writes to a file whose name was removed are lost when it is closed, and SQLite does not check.
// Not at each commit: that would cost a tenth of a small commit.
void AgentDatabase::check_in_place() {
  if (inode_ == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < looked_at_ + kPlaceInterval) return;
  looked_at_ = now;
  struct stat status{};
  const bool is_there = ::stat(path_.c_str(), &status) == 0;
  // An error of a directory above says nothing about the file.
  const bool is_same = status.st_ino == inode_ && status.st_dev == device_;
  const bool is_in_place = is_there ? is_same : errno != ENOENT;
  if (is_in_place) return;
  throw StorageError(path_.string() +
                     " was removed or replaced while the server had it open. Replace files of "
                     "agents only while the server is stopped");
}

void AgentDatabase::refuse_loss(std::string_view state) const {
  throw StorageError(path_.string() + " " + std::string(state) + ", but agent " +
                     quote_text(key_.name) + " of class " + key_.agent_class +
                     " has stored data there. Put the file back from a backup, or accept the loss: "
                     "`hearth destroy` for one agent, or stop the server and run "
                     "`hearth repair --forget-missing`");
}

void AgentDatabase::write_identity() {
  connection_->execute(kCreateMeta);
  Statement insert(connection_->handle(),
                   "INSERT INTO cf_agents_meta(key, value) VALUES('class', ?1), ('name', ?2), "
                   "('schema', ?3), ('incarnation', lower(hex(randomblob(16))))");
  insert.execute(key_.agent_class, key_.name, kDataFormat);
  has_meta_ = true;
  meta_is_pending_ = true;
  if (options_.class_schema != 0) write_class_schema(options_.class_schema);
}

void AgentDatabase::write_class_schema(std::uint32_t version) {
  Statement insert(connection_->handle(),
                   "INSERT INTO cf_agents_meta(key, value) VALUES('class_schema', ?1) "
                   "ON CONFLICT(key) DO UPDATE SET value = excluded.value");
  insert.execute(version);
  class_schema_ = version;
}

void AgentDatabase::store_class_schema(std::uint32_t version) {
  HEARTH_ASSERT(version != 0, "a class without versions has none to store");
  begin_write();
  FailStop fail_stop(*this);
  write_class_schema(version);
  fail_stop.succeeded();
}

// ---- the implicit transaction ------------------------------------------------------------------

void AgentDatabase::begin_write() {
  if (in_transaction_) {
    check_usable();
    return;
  }
  FailStop fail_stop(*this);
  if (connection_ == nullptr) open_file();
  kept_.get(connection_->handle(), "BEGIN IMMEDIATE").execute();
  if (options_.sync != nullptr) open_sync_target();
  in_transaction_ = true;
  ++transactions_;
  if (!has_meta_) write_identity();
  fail_stop.succeeded();
}

void AgentDatabase::commit() {
  FailStop fail_stop(*this);
  if (in_transaction_) {
    reset_busy_writers(connection_->handle());
    if (options_.sync != nullptr) check_sync_target();
    check_in_place();
    if (options_.copy_mark != nullptr) {
      const auto pages = [this] {
        return wal_pages_ >= 0 ? wal_pages_ : pages_with_commits(path_);
      };
      options_.copy_mark->committing(key_, pages, seen_mark_);
    }
    kept_.get(connection_->handle(), "COMMIT").execute();
    check_wal_begins();
    in_transaction_ = false;
    meta_is_pending_ = false;
  }
  fail_stop.succeeded();
}

void AgentDatabase::roll_back() {
  FailStop fail_stop(*this);
  if (in_transaction_) connection_->execute("ROLLBACK");
  in_transaction_ = false;
  fail_stop.succeeded();
}

bool AgentDatabase::transaction_was_lost() noexcept {
  if (in_transaction_ && sqlite3_get_autocommit(&connection_->handle()) != 0) broken_ = true;
  return broken_;
}

void AgentDatabase::forget_schema() noexcept {
  has_state_.reset();
}

void AgentDatabase::check_usable() const {
  HEARTH_ASSERT(!closed_, "an agent's database is used after close()");
  if (broken_)
    throw StorageError(path_.string() + ": an earlier write failed; open the database again");
}

// ---- state -------------------------------------------------------------------------------------

bool AgentDatabase::has_state_table() {
  if (!has_state_) has_state_ = finds_table("cf_agents_state");
  return *has_state_;
}

bool AgentDatabase::has_table(std::string_view name) {
  check_usable();
  if (std::ranges::find(host_tables_, name) != host_tables_.end()) return true;
  const bool found = finds_table(name);
  // Else it may go with the transaction, or with a savepoint of the plugin.
  if (found && !in_transaction_ && name.starts_with("cf_agents_")) host_tables_.push_back(name);
  return found;
}

bool AgentDatabase::finds_table(std::string_view name) {
  if (connection_ == nullptr || !exists()) return false;
  return kept_
      .get(connection_->handle(), "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?")
      .query(name)
      .next();
}

std::optional<std::string> AgentDatabase::load_state() {
  check_usable();
  if (!has_state_table()) return std::nullopt;
  // Read once a wake, so not worth keeping.
  Statement load(connection_->handle(),
                 "SELECT state FROM cf_agents_state WHERE id = " HEARTH_STATE_ROW);
  Rows rows = load.query();
  if (!rows.next() || rows.is_null(0)) return std::nullopt;
  return std::string(rows.text(0));
}

void AgentDatabase::store_state(std::string_view json) {
  ++state_writes_;
  begin_write();
  FailStop fail_stop(*this);
  if (!has_state_table()) {
    connection_->execute(kCreateState);
    has_state_ = true;
  }
  constexpr std::string_view kStore =
      "INSERT INTO cf_agents_state(id, state) VALUES(" HEARTH_STATE_ROW
      ", ?1) ON CONFLICT(id) DO UPDATE SET state = excluded.state";
  kept_.get(connection_->handle(), kStore).execute(json);
  fail_stop.succeeded();
}

void AgentDatabase::remove_state() {
  ++state_writes_;
  begin_write();
  FailStop fail_stop(*this);
  if (has_state_table())
    connection_->execute("DELETE FROM cf_agents_state WHERE id = " HEARTH_STATE_ROW);
  fail_stop.succeeded();
}

// ---- the end -----------------------------------------------------------------------------------

std::int64_t AgentDatabase::used_bytes() {
  check_usable();
  if (connection_ == nullptr) return 0;
  return (connection_->query_integer("PRAGMA page_count") -
          connection_->query_integer("PRAGMA freelist_count")) *
         kPageBytes;
}

void AgentDatabase::release_memory() noexcept {
  if (!in_transaction_) kept_.clear();
  release_unused();
}

void AgentDatabase::release_unused() noexcept {
  if (connection_ == nullptr || in_transaction_) return;
  kept_.release_unused();
  sqlite3_db_release_memory(&connection_->handle());
  release_index_memory(connection_->handle());
}

void AgentDatabase::close() {
  if (closed_) return;
  closed_ = true;
  if (connection_ == nullptr) return;
  const std::string failure = close_connection();
  remove_if_unwritten();
  if (!failure.empty()) throw StorageError(failure);
}

std::string AgentDatabase::close_connection() {
  sqlite3& db = connection_->handle();
  std::string failure;
  if (in_transaction_) sqlite3_exec(&db, "ROLLBACK", nullptr, nullptr, nullptr);
  kept_.clear();
  if (target_ != nullptr && target_->failed()) broken_ = true;  // the sync's caller has the error
  if (!broken_ && options_.sync != nullptr && !may_checkpoint()) {
    failure = "checkpoint " + path_.string() + ": its data could not be synced";
    broken_ = true;
  }
  // sqlite3_close() would do this too, but does not report errors.
  const CopyMark::Checkpoint checkpoint(options_.copy_mark, key_);
  if (!broken_ && checkpoint.is_allowed()) {
    failure = move_wal();
    broken_ = !failure.empty();
  } else if (!broken_ && !(sync_file(db) && sync_wal(db))) {  // a new file's first page, too
    failure = "sync " + path_.string() + " and its WAL failed";
  }
  // After a failure the WAL stays: it holds commits that are not in the file.
  checkpoint_on_close(*connection_, !broken_ && checkpoint.is_allowed());
  connection_.reset();
  return failure;
}

// ---- the WAL ------------------------------------------------------------------------------------

// Why synchronous=OFF is safe: the writes of a commit may reach the device in any order. Only
// checkpoint() moves pages into the file. It restarts the WAL only after the old content is removed
// and the removal is synced. If commits overwrote old content, a loss of power could leave its
// beginning, and SQLite would replay that over newer pages.

int AgentDatabase::after_commit(void* self, sqlite3*, const char*, int pages) {
  static_cast<AgentDatabase*>(self)->wal_pages_ = pages;
  return SQLITE_OK;
}

// The first commit after checkpoint() must write a new WAL header, because SQLite reads nothing
// behind a blank header. A commit without pages writes no header.
void AgentDatabase::check_wal_begins() {
  if (!wal_is_blank_ || wal_pages_ == 0) return;
  if (storage::wal_is_blank(connection_->handle()))
    throw StorageError("commit to " + path_.string() + ": the WAL was not restarted");
  wal_is_blank_ = false;
}

bool AgentDatabase::checkpoint_due(bool idle) const {
  const int early = idle ? options_.checkpoint_pages * 3 / 4 : 0;
  return wal_pages_ >= checkpoint_at_ - early && connection_ != nullptr && !in_transaction_ &&
         !broken_ && sqlite3_txn_state(&connection_->handle(), nullptr) == SQLITE_TXN_NONE;
}

// Syncs the WAL, writes its pages into the file and syncs the file. The error, or "".
std::string AgentDatabase::move_wal() noexcept {
  sqlite3& db = connection_->handle();
  if (sqlite3_exec(&db, "PRAGMA synchronous=NORMAL", nullptr, nullptr, nullptr) == SQLITE_OK &&
      sqlite3_wal_checkpoint_v2(&db, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr) ==
          SQLITE_OK)
    return {};
  return "checkpoint " + path_.string() + ": " + sqlite3_errmsg(&db);
}

std::string AgentDatabase::checkpoint() {
  const CopyMark::Checkpoint permission(options_.copy_mark, key_);
  if (!permission.is_allowed()) {  // tried again with as many pages more
    checkpoint_at_ = wal_pages_ + options_.checkpoint_pages;
    return {};
  }
  FailStop fail_stop(*this);
  if (options_.sync != nullptr && !may_checkpoint())
    return "checkpoint " + path_.string() + ": its data could not be synced";
  sqlite3& db = connection_->handle();
  std::string failure = move_wal();
  if (failure.empty()) {
    // The WAL of a busy agent keeps its blocks. The WAL of an idle agent, and a very long one, is
    // truncated.
    const bool blank = wal_pages_ >= checkpoint_at_ && wal_pages_ <= 2 * options_.checkpoint_pages;
    const int mode = blank ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_TRUNCATE;
    if (sqlite3_wal_checkpoint_v2(&db, "main", mode, nullptr, nullptr) != SQLITE_OK ||
        (blank && !blank_wal(db)) || !sync_wal(db))
      return "empty the WAL of " + path_.string() + ": " + sqlite3_errmsg(&db);
    wal_is_blank_ = blank;
    wal_pages_ = 0;
    checkpoint_at_ = options_.checkpoint_pages;
  } else {
    if (options_.sync != nullptr) return failure;
    checkpoint_at_ = wal_pages_ + options_.checkpoint_pages;
  }
  // Cannot fail outside a transaction. If it did, some commits would wait, and be as safe.
  sqlite3_exec(&db, "PRAGMA synchronous=OFF", nullptr, nullptr, nullptr);
  fail_stop.succeeded();
  return failure;
}

void AgentDatabase::remove_if_unwritten() noexcept {
  // After a failed commit it is not known whether the commit has reached the file.
  if (!stored() && !broken_) ::unlink(path_.c_str());
}

}  // namespace hearth::storage
