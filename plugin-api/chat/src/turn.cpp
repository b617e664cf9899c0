#include "chat.hpp"
#include "parts.hpp"

#include <hearth/agent_base.hpp>
#include <hearth/chat/chunk.hpp>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace hearth::chat {

namespace {

// Whether the model has asked for something in its last step.
bool last_step_has_calls(const Json& message) {
  const Json& all = parts::of(message);
  for (auto part = all.rbegin(); part != all.rend(); ++part) {
    if (parts::text(*part, "type") == "step-start") return false;
    if (is_tool_part(*part) && !parts::is_true(*part, "providerExecuted")) return true;
  }
  return false;
}

// The ids of the first calls of a message.
std::set<std::string, std::less<>> first_calls(const Json& message, std::uint64_t count) {
  std::set<std::string, std::less<>> ids;
  for (const Json& part : parts::of(message)) {
    if (count == 0) break;
    if (!is_tool_part(part)) continue;
    ids.insert(parts::text(part, "toolCallId"));
    --count;
  }
  return ids;
}

std::string open_text(const Json& message) {
  const Json& all = parts::of(message);
  for (auto part = all.rbegin(); part != all.rend(); ++part)
    if (parts::text(*part, "type") == "text" && parts::text(*part, "state") == "streaming")
      return parts::text(*part, "id");
  return {};
}

}  // namespace

Turn::Turn(Chat& chat, RunningTurn& running, FiberContext& fiber)
    : chat_(chat),
      running_(running),
      fiber_(fiber),
      system_(chat.options.system),
      model_(chat.options.model_options()),
      tools_(chat, running) {}

Agent& Turn::agent() const {
  return chat_.agent;
}

void Turn::write(std::string_view mark, Json chunk) {
  if (!fiber_.once("chat:" + std::string(mark))) return;
  std::vector<Json> chunks;
  chunks.push_back(std::move(chunk));
  running_.write(std::move(chunks));
}

void Turn::stash(Json value) {
  running_.record().stash = std::move(value);
  running_.save();
}

// ---- the model ----------------------------------------------------------------------------------

Prompt Turn::prompt() {
  Prompt prompt;
  const Summary summary = chat_.history.summary_for(running_.record());
  prompt.system = with_summary(system_, summary);
  prompt.messages = chat_.history.of(running_.record());
  Json answer = running_.message();
  leave_out_covered(summary, answer);
  if (!parts::of(answer).empty()) prompt.messages.push_back(std::move(answer));
  chat_.agent.history(prompt.messages);
  prompt.options = model_;
  prompt.tools = tools_.specs();
  return prompt;
}

bool Turn::is_done() const {
  const CallPlan& plan = running_.record().plan;
  return plan.whole_calls > 0 && !plan.finish_reason.empty() && !plan.is_paused &&
         !last_step_has_calls(running_.message());
}

Task<void> Turn::generate() {
  if (generated_++ < running_.record().plan.generated) co_return;
  // The turn before has used the client's answer itself.
  if (running_.is_continuation() && !running_.record().owner.empty() &&
      running_.record().step == 0 && running_.used_events(0) == 0 &&
      !last_step_has_calls(running_.message()))
    co_return;
  running_.keeps_all = model_.is_resumable;
  for (;;) {
    const CallPlan& plan = running_.record().plan;
    // Else a call was interrupted: it is asked to its end first; or its prompt was too long.
    if (!plan.reservation && !plan.too_long) {
      auto calls = tools_.run();
      const bool has_run = co_await std::move(calls);
      if (has_run) continue;  // a user may have approved more meanwhile
      if (tools_.awaits_client() || is_done() || plan.whole_calls >= chat_.options.max_steps) break;
    }
    auto asking = ask();
    co_await std::move(asking);
  }
  CallPlan& plan = running_.record().plan;
  ++plan.generated;
  plan.whole_calls = 0;
  plan.is_paused = false;
  running_.save();
}

