#include "runtime/agent_store.hpp"

#include "base/assert.hpp"
#include "extensions/call_answers.hpp"
#include "runtime/shard_services.hpp"

#include <chrono>
#include <utility>

namespace hearth::runtime {
namespace {

// How long a leaving agent waits for the device.
constexpr std::chrono::seconds kLastSync{10};

storage::AgentDatabaseOptions database_options(const AgentStore::Parts& parts, storage::Kept kept) {
  storage::AgentDatabaseOptions options = parts.settings.database;
  options.class_schema = parts.class_schema;
  options.must_exist = kept != storage::Kept::kUnknown;
  options.sync = parts.settings.durability == Durability::kPower ? &parts.services.sync : nullptr;
  options.copy_mark = &parts.services.files.data().copy_mark();
  return options;
}

}  // namespace

bool SharedCommit::schedule() {
  if (std::exchange(is_scheduled_, true)) return false;
  entries_before_ = entries_;
  return true;
}

bool SharedCommit::is_time(bool is_last) {
  const bool more_came = std::exchange(entries_before_, entries_) != entries_;
  if (more_came && !is_last) return false;
  is_scheduled_ = false;
  return true;
}

AgentStore::AgentStore(const Parts& parts, storage::Kept kept)
    : parts_(parts),
      database_(parts.services.files.data().agent_path(parts.key), parts.key,
                database_options(parts, kept)),
      commits_({parts.services.files, parts.services.alarms, parts.services.logger, parts.key,
                database_},
               kept,
               parts.settings.durability == Durability::kPower ? parts.services.make_gate(database_)
                                                               : nullptr),
      work_(database_, parts.key, parts.services.loop.clock(), parts.services.random,
            parts.settings, parts.services.durable_events, commits_.stops()),
      outbox_(
          parts.effects, [this] { return dirty(); }, commits_.gate() != nullptr,
          parts.services.client_memory),
      self_(std::make_shared<AgentStore*>(this)) {
  if (commits_.must_hold_back()) await_device(outbox_.hold_back());
}

AgentStore::~AgentStore() {
  *self_ = nullptr;
}

void AgentStore::load(bool has_code) {
  const ShardServices& services = parts_.services;
  work_.load(services.crashed.take(parts_.key), services.alarms.known(parts_.key).needs_person,
             has_code);
  if (!database_.dirty() || services.data.has_room()) return;
  database_.roll_back();
  work_waits_for_room_ = true;
}

durable::Wake AgentStore::wake() const {
  if (work_waits_for_room_) return parts_.services.alarms.known(parts_.key);
  durable::Wake wake = work_.wake();
  wake.working = wake.working || parts_.agent.extensions().keeps_alive();
  return wake;
}

void AgentStore::trim(extensions::Trim what) {
  if (loan_.is_out()) return;
  parts_.agent.extensions().trim(what);
  if (what == extensions::Trim::kAll) return database_.release_memory();
  database_.release_unused();
}

void AgentStore::close_work() {
  const bool is_settled = !broken_ && !database_.dirty();
  work_.close();
  // What was in progress is still known, as far as it will be continued.
  if (is_settled) commits_.at_end(work_waits_for_room_ ? wake() : work_.wake());
}

// ---- commits ------------------------------------------------------------------------------------

bool AgentStore::has_unwritten_answers() const {
  const auto* const answers =
      std::as_const(parts_.agent).extensions().find<extensions::CallAnswers>();
  return answers != nullptr && answers->has_unwritten();
}

bool AgentStore::dirty() const {
  return commits_.dirty([this] { return wake(); }) || has_unwritten_answers();
}

bool AgentStore::idle() {
  return !loan_.is_out() && work_.fibers().runs().size() == 0 && outbox_.empty() &&
         !database_.dirty() && !has_unwritten_answers();
}

void AgentStore::commit() {
  if (broken_) throw StorageError(*broken_);  // nothing is written any more
  const bool writes = dirty();
  if (writes) {
    if (has_unwritten_answers() && parts_.agent.of<extensions::CallAnswers>().write())
      commits_.stops().add("call.answer.committed");
    commits_.commit(wake());
    parts_.figures.commits.add();
  }
  await_device(outbox_.committed(writes));
}

void AgentStore::end_turn(std::uint64_t entries) {
  shared_commit_.turn_ended(entries);
  if (broken_) return;
  if (!dirty()) {
    // A keep-alive reference alone writes nothing else.
    if (!awaits_durability()) guard([this] { commits_.keep(wake()); });
  } else if (parts_.agent.extensions().in_transaction()) {
    // An open savepoint could undo writes of a later turn, so that turn must not share the commit.
    flush();
  } else {
    commit_soon();
  }
}

void AgentStore::commit_soon() {
  if (!shared_commit_.schedule()) return;
  parts_.services.loop.turn_end().add(TurnEnd::Phase::kCommit, [self = self_](bool is_last) {
    if (*self == nullptr) return true;
    if (!(*self)->shared_commit_.is_time(is_last)) return false;
    (*self)->flush();
    (*self)->parts_.after_turn();
    return true;
  });
}

void AgentStore::flush() {
  if (broken_ || is_withheld() || loan_.is_out()) return;
  guard([this] { commit(); });
}

void AgentStore::await_device(Outbox::Mark mark) {
  if (mark == 0) return;
  commits_.gate()->request([this, self = self_, mark](bool ok) {
    const bool is_over =
        *self == nullptr || broken_ || parts_.agent.phase() == extensions::AgentPhase::kClosing;
    if (is_over) return;
    if (!ok) {
      fail("what was committed could not be synced to the device");
    } else if (outbox_.durable(mark)) {
      std::optional<durable::Wake> rest;
      if (!dirty()) rest = wake();
      commits_.all_durable(rest ? &*rest : nullptr);
    } else {
      return;
    }
    parts_.after_turn();
  });
}

bool AgentStore::is_withheld() const {
  const extensions::AgentPhase phase = parts_.agent.phase();
  return phase == extensions::AgentPhase::kMigrating || phase == extensions::AgentPhase::kClosing;
}

void AgentStore::fail(std::string_view what, bool is_disk_full) {
  if (is_disk_full) parts_.services.data.note_full();
  if (broken_) return;
  parts_.failed(what);
  give_up(what);
}

void AgentStore::give_up(std::string_view what) {
  if (broken_) return;
  broken_ = what;
  outbox_.discard_all();
}

// ---- the loan -----------------------------------------------------------------------------------

void AgentStore::lend() {
  HEARTH_ASSERT(!loan_.is_out() && checkpoint_due(true), "lent while it is in use");
  loan_.begin(parts_.services.loop.clock().steady_now());
}

void AgentStore::finish() {
  flush();
  if (broken_ || !awaits_durability()) return;
  // Lent, so that it writes nothing more. The gate answers in order: by the time of its answer all
  // held effects have left or are discarded. A device that hangs does not keep the agent forever.
  loan_.begin(parts_.services.loop.clock().steady_now());
  const auto come_back = [self = self_, is_back = std::make_shared<bool>(false)](bool answered) {
    if (*self == nullptr || std::exchange(*is_back, true)) return;
    if (!answered) (*self)->fail("the device did not sync its last answers within 10 s");
    (*self)->take_back({});
  };
  commits_.gate()->request([come_back](bool) { come_back(true); });
  ShardLoop& loop = parts_.services.loop;
  loop.call_at(loop.clock().steady_now() + kLastSync, [come_back] { come_back(false); });
}

void AgentStore::take_back(const std::string& trouble) {
  const Loan::Steps postponed = loan_.end();
  const std::shared_ptr<AgentStore*> self = self_;
  if (database_.broken()) {
    fail(trouble);
  } else if (!trouble.empty()) {
    parts_.services.logger.write_limited(
        LogLevel::kWarn, "agent.checkpoint_failed", {parts_.key.agent_class},
        {{"class", parts_.key.agent_class}, {"agent", parts_.key.name}, {"error", trouble}});
  }
  if (!broken_ && dirty()) commit_soon();
  for (const std::function<void()>& step : postponed) {
    step();
    if (*self == nullptr || is_withheld()) return;
  }
  parts_.look();
  parts_.after_turn();
}

}  // namespace hearth::runtime
