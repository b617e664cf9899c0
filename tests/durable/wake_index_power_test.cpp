// What a loss of power leaves of host.db: a whole file with every agent that has acknowledged work
// or is to be destroyed. Each seed is several lives on a disk that forgets
// (support/simulated_disk.hpp). Each life starts as a server does.
//
// An agent writes in the order of runtime/live_agent.cpp: an earlier wake before its own commit, a
// later wake once the commit is durable. HEARTH_POWER_SEEDS=from:to runs other seeds, or one again.

#include "durable/wake_index.hpp"
#include "storage/agent_database.hpp"
#include "storage/directory.hpp"
#include "storage/statement.hpp"
#include "storage/sync_service.hpp"
#include "support/power_seeds.hpp"
#include "support/seeded_random.hpp"
#include "support/simulated_disk.hpp"
#include "support/temp_directory.hpp"

#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hearth::durable {
namespace {

using hearth::testing::run_seeds;
using hearth::testing::Seeds;
using hearth::testing::seeds_asked_for;
using hearth::testing::SimulatedDisk;
using storage::AgentDatabase;
using storage::AgentKey;
using storage::Directory;
using storage::SyncService;

// An agent that has at most one thing to do: the moment is its state.
struct Worker {
  AgentKey key{};
  std::filesystem::path path{};
  std::optional<AgentDatabase> database{};
  std::int64_t due = 0;  // 0: nothing
  std::int64_t acknowledged =
      0;  // when acknowledged work is due that has not begun to end; 0: none
};

// What happened over all seeds: a run in which nothing happens proves nothing.
struct Tally {
  int acknowledged = 0;
  int condemned = 0;
  int kept = 0;
  int cuts = 0;
  int kills = 0;
};

class HostLife {
 public:
  HostLife(SimulatedDisk& disk, std::deque<Worker>& workers, Tally& tally)
      : disk_(disk), workers_(workers), tally_(tally) {}

  // As runtime/runtime.cpp opens it. What is wrong with it; empty: nothing.
  std::string start() {
    sync_ = std::make_unique<SyncService>(disk_, disk_.root(), SyncService::Thread::kCallers);
    const std::filesystem::path path = disk_.root() / "host.db";
    storage::write_wal_again(path, disk_.vfs());
    directory_.emplace(path, disk_.vfs());
    wal_ = sync_->open(path.native() + "-wal");
    if (!sync_->wait({wal_})) throw StorageError("sync failed");
    directory_->empty_wal();
    index_.emplace(*directory_);
    index_->load(0, [](const AgentKey&) { return true; }, random_);
    return check();
  }

  void end() {
    for (Worker& each : workers_) each.database.reset();
    index_.reset();
    directory_.reset();
    sync_.reset();
  }

  void step(SimulatedDisk::Random& random) {
    Worker& worker = workers_[random() % workers_.size()];
    const auto dice = random() % 100;
    if (dice < 45) {
      worker.due == 0 ? begin(worker, random() % 3 == 0) : finish(worker);
    } else if (dice < 70) {
      sync_->run_pending();
    } else if (dice < 75) {
      if (worker.database) worker.database->close();
      worker.database.reset();
    } else if (dice < 78) {
      live_without_sync(plain_[random() % plain_.size()]);
    } else if (dice < 82) {
      disk_.fail_sync_after(random() % 4, random);
    } else if (dice < 88) {
      destroy(random);
    } else {
      // Other agents, which change the pages between.
      const AgentKey other{"Other", std::to_string(random() % 400)};
      (void)directory_->record(other, 1);
      index_->set(other, random() % 3 == 0 ? Wake{} : Wake{random() % 2 == 0, moment_++});
    }
  }

 private:
  AgentDatabase& database(Worker& worker) {
    if (!worker.database) {
      worker.database.emplace(
          worker.path, worker.key,
          storage::AgentDatabaseOptions{.sync = sync_.get(), .vfs = disk_.vfs()});
      worker.due = std::stoll(worker.database->load_state().value_or("0"));
    }
    return *worker.database;
  }