Task<void> Turn::ask() {
  if (stop_token().stop_requested()) throw TurnStopped();
  TurnRecord& turn = running_.record();
  if (chat_.is_leaving) {
    turn.plan.is_handed_over = true;
    running_.save();
    chat_.changed.notify();
    Signal never(chat_.agent);
    auto waiting = never.wait(stop_token());
    co_await std::move(waiting);
  }
  const bool is_interrupted = turn.plan.reservation && turn.plan.purpose.empty();
  // A prompt reads much of the transcript: it is not made only to be measured for nothing.
  const bool is_measured = chat_.options.compact_after > 0 && !is_interrupted &&
                           turn.plan.whole_calls == 0 && turn.plan.compactions == 0;
  const std::string_view due =
      compaction_due(turn.plan, chat_.options.overflow(), chat_.options.compact_after,
                     is_measured ? estimate_tokens(model_bytes(prompt().messages)) : 0);
  if (!due.empty() && !is_interrupted) {
    auto compacting = compact(due);
    const bool is_shorter = co_await std::move(compacting);
    const std::optional<std::string> refused = std::exchange(turn.plan.too_long, {});
    if (refused && !is_shorter) fail({FailureKind::kContextOverflow, *refused});
    if (refused)  // what has been said of the step is not asked for again as it was
      take_back_step();
    else
      ++turn.plan.compactions;
    running_.save();
  }
  HttpCall request = chat_.provider->request(prompt());
  auto reserving = reserve_call(request, {});
  co_await std::move(reserving);
  auto asking = ask_once(std::move(request));
  co_await std::move(asking);
}

// For an answer, so that the message can be stored with it and with the ends of its calls.
std::size_t Turn::room() const {
  constexpr std::size_t kEnds = std::size_t{256} << 10;
  const std::size_t used = to_text(running_.message()).size() + kEnds;
  return used < kMaxMessageBytes ? kMaxMessageBytes - used : 0;
}

// The call that is reserved.
ModelCall Turn::model_call(HttpCall request) const {
  const TurnRecord& turn = running_.record();
  const CallPlan& plan = turn.plan;
  const bool is_answer = plan.purpose.empty();
  ModelCall call{.turn = turn.id,
                 .number = turn.step,
                 .purpose = plan.purpose,
                 .base_url = chat_.options.base_url,
                 .credential = chat_.options.credential,
                 .request = std::move(request),
                 .is_resumable = is_answer && plan.is_resumable,
                 .open_text = is_answer ? plan.open_text : std::string(),
                 .taken_ids = first_calls(running_.message(), plan.earlier_calls),
                 .used_events = is_answer ? running_.used_events(turn.step) : 0,
                 .room = is_answer ? room() : kMaxMessageBytes,
                 .stop = stop_token(),
                 .stall_timeout = std::chrono::milliseconds(chat_.options.stall_timeout_ms)};
  if (plan.reservation)
    call.cost = static_cast<std::uint64_t>(std::max<std::int64_t>(plan.reservation->tokens, 0));
  return call;
}

// A clear ends the turn, but not its call in the middle.
TakeChunks Turn::into_answer() {
  return [this, number = running_.record().step](std::vector<Json> chunks, std::uint64_t events) {
    if (chat_.running == &running_)
      running_.write(std::move(chunks), ChunkSource{static_cast<std::uint64_t>(number), events});
  };
}

// One call. A reservation is given back if the call has not left the server.
Task<Turn::CallResult> Turn::call_now(ModelCall call, TakeChunks take) {
  CallResult result;
  try {
    auto calling = call_model(chat_.agent, *chat_.provider, std::move(call), std::move(take));
    result.outcome = co_await std::move(calling);
    if (!result.outcome->failure.empty()) result.failure = result.outcome->as_failure();
  } catch (const NotCalled& error) {
    result.failure = error.failure();
    result.is_called = false;
  } catch (const FetchError& error) {  // its rest is asked for by the same call
    result.failure = {FailureKind::kCut, error.what()};
  } catch (const HostError& error) {
    if (error.code() != HEARTH_E_LIMIT) throw;
    chat_.agent.log.warn("chat: no call of the model: ", error.what());
    chat_.account.give_back(running_.record());
    running_.save();
    throw TurnFailed("This server has reached its daily limit of calls to the model.", "limit");
  }
  if (!result.is_called) chat_.account.give_back(running_.record());
  co_return result;
}

Task<void> Turn::ask_once(HttpCall request) {
  auto calling = call_now(model_call(std::move(request)), into_answer());
  CallResult result = co_await std::move(calling);
  if (result.outcome) {
    take_outcome(*result.outcome);
    if (result.outcome->failure.empty()) co_return;
  }
  running_.save();
  if (stop_token().stop_requested()) throw TurnStopped();
  if (result.outcome && result.outcome->is_too_large) throw too_large();
  auto recovering = recover(std::move(result.failure), result.outcome && result.outcome->is_stalled,
                            result.is_called);
  co_await std::move(recovering);
}

