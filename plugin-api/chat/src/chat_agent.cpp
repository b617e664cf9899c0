#include "chat.hpp"
#include "parts.hpp"

#include <utility>

namespace hearth {

namespace {

constexpr std::size_t kPage = std::size_t{256} << 10;
constexpr const char* kNotRegistered =
    "this class is a ChatAgent: call chat_methods(m) in its methods()";

chat::TurnEnd end_of(const chat::TurnRecord& turn, const chat::Transcript& transcript) {
  return {.request_id = turn.id,
          .status = std::string(chat::state_text(turn.state)),
          .error = turn.error,
          .is_continuation = turn.kind == chat::TurnKind::kContinuation,
          .message = transcript.find(turn.message_id).value_or(Json())};
}

}  // namespace

chat::Chat& ChatAgent::begun() const {
  if (chat_ == nullptr) throw Error(HEARTH_E_BUSY, "the chat could not start");
  return *chat_;
}

ChatAgent::ChatAgent() = default;
ChatAgent::~ChatAgent() = default;

// ---- hooks --------------------------------------------------------------------------------------

Task<void> ChatAgent::on_turn(chat::Turn& turn) {
  auto generating = turn.generate();
  co_await std::move(generating);
}

Task<std::string> ChatAgent::compact(chat::Turn& turn, const chat::Compaction& compaction) {
  auto summarising = turn.summarise(compaction);
  co_return co_await std::move(summarising);
}

chat::ChatOptions ChatAgent::chat_options() {
  return chat::read_chat_options<chat::ChatOptions>(options());
}

std::unique_ptr<const chat::Provider> ChatAgent::make_provider(const chat::ChatOptions& options) {
  return chat::make_provider(options);
}

void ChatAgent::on_posting(const Request& /*request*/) {
  if (has_on_connecting())
    throw Error(HEARTH_E_FORBIDDEN, "This chat takes messages over a WebSocket only.");
}

// ---- calls --------------------------------------------------------------------------------------

std::string ChatAgent::start_turn(const std::vector<Json>& messages,
                                  const chat::StartTurn& options) {
  if (messages.empty()) throw Error(HEARTH_E_INVALID, "a turn begins with a message");
  return begun().start(
      {.id = {}, .kind = chat::TurnKind::kProgram, .body = options.body, .key = options.key},
      messages);
}

std::string ChatAgent::start_turn(std::string_view text, const chat::StartTurn& options) {
  return start_turn(chat::user_text(text), options);
}

std::string ChatAgent::continue_last_turn(Json body) {
  const std::optional<Json> last = begun().transcript.last();
  if (!last || chat::parts::text(*last, "role") != "assistant") return {};
  return begun().start({.id = {},
                        .kind = chat::TurnKind::kContinuation,
                        .body = std::move(body),
                        .message_id = chat::parts::text(*last, "id")},
                       {});
}

Task<chat::TurnEnd> ChatAgent::wait_turn(std::string id, TimeOption timeout) {
  const std::chrono::nanoseconds until = uptime() + timeout;
  for (;;) {
    const std::optional<chat::TurnRecord> turn = begun().turns.find(id);
    if (!turn) throw Error(HEARTH_E_NOT_FOUND, "there is no such turn");
    if (turn->ended) co_return end_of(*turn, begun().transcript);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - uptime());
    if (left.count() <= 0) throw Error(HEARTH_E_TIMEOUT, "the turn has not ended yet");
    auto waiting = with_timeout(begun().changed.wait(), left);
    co_await std::move(waiting);
  }
}

bool ChatAgent::cancel_turn(std::string_view id) {
  return begun().cancel(id);
}

void ChatAgent::clear_chat() {
  begun().clear(std::nullopt);
}

void ChatAgent::persist_messages(const std::vector<Json>& messages) {
  for (Json message : messages) {
    if (const std::string fault = chat::message_fault(message); !fault.empty())
      throw Error(HEARTH_E_INVALID, fault);
    begun().clean(message);
    begun().transcript.put(message);
  }
  begun().streams.show_messages();
  begun().changed.notify();
}