  void begin(Worker& worker, bool works) {
    AgentDatabase& own = database(worker);
    if (worker.due != 0) return;
    const std::int64_t due = moment_++;
    (void)directory_->record(worker.key, due);
    index_->set(worker.key, either(Wake{works, due}, index_->find(worker.key)));
    own.store_state(std::to_string(due));
    own.commit();
    worker.due = due;
    sync_->submit({own.sync_target(), wal_}, [this, &worker, due](bool durable) {
      if (!durable || worker.due != due) return;
      worker.acknowledged = due;
      ++tally_.acknowledged;
      note_kept(worker.key);
    });
  }

  // An agent of durability `process`, which is on the device from its first close on.
  void live_without_sync(const AgentKey& key) {
    (void)directory_->record(key, 1);
    AgentDatabase own(path_of(key), key, {.vfs = disk_.vfs()});
    own.store_state(std::to_string(moment_++));
    own.commit();
    own.close();
    for (const auto& directory : {path_of(key).parent_path(), disk_.root()}) {
      if (disk_.sync_directory(directory) != 0) return;
    }
    note_kept(key);
  }

  void note_kept(const AgentKey& key) {
    try {
      directory_->note_kept(key, storage::Kept::kOnDevice);
    } catch (const StorageError&) {  // NOLINT(bugprone-empty-catch): then its loss is not noticed
    }
  }

  [[nodiscard]] std::filesystem::path path_of(const AgentKey& key) const {
    return disk_.root() / "agents" / (key.name + ".db");
  }

  // Whether a file that the directory says must be there is.
  bool is_lost(const AgentKey& key, storage::SyncService* sync) {
    if (directory_->kept(key) != storage::Kept::kOnDevice) return false;
    ++tally_.kept;
    try {
      AgentDatabase(path_of(key), key, {.sync = sync, .must_exist = true, .vfs = disk_.vfs()});
    } catch (const StorageError& failure) {
      return std::string_view(failure.what()).find("has stored data there") !=
             std::string_view::npos;
    }
    return false;
  }

  void finish(Worker& worker) {
    AgentDatabase& own = database(worker);
    if (worker.due == 0) return;
    worker.acknowledged = 0;  // from here on it may be over
    own.store_state("0");
    own.commit();
    worker.due = 0;
    sync_->submit({own.sync_target()}, [this, &worker](bool durable) {
      if (!durable || worker.due != 0) return;
      try {
        index_->set(worker.key, Wake{});
      } catch (const StorageError&) {  // NOLINT(bugprone-empty-catch): a needless wake is harmless
      }
    });
  }

  // The end of an agent is certain once its request is on the device, and until the agent's files
  // are gone.
  void destroy(SimulatedDisk::Random& random) {
    const AgentKey key{"Condemned", std::to_string(random() % 5)};
    if (asked_.erase(key.name) > 0) {
      condemned_.erase(key.name);
      directory_->forget_condemned(key);
      return;
    }
    directory_->condemn(std::array{key});
    asked_.insert(key.name);
    ++tally_.condemned;
    sync_->submit({wal_}, [this, name = key.name](bool durable) {
      if (durable && asked_.contains(name)) condemned_.insert(name);
    });
  }

  std::string check() {
    storage::Connection connection(disk_.root() / "host.db", {.vfs = disk_.vfs()});
    storage::Statement statement(connection.handle(), "PRAGMA integrity_check");
    {
      storage::Rows rows = statement.query();
      if (!rows.next() || rows.text(0) != "ok") return "host.db is corrupt";
    }
    for (const AgentKey& key : plain_) {
      if (is_lost(key, nullptr)) return key.name + " was kept, and is lost";
    }
    for (Worker& worker : workers_) {
      if (is_lost(worker.key, sync_.get())) return worker.key.name + " was kept, and is lost";
      worker.due = 0;
      const Wake wake = index_->find(worker.key);
      if (worker.acknowledged == 0) continue;
      if (!directory_->contains(worker.key)) return worker.key.name + " is not in the directory";
      if (!wake.working && (!wake.at_ms || *wake.at_ms > worker.acknowledged))
        return worker.key.name + " has work at " + std::to_string(worker.acknowledged) +
               " and is not woken for it";
    }
    const std::vector<AgentKey> left = directory_->condemned();
    for (const std::string& name : condemned_) {
      if (std::ranges::find(left, AgentKey{"Condemned", name}) == left.end())
        return "a condemned agent was pardoned";
    }
    return "";
  }

