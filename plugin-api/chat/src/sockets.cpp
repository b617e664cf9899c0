#include "parts.hpp"

#include <hearth/chat/sockets.hpp>
#include <hearth/chat/wire.hpp>
#include <hearth/words.hpp>

#include <array>
#include <limits>
#include <utility>

namespace hearth::chat {

namespace {

constexpr std::array<std::pair<SocketState, std::string_view>, 4> kSocketTexts = {{
    {SocketState::kLive, "live"},
    {SocketState::kParked, "parked"},
    {SocketState::kOffered, "offered"},
    {SocketState::kBehind, "behind"},
}};

SocketStep offered(std::string_view turn, std::string_view probe_id = {}) {
  return {
      {resuming_frame(turn, probe_id)}, {SocketState::kOffered, std::string(turn), 0, 0}, false};
}

SocketStep parked(std::string_view turn, std::string_view probe_id = {}) {
  return {{pending_frame(turn, probe_id)}, {SocketState::kParked, {}, 0, 0}, false};
}

constexpr auto kAll = std::uint64_t{std::numeric_limits<std::int64_t>::max()};  // only replays

// The last frame of a turn for one socket.
std::string end_frame(const EndedTurn& turn, bool is_replay) {
  const bool is_failed = !turn.error.empty();
  return response_frame({.id = turn.id,
                         .body = turn.error,
                         .is_done = true,
                         .is_error = is_failed,
                         .is_continuation = turn.is_continuation,
                         .is_replay = is_replay && !is_failed,
                         .message_ids = turn.message_ids,
                         .outcome = turn.outcome});
}

std::string replay_complete_frame(std::string_view turn, bool is_continuation) {
  return response_frame({.id = turn,
                         .is_continuation = is_continuation,
                         .is_replay = true,
                         .is_replay_complete = true});
}

bool is_of_another(const OpenTurn& turn, std::string_view connection) {
  return turn.is_continuation && !turn.owner.empty() && turn.owner != connection;
}

}  // namespace

Json write_socket(const Socket& socket) {
  if (socket.state == SocketState::kLive) return nullptr;
  return {{"state", word_of(kSocketTexts, socket.state)},
          {"turn", socket.turn},
          {"cursor", socket.cursor},
          {"replay_until", socket.replay_until},
          {"has_missed", socket.has_missed}};
}

Socket read_socket(const Json& value) {
  const auto number = [&](std::string_view key) {
    const Json* const field = parts::find(value, key);
    return field != nullptr && field->is_number_unsigned() ? field->get<std::uint64_t>() : 0;
  };
  Socket socket;
  socket.state = find_word<SocketState>(kSocketTexts, parts::text(value, "state"));
  if (socket.state == SocketState::kLive) return socket;
  socket.turn = parts::text(value, "turn");
  socket.cursor = number("cursor");
  socket.replay_until = number("replay_until");
  socket.has_missed = parts::is_true(value, "has_missed");
  return socket;
}

SocketStep connect_socket(const ChatView& view) {
  SocketStep step;
  if (view.streaming)
    step = offered(view.streaming->id);
  else if (!view.waiting.empty())
    step = parked(view.waiting);
  else
    step.needs_messages = true;  // a turn may have ended while it was away
  if (!view.recovering.empty()) step.frames.push_back(recovering_frame(true, view.recovering));
  return step;
}

SocketStep resume_socket(const Socket& socket, const ChatView& view, std::string_view connection,
                         std::string_view probe_id) {
  if (view.streaming) {
    if (is_of_another(*view.streaming, connection))
      return {{resume_none_frame("continuation-owned", probe_id)}, socket, false};
    return offered(view.streaming->id, probe_id);
  }
  if (view.continuation && !is_of_another(*view.continuation, connection))
    return parked(view.continuation->id, probe_id);
  if (view.failed) return {{resuming_frame(view.failed->id, probe_id)}, {}, false};
  if (!view.waiting.empty()) return parked(view.waiting, probe_id);
  return {{resume_none_frame("idle", probe_id)}, {}, false};
}

SocketStep acknowledge_stream(const Socket& socket, const ChatView& view, std::string_view id,
                              std::uint64_t chunks, const std::optional<EndedTurn>& ended) {
  if (view.streaming) {
    if (view.streaming->id != id) return {{}, socket, false};
    return {{}, {SocketState::kBehind, std::string(id), 0, chunks}, false};
  }
  if (view.failed && view.failed->id == id) {
    return {{}, {SocketState::kBehind, std::string(id), 0, kAll}, false};
  }
  EndedTurn turn{.id = std::string(id), .outcome = {}, .message_ids = {}};
  if (ended) turn = *ended;
  turn.error.clear();  // a later turn has taken its place
  return {{end_frame(turn, true)}, socket, false};
}

SocketStep begin_stream(const Socket& socket, std::string_view id) {
  if (socket.state != SocketState::kParked) return {{}, socket, false};
  return offered(id);
}

SocketStep read_stream(const Socket& socket, const ChatView& view, const LogPage& page,
                       bool is_continuation, const std::optional<EndedTurn>& ended) {
  SocketStep step{{}, socket, false};
  if (page.chunks.empty()) {
    step.needs_messages = socket.has_missed;
    step.socket = {};
    if (ended)
      step.frames.push_back(end_frame(*ended, socket.replay_until == kAll));
    else if (socket.replay_until > 0)
      step.frames.push_back(replay_complete_frame(socket.turn, is_continuation));
    if (view.streaming && view.streaming->id != socket.turn) {
      SocketStep next = offered(view.streaming->id);
      step.frames.push_back(std::move(next.frames[0]));
      step.socket = std::move(next.socket);
    }
    return step;
  }
  for (const LoggedChunk& chunk : page.chunks) {
    const bool is_replay = chunk.seq < step.socket.replay_until;
    if (!is_replay && step.socket.replay_until > 0) {
      step.frames.push_back(replay_complete_frame(socket.turn, is_continuation));
      step.socket.replay_until = 0;
    }
    step.frames.push_back(response_frame({.id = socket.turn,
                                          .body = chunk.text,
                                          .is_continuation = is_continuation,
                                          .is_replay = is_replay,
                                          .seq = chunk.seq}));
  }
  step.socket.cursor = page.cursor;
  return step;
}

SocketStep end_stream(const Socket& socket, const ChatView& view, std::string_view id,
                      bool has_more) {
  if (socket.state == SocketState::kParked && view.is_idle())
    return {{resume_none_frame()}, {}, false};
  if (socket.state == SocketState::kBehind && (has_more || socket.turn != id)) {
    Socket reads_on = socket;
    reads_on.has_missed = true;
    return {{}, std::move(reads_on), false};
  }
  if (socket.turn != id) return {{}, socket, false};
  return {{}, {}, true};
}

}  // namespace hearth::chat