std::optional<Json> ChatAgent::last_message() const {
  return begun().transcript.last();
}

std::string ChatAgent::partial_text() const {
  return begun().running == nullptr ? std::string() : begun().running->text();
}

bool ChatAgent::has_pending_interaction() const {
  return begun().running == nullptr && begun().transcript.has_pending();
}

Task<bool> ChatAgent::wait_until_stable(std::chrono::milliseconds timeout) {
  const std::chrono::nanoseconds until = uptime() + timeout;
  for (;;) {
    if (!begun().turns.head() && !has_pending_interaction()) co_return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - uptime());
    if (left.count() <= 0) co_return false;
    try {
      auto waiting = with_timeout(begun().changed.wait(), left);
      co_await std::move(waiting);
    } catch (const Error& error) {
      if (error.code() != HEARTH_E_TIMEOUT) throw;
    }
  }
}

// ---- for the chat -------------------------------------------------------------------------------

Task<void> ChatAgent::on_start() {
  if (!has_operation(chat::kModelKind)) throw Error(HEARTH_E_INVALID, kNotRegistered);
  chat::ChatOptions options = chat_options();
  chat::check_options(options);
  std::unique_ptr<const chat::Provider> provider = make_provider(options);
  chat_ = std::make_unique<chat::Chat>(*this, std::move(options), std::move(provider));
  auto starting = on_other_start();
  co_await std::move(starting);
  begun().streams.start();
  begun().start_head();
}

Task<void> ChatAgent::on_connect(Connection client) {
  begun().streams.connect(client);
  return on_other_connect(client);
}

Task<void> ChatAgent::on_message(Connection client, Message message) {
  // Shared with the thread that reads a long one: the agent may be gone before that has ended.
  const auto kept = std::make_shared<chat::LongMessage>(std::move(message));
  const chat::Sender sender(client);
  bool is_frame = false;
  {
    const chat::InOrder::Place place(begun().order, client.number());
    const bool is_long = kept->message.is_text() && kept->message.text().size() > chat::kParsedHere;
    bool may_overtake = false;
    if (kept->message.is_text() && !is_long) {
      std::optional<chat::ClientFrame> frame = chat::read_client_frame(kept->message.text());
      may_overtake = frame && chat::is_urgent(*frame) && place.is_first_of_client();
      kept->frame = std::move(frame);
    }
    if (!may_overtake) {
      auto reaching = begun().order.reach(place);
      co_await std::move(reaching);
    }
    if (is_long) {
      auto reading = begun().read_long(kept);
      co_await std::move(reading);
    }
    std::optional<chat::ClientFrame> frame = std::exchange(kept->frame, {});
    if (frame) {
      is_frame = true;
      auto handling = begun().handle(sender, std::move(*frame), std::move(kept->sent));
      co_await std::move(handling);
    }
  }
  if (is_frame) co_return;
  auto other = on_other_message(client, std::move(kept->message));
  co_await std::move(other);
}

Task<void> ChatAgent::on_close(Connection client, unsigned code, std::string reason, bool clean) {
  begun().streams.leave(client);
  return on_other_close(client, code, std::move(reason), clean);
}

Task<Response> ChatAgent::on_request(const Request& request) {
  if (request.method() == "POST" && request.path().ends_with("/chat")) {
    on_posting(request);
    auto serving = begun().serve(request);
    co_return co_await std::move(serving);
  }
  if (request.method() != "GET" || !request.path().ends_with("/get-messages")) {
    auto other = on_other_request(request);
    co_return co_await std::move(other);
  }
  Response head;
  head.add_header("Content-Type", "application/json");
  ResponseStream out = request.stream(head);
  for (chat::TranscriptPage page; !page.is_last;) {
    page = begun().transcript.page(page.cursor, kPage);
    auto writing = out.write(page.text);
    const bool is_read = co_await writing;
    if (!is_read) break;
  }
  co_return out.end();
}

Task<void> ChatAgent::on_evict(EvictReason reason) {
  begun().is_leaving = true;
  while (begun().running != nullptr && !begun().running->record().plan.is_handed_over) {
    auto waiting = begun().changed.wait();
    co_await std::move(waiting);
  }
  auto other = on_other_evict(reason);
  co_await std::move(other);
}

