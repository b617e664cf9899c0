#include "support/simulated_disk.hpp"

#include "base/assert.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <new>
#include <span>
#include <utility>

namespace hearth::testing {

namespace fs = std::filesystem;

namespace {

// Counts down to what is planned for later; 0: nothing is.
bool is_due(std::uint64_t& left) {
  if (left == 0) return false;
  --left;
  return left == 0;
}

}  // namespace

// ---- the VFS: passes on to the system's files, and tells the disk -------------------------------

struct SimulatedDisk::Vfs {
  struct File {
    sqlite3_file base;
    SimulatedDisk* disk;
    std::shared_ptr<Node>* node;  // null: a temporary file, which may be lost
    std::uint64_t heard;          // of the node's errors
  };
  static constexpr std::size_t kSystemOffset =
      (sizeof(File) + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);

  static File& own(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
  static sqlite3_file* system(sqlite3_file* file) {
    return reinterpret_cast<sqlite3_file*>(reinterpret_cast<std::byte*>(file) + kSystemOffset);
  }
  static const sqlite3_io_methods& methods(sqlite3_file* file) { return *system(file)->pMethods; }
  static SimulatedDisk& disk_of(sqlite3_vfs* vfs) {
    return *static_cast<SimulatedDisk*>(vfs->pAppData);
  }

  static int close(sqlite3_file* file) {
    delete own(file).node;
    return methods(file).xClose(system(file));
  }
  static int read(sqlite3_file* file, void* to, int bytes, sqlite3_int64 offset) {
    return methods(file).xRead(system(file), to, bytes, offset);
  }
  static int write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
    File& mine = own(file);
    if (mine.node != nullptr) {
      if (!mine.disk->works()) return SQLITE_IOERR_WRITE;
      const std::string text(static_cast<const char*>(from), static_cast<std::size_t>(bytes));
      mine.disk->changed(**mine.node, {offset, text, false});
      if (!mine.disk->step()) return SQLITE_IOERR_WRITE;
    }
    return methods(file).xWrite(system(file), from, bytes, offset);
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    File& mine = own(file);
    if (mine.node != nullptr) {
      if (!mine.disk->works()) return SQLITE_IOERR_TRUNCATE;
      mine.disk->changed(**mine.node, {size, "", true});
      if (!mine.disk->step()) return SQLITE_IOERR_TRUNCATE;
    }
    return methods(file).xTruncate(system(file), size);
  }
  static int sync(sqlite3_file* file, int) {
    File& mine = own(file);
    if (mine.node == nullptr) return SQLITE_OK;
    if (mine.disk->sync(**mine.node, mine.heard) != 0) return SQLITE_IOERR_FSYNC;
    if (std::exchange((*mine.node)->is_new_journal, false)) {
      for (const auto& [path, node] : mine.disk->names_) {
        if (node == *mine.node)
          return mine.disk->sync_directory(fs::path(path).parent_path()) == 0
                     ? SQLITE_OK
                     : SQLITE_IOERR_DIR_FSYNC;
      }
    }
    return SQLITE_OK;
  }
  static int file_size(sqlite3_file* file, sqlite3_int64* size) {
    return methods(file).xFileSize(system(file), size);
  }
  static int lock(sqlite3_file* file, int level) {
    return methods(file).xLock(system(file), level);
  }
  static int unlock(sqlite3_file* file, int level) {
    return methods(file).xUnlock(system(file), level);
  }
  static int check_reserved_lock(sqlite3_file* file, int* held) {
    return methods(file).xCheckReservedLock(system(file), held);
  }
  static int file_control(sqlite3_file* file, int operation, void* argument) {
    return methods(file).xFileControl(system(file), operation, argument);
  }
  static int sector_size(sqlite3_file*) { return 512; }
  // No promise: neither safe appends nor sectors that survive.
  static int device_characteristics(sqlite3_file*) { return 0; }
  static int shm_map(sqlite3_file* file, int region, int bytes, int extend, void volatile** at) {
    return methods(file).xShmMap(system(file), region, bytes, extend, at);
  }
  static int shm_lock(sqlite3_file* file, int offset, int count, int flags) {
    return methods(file).xShmLock(system(file), offset, count, flags);
  }
  static void shm_barrier(sqlite3_file* file) { methods(file).xShmBarrier(system(file)); }
  static int shm_unmap(sqlite3_file* file, int remove) {
    return methods(file).xShmUnmap(system(file), remove);
  }

