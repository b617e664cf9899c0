// A turn from the begin of its fiber to its last frame.
#include "chat.hpp"
#include "parts.hpp"

#include <hearth/chat/chunk.hpp>

#include <algorithm>
#include <utility>

namespace hearth::chat {

namespace {

using std::chrono::milliseconds;

constexpr const char* kAnswerFailed = "The answer failed.";

struct Ending {
  TurnState state = TurnState::kCompleted;
  std::string text = {};  // of an error
  std::string classification = {};
  bool is_gone = false;
};

// The exception that has left a turn, as its end.
Ending ending_of(const std::exception_ptr& thrown, RunningTurn& turn, const Log& log) {
  if (!thrown) return {};
  try {
    std::rethrow_exception(thrown);
  } catch (const Unreadable&) {
    throw;  // the fiber waits for code that can read it
  } catch (const TurnGone&) {
    return {.is_gone = true};
  } catch (const TurnStopped&) {
    return {.state = TurnState::kAborted};
  } catch (const std::exception& error) {
    if (turn.stop().stop_requested()) return {.state = TurnState::kAborted};
    const auto* const failed = dynamic_cast<const TurnFailed*>(&error);
    if (!is_for_clients(error))
      log.error("chat: turn ", turn.record().id, " failed: ", error.what());
    return {.state = TurnState::kError,
            .text = is_for_clients(error) ? error.what() : kAnswerFailed,
            .classification = failed == nullptr ? std::string() : failed->reason()};
  }
}

}  // namespace

TurnFailed too_large() {
  return TurnFailed("The answer is too large to be stored.", "too_large");
}

Task<void> Chat::run(std::string id, FiberContext& fiber) {
  bool has_run = false;
  for (;;) {
    while (is_storing) co_await changed.wait();
    const std::optional<TurnRecord> turn = turns.find(id);
    if (!turn) co_return;
    has_run = turn->state == TurnState::kRunning;
    const Time now = agent.now();
    if (turn->ended || turns.begin(id, now)) break;
    if (turn->is_early(now)) {
      co_await agent.sleep(turn->not_before - now);
    } else {  // another one is first
      auto waiting = changed.wait();
      co_await std::move(waiting);
    }
  }
  const std::optional<TurnRecord> record = turns.find(id);
  if (!record) co_return;
  RunningTurn turn(agent, transcript, turns, log, streams, *record);
  Turn given(*this, turn, fiber);
  if (record->ended) {  // by a clear, and a crash came before the end of its call
    auto ending_call = end_call(given, fiber);
    co_await std::move(ending_call);
    co_return;
  }
  turn.save();
  const Runs runs(*this, turn);
  std::exception_ptr thrown;
  try {
    if (record->is_stopping) {
      turn.stop().request_stop();
      throw TurnStopped();
    }
    if (has_run) {
      auto going_on = go_on(given, fiber);
      co_await std::move(going_on);
    } else {
      log.drop_others(id, read_turns);
    }
    auto work = agent.on_turn(given);
    co_await std::move(work);
  } catch (...) {
    thrown = std::current_exception();
  }
  const Ending ending = ending_of(thrown, turn, agent.log);
  auto ending_call = end_call(given, fiber);
  co_await std::move(ending_call);
  if (ending.is_gone) co_return;
  if (ending.state == TurnState::kError) tell_error(ending.text, ending.classification);
  end(turn, ending.state, ending.text, fiber.id());
}

Task<void> Chat::end_call(Turn& given, const FiberContext& fiber) {
  try {
    auto ending = given.end_call();
    co_await std::move(ending);
  } catch (const Unreadable&) {
    throw;
  } catch (const TurnGone&) {  // it has no row for what the call has come to
    agent.log.debug("chat: a call of turn ", given.id(), ", which was cleared, is over");
    co_return;
  } catch (const std::exception& error) {
    agent.log.error("chat: a call of turn ", given.id(), " did not end: ", error.what());
  }
  auto dropping = drop_calls(given.running().record(), fiber.id());
  co_await std::move(dropping);
}

Task<void> Chat::drop_calls(TurnRecord& turn, std::string fiber) {
  const Json reserved = call_args(turn.id, turn.step, turn.plan.purpose);
  ModelCall of_turn;
  of_turn.base_url = options.base_url;
  of_turn.credential = options.credential;
  std::optional<Usage> used;
  OperationFilter of_work;
  of_work.states = {OperationState::kCompleted, OperationState::kInterrupted,
                    OperationState::kUnknown};
  of_work.fiber = fiber;
  for (const char* const kind : {kModelKind, kResumableKind}) {
    of_work.kind = kind;
    of_work.after.clear();
    for (;;) {
      const std::vector<OperationRecord> left = agent.list_operations(of_work);
      if (left.empty()) break;
      of_work.after = left.back().id;
      for (const OperationRecord& call : left) {
        auto dropping = drop_call(agent, *provider, of_turn, call);
        const std::optional<Usage> of_call = co_await std::move(dropping);
        if (of_call && call.args == reserved) used = of_call;
      }
    }
  }
  if (used)
    account.settle(turn, *used);
  else
    account.give_back(turn);
}

void Chat::end(RunningTurn& turn, TurnState state, std::string text, const std::string& fiber) {
  TurnRecord& record = turn.record();
  if (!turns.save(record)) return;  // cleared meanwhile
  std::vector<Json> chunks = closing_chunks(turn.message(), Closing::kTurn);
  if (state == TurnState::kCompleted) {
    const std::string& reason = record.plan.finish_reason;
    chunks.push_back({{"type", "finish"}, {"finishReason", reason.empty() ? "other" : reason}});
  }
  if (state != TurnState::kCompleted)
    std::ranges::move(ends_of_calls(turn, fiber), std::back_inserter(chunks));
  if (!chunks.empty() || turn.has_begun()) turn.write(std::move(chunks));
  if (const std::optional<TurnFailed> failed = store_answer(turn)) {
    text = failed->what();
    if (std::exchange(state, TurnState::kError) != TurnState::kError)
      tell_error(text, failed->reason());
  }
  if (options.max_persisted_messages)
    transcript.keep_newest(
        static_cast<std::size_t>(std::max<std::int64_t>(*options.max_persisted_messages, 1)),
        history.waiting_ids());
  if (!turns.end(record.id, state, text, agent.now())) return;
  if (record.incident.is_shown) {
    streams.show_recovering(false, record.id);
    if (state == TurnState::kCompleted)
      agent.log.event(HEARTH_LOG_INFO, "chat:recovery:completed", "turn=", record.id);
  }
  record.state = state;
  record.error = text;
  // The sender of a message has seen it all, unless something was taken back on the way.
  std::optional<Connection> sender;
  const bool has_taken_back = record.incident.is_shown || record.plan.overflows > 0;
  if (!turn.is_continuation() && !has_taken_back && !record.owner.empty())
    sender = agent.connection(record.owner);
  streams.end(ended_turn(record), sender);
  if (running == &turn) running = nullptr;
  changed.notify();
  start_head();
}

std::optional<TurnFailed> Chat::store_answer(RunningTurn& turn) {
  try {
    turn.store_message([this](Json& message) { clean(message); });
  } catch (const TurnFailed& failed) {
    return failed;
  } catch (const Error& error) {
    if (error.code() != HEARTH_E_LIMIT) throw;
    return too_large();
  }
  return std::nullopt;
}

void Chat::tell_error(const std::string& text, const std::string& classification) {
  try {
    agent.on_chat_error(text, classification);
  } catch (const std::exception& error) {
    agent.log.warn("chat: on_chat_error failed: ", error.what());
  }
}

// A fiber that the host has given up, or that was cancelled.
Task<void> Chat::give_up(TurnRecord record, std::string fiber, bool is_cancelled, std::string why) {
  if (const auto runs = [&] { return running != nullptr && running->record().id == record.id; };
      runs()) {
    cancel(record.id);  // its work goes on without its fiber, and ends it
    while (runs()) {
      auto waiting = changed.wait();
      co_await std::move(waiting);
    }
    const std::optional<TurnRecord> now = turns.find(record.id);
    if (!now || now->ended) co_return;
    record = *now;
  }
  auto dropping = drop_calls(record, fiber);
  co_await std::move(dropping);
  RunningTurn turn(agent, transcript, turns, log, streams, std::move(record));
  const Runs runs(*this, turn);
  if (is_cancelled) {
    end(turn, TurnState::kAborted, "", fiber);
    co_return;
  }
  const std::string reason(reason_text(GiveUp::kMaxAttemptsExceeded));
  auto telling = tell_exhausted(turn, reason, std::move(why));
  co_await std::move(telling);
  if (!turns.save(turn.record())) co_return;  // cleared meanwhile
  tell_error(options.recovery.terminal_message, reason);
  end(turn, TurnState::kError, options.recovery.terminal_message, fiber);
}

// ---- recovery -----------------------------------------------------------------------------------

Task<void> Chat::go_on(Turn& given, FiberContext& fiber) {
  RunningTurn& turn = given.running();
  TurnRecord& record = turn.record();
  if (std::exchange(record.plan.is_handed_over, false)) {
    turn.save();
    co_return;
  }
  // Before the host counts to its own limit: a checkpoint that differs begins its count anew.
  const Json& runs = fiber.snapshot();
  fiber.stash(runs.is_number_integer() ? runs.get<std::int64_t>() + 1 : 1);
  if (!options.recover) throw TurnFailed(options.recovery.terminal_message, "recovery_off");
  const auto awaits = [&] { return awaits_client(turn.message(), client_tools(record)); };
  if (!awaits()) show_recovering(turn);
  while (!awaits()) {
    auto settling = settle(turn);
    if (co_await std::move(settling)) break;
    auto waiting = interrupted(given, {.trigger = Trigger::kUnstable}, false);
    co_await std::move(waiting);
  }
  auto going_on =
      interrupted(given, {.trigger = Trigger::kRestart, .awaits_client = awaits()}, true);
  co_await std::move(going_on);
}

// Frames that came before an attempt may change the conversation, so they are handled before it.
// False: they were not within stable_timeout_ms.
Task<bool> Chat::settle(RunningTurn& turn) {
  const InOrder::Place place(order);
  bool is_first = true;
  try {
    auto reaching = agent.with_timeout(order.reach(place, turn.stop().get_token()),
                                       milliseconds(options.recovery.stable_timeout_ms));
    co_await std::move(reaching);
  } catch (const Error& error) {
    if (error.code() != HEARTH_E_TIMEOUT) throw;
    is_first = false;
  }
  co_return is_first;
}

RecoveryContext Chat::context_of(const RunningTurn& turn) {
  const TurnRecord& record = turn.record();
  RecoveryContext context;
  context.incident_id =
      record.id + ":" + (record.origin_ids.empty() ? "" : record.origin_ids.back());
  context.attempt = record.incident.attempt;
  context.max_attempts = options.recovery.max_attempts;
  context.partial_text = turn.text();
  context.partial_parts = parts::of(turn.message());
  context.recovery_kind = context.partial_parts.empty() ? "retry" : "continue";
  context.recovery_root_request_id = record.id;
  context.request_id = record.id;
  if (turn.has_begun()) context.stream_id = record.id;
  context.recovery_data = record.stash;
  context.messages = history.of(record);
  context.last_body = record.body;
  context.last_client_tools = record.client_tools;
  context.created_at = record.created;
  context.work = record.work - record.incident.first_work;
  return context;
}

// Judges an interruption, and waits until the turn goes on. `is_of_turn`: something of the answer
// may be there, so that the author and the clients get to know.
Task<void> Chat::interrupted(Turn& given, Interruption interruption, bool is_of_turn) {
  RunningTurn& turn = given.running();
  TurnRecord& record = turn.record();
  interruption.work = record.work;
  interruption.progress = record.progress;
  const Verdict verdict = judge(record.incident, interruption, options.recovery, agent.now());
  record.incident = verdict.incident;
  turn.save();
  if (is_of_turn)
    agent.log.event(HEARTH_LOG_INFO, "chat:recovery:detected", "turn=", record.id,
                    " attempt=", record.incident.attempt);
  if (interruption.awaits_client && record.incident.exhausted.empty()) co_return;
  if (is_of_turn) show_recovering(turn);
  bool is_wanted = true;
  if (verdict.asks_hook) {
    auto asking = asks_to_keep_on(turn);
    is_wanted = co_await std::move(asking);
    if (turn.stop().stop_requested()) throw TurnStopped();
  }
  if (verdict.give_up || !is_wanted || !record.incident.exhausted.empty()) {
    auto exhausting = exhaust(turn, verdict.give_up.value_or(GiveUp::kRecoveryAborted));
    co_await std::move(exhausting);
  }
  if (is_of_turn) {
    auto choosing = ask_hook(turn);
    const RecoveryChoice choice = co_await std::move(choosing);
    if (!choice.persist) {
      auto dropping = given.drop_text();
      co_await std::move(dropping);
    }
    if (!choice.proceed) {
      agent.log.event(HEARTH_LOG_INFO, "chat:recovery:skipped", "turn=", record.id);
      throw TurnStopped();
    }
  }
  auto resting = rest_until(turn, verdict.at);
  co_await std::move(resting);
  if (is_of_turn)
    agent.log.event(HEARTH_LOG_INFO, "chat:recovery:attempt", "turn=", record.id,
                    " attempt=", record.incident.attempt);
}

void Chat::show_recovering(RunningTurn& turn) {
  if (std::exchange(turn.record().incident.is_shown, true)) return;
  turn.save();
  streams.show_recovering(true, turn.record().id);
}

// An exception of the hook ends the turn.
Task<RecoveryChoice> Chat::ask_hook(const RunningTurn& turn) {
  try {
    auto choosing = agent.on_chat_recovery(context_of(turn));
    co_return co_await std::move(choosing);
  } catch (const std::exception& error) {
    agent.log.event(HEARTH_LOG_ERROR, "chat:recovery:failed", "turn=", turn.record().id, ": ",
                    error.what());
    throw;
  }
}

Task<bool> Chat::asks_to_keep_on(const RunningTurn& turn) {
  bool keeps_on = true;
  try {
    auto asking = agent.should_keep_recovering(context_of(turn));
    keeps_on = co_await std::move(asking);
  } catch (const std::exception& error) {
    agent.log.warn("chat: should_keep_recovering failed: ", error.what());
  }
  co_return keeps_on;
}

Task<void> Chat::exhaust(RunningTurn& turn, GiveUp reason) {
  auto telling = tell_exhausted(turn, std::string(reason_text(reason)), {});
  co_await std::move(telling);
  throw TurnFailed(options.recovery.terminal_message, turn.record().incident.exhausted);
}

Task<void> Chat::tell_exhausted(RunningTurn& turn, std::string reason, std::string why) {
  // Kept by the commit that has what the hook writes before it waits.
  if (!turn.record().incident.exhausted.empty()) co_return;
  turn.record().incident.exhausted = reason;
  if (!turns.save(turn.record())) co_return;  // cleared meanwhile
  agent.log.event(HEARTH_LOG_ERROR, "chat:recovery:exhausted", "turn=", turn.record().id,
                  " reason=", reason, why.empty() ? "" : ": ", why);
  try {
    RecoveryContext context = context_of(turn);
    context.reason = std::move(reason);
    auto telling = agent.on_exhausted(std::move(context));
    co_await std::move(telling);
  } catch (const std::exception& error) {
    agent.log.warn("chat: on_exhausted failed: ", error.what());
  }
}

Task<void> Chat::rest_until(RunningTurn& turn, Time at) {
  if (turn.stop().stop_requested()) throw TurnStopped();
  const milliseconds left = at - agent.now();
  if (left <= milliseconds(0)) co_return;
  Signal never(agent);
  bool is_over = false;
  try {
    auto resting = agent.with_timeout(never.wait(turn.stop().get_token()), left);
    co_await std::move(resting);
  } catch (const Error& error) {
    is_over = error.code() == HEARTH_E_TIMEOUT;
  }
  if (!is_over) throw TurnStopped();
}

}  // namespace hearth::chat