Task<void> ChatAgent::run_chat_turn(Json input, FiberContext& fiber) {
  auto running = begun().run(input.at("turn").get<std::string>(), fiber);
  co_await std::move(running);
}

// NOLINTBEGIN(performance-unnecessary-value-param): methods take values

std::string ChatAgent::start_for_agent(std::string text, std::string key,
                                       std::optional<std::string> asked_by) {
  require_agent();
  const std::string chain = "\n" + asked_by.value_or("");
  if (chain.find("\n" + chat::asking_chat(class_name(), name())) != std::string::npos ||
      asks_caller(key))
    throw Error(HEARTH_E_INVALID, "this chat waits for the answer of the one that asks it");
  return begun().start({.id = {},
                        .kind = chat::TurnKind::kProgram,
                        .key = std::move(key),
                        .asked_by = chain.substr(1)},
                       chat::user_text(text));
}

Task<Json> ChatAgent::follow_for_agent(Stream& out, std::string turn, std::uint64_t seq) {
  require_agent();
  auto reading = begun().read_turn(turn, seq, [&out](const chat::LoggedChunk& chunk) {
    out.send(Json{{"seq", chunk.seq}, {"chunk", chat::parts::read(chunk.text)}});
    return out.drained();
  });
  co_await std::move(reading);
  const std::optional<chat::TurnRecord> record = begun().turns.find(turn);
  if (!record) throw Error(HEARTH_E_NOT_FOUND, "there is no such turn");
  // The log is gone once the next turn has begun; the message stays, unless it was removed.
  std::string text;
  const std::optional<Json> message = begun().transcript.find(record->message_id);
  for (const Json& part : message ? chat::parts::of(*message) : Json::array())
    if (chat::is_text(part)) text += chat::part_text(part);
  co_return Json{{"outcome", chat::state_text(record->state)},
                 {"error", record->error},
                 {"text", text},
                 {"is_cut", record->work > 0 && !message}};
}

bool ChatAgent::cancel_for_agent(std::string turn) {
  require_agent();
  return begun().cancel(turn);
}

// NOLINTEND(performance-unnecessary-value-param)

// Whether the caller's turn with this key would wait behind one that waits for the caller.
bool ChatAgent::asks_caller(std::string_view key) const {
  const chat::RunningTurn* const turn = begun().running;
  const std::optional<AgentCaller> caller = caller_agent();
  if (turn == nullptr || !caller) return false;
  if (!turn->asks->contains(chat::asked_chat(caller->class_name, caller->name))) return false;
  const std::optional<chat::TurnRecord> known = begun().turns.find_key(key);
  return !known || known->state == chat::TurnState::kQueued;
}

// Clients have frames, which the chat's own rules for clients are about.
void ChatAgent::require_agent() const {
  if (!caller_agent()) throw Error(HEARTH_E_FORBIDDEN, "only agents call this method");
}

Task<void> ChatAgent::on_fiber_complete(const FiberRecord& fiber) {
  if (fiber.name != "chat.turn") {
    auto other = on_other_fiber_complete(fiber);
    co_await std::move(other);
    co_return;
  }
  const std::string id(chat::parts::text(fiber.input, "turn"));
  if (const auto turn = begun().turns.find(id); turn && !turn->ended) {
    if (turn->state == chat::TurnState::kQueued) {
      begun().cancel(id);
    } else {
      const bool is_cancelled = fiber.status == FiberStatus::kAborted || turn->is_stopping;
      auto giving_up = begun().give_up(*turn, fiber.id, is_cancelled, fiber.error.value_or(""));
      co_await std::move(giving_up);
    }
  }
  begun().start_head();
  if (const auto turn = begun().turns.find(id);
      turn && turn->ended && turn->state != chat::TurnState::kSkipped) {
    auto telling = on_turn_end(end_of(*turn, begun().transcript));
    co_await std::move(telling);
    begun().turns.told(id);
  }
  begun().bound_records();
}

}  // namespace hearth
