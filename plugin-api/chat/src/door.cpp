// POST .../chat: a turn for a caller without a WebSocket, as server-sent events.
#include "chat.hpp"
#include "parts.hpp"

#include <charconv>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace hearth::chat {

namespace {

Response refuse_request(const std::string& text, unsigned status = 400) {
  return Response::json({{"error", {{"message", text}}}}, status);
}

// Each of them is stored in the same step.
constexpr std::size_t kMostAsked = 100;

// {"text": "hi"}, or {"messages": [...]} with messages of users. Empty: `fault` says why.
std::vector<Json> asked_messages(const Json& body, std::string& fault) {
  std::vector<Json> messages;
  if (const std::string& text = parts::text(body, "text"); !text.empty()) {
    messages = user_text(text);
  } else if (const Json* const list = parts::find(body, "messages");
             list != nullptr && list->is_array()) {
    if (list->size() > kMostAsked) fault = "There are more than 100 messages.";
    for (const Json& message : *list) {
      if (!fault.empty()) break;
      if (parts::text(message, "role") == "user")
        messages.push_back(message);
      else
        fault = "The messages have the role user.";
    }
  }
  if (messages.empty() && fault.empty())
    fault = "The body has a text, or messages: {\"text\": \"hi\"}.";
  return messages;
}

class Reads {
 public:
  Reads(std::multiset<std::string>& all, const std::string& turn)
      : all_(all), at_(all.insert(turn)) {}
  ~Reads() { all_.erase(at_); }
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;

 private:
  std::multiset<std::string>& all_;
  std::multiset<std::string>::iterator at_;
};

// The first chunk that the client has not.
std::uint64_t first_seq(const Request& request) {
  const std::string last = request.header("Last-Event-ID").value_or("");
  std::uint64_t seq = 0;
  const auto end = last.data() + last.size();
  const bool is_number = !last.empty() && std::from_chars(last.data(), end, seq).ptr == end;
  return is_number ? seq + 1 : 0;
}

}  // namespace

Task<Response> Chat::serve(const Request& request) {
  const auto given = std::make_shared<std::pair<std::string, Json>>(request.body(), Json());
  const auto read = [given] { given->second = parts::read(given->first); };
  if (given->first.size() > kParsedHere) {
    auto reading = agent.offload(read);
    co_await reading;
  } else {
    read();
  }
  const Json& body = given->second;
  std::string fault;
  const std::vector<Json> messages = asked_messages(body, fault);
  if (!fault.empty()) co_return refuse_request(fault);
  TurnRequest turn{.id = {}, .kind = TurnKind::kProgram};
  turn.key = request.header("Idempotency-Key").value_or("");
  if (const Json* const more = parts::find(body, "body")) turn.body = *more;
  std::string id;
  try {
    id = start(std::move(turn), messages, Origin::kClient);
  } catch (const HostError&) {
    throw;
  } catch (const Error& error) {
    fault = error.what();
  }
  if (!fault.empty())
    co_return refuse_request(fault, fault == kTooManyTurns || fault == kNoFiber ? 429 : 400);
  co_return co_await stream_turn(request, id);
}

Task<Response> Chat::stream_turn(const Request& request, std::string id) {
  EventStream events(request);
  auto reading = read_turn(id, first_seq(request), [&](const LoggedChunk& chunk) {
    return events.send({.data = chunk.text, .id = std::to_string(chunk.seq)});
  });
  const bool is_open = co_await std::move(reading);
  if (!is_open) co_return events.end();
  const std::optional<TurnRecord> turn = turns.find(id);
  Json last{{"turn", id}, {"outcome", turn ? state_text(turn->state) : "aborted"}};
  if (turn && !turn->error.empty()) last["error"] = turn->error;
  if (turn && !turn->message_id.empty()) last["message"] = turn->message_id;
  // The client has come after the next turn has begun, or a clear.
  if (turn && turn->work > 0 && log.tally(id).chunks == 0) last["is_cut"] = true;
  auto sending = events.send({.data = to_text(last), .event = "done"});
  co_await sending;
  co_return events.end();
}

// False: the reader has gone. True: the turn has ended, or there is none.
Task<bool> Chat::read_turn(std::string id, std::uint64_t wanted,
                           std::function<Drained(const LoggedChunk&)> take) {
  const Reads reads(read_turns, id);
  std::uint64_t cursor = 0;
  for (;;) {
    const std::optional<TurnRecord> turn = turns.find(id);
    const LogPage page = log.page(id, cursor);
    cursor = page.cursor;
    for (const LoggedChunk& chunk : page.chunks) {
      if (chunk.seq < wanted) continue;
      wanted = chunk.seq + 1;
      auto taking = take(chunk);
      const bool is_open = co_await taking;
      if (!is_open) co_return false;
    }
    if (!page.chunks.empty()) continue;
    if (!turn || turn->ended) co_return true;
    auto waiting = changed.wait();
    co_await std::move(waiting);
  }
}

}  // namespace hearth::chat