  SimulatedDisk& disk_;
  std::deque<Worker>& workers_;
  Tally& tally_;
  std::unique_ptr<SyncService> sync_;
  std::optional<Directory> directory_;
  std::shared_ptr<storage::SyncTarget> wal_;
  std::optional<WakeIndex> index_;
  hearth::testing::SeededRandom random_;
  const std::vector<AgentKey> plain_{{"Plain", "p"}, {"Plain", "q"}, {"Plain", "r"}};
  std::set<std::string> asked_;      // to be destroyed
  std::set<std::string> condemned_;  // ... for certain
  std::int64_t moment_ = 1;
};

class WakeIndexPowerTest : public ::testing::Test {
 protected:
  WakeIndexPowerTest() { storage::initialize_sqlite(); }

  // The first thing that is wrong; empty: nothing.
  std::string run(std::uint64_t seed, SimulatedDisk::Lie lie = SimulatedDisk::Lie::kNone) {
    const hearth::testing::TempDirectory temp(place_);
    SimulatedDisk disk(temp.path(), "simulated-host-disk");
    disk.lie(lie);
    SimulatedDisk::Random random(seed);
    std::deque<Worker> workers;
    for (const char* name : {"a", "b", "c"}) {
      Worker& worker = workers.emplace_back();
      worker.key = {"Worker", name};
      worker.path = temp.path() / "agents" / (std::string(name) + ".db");
    }
    HostLife host(disk, workers, tally_);
    for (int life = 0; life < 6; ++life) {
      disk.cut_after(1 + random() % 600);
      if (std::string problem = live(disk, host, random); !problem.empty())
        return "life " + std::to_string(life) + ": " + problem;
      const bool killed = random() % 3 == 0 && !disk.is_off();
      if (killed) {
        disk.suspend();
        host.end();
        disk.go_on();
        ++tally_.kills;
      } else {
        disk.cut();
        host.end();
        disk.restore(random);
        ++tally_.cuts;
      }
    }
    const std::string problem = started(disk, host);
    host.end();
    return problem;
  }

  Tally tally_;

 private:
  const std::filesystem::path place_ = ::access("/dev/shm", W_OK) == 0
                                           ? std::filesystem::path("/dev/shm")
                                           : std::filesystem::temp_directory_path();

  static std::string live(SimulatedDisk& disk, HostLife& host, SimulatedDisk::Random& random) {
    if (std::string problem = started(disk, host); !problem.empty()) return problem;
    for (int step = 0; step < 80 && !disk.is_off(); ++step) {
      try {
        host.step(random);
      } catch (const StorageError&) {
        return "";  // this life is over; only the files that it leaves count
      }
    }
    return "";
  }

  // A server that cannot start ends, and is started again.
  static std::string started(SimulatedDisk& disk, HostLife& host) {
    for (int attempt = 0;; ++attempt) {
      try {
        return host.start();
      } catch (const StorageError& error) {
        if (disk.is_off()) return "";
        if (attempt == 3) return error.what();
        disk.suspend();
        host.end();
        disk.go_on();
      }
    }
  }
};

TEST_F(WakeIndexPowerTest, NobodyWithAcknowledgedWorkIsForgottenAndNothingIsCorrupt) {
  const Seeds seeds = seeds_asked_for().value_or(Seeds{.from = 1, .to = 200});
  run_seeds(seeds, [this](std::uint64_t seed) { return run(seed); });
  const int runs = seeds.count();
  if (runs < 200) return;
  EXPECT_GT(tally_.acknowledged, 3 * runs) << "the runs do too little to prove anything";
  EXPECT_GT(tally_.condemned, runs);
  EXPECT_GT(tally_.kept, runs);
  EXPECT_GT(tally_.cuts, runs);
  EXPECT_GT(tally_.kills, runs / 2);
}

TEST_F(WakeIndexPowerTest, ADiskThatLiesIsFoundOut) {
  for (const auto lie : {SimulatedDisk::Lie::kBytes, SimulatedDisk::Lie::kNames}) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      if (!run(seed, lie).empty()) ++found;
    }
    EXPECT_GT(found, 0) << "the simulation would not notice a missing sync";
  }
}

}  // namespace
}  // namespace hearth::durable
