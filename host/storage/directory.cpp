#include "storage/directory.hpp"

#include "storage/data_format.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace hearth::storage {
namespace {

constexpr std::chrono::seconds kBusyTimeout{5};

constexpr const char* kTables =
    // kept: 0: unknown; 1: on the device; else the boot in which the first commit was made.
    "CREATE TABLE agents("
    "  class TEXT NOT NULL, name TEXT NOT NULL, created_at INTEGER NOT NULL,"
    "  kept INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(class, name)) WITHOUT ROWID;"
    // Only for sub-agents, whose names are paths.
    "CREATE INDEX agents_below ON agents(name, class) WHERE instr(name, '/');"
    // unknown_operations: NULL: all operations of the agent are settled.
    "CREATE TABLE wakes("
    "  class TEXT NOT NULL, name TEXT NOT NULL, at INTEGER, working INTEGER NOT NULL,"
    "  unknown_operations INTEGER, dead INTEGER NOT NULL DEFAULT 0, "
    "PRIMARY KEY(class, name)) WITHOUT ROWID;"
    "CREATE INDEX wakes_operations ON wakes(class, name) WHERE unknown_operations IS NOT NULL;"
    "CREATE TABLE condemned("
    "  class TEXT NOT NULL, name TEXT NOT NULL,"
    "  PRIMARY KEY(class, name)) WITHOUT ROWID;"
    "CREATE TABLE objects("
    "  class TEXT NOT NULL, name TEXT NOT NULL, uuid TEXT NOT NULL UNIQUE,"
    "  created_at INTEGER NOT NULL, last_active_at INTEGER NOT NULL,"
    "  PRIMARY KEY(class, name)) WITHOUT ROWID;"
    "CREATE TABLE served_classes(segment TEXT PRIMARY KEY) WITHOUT ROWID;"
    // One row.
    "CREATE TABLE clock(id INTEGER PRIMARY KEY, seen_at INTEGER NOT NULL)";

constexpr std::int64_t kKeptUnknown = 0;
constexpr std::int64_t kKeptOnDevice = 1;

// A number that identifies this boot of the system, different from the two above; kKeptUnknown if
// the system does not tell.
std::int64_t this_boot() {
  constexpr std::size_t kDigits = 15;  // 60 bits
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  std::erase(text, '-');
  std::int64_t number = 0;
  const auto parsed =
      std::from_chars(text.data(), text.data() + std::min(text.size(), kDigits), number, 16);
  constexpr std::int64_t kNoOther = 2;
  return parsed.ptr == text.data() + kDigits ? number | kNoOther : kKeptUnknown;
}

// Waits for the lock that the change of mode needs, because SQLite does not. It matters only once,
// when several threads open a new file at the same moment.
void enter_wal_mode(Connection& connection) {
  const auto switched = [&connection] {
    return sqlite3_exec(&connection.handle(), "PRAGMA journal_mode=WAL", nullptr, nullptr,
                        nullptr) == SQLITE_OK;
  };
  constexpr int kStepMs = 1;
  for (int waited_ms = 0; !switched(); waited_ms += kStepMs) {
    const bool busy = (sqlite3_errcode(&connection.handle()) & 0xff) == SQLITE_BUSY;
    if (!busy || waited_ms >= kBusyTimeout / std::chrono::milliseconds(1))
      throw_storage_error(connection.handle(), "enter WAL mode");
    sqlite3_sleep(kStepMs);
  }
}

// SQLite also opens a file that it can only read. The first write would then fail, perhaps hours
// later.
void check_writable(Connection& connection) {
  sqlite3& handle = connection.handle();
  if (sqlite3_db_readonly(&handle, "main") == 0) return;
  throw StorageError("open " + std::string(sqlite3_db_filename(&handle, "main")) +
                     ": it cannot be written. Give it to the user that the server runs as");
}

// Another shard writes, which takes some ten microseconds. This shard's clients wait meanwhile, and
// SQLite's own first wait is a hundred times as long. So this retries without a pause at first, and
// with pauses later.
int wait_for_writer(void*, int tried) {
  constexpr int kAtOnce = 200;
  constexpr std::chrono::microseconds kPause{200};
  if (tried < kAtOnce) {
    std::this_thread::yield();
    return 1;
  }
  std::this_thread::sleep_for(kPause);
  return tried - kAtOnce < kBusyTimeout / kPause ? 1 : 0;
}

// Prepares the file for statements, which need the tables.
sqlite3& prepare_file(Connection& connection) {
  check_writable(connection);
  check_format(connection);  // before the first write
  enter_wal_mode(connection);
  connection.execute("PRAGMA synchronous=NORMAL");
  prepare_tables(connection, kTables);
  sqlite3_busy_handler(&connection.handle(), wait_for_writer, nullptr);
  return connection.handle();
}

}  // namespace

