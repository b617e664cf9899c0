#pragma once
// What clients see of the turns: chunks as they are logged, snapshots of the transcript, and how
// turns end. It keeps the state of each socket (sockets.hpp) and sends what it has to get.
//
// Promises  A chunk is committed with the log before any client gets it. A live socket gets each
//           chunk once and in order; one that comes back gets what it has missed.
// Bounded   A client that does not read is sent some two mebibytes of chunks (Limits::unread_bytes,
//           twice), and the rest from the log when it reads again, also the end of the turn and the
//           transcript; if the log is gone by then, only these two.
// Stored    A socket that is not live, in the member `chat` of its attachment. So an attachment of
//           the author is an object.
// Threads, lifetime  A member of the agent.
// Failure   SqlError

#include <hearth/chat/chunk_log.hpp>
#include <hearth/chat/sockets.hpp>
#include <hearth/chat/transcript.hpp>
#include <hearth/chat/turns.hpp>
#include <hearth/connection.hpp>
#include <hearth/json.hpp>
#include <hearth/signal.hpp>
#include <hearth/task.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::chat {

[[nodiscard]] EndedTurn ended_turn(const TurnRecord& turn);

class Streams {
 public:
  struct Limits {
    std::size_t frame_bytes = std::size_t{16} << 20;  // larger ones are not sent: the host's limit
    std::size_t unread_bytes = std::size_t{1} << 20;  // of a live socket, before it is looked at
  };

  Streams(Agent& agent, const Transcript& transcript, const Turns& turns, ChunkLog& log,
          Limits limits)
      : agent_(agent),
        transcript_(transcript),
        turns_(turns),
        log_(log),
        limits_(limits),
        changed_(agent) {}
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // ---- clients

  // A new instance: the sockets that were not live go on where the last one has left them.
  void start();
  void connect(Connection client);
  void leave(const Connection& client);
  // cf_agent_stream_resume_request and cf_agent_stream_resume_ack
  void resume(Connection client, std::string_view probe_id);
  void acknowledge(Connection client, std::string_view id);

  // ---- the turn that runs

  // Adds chunks, as to_text() has them, to the log, and sends them.
  void write(const TurnRecord& turn, std::span<const std::string> chunks,
             std::optional<ChunkSource> source);
  // The turn's row has ended, or is gone. All clients but `sender` get the transcript, then all of
  // them the turn's last frame. One that is behind gets both once it has read the log.
  void end(const EndedTurn& turn, const std::optional<Connection>& sender);

  // ---- for all clients but some

  void show_messages(std::span<const Connection> except = {});
  void show_messages_to(const Connection& client);
  // What the sender's list has changed. The sender gets the messages too if a snapshot was sent to
  // it within kCrossing: it replaces its messages by each, and one that crossed the list on its way
  // has nothing that is new in it.
  static constexpr std::chrono::seconds kCrossing{5};
  void show_list_of(const Connection& sender);
  void show_update(const Json& message);
  void show_recovering(bool is_recovering, std::string_view turn);
  void show_clear(const std::optional<Connection>& except);
  // The frame that ends a turn which has never run.
  void show_skipped(const TurnInLine& turn);

  // Notified when a turn has more chunks, or by others when one has ended.
  [[nodiscard]] Signal& changed() noexcept { return changed_; }
  // The turns at this moment.
  [[nodiscard]] ChatView view() const;

 private:
  [[nodiscard]] Socket socket_of(const Connection& client) const;
  void apply(const Connection& client, const SocketStep& step);
  void keep(const Connection& client, const Socket& socket);
  void step_all(const std::function<SocketStep(const Socket&)>& next);
  void read_behind(const Connection& client);
  Task<void> read_to_the_end(std::uint64_t number);
  [[nodiscard]] bool read_page(const Connection& client);
  void find_slow(std::string_view turn);
  [[nodiscard]] std::vector<Connection> not_live() const;
  [[nodiscard]] bool fits(const std::string& frame) const;
  bool send_large(const Connection& client, const std::string& frame) const;
  [[nodiscard]] std::string snapshot(bool is_connect = false) const;

  Agent& agent_;
  const Transcript& transcript_;
  const Turns& turns_;
  ChunkLog& log_;
  const Limits limits_;
  Signal changed_;
  std::size_t sent_ = 0;  // bytes of frames to live sockets since find_slow() has looked
  std::map<std::uint64_t, Socket> not_live_;  // by Connection::number()
  std::map<std::uint64_t, Time> shown_;       // the last snapshot of each client, by number()
  std::set<std::uint64_t> reading_;  // those whose frames drain, before they are sent the log
};

}  // namespace hearth::chat
