#pragma once
// What is open of an agent on disk: its database and its durable work; with the effects that its
// commits let out. An agent that is open for visits alone has this, and no instance.

#include "durable/wake.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/durable_work.hpp"
#include "runtime/agent_commits.hpp"
#include "runtime/loan.hpp"
#include "runtime/outbox.hpp"
#include "runtime/shard_metrics.hpp"
#include "storage/agent_database.hpp"
#include "storage/kept.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::runtime {

struct ShardServices;

// Events that are ready together share one commit.
class SharedCommit {
 public:
  // `entries`: how often the agent's code was entered so far.
  void turn_ended(std::uint64_t entries) { entries_ = entries; }
  // False: it is scheduled already.
  [[nodiscard]] bool schedule();
  // A turn of the loop is over. False: more events are coming, and the commit waits for the next
  // end, unless this is the last.
  [[nodiscard]] bool is_time(bool is_last);

 private:
  bool is_scheduled_ = false;
  std::uint64_t entries_ = 0;
  std::uint64_t entries_before_ = 0;  // when it was last scheduled or asked
};

// Promises
//  P1 Commit    What is written in a turn is committed before anything that is sent in that turn
//               leaves.
//  P2 Lent      While loan() is out, another thread has the database, and what needs it is
//               postponed, in order, until take_back().
//  P3 Break     When storage fails, nothing that was not durable leaves, and callers get an error.
//
// P1: Turns that follow one another at once may share a commit.
// P2: The other thread runs AgentDatabase::checkpoint(), which waits for the device; or the agent
// leaves, and its last answers wait for the device.
//
// Threads    The shard's, but for what says otherwise.
// Lifetime   The parts outlive it. The database is closed before destruction (AgentCommits::close).
class AgentStore {
 public:
  struct Parts {
    const storage::AgentKey& key;
    const ShardServices& services;
    const extensions::ClassSettings& settings;
    ClassMetrics& figures;
    std::uint32_t class_schema = 0;   // the version that new data get
    extensions::AgentContext& agent;  // its extensions are asked from load() on
    EffectPort& effects;
    std::function<void(std::string_view what)> failed;  // storage has failed, for the log
    // A task of the loop has let effects out, or has given the database back.
    const std::function<void()>& after_turn;
    const std::function<void()>& look;  // durable work may be due
  };

  // Opens the database. `kept`: what the directory knew of the file. If an earlier process did not
  // close the agent, nothing leaves before the next sync of the device. Throws StorageError.
  AgentStore(const Parts& parts, storage::Kept kept);
  ~AgentStore();

  [[nodiscard]] storage::AgentDatabase& database() { return database_; }
  [[nodiscard]] AgentCommits& commits() { return commits_; }
  [[nodiscard]] extensions::DurableWork& work() { return work_; }
  [[nodiscard]] Outbox& outbox() { return outbox_; }
  [[nodiscard]] Loan& loan() { return loan_; }

  // Takes over the work of an earlier process. On a full disk what that writes is undone: then
  // work_waits_for_room(), the work is as the last process has left it, and only another instance
  // can begin it. Throws StorageError.
  void load(bool has_code);
  [[nodiscard]] bool work_waits_for_room() const { return work_waits_for_room_; }
  // When the agent must be awake next, even if no event comes.
  [[nodiscard]] durable::Wake wake() const;
  // Gives memory back. Does nothing while it is lent.
  void trim(extensions::Trim what);
  // The instance is gone. The wake index gets the wake that the rows ask for.
  void close_work();

  // ---- commits ----
  // Whether something waits for a commit.
  [[nodiscard]] bool dirty() const;
  // Commits what is uncommitted, and lets out the effects that waited for it. Throws StorageError.
  void commit();
  // A turn has ended: its commit follows, soon or now. `entries`: as SharedCommit::turn_ended().
  void end_turn(std::uint64_t entries);
  // Commits when this turn of the loop is over.
  void commit_soon();
  // Commits now, unless commits are withheld or it is lent.
  void flush();
  // Answers are held back until what they report is durable.
  [[nodiscard]] bool awaits_durability() const {
    return commits_.gate() != nullptr && !outbox_.empty();
  }
  // The agent's boundary: runs what may touch storage. False: storage has failed.
  template <class Action>
  bool guard(const Action& action) {
    try {
      action();
      return true;
    } catch (const StorageError& failure) {
      fail(failure.what(), dynamic_cast<const DiskFull*>(&failure) != nullptr);
      return false;
    }
  }
  // Storage has failed; does nothing if it has failed before. From a full disk on no work begins
  // until there is room (AgentWork::begin_due): a claim that fails breaks the agent.
  void fail(std::string_view what, bool is_disk_full = false);
  // The same, if that is logged: uncommitted writes are lost, and the wake index keeps its entry.
  void give_up(std::string_view what);
  [[nodiscard]] bool broken() const { return broken_.has_value(); }
  // No fiber runs, and nothing waits for a commit or the device.
  [[nodiscard]] bool idle();

  // ---- the loan ----
  // The WAL is so long that it should be lent before the next event is delivered. `idle`: see
  // AgentDatabase.
  [[nodiscard]] bool checkpoint_due(bool idle = false) const {
    return !broken_ && !is_withheld() && database_.checkpoint_due(idle);
  }
  // Only if checkpoint_due(), at least with `idle`, and no code of the agent is on the stack.
  void lend();
  // Runs the postponed steps. The agent may be shut, and gone, afterwards.
  void take_back(const std::string& trouble);
  // The last commit. If answers wait for the device it is lent until they have left; after 10 s
  // without a reply from the device storage has failed.
  void finish();

 private:
  [[nodiscard]] bool has_unwritten_answers() const;
  void await_device(Outbox::Mark mark);
  // What is written is not committed: its schema migrates, or the instance is being destroyed.
  [[nodiscard]] bool is_withheld() const;

  const Parts parts_;
  storage::AgentDatabase database_;
  AgentCommits commits_;
  extensions::DurableWork work_;
  Outbox outbox_;
  Loan loan_;
  bool work_waits_for_room_ = false;
  std::optional<std::string> broken_;
  SharedCommit shared_commit_;
  std::shared_ptr<AgentStore*> self_;  // tasks reach us through it; null after destruction
};

}  // namespace hearth::runtime