Directory::Directory(const std::filesystem::path& path, const std::string& vfs)
    : boot_(this_boot()),
      connection_(path, {.create = true, .vfs = vfs, .busy_timeout = kBusyTimeout}),
      insert_(prepare_file(connection_),
              "INSERT INTO agents(class, name, created_at) VALUES(?, ?, ?) ON CONFLICT DO NOTHING"),
      erase_(connection_.handle(), "DELETE FROM agents WHERE class = ? AND name = ?"),
      find_(connection_.handle(), "SELECT 1 FROM agents WHERE class = ? AND name = ?"),
      list_(connection_.handle(),
            "SELECT name, created_at FROM agents WHERE class = ? AND name > ? ORDER BY name "
            "LIMIT ?"),
      kept_(connection_.handle(), "SELECT kept FROM agents WHERE class = ? AND name = ?"),
      set_kept_(connection_.handle(),
                "UPDATE agents SET kept = ?3 WHERE class = ?1 AND name = ?2 AND kept <> 1") {}

// SQLite's methods for an open file, with another one for locks.
struct Directory::FileMethods {
  sqlite3_io_methods ours;  // first: the file points to it
  const sqlite3_io_methods* sqlites;

  // When all of the WAL is moved into the file, a writer requests the locks of all readers at once,
  // to restart the WAL.
  static constexpr int kFirstReadersLock = 4;
  static constexpr int kReadersLocks = 4;

  static int lock(sqlite3_file* file, int offset, int count, int flags) {
    if (offset == kFirstReadersLock && count == kReadersLocks &&
        flags == (SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE))
      return SQLITE_BUSY;  // then it appends to the WAL
    const auto* const methods = reinterpret_cast<const FileMethods*>(file->pMethods);
    return methods->sqlites->xShmLock(file, offset, count, flags);
  }
};

Directory::~Directory() = default;

