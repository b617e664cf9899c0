// Durable work of a live agent: keep-alive, fibers, their recovery. The rows are in durable/fibers.hpp.
#include "json/json_scanner.hpp"
#include "json/json_text.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

namespace hearth::runtime {
namespace {

constexpr std::size_t kMaxKeepAlive = 1'000'000;  // a leak in a plugin, not a use

std::string recovery_body(const durable::Interrupted& fiber) {
  std::string body = R"({"id":)";
  append_json_string(body, fiber.id);
  body += R"(,"snapshot":)" + fiber.snapshot.value_or("null");
  body += R"(,"created_at":)" + std::to_string(fiber.created_at_ms);
  body += R"(,"attempt":)" + std::to_string(fiber.attempt) + "}";
  return body;
}

// A commit would end the plugin's transaction under its hands, and a rollback would undo what memory takes for done.
Error not_in_transaction() {
  return Error{Errc::kInvalidArgument, "not while a transaction of the agent's own is open"};
}

}  // namespace

durable::Wake LiveAgent::wake() const {
  durable::Wake wake = fibers_.wake();
  wake.working = wake.working || keep_alive_ > 0;
  return wake;
}

void LiveAgent::persist_wake(const durable::Wake& wake) {
  services_.set_wake(slot_.key(), wake);
  known_wake_ = wake;
}

bool LiveAgent::in_transaction() const {
  return sql_ && sql_->has_savepoints();
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
  auto started = fibers_.start(name, replaces);
  if (started.has_error()) return started.error();
  commit_now();  // the row is on disk before the work's first instruction
  log_fiber(LogLevel::kInfo, "fiber.run.started", started->id, name);
  return StartedFiber{started->handle, std::move(started->id)};
}

Result<void> LiveAgent::stash(std::uint64_t fiber, std::string_view json) {
  if (!is_json(json)) return Error{Errc::kInvalidArgument, "a checkpoint must be JSON"};
  if (in_transaction()) return not_in_transaction();
  if (auto outcome = fibers_.stash(fiber, json); outcome.has_error()) return outcome;
  commit_now();  // a checkpoint that was taken is not lost
  return {};
}

Result<void> LiveAgent::finish_fiber(std::uint64_t fiber) {
  if (in_transaction()) return not_in_transaction();
  const auto id = fibers_.finish(fiber);
  if (id.has_error()) return id.error();
  log_fiber(LogLevel::kInfo, "fiber.run.ended", *id, "");
  return {};
}

Result<void> LiveAgent::retry_fiber(std::string_view id) {
  if (in_transaction()) return not_in_transaction();
  return fibers_.retry(id);
}

bool LiveAgent::recover_one() {
  std::optional<durable::Interrupted> fiber;
  try {
    fiber = fibers_.begin_recovery();
    outbox_.flush();  // the attempt counts also if the hook takes the process with it
  } catch (const StorageError& failure) {  // agent boundary
    storage_failed(failure.what());
  }
  for (const std::string& dead : fibers_.take_passed_over()) {
    log_fiber(LogLevel::kWarn, "fiber.recovery.dead", dead,
              "interrupted again and again without progress");
  }
  if (!fiber || broken_) return false;
  log_fiber(LogLevel::kInfo, "fiber.recovery.attempt", fiber->id, fiber->name);
  const auto [id, call] = calls_.emplace();
  call.kind = EventKind::kFiberRecovered;
  call.fiber = fiber->id;
  const std::string body = recovery_body(*fiber);
  AgentEvent event;
  event.kind = EventKind::kFiberRecovered;
  event.call = id;
  event.name = fiber->name;
  event.body = body;
  event.deadline_ms = static_cast<std::uint64_t>(settings_.fibers.recovery_timeout.count());
  accept_call(id, event);
  return true;
}

void LiveAgent::end_recovery(const std::string& fiber, const Result<std::string_view>& outcome) {
  try {
    if (outcome) {
      fibers_.recovered(fiber);
      log_fiber(LogLevel::kInfo, "fiber.recovery.handled", fiber, "");
    } else if (outcome.error().code == Errc::kUnsupported) {
      fibers_.recovered(fiber);
      log_fiber(LogLevel::kWarn, "fiber.recovery.skipped", fiber, "the class recovers no fibers");
    } else {
      const auto failure = fibers_.failed(fiber, outcome.error().message);
      log_fiber(LogLevel::kWarn, failure.dead ? "fiber.recovery.dead" : "fiber.recovery.failed",
                fiber, outcome.error().message);
    }
  } catch (const StorageError& failure) {  // agent boundary
    storage_failed(failure.what());
  }
}

void LiveAgent::log_fiber(LogLevel level, std::string_view event, std::string_view id,
                          std::string_view detail) {
  services_.logger().write(
      level, event,
      {{"class", class_->name()}, {"agent", slot_.key().name}, {"fiber", id}, {"detail", detail}});
}

}  // namespace hearth::runtime