  static constexpr sqlite3_io_methods kMethods = {
      .iVersion = 2,
      .xClose = close,
      .xRead = read,
      .xWrite = write,
      .xTruncate = truncate,
      .xSync = sync,
      .xFileSize = file_size,
      .xLock = lock,
      .xUnlock = unlock,
      .xCheckReservedLock = check_reserved_lock,
      .xFileControl = file_control,
      .xSectorSize = sector_size,
      .xDeviceCharacteristics = device_characteristics,
      .xShmMap = shm_map,
      .xShmLock = shm_lock,
      .xShmBarrier = shm_barrier,
      .xShmUnmap = shm_unmap,
      .xFetch = nullptr,
      .xUnfetch = nullptr,
  };

  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags,
                  int* flags_out) {
    SimulatedDisk& disk = disk_of(vfs);
    File* const mine = new (static_cast<void*>(file)) File{{}, &disk, nullptr, 0};
    const bool is_new = name != nullptr && !fs::exists(name);
    if (is_new && (flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
    if (is_new && (!disk.works() || !disk.step())) return SQLITE_CANTOPEN;
    sqlite3_vfs* const system_vfs = sqlite3_vfs_find("unix");
    const int rc = system_vfs->xOpen(system_vfs, name, system(file), flags, flags_out);
    if (system(file)->pMethods == nullptr) return rc;
    mine->base.pMethods = &kMethods;
    if (rc == SQLITE_OK && name != nullptr) {
      const bool is_journal = (flags & SQLITE_OPEN_MAIN_JOURNAL) != 0;
      mine->node = new std::shared_ptr<Node>(disk.opened(name, is_new, is_journal));
      mine->heard = (*mine->node)->errors;
    }
    return rc;
  }

  static int remove(sqlite3_vfs* vfs, const char* name, int sync_directory) {
    SimulatedDisk& disk = disk_of(vfs);
    if (!disk.works() || !disk.step()) return SQLITE_IOERR_DELETE;
    sqlite3_vfs* const system_vfs = sqlite3_vfs_find("unix");
    const int rc = system_vfs->xDelete(system_vfs, name, 0);
    if (rc == SQLITE_OK) disk.names_.erase(name);
    if (rc == SQLITE_OK && sync_directory != 0)
      return disk.sync_directory(fs::path(name).parent_path()) == 0 ? SQLITE_OK
                                                                    : SQLITE_IOERR_DIR_FSYNC;
    return rc;
  }
};

SimulatedDisk::SimulatedDisk(fs::path root, std::string name)
    : root_(std::move(root)), name_(std::move(name)) {
  sqlite3_vfs* const system = sqlite3_vfs_find("unix");
  HEARTH_ASSERT(system != nullptr, "initialize_sqlite() comes first");
  vfs_ = std::make_unique<sqlite3_vfs>(*system);
  vfs_->zName = name_.c_str();
  vfs_->pNext = nullptr;
  vfs_->pAppData = this;
  vfs_->szOsFile = static_cast<int>(Vfs::kSystemOffset) + system->szOsFile;
  vfs_->xOpen = Vfs::open;
  vfs_->xDelete = Vfs::remove;
  sqlite3_vfs_register(vfs_.get(), 0);
}

SimulatedDisk::~SimulatedDisk() {
  sqlite3_vfs_unregister(vfs_.get());
}

// ---- changes of files ---------------------------------------------------------------------------

bool SimulatedDisk::step() {
  if (!works()) return false;
  if (is_due(left_)) cut();
  return works();
}

std::shared_ptr<SimulatedDisk::Node> SimulatedDisk::opened(const std::string& path, bool is_new,
                                                           bool is_journal) {
  std::shared_ptr<Node>& node = names_[path];
  if (node == nullptr || is_new) {
    node = std::make_shared<Node>();
    node->is_new_journal = is_journal;
  }
  return node;
}

void SimulatedDisk::changed(Node& node, Change change) {
  node.pending.push_back(std::move(change));
}

int SimulatedDisk::sync(Node& node, std::uint64_t& heard) {
  if (!step()) return EIO;  // in the middle: unknown what was synced
  if (is_due(fail_in_)) lose_some(node);
  if (lie_ != Lie::kBytes) make_durable(node);
  return std::exchange(heard, node.errors) == node.errors ? 0 : EIO;
}

void SimulatedDisk::make_durable(Node& node) {
  for (const Change& change : node.pending) apply(node.durable, change);
  node.pending.clear();
}

// Writing back has failed: these bytes are lost, and no later sync retries them.
void SimulatedDisk::lose_some(Node& node) {
  std::erase_if(node.pending, [this](const Change&) { return (*random_)() % 2 == 0; });
  ++node.errors;
  ++everything_errors_;
}

void SimulatedDisk::apply(std::string& image, const Change& change) {
  const auto offset = static_cast<std::size_t>(change.offset);
  if (change.is_truncation) {
    image.resize(offset);
  } else {
    image.resize(std::max(image.size(), offset + change.bytes.size()));
    std::ranges::copy(change.bytes, image.begin() + change.offset);
  }
}

class SimulatedDisk::Descriptor final : public storage::SyncedFile {
 public:
  Descriptor(SimulatedDisk& disk, std::shared_ptr<Node> node)
      : disk_(disk), node_(std::move(node)), heard_(node_->errors) {}
  int sync_data() override { return disk_.sync(*node_, heard_); }
  [[nodiscard]] bool covered_by_sync_everything() const override { return true; }

 private:
  SimulatedDisk& disk_;
  const std::shared_ptr<Node> node_;
  std::uint64_t heard_;
};

std::unique_ptr<storage::SyncedFile> SimulatedDisk::open(const fs::path& path) {
  const auto found = names_.find(path.native());
  if (found == names_.end() || !fs::exists(path))
    throw StorageError("open " + path.native() + " for syncing: not there");
  return std::make_unique<Descriptor>(*this, found->second);
}

std::unique_ptr<storage::SyncedFile> SimulatedDisk::open_first_page(const fs::path& path) {
  if (!fs::exists(path)) {
    if (!works() || !step()) throw StorageError("make " + path.native() + ": the power is off");
    const std::ofstream made(path, std::ios::binary);
    (void)opened(path.native(), true, false);
  }
  return open(path);
}

// ---- names --------------------------------------------------------------------------------------

void SimulatedDisk::look_at_names() {
  std::erase_if(names_, [](const auto& each) { return !fs::exists(each.first); });
  directories_.clear();
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    if (entry.is_directory()) directories_.insert(entry.path().native());
  }
}

void SimulatedDisk::names_are_durable(const std::string& directory) {
  const auto is_in = [&directory](const std::string& path) {
    return fs::path(path).parent_path() == directory;
  };
  std::erase_if(durable_names_, [&](const auto& each) { return is_in(each.first); });
  for (const auto& each : names_) {
    if (is_in(each.first)) durable_names_.insert(each);
  }
  std::erase_if(durable_directories_, is_in);
  std::ranges::copy_if(directories_,
                       std::inserter(durable_directories_, durable_directories_.end()), is_in);
}

int SimulatedDisk::sync_directory(const fs::path& path) {
  if (!step()) return EIO;
  if (lie_ == Lie::kNames) return 0;
  look_at_names();
  names_are_durable(path.native());
  return 0;
}

int SimulatedDisk::sync_everything() {
  if (!step()) return EIO;
  if (is_due(fail_in_) && !names_.empty()) lose_some(*names_.begin()->second);
  if (lie_ != Lie::kBytes) {
    for (const auto& each : names_) make_durable(*each.second);
  }
  if (lie_ != Lie::kNames) {
    look_at_names();
    durable_names_ = names_;
    durable_directories_ = directories_;
  }
  return std::exchange(everything_heard_, everything_errors_) == everything_errors_ ? 0 : EIO;
}

// ---- the loss of power --------------------------------------------------------------------------

void SimulatedDisk::cut() {
  if (off_) return;
  look_at_names();
  off_ = true;
}

std::string SimulatedDisk::survivor(const Node& node, Random& random) {
  constexpr std::size_t kSector = 512;
  std::string image = node.durable;
  // Now and then it has written back the last changes first, and none of those before them.
  if (random() % 4 == 0) {
    const std::size_t missing = random() % (node.pending.size() + 1);
    for (const Change& change : std::span(node.pending).subspan(missing)) apply(image, change);
    return image;
  }
  for (const Change& change : node.pending) {
    const auto luck = random() % 10;
    if (luck < 4 || (change.is_truncation && luck < 6)) {
      apply(image, change);
    } else if (luck < 7 && !change.is_truncation) {
      for (std::size_t at = 0; at < change.bytes.size();) {
        const std::size_t to_boundary =
            kSector - (static_cast<std::size_t>(change.offset) + at) % kSector;
        const std::string sector = change.bytes.substr(at, to_boundary);
        const auto place = change.offset + static_cast<std::int64_t>(at);
        if (random() % 2 == 0) apply(image, {place, sector, false});
        at += sector.size();
      }
    } else if (luck < 8 && !change.is_truncation) {
      // The file has grown, and what should be there is not.
      const auto end = static_cast<std::size_t>(change.offset) + change.bytes.size();
      image.resize(std::max(image.size(), end));
    }
  }
  return image;
}

void SimulatedDisk::restore(Random& random) {
  HEARTH_ASSERT(off_, "restore() without a loss of power");
  for (const std::string& each : directories_) {
    if (random() % 2 == 0) durable_directories_.insert(each);
  }
  // A removed directory is not expected: the product removes none.
  std::erase_if(durable_directories_, [this](const std::string& each) {
    for (fs::path at = fs::path(each).parent_path(); at != root_; at = at.parent_path()) {
      if (!durable_directories_.contains(at.native())) return true;
    }
    return false;
  });
  Names all = names_;
  all.insert(durable_names_.begin(), durable_names_.end());
  Names kept;
  for (const auto& each : all) {
    const std::string& path = each.first;
    const auto now = names_.find(path);
    const auto before = durable_names_.find(path);
    const bool is_durable =
        before != durable_names_.end() && now != names_.end() && before->second == now->second;
    const bool use_now = is_durable || random() % 2 == 0;
    const bool exists = use_now ? now != names_.end() : before != durable_names_.end();
    const fs::path parent = fs::path(path).parent_path();
    if (!exists || (parent != root_ && !durable_directories_.contains(parent.native()))) continue;
    kept.emplace(path, use_now ? now->second : before->second);
  }
  for (const auto& entry : fs::directory_iterator(root_)) fs::remove_all(entry.path());
  for (const std::string& each : durable_directories_) fs::create_directories(each);
  for (const auto& [path, node] : kept) {
    node->durable = survivor(*node, random);
    node->pending.clear();
    node->errors = 0;
    node->is_new_journal = false;
    std::ofstream(path, std::ios::binary) << node->durable;
  }
  names_ = kept;
  durable_names_ = std::move(kept);
  directories_ = durable_directories_;
  everything_errors_ = everything_heard_ = 0;
  left_ = fail_in_ = 0;
  off_ = suspended_ = false;
}

}  // namespace hearth::testing
