// What clients send, and what the agent's code begins.
#include "chat.hpp"
#include "parts.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace hearth::chat {

namespace {

constexpr const char* kReadonly = "This client may only read.";
constexpr const char* kTooLargeResult = "The result is too large.";
constexpr std::uint32_t kKeptRecords = 50;

FiberFilter ended_turns() {
  FiberFilter ended;
  ended.statuses = {FiberStatus::kCompleted, FiberStatus::kError, FiberStatus::kAborted};
  ended.name = "chat.turn";
  return ended;
}

std::vector<std::string> trailing_user_ids(const Json& messages) {
  std::vector<std::string> ids;
  for (auto message = messages.rbegin();
       message != messages.rend() && parts::text(*message, "role") == "user"; ++message)
    ids.insert(ids.begin(), parts::text(*message, "id"));
  return ids;
}

std::string skipped_frame(const std::string& id, const std::vector<std::string>& messages) {
  return response_frame({.id = id, .is_done = true, .message_ids = messages, .outcome = "skipped"});
}

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace

std::vector<Json> user_text(std::string_view text) {
  std::vector<Json> messages;
  messages.push_back(
      {{"role", "user"}, {"parts", Json::array({{{"type", "text"}, {"text", text}}})}});
  return messages;
}

bool Sender::is_readonly() const {
  try {
    return client.readonly();
  } catch (const HostError& error) {
    if (error.code() != HEARTH_E_GONE) throw;
    return was_readonly;
  }
}

void Chat::ask_sanitizer(Json& message) {
  try {
    agent.sanitize(message);
  } catch (const Unreadable&) {
    throw;
  } catch (const std::exception& error) {
    agent.log.error("chat: sanitize failed: ", error.what());
    throw TurnFailed("The message could not be stored.", "sanitize");
  }
}

void Chat::clean(Json& message) {
  chat::sanitize(message);
  ask_sanitizer(message);
}

Task<Prepared> Chat::prepare(Json messages) {
  auto sanitizing = agent.offload([messages = std::move(messages)]() mutable {
    for (Json& message : messages) chat::sanitize(message);
    return std::move(messages);
  });
  messages = co_await sanitizing;
  for (Json& message : messages) ask_sanitizer(message);
  auto hashing = agent.offload([messages = std::move(messages)]() mutable {
    std::vector<std::int64_t> hashes = hash_messages(messages);
    return Prepared{std::move(messages), std::move(hashes)};
  });
  co_return co_await hashing;
}

// ---- the line -----------------------------------------------------------------------------------

bool Chat::start_head() {
  const std::optional<Head> head = turns.head();
  if (!head || head->is_running || begin_fiber(head->id)) return true;
  if (!std::exchange(tries_again, true)) agent.after_turn([this] { return try_again(); });
  return false;
}

bool Chat::begin_fiber(const std::string& turn, FiberPolicy ended) {
  FiberOptions fiber;
  fiber.key = "chat:" + turn;
  fiber.keep_record = true;  // only then a dead one is reported
  fiber.policy = ended;
  std::string why_not;
  const auto begins = [&] {
    try {
      agent.start_fiber("chat.turn", Json{{"turn", turn}}, fiber);
      return true;
    } catch (const HostError& error) {
      if (error.code() != HEARTH_E_LIMIT) throw;
      why_not = error.what();
      return false;
    }
  };
  if (begins() || (drop_records() > 0 && begins())) return true;
  agent.log.warn("chat: turn ", turn, " cannot begin yet: ", why_not);
  return false;
}

// Other fibers of the agent may end without a word to the chat.
Task<void> Chat::try_again() {
  std::chrono::milliseconds wait(1'000);
  while (tries_again) {
    co_await agent.sleep(wait);
    wait = std::min<std::chrono::milliseconds>(2 * wait, kMaxBackoff);
    const std::optional<Head> head = turns.head();
    tries_again = head && !head->is_running && !begin_fiber(head->id);
  }
}

bool Chat::has_room(const TurnRequest& request) {
  if (turns.find(request.id) || turns.find_key(request.key)) return true;
  // A record that has ended is what is left of an attempt whose turn was not stored.
  return turns.head() ? start_head() : begin_fiber(request.id, FiberPolicy::kReplace);
}

std::uint64_t Chat::drop_records() {
  FiberFilter oldest = ended_turns();
  oldest.before = turns.oldest_untold();  // one that is removed is not told any more
  oldest.limit = kKeptRecords / 2;
  return agent.delete_fibers(oldest);
}

void Chat::bound_records() {
  FiberFilter all = ended_turns();
  all.limit = kKeptRecords;
  if (agent.list_fibers(all).size() == kKeptRecords) drop_records();
}

void Chat::show_skipped(const std::vector<TurnInLine>& skipped) {
  for (const TurnInLine& turn : skipped) streams.show_skipped(turn);
  if (!skipped.empty()) changed.notify();
}

bool Chat::cancel(std::string_view id) {
  const std::optional<TurnRecord> turn = turns.find(id);
  switch (turns.cancel(id, agent.now())) {
    case Cancelled::kNothing: return false;
    case Cancelled::kSkipped:
      if (turn) show_skipped({TurnInLine{turn->id, turn->kind, false, turn->origin_ids}});
      start_head();
      return true;
    case Cancelled::kStopping: break;
  }
  if (running != nullptr && running->record().id == id) running->stop().request_stop();
  return true;
}

void Chat::clear(const std::optional<Connection>& except) {
  const std::vector<TurnInLine> gone = turns.clear(agent.now());
  transcript.clear();
  history.forget_summary();
  agent.kv().remove(kContinuesKey);
  log.drop_others({}, {});
  if (running != nullptr) std::exchange(running, nullptr)->stop().request_stop();
  streams.show_clear(except);
  for (const TurnInLine& turn : gone) {
    if (const auto record = turns.find(turn.id); record && record->incident.is_shown)
      streams.show_recovering(false, turn.id);
    if (turn.is_running)
      streams.end({.id = turn.id,
                   .is_continuation = turn.kind == TurnKind::kContinuation,
                   .outcome = "aborted",
                   .message_ids = turn.origin_ids},
                  except);
    else
      streams.show_skipped(turn);
  }
  changed.notify();
}

std::string Chat::start(TurnRequest request, std::vector<Json> messages, Origin origin) {
  for (Json& message : messages) {
    if (!message.contains("id")) message["id"] = agent.uuid();
    if (const std::string fault = message_fault(message); !fault.empty())
      throw Error(HEARTH_E_INVALID, fault);
    clean(message);
    if (parts::text(message, "role") == "user") request.origin_ids.push_back(message["id"]);
  }
  if (request.id.empty()) request.id = agent.uuid();
  check_request(request);
  const Time now = agent.now();  // not after its fiber begins: see drop_records()
  const Storing storing(*this);
  if (!has_room(request)) throw Error(HEARTH_E_LIMIT, kNoFiber);
  const std::vector<std::string> used = history.ids_in_use();
  auto together = agent.transaction();  // a message that cannot be stored has no turn
  const Accepted accepted = turns.accept(request, options.line(), now);
  if (accepted.place == Place::kFull) throw Error(HEARTH_E_LIMIT, kTooManyTurns);
  if (accepted.place == Place::kKnown) return accepted.id;
  for (const Json& message : messages) {
    const std::string& id = parts::text(message, "id");
    if (origin == Origin::kClient &&
        (transcript.find(id) || std::ranges::find(used, id) != used.end()))
      throw Error(HEARTH_E_INVALID, "There is a message with this id already.");
    transcript.put(message);
  }
  together.commit();
  show_skipped(accepted.skipped);
  if (!messages.empty()) streams.show_messages();
  start_head();
  return accepted.id;
}

// ---- frames -------------------------------------------------------------------------------------

// Looks up the messages of the list in small steps, between which the shard serves other agents.
Task<void> Chat::read_long(std::shared_ptr<LongMessage> message) {
  constexpr std::size_t kAtOnce = 500;
  auto splitting =
      agent.offload([message] { message->split = LongFrame::split(message->message.text()); });
  co_await splitting;
  std::unordered_set<std::string>& stored = message->sent.stored;
  const std::optional<LongFrame>& split = message->split;
  const auto earlier = split ? split->earlier() : std::span<const SentMessage>();
  for (std::size_t at = 0; at < earlier.size(); at += kAtOnce) {
    transcript.find_stored(earlier.subspan(at, std::min(kAtOnce, earlier.size() - at)),
                           options.history(), stored);
    co_await agent.sleep(std::chrono::milliseconds(0));
  }
  auto reading = agent.offload([message] {
    SentList& sent = message->sent;
    if (message->split) sent.hashes = message->split->hashes_without(sent.stored);
    message->frame = read_client_frame(message->split ? message->split->without(sent.stored)
                                                      : message->message.text());
    message->split.reset();
    if (message->frame) message->message = Message({}, false);  // freed here, not on the shard
  });
  co_await reading;
}

// Stored, or being made.
std::set<std::string> Chat::answers_in(const std::vector<std::string>& ids) const {
  std::set<std::string> answers;
  for (const TurnInLine& turn : turns.line()) answers.insert(turn.message_id);
  for (const std::string& id : ids)
    if (transcript.role_of(id) == "assistant") answers.insert(id);
  return answers;
}

Task<void> Chat::accept(Sender sender, ChatRequest request, SentList sent) {
  const Connection& client = sender.client;
  std::vector<std::string> origin_ids = trailing_user_ids(request.messages);
  auto preparing = prepare(std::move(request.messages));
  Prepared prepared = co_await std::move(preparing);
  // A client may call an answer a message of the user, and changes nothing by it.
  if (options.history() == ClientHistory::kAppend)
    std::erase_if(origin_ids, [answers = answers_in(origin_ids)](const std::string& id) {
      return answers.contains(id);
    });
  TurnRequest turn{.id = request.id,
                   .kind = request.is_regenerate ? TurnKind::kRegenerate : TurnKind::kSubmit,
                   .origin_ids = origin_ids,
                   .body = std::move(request.body),
                   .client_tools = std::move(request.client_tools),
                   .owner = sender.id};
  check_request(turn);
  const Time now = agent.now();  // not after its fiber begins: see drop_records()
  const Storing storing(*this);
  if (!has_room(turn)) {
    client.send(refusal_frame({request.id, kNoFiber}));
    co_return;
  }
  const std::vector<std::string> used = history.ids_in_use();
  auto together = agent.transaction();  // a list that cannot be stored has no turn
  const Accepted accepted = turns.accept(turn, options.line(), now);
  if (accepted.place == Place::kFull) {
    client.send(refusal_frame({request.id, kTooManyTurns}));
    co_return;
  }
  if (accepted.place == Place::kDropped) {
    streams.show_messages_to(client);
    client.send(skipped_frame(request.id, origin_ids));
    co_return;
  }
  if (accepted.place == Place::kKnown) {
    streams.acknowledge(client, accepted.id);
    co_return;
  }
  transcript.accept(std::move(prepared.messages), prepared.hashes, options.history(),
                    request.is_regenerate, std::move(sent), used);
  if (!accepted.joined.empty()) transcript.join(accepted.joined);
  together.commit();
  show_skipped(accepted.skipped);
  streams.show_list_of(client);
  start_head();
}

Task<void> Chat::set_messages(Sender sender, SetMessages frame, SentList sent) {
  auto preparing = prepare(std::move(frame.messages));
  Prepared prepared = co_await std::move(preparing);
  const std::vector<std::string> used = history.ids_in_use();
  auto together = agent.transaction();
  transcript.accept(std::move(prepared.messages), prepared.hashes, options.history(), false,
                    std::move(sent), used);
  together.commit();
  streams.show_list_of(sender.client);
  changed.notify();
}

void Chat::answer(const Sender& sender, const std::string& call, bool auto_continue,
                  const Json& tools, const std::function<Answer(Json&)>& change) {
  std::optional<RunningTurn> interrupted;  // it takes the answer up when its fiber goes on
  const auto rebuilt = [&](const std::string& id) {
    return &interrupted.emplace(agent, transcript, turns, log, streams, turns.find(id).value());
  };
  RunningTurn* turn = running;
  if (const auto head = turns.head(); turn == nullptr && head && head->is_running)
    turn = rebuilt(head->id);
  std::optional<Json> message;
  Answer answered = Answer::kNoCall;
  if (turn != nullptr) answered = change(turn->message());
  if (answered == Answer::kTaken) {
    // If it cannot be stored, a turn that runs ends with that.
    if (store_answer(*turn) && interrupted) {
      turn = rebuilt(interrupted->record().id);
      std::ignore = fail_call(turn->message(), call, kTooLargeResult);
      std::ignore = store_answer(*turn);
    }
    message = transcript.find(turn->record().message_id);
  } else if (answered == Answer::kNoCall) {
    message = transcript.find_call(call);
    if (message) answered = change(*message);
    if (answered == Answer::kTaken) clean(*message);
    if (answered == Answer::kTaken && to_text(*message).size() > kMaxMessageBytes) {
      message = transcript.find_call(call);  // the batch goes on
      std::ignore = fail_call(*message, call, kTooLargeResult);
      clean(*message);
    }
    if (answered == Answer::kTaken) transcript.put(*message);
  }
  if (answered == Answer::kNoCall) agent.log.info("chat: an answer to a call that does not exist");
  if (answered != Answer::kTaken || !message) return;
  streams.show_update(*message);
  changed.notify();
  const std::string& id = parts::text(*message, "id");
  if (is_pending(*message)) {  // one of the batch that asks to go on is enough
    if (auto_continue) agent.kv().put(kContinuesKey, Json(id));
    return;
  }
  // A turn that runs goes on with the answer itself.
  if (!auto_continue && agent.kv().get<std::string>(kContinuesKey) != id) return;
  TurnRequest next{.id = agent.uuid(),
                   .kind = TurnKind::kContinuation,
                   .client_tools = tools,
                   .owner = sender.id,
                   .message_id = id};
  turns.accept(next, options.line(), agent.now());
  start_head();
}

Task<void> Chat::handle(Sender sender, ClientFrame frame, SentList sent) {
  const Connection& client = sender.client;
  const bool only_reads = std::holds_alternative<ResumeRequest>(frame) ||
                          std::holds_alternative<ResumeAck>(frame) ||
                          std::holds_alternative<Refusal>(frame);
  if (!only_reads && sender.is_readonly()) {
    if (const auto* const request = std::get_if<ChatRequest>(&frame))
      client.send(refusal_frame({request->id, kReadonly}));
    co_return;
  }
  Refusal refusal;
  try {
    if (auto* const request = std::get_if<ChatRequest>(&frame)) {
      refusal.id = request->id;
      auto accepting = accept(sender, std::move(*request), std::move(sent));
      co_await std::move(accepting);
    } else if (auto* const messages = std::get_if<SetMessages>(&frame)) {
      auto setting = set_messages(sender, std::move(*messages), std::move(sent));
      co_await std::move(setting);
    } else {
      handle_now(sender, frame);
    }
  } catch (const HostError&) {
    throw;
  } catch (const Error& error) {
    refusal.text = error.what();
  }
  if (!refusal.text.empty()) refuse(client, refusal);
}

void Chat::handle_now(const Sender& sender, const ClientFrame& frame) {
  const Connection& client = sender.client;
  std::visit(
      Overloaded{
          [&](const ClearChat&) { clear(client); },
          [&](const CancelRequest& cancelled) { cancel(cancelled.id); },
          [&](const ResumeRequest& resume) { streams.resume(client, resume.probe_id); },
          [&](const ResumeAck& ack) { streams.acknowledge(client, ack.id); },
          [&](const ToolResult& result) {
            answer(sender, result.call, result.auto_continue, result.client_tools,
                   [&](Json& message) {
                     const Json* const part = parts::find_call(message, result.call);
                     if (part != nullptr && options.history() == ClientHistory::kAppend &&
                         own_tools.contains(tool_of(*part)))
                       return Answer::kLate;  // only the tool itself can give it
                     return result.is_failure ? fail_call(message, result.call, result.error_text)
                                              : answer_call(message, result.call, result.output);
                   });
          },
          [&](const ToolApproval& approval) {
            answer(sender, approval.call, approval.auto_continue, nullptr, [&](Json& message) {
              return approve_call(message, approval.call, approval.is_approved);
            });
          },
          [&](const Refusal& refusal) { refuse(client, refusal); }, [](const ChatRequest&) {},
          [](const SetMessages&) {}},
      frame);
}

void Chat::refuse(const Connection& client, const Refusal& refusal) {
  if (!refusal.id.empty()) {
    client.send(refusal_frame(refusal));
    return;
  }
  const Time now = agent.now();
  if (now - last_refusal < std::chrono::seconds(1)) return;
  last_refusal = now;
  agent.log.info("chat: a frame was dropped: ", refusal.text);
}

}  // namespace hearth::chat