Task<void> Turn::end_call() {
  if (!running_.record().plan.reservation) co_return;
  std::stop_source ended;
  ended.request_stop();
  ModelCall call = model_call({});
  call.stop = ended.get_token();
  const bool is_answer = call.purpose.empty();
  TakeChunks take = [](const std::vector<Json>& /*chunks*/, std::uint64_t /*events*/) {};
  if (is_answer) take = into_answer();
  auto calling = call_now(std::move(call), std::move(take));
  const CallResult result = co_await std::move(calling);
  if (result.outcome && is_answer)
    take_outcome(*result.outcome);
  else if (result.outcome)
    settle_call(*result.outcome);
  running_.save();
}

Task<void> Turn::reserve_call(const HttpCall& request, std::string purpose) {
  TurnRecord& turn = running_.record();
  if (turn.plan.reservation && turn.plan.purpose != purpose) {
    auto ending = end_call();
    co_await std::move(ending);
  }
  if (turn.plan.reservation) co_return;
  const Estimate estimate{estimate_tokens(model_bytes(request.body)),
                          model_.max_output_tokens.value_or(chat_.options.usual_output())};
  const std::string refusal = chat_.account.reserve(turn, estimate);
  if (!refusal.empty()) throw TurnFailed(refusal, "budget");
  turn.plan.purpose = std::move(purpose);
  turn.plan.is_resumable = model_.is_resumable;
  turn.plan.earlier_calls = static_cast<std::uint64_t>(
      std::ranges::count_if(parts::of(running_.message()), is_tool_part));
  turn.plan.finish_reason.clear();
  if (turn.plan.purpose.empty()) chat_.agent.kv().remove(Chat::kContinuesKey);
  running_.save();
}

// What a provider reports of an answer that was cut is not all of it: the reservation stays.
void Turn::settle_call(const CallOutcome& outcome) {
  TurnRecord& turn = running_.record();
  chat_.account.settle(turn, outcome.failure.empty() ? outcome.usage : Usage());
  ++turn.step;
}

// The call is over, and in the ledger: this is the same commit.
void Turn::take_outcome(const CallOutcome& outcome) {
  TurnRecord& turn = running_.record();
  CallPlan& plan = turn.plan;
  settle_call(outcome);
  plan.usage = outcome.usage;
  const bool has_gone_on = !plan.open_text.empty();  // what was said before stays
  plan.is_cut = false;
  plan.open_text.clear();
  plan.is_paused = outcome.is_paused;
  if (outcome.failure.empty()) {
    ++plan.whole_calls;
    plan.finish_reason = outcome.finish_reason;
  } else if (outcome.has_content || has_gone_on) {
    running_.write(closing_chunks(running_.message(), Closing::kContinuation));
    plan.is_cut = !last_step_has_calls(running_.message());
    if (plan.is_cut)
      plan.open_text = open_text(running_.message());
    else  // the next call begins a step of its own, behind the results of the tools
      running_.write(closing_chunks(running_.message(), Closing::kTurn));
  } else if (running_.used_events(turn.step - 1) > 0) {
    std::vector<Json> chunks;
    chunks.push_back({{"type", "reset-step"}});
    running_.write(std::move(chunks));
    plan.is_cut = !open_text(running_.message()).empty();
    plan.open_text = open_text(running_.message());
  }
  running_.save();
}

void Turn::take_back_step() {
  CallPlan& plan = running_.record().plan;
  std::vector<Json> chunks;
  chunks.push_back({{"type", "reset-step"}});
  if (std::exchange(plan.is_cut, false)) {
    running_.write(std::move(chunks));
    chat_.streams.show_update(running_.message());  // for clients that do not know the chunk
  }
  plan.open_text.clear();
  running_.save();
}

Task<void> Turn::drop_text() {
  const Json& all = parts::of(running_.message());
  for (auto part = all.rbegin(); part != all.rend(); ++part) {
    if (parts::text(*part, "type") == "step-start") break;
    if (is_tool_part(*part) && parts::text(*part, "state") != "input-streaming") co_return;
  }
  CallPlan& plan = running_.record().plan;
  const bool is_asking = plan.reservation && plan.purpose.empty();
  if (!is_asking && !plan.is_cut) co_return;  // it is whole, and no call would make it anew
  // What a resumed call would go on with is gone: the next call is another one, and may be a second
  // one to be paid.
  if (running_.used_events(running_.record().step) > 0) {
    const CallPlan before = plan;
    auto ending = end_call();
    co_await std::move(ending);
    plan.finish_reason.clear();
    plan.whole_calls = before.whole_calls;  // also if it was whole
    plan.is_paused = before.is_paused;
  }
  plan.is_cut = running_.has_begun();
  take_back_step();
}

