#pragma once
// What a client's socket gets of the turns that stream, and when: pure functions over values.
//
//               connect, resume_request          ACK            end of the log
//     live --+--> offered ------------------------> behind ----------------> live
//            +--> parked --(a turn streams)--> offered      ^--(it does not drain)-- live
//
// A live socket has all of the log, and gets each chunk after its commit. An offered one gets no
// chunk before its ACK, a parked one waits for a turn that does not stream yet. One that is behind
// reads the log from its cursor.

#include <hearth/chat/chunk_log.hpp>
#include <hearth/fields.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::chat {

enum class SocketState : std::uint8_t { kLive, kParked, kOffered, kBehind };

// Kept in the attachment of the connection if it is not live.
struct Socket {
  SocketState state = SocketState::kLive;
  std::string turn;                // of kOffered and kBehind
  std::uint64_t cursor = 0;        // of kBehind: of ChunkLog::page()
  std::uint64_t replay_until = 0;  // of kBehind: chunks below this seq are replays
  bool has_missed = false;         // of kBehind: the transcript has changed, also by an end

  friend bool operator==(const Socket&, const Socket&) = default;
};

// Null for a live socket, and read_socket() of anything that is not written by this is live.
[[nodiscard]] Json write_socket(const Socket& socket);
[[nodiscard]] Socket read_socket(const Json& value);

struct OpenTurn {
  std::string id;
  bool is_continuation = false;
  std::string owner = {};  // id of the connection that a continuation is for; empty if it has left
};

struct EndedTurn {
  std::string id;
  bool is_continuation = false;
  std::string outcome;                   // as in frames
  std::string error = {};                // a sentence, if it has failed
  std::vector<std::string> message_ids;  // of the user's messages
};

// The turns of a chat at one moment.
struct ChatView {
  std::optional<OpenTurn> streaming = {};     // it runs, and its log has a row
  std::optional<OpenTurn> continuation = {};  // runs without a row, or waits
  std::string waiting = {};                   // the same for the last one of any other kind
  std::optional<EndedTurn> failed = {};       // Turns::failed()
  std::string recovering = {};                // the turn that runs, if it was interrupted

  [[nodiscard]] bool is_idle() const { return !streaming && !continuation && waiting.empty(); }
};

// What a socket gets, in this order, and its new state.
struct SocketStep {
  std::vector<std::string> frames = {};
  Socket socket = {};
  bool needs_messages = false;  // it has missed chunks: it gets cf_agent_chat_messages
};

[[nodiscard]] SocketStep connect_socket(const ChatView& view);

// cf_agent_stream_resume_request of the connection `connection`.
[[nodiscard]] SocketStep resume_socket(const Socket& socket, const ChatView& view,
                                       std::string_view connection, std::string_view probe_id);

// cf_agent_stream_resume_ack. `chunks`: how many the log of the turn has. `ended`: the turn with
// this id, if it has ended.
[[nodiscard]] SocketStep acknowledge_stream(const Socket& socket, const ChatView& view,
                                            std::string_view id, std::uint64_t chunks,
                                            const std::optional<EndedTurn>& ended);

// The first chunk of a turn is written.
[[nodiscard]] SocketStep begin_stream(const Socket& socket, std::string_view id);

// The next page for a socket that is behind. An empty page is the end of the log: the socket is
// live in the same turn of the agent, so that no chunk comes between; or, if another turn streams
// by now, it is offered that one. `ended`: the turn of the socket, if it has ended.
[[nodiscard]] SocketStep read_stream(const Socket& socket, const ChatView& view,
                                     const LogPage& page, bool is_continuation,
                                     const std::optional<EndedTurn>& ended);

// A turn has ended or left the line; `view` is without it. `has_more`: its log has chunks behind
// the socket's cursor. Such a socket stays behind and reads the end in the log, because a client
// that has begun to rebuild an answer from chunks takes no transcript in their place. The turn's
// last frames are for all other sockets.
[[nodiscard]] SocketStep end_stream(const Socket& socket, const ChatView& view, std::string_view id,
                                    bool has_more);

}  // namespace hearth::chat
