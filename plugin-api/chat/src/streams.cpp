#include <hearth/agent_base.hpp>
#include <hearth/chat/streams.hpp>
#include <hearth/chat/wire.hpp>

#include <algorithm>
#include <utility>

namespace hearth::chat {

namespace {

constexpr const char* kMember = "chat";  // of an attachment
constexpr std::size_t kSnapshotPage = std::size_t{1} << 20;

bool is_continuation(const TurnRecord& turn) {
  return turn.kind == TurnKind::kContinuation;
}

}  // namespace

EndedTurn ended_turn(const TurnRecord& turn) {
  return {.id = turn.id,
          .is_continuation = is_continuation(turn),
          .outcome = std::string(state_text(turn.state)),
          .error = turn.state == TurnState::kError ? turn.error : std::string(),
          .message_ids = turn.origin_ids};
}

// ---- the state of the sockets -------------------------------------------------------------------

ChatView Streams::view() const {
  ChatView view;
  for (const TurnInLine& turn : turns_.line()) {
    if (turn.kind != TurnKind::kContinuation && !turn.is_running) {
      view.waiting = turn.id;
      continue;
    }
    const std::optional<TurnRecord> record = turns_.find(turn.id);
    if (!record) continue;
    OpenTurn open{turn.id, is_continuation(*record), {}};
    if (open.is_continuation && agent_.connection(record->owner)) open.owner = record->owner;
    if (turn.is_running && record->incident.is_shown) view.recovering = turn.id;
    if (turn.is_running && log_.tally(turn.id).chunks > 0)
      view.streaming = std::move(open);
    else if (open.is_continuation)
      view.continuation = std::move(open);
    else
      view.waiting = turn.id;
  }
  if (const std::optional<TurnRecord> failed = turns_.failed()) view.failed = ended_turn(*failed);
  return view;
}

Socket Streams::socket_of(const Connection& client) const {
  const auto found = not_live_.find(client.number());
  return found == not_live_.end() ? Socket{} : found->second;
}

void Streams::keep(const Connection& client, const Socket& socket) {
  if (socket == socket_of(client)) return;
  if (socket.state == SocketState::kLive)
    not_live_.erase(client.number());
  else
    not_live_[client.number()] = socket;
  Json kept = client.attachment();
  if (!kept.is_object()) kept = Json::object();
  Json value = write_socket(socket);
  if (value.is_null())
    kept.erase(kMember);
  else
    kept[kMember] = std::move(value);
  client.set_attachment(kept);
}

void Streams::apply(const Connection& client, const SocketStep& step) {
  for (const std::string& frame : step.frames) {
    if (!client.send(frame)) return leave(client);
  }
  keep(client, step.socket);
  if (step.needs_messages) show_messages_to(client);
}

std::vector<Connection> Streams::not_live() const {
  std::vector<Connection> clients;
  clients.reserve(not_live_.size());
  for (const auto& [number, socket] : not_live_)
    clients.push_back(agent_.connection_numbered(number));
  return clients;
}

void Streams::step_all(const std::function<SocketStep(const Socket&)>& next) {
  for (const Connection& client : not_live()) apply(client, next(socket_of(client)));
}

void Streams::start() {
  for (const Connection& client : agent_.connections()) {
    const Json kept = client.attachment();
    const auto member = kept.find(kMember);
    if (member == kept.end()) continue;
    const Socket socket = read_socket(*member);
    if (socket.state == SocketState::kLive) continue;
    not_live_[client.number()] = socket;
    if (socket.state == SocketState::kBehind) read_behind(client);
  }
}

void Streams::connect(Connection client) {
  SocketStep step = connect_socket(view());
  if (std::exchange(step.needs_messages, false)) send_large(client, snapshot(true));
  apply(client, step);
}

void Streams::leave(const Connection& client) {
  not_live_.erase(client.number());
  shown_.erase(client.number());
}

void Streams::resume(Connection client, std::string_view probe_id) {
  apply(client, resume_socket(socket_of(client), view(), client.id(), probe_id));
}

void Streams::acknowledge(Connection client, std::string_view id) {
  std::optional<EndedTurn> ended;
  const std::optional<TurnRecord> turn = turns_.find(id);
  if (turn && !turn->ended && log_.tally(id).chunks == 0) return;  // its chunks will come
  if (turn && turn->ended) ended = ended_turn(*turn);
  apply(client, acknowledge_stream(socket_of(client), view(), id, log_.tally(id).chunks, ended));
  if (socket_of(client).state == SocketState::kBehind) read_behind(client);
}

// ---- sockets that are behind --------------------------------------------------------------------

void Streams::read_behind(const Connection& client) {
  const std::uint64_t number = client.number();
  if (!reading_.insert(number).second) return;
  agent_.after_turn([this, number] { return read_to_the_end(number); });
}

Task<void> Streams::read_to_the_end(std::uint64_t number) {
  const Connection client = agent_.connection_numbered(number);
  bool is_behind = true;
  while (is_behind) {
    const bool is_open = co_await client.drained();
    is_behind = is_open && read_page(client);
  }
  reading_.erase(number);
}

// After each `unread_bytes` of frames: a live socket that has not drained since the last time gets
// no more of them. It is behind, and reads the log.
void Streams::find_slow(std::string_view turn) {
  if (sent_ < limits_.unread_bytes) return;
  sent_ = 0;
  for (const Connection& client : agent_.connections()) {
    if (socket_of(client).state != SocketState::kLive) continue;
    if (reading_.contains(client.number()))
      keep(client, {SocketState::kBehind, std::string(turn), log_.tally(turn).cursor, 0});
    else
      read_behind(client);
  }
}

// False: it is not behind any more.
bool Streams::read_page(const Connection& client) {
  const Socket socket = socket_of(client);
  if (socket.state != SocketState::kBehind) return false;
  const std::optional<TurnRecord> turn = turns_.find(socket.turn);
  std::optional<EndedTurn> ended;
  if (turn && turn->ended) ended = ended_turn(*turn);
  apply(client, read_stream(socket, view(), log_.page(socket.turn, socket.cursor),
                            turn && is_continuation(*turn), ended));
  return socket_of(client).state == SocketState::kBehind;
}

// ---- the turn that runs -------------------------------------------------------------------------

void Streams::write(const TurnRecord& turn, std::span<const std::string> chunks,
                    std::optional<ChunkSource> source) {
  if (chunks.empty()) return;
  find_slow(turn.id);
  std::uint64_t seq = log_.append(turn.id, chunks, source);
  if (seq == 0) step_all([&](const Socket& socket) { return begin_stream(socket, turn.id); });
  const std::vector<Connection> except = not_live();
  for (const std::string& chunk : chunks) {
    const std::string frame = response_frame(
        {.id = turn.id, .body = chunk, .is_continuation = is_continuation(turn), .seq = seq++});
    agent_.broadcast(frame, std::span(except));
    sent_ += frame.size();
  }
  changed_.notify();
}

void Streams::end(const EndedTurn& turn, const std::optional<Connection>& sender) {
  const ChatView now = view();
  const std::uint64_t end_of_log = log_.tally(turn.id).cursor;
  std::vector<Connection> behind;
  bool is_for_sender = false;
  for (const Connection& client : not_live()) {
    const Socket socket = socket_of(client);
    SocketStep step = end_stream(socket, now, turn.id, socket.cursor < end_of_log);
    // The snapshot below is for it.
    if (std::exchange(step.needs_messages, false) && sender && client == *sender)
      is_for_sender = true;
    apply(client, step);
    if (step.socket.state == SocketState::kBehind && step.socket.turn == turn.id)
      behind.push_back(client);
  }
  std::vector<Connection> except = behind;
  if (sender && !is_for_sender) except.push_back(*sender);
  show_messages(except);
  const bool is_failed = !turn.error.empty();
  agent_.broadcast(response_frame({.id = turn.id,
                                   .body = turn.error,
                                   .is_done = true,
                                   .is_error = is_failed,
                                   .is_continuation = turn.is_continuation,
                                   .message_ids = turn.message_ids,
                                   .outcome = turn.outcome}),
                   std::span(behind));
}

// ---- for all clients ----------------------------------------------------------------------------

// The host takes no larger frame. Clients get the messages by get-messages.
bool Streams::fits(const std::string& frame) const {
  if (frame.size() <= limits_.frame_bytes) return true;
  agent_.log.info("chat: the messages are too large for a frame");
  return false;
}

bool Streams::send_large(const Connection& client, const std::string& frame) const {
  if (!fits(frame)) return false;
  client.send(frame);
  return true;
}

// No more is read than a frame takes.
std::string Streams::snapshot(bool is_connect) const {
  std::string all;
  for (TranscriptPage page; !page.is_last && all.size() <= limits_.frame_bytes;) {
    page = transcript_.page(page.cursor, kSnapshotPage);
    all += page.text;
  }
  return messages_frame(all, is_connect);
}

void Streams::show_messages(std::span<const Connection> except) {
  std::vector<Connection> clients = agent_.connections();
  std::erase_if(clients, [&](const Connection& client) {
    return std::ranges::find(except, client) != except.end();
  });
  if (clients.empty()) return;
  const std::string frame = snapshot();
  if (!fits(frame)) return;
  agent_.broadcast(frame, except);
  for (const Connection& client : clients) shown_[client.number()] = agent_.now();
  sent_ += frame.size();
}

void Streams::show_messages_to(const Connection& client) {
  if (send_large(client, snapshot())) shown_[client.number()] = agent_.now();
}

void Streams::show_list_of(const Connection& sender) {
  const auto shown = shown_.find(sender.number());
  const bool may_cross = shown != shown_.end() && agent_.now() - shown->second < kCrossing;
  show_messages(may_cross ? std::span<const Connection>() : std::span(&sender, 1));
}

void Streams::show_update(const Json& message) {
  const std::string frame = message_updated_frame(to_text(message));
  if (!fits(frame)) return;
  // One that is behind has chunks to read that came before.
  std::vector<Connection> behind;
  for (const Connection& client : not_live()) {
    Socket socket = socket_of(client);
    if (socket.state != SocketState::kBehind) continue;
    socket.has_missed = true;
    keep(client, socket);
    behind.push_back(client);
  }
  agent_.broadcast(frame, std::span(behind));
  sent_ += frame.size();
}

void Streams::show_recovering(bool is_recovering, std::string_view turn) {
  agent_.broadcast(recovering_frame(is_recovering, turn));
}

void Streams::show_clear(const std::optional<Connection>& except) {
  agent_.broadcast(clear_frame(), except ? std::span(&*except, 1) : std::span<const Connection>());
}

void Streams::show_skipped(const TurnInLine& turn) {
  const ChatView now = view();
  step_all([&](const Socket& socket) { return end_stream(socket, now, turn.id, false); });
  agent_.broadcast(response_frame({.id = turn.id,
                                   .is_done = true,
                                   .is_continuation = turn.kind == TurnKind::kContinuation,
                                   .message_ids = turn.origin_ids,
                                   .outcome = "skipped"}));
}

}  // namespace hearth::chat
