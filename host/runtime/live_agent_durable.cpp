// Keep-alive and fibers of a live agent. The rows are in durable/fibers.hpp; recovery is in
// live_agent_work.cpp.
#include "base/stop_point.hpp"
#include "json/json_scanner.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

namespace hearth::runtime {
namespace {

constexpr std::size_t kMaxKeepAlive = 1'000'000;  // a leak in a plugin, not a use

// A commit would end the plugin's transaction under its hands, and a rollback would undo what
// memory takes for done.
Error not_in_transaction() {
  return Error{Errc::kInvalidArgument, "not while a transaction of the agent's own is open"};
}

}  // namespace

durable::Wake LiveAgent::wake() const {
  durable::Wake wake = work_.wake();
  wake.working = wake.working || keep_alive_ > 0;
  return wake;
}

void LiveAgent::persist_wake(const durable::Wake& wake) {
  services_.alarms().set_wake(slot_.key(), wake);
  known_wake_ = wake;
}

bool LiveAgent::in_transaction() const {
  return migrating_ || (sql_ && sql_->has_savepoints());
}

void LiveAgent::commit_now() {
  outbox_.flush();
  if (broken_) throw StorageError(*broken_);  // nothing is written any more
}

Result<void> LiveAgent::acquire_keep_alive() {
  if (shutting_) return Error{Errc::kClosing, "the agent is being evicted"};
  if (keep_alive_ >= kMaxKeepAlive)
    return Error{Errc::kLimitExceeded, "too many keep-alive references"};
  ++keep_alive_;
  return {};
}

Result<void> LiveAgent::release_keep_alive() {
  if (keep_alive_ == 0) return Error{Errc::kInvalidArgument, "no keep-alive reference is held"};
  --keep_alive_;
  return {};
}

Result<StartedFiber> LiveAgent::start_fiber(std::string_view name, std::string_view replaces) {
  if (shutting_) return Error{Errc::kClosing, "the agent is being evicted"};
  if (in_transaction()) return not_in_transaction();
  auto started = work_.fibers().start(name, replaces);
  if (started.has_error()) return started.error();
  // A commit ends a statement that is in the middle of writing, and the names may lie in its row.
  const std::string its_name(name);
  const std::string old_id(replaces);
  stop_point(old_id.empty() ? StopPoint("fiber.start.written") : "fiber.continue.written");
  commit_now();  // the row is on disk before the work's first instruction
  stop_point(old_id.empty() ? StopPoint("fiber.start.committed") : "fiber.continue.committed");
  report(DurableEvent::kFiberRunStarted, started->id, its_name);
  if (!old_id.empty()) recovery_continued(old_id);
  return StartedFiber{started->handle, std::move(started->id)};
}

Result<void> LiveAgent::stash(std::uint64_t fiber, std::string_view json) {
  if (!is_json(json)) return Error{Errc::kInvalidArgument, "a checkpoint must be JSON"};
  if (in_transaction()) return not_in_transaction();
  if (auto outcome = work_.fibers().stash(fiber, json); outcome.has_error()) return outcome;
  stop_point("fiber.stash.written");
  commit_now();  // a checkpoint that was taken is not lost
  stop_point("fiber.stash.committed");
  return {};
}

Result<void> LiveAgent::finish_fiber(std::uint64_t fiber) {
  return end_fiber(fiber, DurableEvent::kFiberRunCompleted, "");
}

Result<void> LiveAgent::fail_fiber(std::uint64_t fiber, std::string_view why) {
  return end_fiber(fiber, DurableEvent::kFiberRunFailed, why);
}

Result<void> LiveAgent::end_fiber(std::uint64_t fiber, DurableEvent how, std::string_view why) {
  if (in_transaction()) return not_in_transaction();
  const auto id = work_.fibers().finish(fiber);
  if (id.has_error()) return id.error();
  stop_point("fiber.finish.written");
  stops_at_commit_.add("fiber.finish.committed");
  report(how, *id, why);
  return {};
}

Result<void> LiveAgent::retry_fiber(std::string_view id) {
  if (in_transaction()) return not_in_transaction();
  return work_.fibers().retry(id);
}

Result<std::string> LiveAgent::list_dead_fibers(std::string_view after, std::size_t limit) {
  return work_.fibers().list_dead(after, limit);
}

void LiveAgent::report_left_over() {
  for (const durable::LeftOver& fiber : work_.fibers().take_left_over()) {
    if (fiber.was_running) report(DurableEvent::kFiberRunInterrupted, fiber.id, fiber.name);
    report(DurableEvent::kFiberRecoveryDetected, fiber.id, fiber.name);
  }
}

void LiveAgent::report(DurableEvent event, std::string_view id, std::string_view detail) {
  services_.durable_events().report(event, slot_.key().agent_class, slot_.key().name, id, detail);
}

}  // namespace hearth::runtime