void Directory::leave_wal_to(DirectoryCheckpointer& checkpointer) {
  const auto after_commit = [](void* into, sqlite3*, const char*, int pages) {
    static_cast<DirectoryCheckpointer*>(into)->written(pages);
    return SQLITE_OK;
  };
  sqlite3& handle = connection_.handle();
  sqlite3_wal_hook(&handle, after_commit, &checkpointer);
  // A commit that restarts the WAL would wait for the device. So commits must not restart it.
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(&handle, "main", SQLITE_FCNTL_FILE_POINTER, static_cast<void*>(&file)) !=
      SQLITE_OK)
    throw_storage_error(handle, "find the open file");
  methods_ = std::make_unique<FileMethods>(FileMethods{*file->pMethods, file->pMethods});
  methods_->ours.xShmLock = FileMethods::lock;
  file->pMethods = &methods_->ours;
  connection_.execute("PRAGMA synchronous=OFF");
  // A checkpoint on close would not be synced; other connections close the file later.
  sqlite3_db_config(&handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

void Directory::empty_wal() {
  sqlite3& handle = connection_.handle();
  if (sqlite3_wal_checkpoint_v2(&handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr) !=
      SQLITE_OK)
    throw_storage_error(handle, "move the WAL into the file");
}

void Directory::leave_wal() noexcept {
  sqlite3& handle = connection_.handle();
  // The next start moves what this call cannot.
  sqlite3_wal_checkpoint_v2(&handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  sqlite3_db_config(&handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

void Directory::set_wake(const WakeEntry& entry) {
  Statement& set = kept(set_wake_,
                        "INSERT INTO wakes(class, name, at, working, unknown_operations, dead) "
                        "VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at, "
                        "working = excluded.working, "
                        "unknown_operations = excluded.unknown_operations, dead = excluded.dead");
  set.execute(entry.key.agent_class, entry.key.name, nullable(entry.at_ms), entry.working,
              nullable(entry.unknown_operations), entry.needs_person);
}

void Directory::clear_wake(const AgentKey& key) {
  Statement& clear = kept(clear_wake_, "DELETE FROM wakes WHERE class = ? AND name = ?");
  clear.execute(key.agent_class, key.name);
}

std::vector<WakeEntry> Directory::wakes() {
  std::vector<WakeEntry> result;
  Statement all(connection_.handle(),
                "SELECT class, name, at, working, unknown_operations, dead FROM wakes "
                "ORDER BY at, class, name");
  for (Rows rows = all.query(); rows.next();) {
    WakeEntry entry;
    entry.key = AgentKey{std::string(rows.text(0)), std::string(rows.text(1))};
    if (!rows.is_null(2)) entry.at_ms = rows.integer(2);
    entry.working = rows.integer(3) != 0;
    entry.unknown_operations = integer_or_none(rows, 4);
    entry.needs_person = rows.integer(5) != 0;
    result.push_back(std::move(entry));
  }
  return result;
}

std::optional<std::int64_t> Directory::seen_ms() {
  Statement find(connection_.handle(), "SELECT seen_at FROM clock");
  Rows rows = find.query();
  return rows.next() ? integer_or_none(rows, 0) : std::nullopt;
}

void Directory::note_time(std::int64_t now_ms) {
  Statement& note = kept(note_time_, "INSERT OR REPLACE INTO clock(id, seen_at) VALUES(1, ?)");
  note.execute(now_ms);
}

void Directory::hurry_wakes(std::int64_t now_ms) {
  Transaction both(connection_);
  Statement(connection_.handle(), "UPDATE wakes SET at = ?1 WHERE at > ?1").execute(now_ms);
  note_time(now_ms);
  both.commit();
}

std::vector<AgentKey> Directory::with_operations(std::string_view agent_class,
                                                 const AgentKey& after, std::size_t limit) {
  Statement list(connection_.handle(),
                 "SELECT class, name FROM wakes WHERE unknown_operations IS NOT NULL "
                 "AND (class, name) > (?1, ?2) AND (?3 = '' OR class = ?3) "
                 "ORDER BY class, name LIMIT ?4");
  std::vector<AgentKey> keys;
  for (Rows rows = list.query(after.agent_class, after.name, agent_class, limit); rows.next();)
    keys.push_back({std::string(rows.text(0)), std::string(rows.text(1))});
  return keys;
}

void Directory::rebuild(std::span<const DirectoryEntry> found, std::span<const WakeEntry> wakes,
                        std::span<const AgentKey> forgotten) {
  connection_.execute("PRAGMA synchronous=FULL");
  Transaction all_changes(connection_);
  for (const DirectoryEntry& each : found) {
    record(each.key, each.created_at_ms);
    note_kept(each.key, Kept::kOnDevice);
  }
  for (const WakeEntry& each : wakes) set_wake(each);
  for (const AgentKey& each : forgotten) {
    forget(each);
    clear_wake(each);
  }
  all_changes.commit();
}

void Directory::condemn(std::span<const AgentKey> keys) {
  Transaction all_marks(connection_);
  Statement mark(connection_.handle(),
                 "INSERT INTO condemned(class, name) VALUES(?, ?) ON CONFLICT DO NOTHING");
  for (const AgentKey& key : keys) {
    mark.execute(key.agent_class, key.name);
  }
  all_marks.commit();
}

std::vector<DirectoryEntry> Directory::list_below(const AgentKey& above, bool direct,
                                                  const AgentKey& after, std::size_t limit) {
  const std::string prefix = above.prefix_below();
  std::string end = prefix;
  ++end.back();  // past all names with the prefix
  Statement below(connection_.handle(),
                  "SELECT class, name, created_at FROM agents WHERE instr(name, '/') "
                  "AND name > ?1 AND name < ?2 AND (name, class) > (?3, ?4) "
                  "AND (?5 = 0 OR instr(substr(name, length(?1) + 1), '/') = 0) "
                  "ORDER BY name, class LIMIT ?6");
  std::vector<DirectoryEntry> entries;
  for (Rows rows = below.query(prefix, end, after.name, after.agent_class, direct, limit);
       rows.next();) {
    entries.push_back({.key = {std::string(rows.text(0)), std::string(rows.text(1))},
                       .created_at_ms = rows.integer(2)});
  }
  return entries;
}

std::vector<AgentKey> Directory::condemned() {
  std::vector<AgentKey> result;
  Statement all(connection_.handle(), "SELECT class, name FROM condemned ORDER BY class, name");
  for (Rows rows = all.query(); rows.next();)
    result.push_back(AgentKey{std::string(rows.text(0)), std::string(rows.text(1))});
  return result;
}

void Directory::forget_condemned(const AgentKey& key) {
  Transaction all_traces(connection_);
  forget(key);
  clear_wake(key);
  Statement unmark(connection_.handle(), "DELETE FROM condemned WHERE class = ? AND name = ?");
  unmark.execute(key.agent_class, key.name);
  all_traces.commit();
}

Statement& Directory::kept(std::unique_ptr<Statement>& statement, std::string_view sql) {
  if (!statement) statement = std::make_unique<Statement>(connection_.handle(), sql);
  return *statement;
}

bool Directory::record(const AgentKey& key, std::int64_t created_at_ms) {
  // The usual case: no need for the writers' lock.
  if (contains(key)) return false;
  return insert_.execute(key.agent_class, key.name, created_at_ms) > 0;
}

bool Directory::forget(const AgentKey& key) {
  forget_object(key);
  return erase_.execute(key.agent_class, key.name) > 0;
}

bool Directory::contains(const AgentKey& key) {
  return find_.query(key.agent_class, key.name).next();
}

std::optional<std::int64_t> Directory::created_at_ms(const AgentKey& key) {
  Statement find(connection_.handle(),
                 "SELECT created_at FROM agents WHERE class = ? AND name = ?");
  Rows rows = find.query(key.agent_class, key.name);
  if (!rows.next()) return std::nullopt;
  return rows.integer(0);
}

Kept Directory::kept(const AgentKey& key) {
  Rows rows = kept_.query(key.agent_class, key.name);
  const std::int64_t kept = rows.next() ? rows.integer(0) : kKeptUnknown;
  if (kept == kKeptOnDevice) return Kept::kOnDevice;
  return kept != kKeptUnknown && kept == boot_ ? Kept::kInThisBoot : Kept::kUnknown;
}

void Directory::note_kept(const AgentKey& key, Kept kept) {
  if (this->kept(key) >= kept) return;  // no need for the writers' lock
  set_kept_.execute(key.agent_class, key.name, kept == Kept::kOnDevice ? kKeptOnDevice : boot_);
}

std::vector<DirectoryEntry> Directory::list(std::string_view agent_class,
                                            std::string_view after_name, std::size_t limit) {
  std::vector<DirectoryEntry> entries;
  for (Rows rows = list_.query(agent_class, after_name, limit); rows.next();) {
    entries.push_back({.key = {std::string(agent_class), std::string(rows.text(0))},
                       .created_at_ms = rows.integer(1)});
  }
  return entries;
}

std::int64_t Directory::count() {
  return connection_.query_integer("SELECT count(*) FROM agents");
}

std::int64_t Directory::count(std::string_view agent_class) {
  Statement statement(connection_.handle(), "SELECT count(*) FROM agents WHERE class = ?");
  Rows rows = statement.query(agent_class);
  return rows.next() ? rows.integer(0) : 0;
}

std::vector<std::string> Directory::classes() {
  // Steps from one class to the next: a DISTINCT would walk over every agent.
  Statement statement(connection_.handle(),
                      "WITH RECURSIVE found(class) AS (SELECT min(class) FROM agents UNION ALL "
                      "  SELECT (SELECT min(class) FROM agents WHERE class > found.class)"
                      "  FROM found WHERE found.class IS NOT NULL) "
                      "SELECT class FROM found WHERE class IS NOT NULL");
  std::vector<std::string> classes;
  for (Rows rows = statement.query(); rows.next();) classes.emplace_back(rows.text(0));
  return classes;
}

void Directory::record_served(std::string_view segment) {
  Statement insert(connection_.handle(),
                   "INSERT INTO served_classes(segment) VALUES(?) ON CONFLICT DO NOTHING");
  insert.execute(segment);
}

std::vector<std::string> Directory::served_classes() {
  Statement list(connection_.handle(), "SELECT segment FROM served_classes ORDER BY segment");
  std::vector<std::string> segments;
  for (Rows rows = list.query(); rows.next();) segments.emplace_back(rows.text(0));
  return segments;
}

std::string damage_of(const std::filesystem::path& path) {
  std::error_code failure;
  const auto size = std::filesystem::file_size(path, failure);
  if (failure || size == 0) return {};
  // Not a Connection, whose constructor reads the file and throws the same error for each failure.
  initialize_sqlite();
  sqlite3* handle = nullptr;
  int rc = sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE, nullptr);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> closed(handle, sqlite3_close);
  std::string found = "ok";
  const auto keep_first = [](void* into, int, char** values, char**) {
    *static_cast<std::string*>(into) = values[0] != nullptr ? values[0] : "";
    return 0;
  };
  if (rc == SQLITE_OK)
    rc = sqlite3_exec(handle, "PRAGMA quick_check(1)", keep_first, &found, nullptr);
  const int kind = rc & 0xff;
  if (kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB) return sqlite3_errmsg(handle);
  if (rc != SQLITE_OK) throw_storage_error(*handle, "check");
  return found == "ok" ? std::string() : found;
}

}  // namespace hearth::storage