void Turn::fail(const Failure& failure) const {
  throw TurnFailed(chat_.agent.error_text(failure), std::string(failure_name(failure.kind)));
}

// Waits for the next call, or ends the turn.
Task<void> Turn::recover(Failure failure, bool is_stalled, bool is_called) {
  TurnRecord& turn = running_.record();
  const ContextOverflow& overflow = chat_.options.context_overflow;
  failure.kind = chat_.agent.classify_error(failure);
  chat_.agent.log.event(HEARTH_LOG_WARN, "chat:request:failed", "turn=", turn.id,
                        " kind=", failure_name(failure.kind), is_stalled ? " stalled" : "", ": ",
                        failure.text);
  if (failure.kind == FailureKind::kContextOverflow && overflow.reactive &&
      turn.plan.overflows < overflow.max_retries) {
    ++turn.plan.overflows;
    turn.plan.too_long = failure.text;
    running_.save();
    co_return;
  }
  if (is_stalled) chat_.agent.log.event(HEARTH_LOG_WARN, "chat:stream:stalled", "turn=", turn.id);
  if (!may_pass(failure.kind) || !chat_.options.recover) fail(failure);
  auto going_on = chat_.interrupted(*this,
                                    {.trigger = is_stalled ? Trigger::kStall : Trigger::kFailure,
                                     .retry_after = failure.retry_after},
                                    is_called);
  co_await std::move(going_on);
}

// ---- compaction ---------------------------------------------------------------------------------

// False: the history is as long as before. What has been done is kept in the commit with the
// summary, so that an interruption asks for the same summary again, which the ledger has.
Task<bool> Turn::compact(std::string_view reason) {
  const Summary earlier = chat_.history.summary_for(running_.record());
  const Json history = chat_.history.of(running_.record());
  std::optional<Compaction> plan = plan_compaction(
      history, running_.message(), chat_.history.own_ids(running_.record()), earlier);
  if (!plan) co_return false;
  plan->reason = reason;
  const std::size_t size = to_text(plan->messages).size() + plan->earlier.size();
  const std::int64_t window = chat_.options.window();
  // Half of what was too long fits, and so does a text of half the window, at two bytes a token.
  plan->max_bytes = window > 0 ? static_cast<std::size_t>(window) : size / 2;
  auto summarising = chat_.agent.compact(*this, *plan);
  Summary next = plan->next;
  next.text = co_await std::move(summarising);
  if (next.text.empty() || next.text.size() >= size) co_return false;
  chat_.history.keep(next);
  running_.record().plan.usage = {};  // of the longer history
  chat_.agent.log.event(HEARTH_LOG_INFO, "chat:context:compacted", "turn=", id(),
                        " reason=", reason, " messages=", plan->messages.size(), " bytes=", size,
                        " summary=", next.text.size());
  co_return true;
}

Task<std::string> Turn::summarise(const Compaction& compaction) {
  for (;;) {
    HttpCall request = chat_.provider->request(summary_prompt(compaction, model_));
    auto reserving = reserve_call(request, "summary");
    co_await std::move(reserving);
    std::string text;
    const auto take = [&text](const std::vector<Json>& chunks, std::uint64_t /*events*/) {
      for (const Json& chunk : chunks)
        if (parts::text(chunk, "type") == "text-delta") text += parts::text(chunk, "delta");
    };
    auto calling = call_now(model_call(std::move(request)), take);
    CallResult result = co_await std::move(calling);
    if (result.outcome) settle_call(*result.outcome);
    running_.save();
    if (stop_token().stop_requested()) throw TurnStopped();
    if (result.outcome && result.outcome->failure.empty()) co_return text;
    if (!may_pass(result.failure.kind)) {
      chat_.agent.log.warn("chat: no summary for turn=", id(), ": ", result.failure.text);
      co_return std::string();
    }
    auto recovering = recover(std::move(result.failure), false, false);
    co_await std::move(recovering);
  }
}

}  // namespace hearth::chat
