// A chat room: broadcast, tags, attachments, a table of its own, and a state with the people in it.
//
//   connect    /agents/chat-room/NAME?nick=ann    (without nick: guest-1, guest-2, ...)
//              refused with 4400 for a bad nick, 4409 for one that is taken
//   client ->  {"type":"say","text":"hi"}                     to every client
//              {"type":"whisper","to":"bob","text":"psst"}    to one client; not stored
//   -> client  {"type":"message","id":7,"nick":"ann","text":"hi","at":1767312000000}
//              {"type":"whisper","nick":"ann","text":"psst"}
//              {"type":"joined","nick":"ann"}   {"type":"left","nick":"ann"}
//              {"type":"error","message":"..."}               only to the client that caused it
//   state      {"people":["ann","bob"]}; clients cannot change it
//   methods    history(before_id?, limit = 50) -> [{"id","nick","text","at"}, ...], oldest first
//   options    history_limit: messages kept (1000); max_message_length: in bytes (2000)

#include <hearth/agent.hpp>

#include <optional>
#include <string>

using hearth::Connection;
using hearth::Json;

class ChatRoom : public hearth::Agent {
 public:
  struct Options {
    std::int64_t history_limit = 1000;
    std::size_t max_message_length = 2000;
    HEARTH_FIELDS(history_limit, max_message_length)
  };

  // The constructor may use the database: the agent's storage is open before it runs.
  explicit ChatRoom(Options options) : options_(options) {
    sql("CREATE TABLE IF NOT EXISTS messages "
        "(id INTEGER PRIMARY KEY, nick TEXT, text TEXT, at INTEGER)");
  }

  static void methods(hearth::Methods<ChatRoom>& m) {
    m.add("history", &ChatRoom::history, hearth::kIdempotent);
  }

  Json initial_state() override { return {{"people", Json::array()}}; }

  // Sockets outlive the agent in memory, but not the server: check which clients are connected now.
  hearth::Task<void> on_start() override { return show_people(); }

  // Tags can only be given now. The attachment stays with the socket, also through an eviction.
  void on_connecting(hearth::Connecting& client) override {
    const auto nick = client.query("nick").value_or("guest-" + std::to_string(client.number()));
    if (nick.empty() || nick.size() > 32) return client.refuse(4400, "a nick has 1 to 32 bytes");
    if (!connections("nick:" + nick).empty()) return client.refuse(4409, "that nick is taken");
    client.add_tag("nick:" + nick);
    client.set_attachment(nick);
  }

  hearth::Task<void> on_connect(Connection client) override {
    broadcast(Json({{"type", "joined"}, {"nick", client.attachment()}}), {client});
    return show_people();
  }

  hearth::Task<void> on_close(Connection client, unsigned, std::string, bool) override {
    broadcast(Json({{"type", "left"}, {"nick", client.attachment()}}));
    return show_people();
  }

  // An error in a frame is sent only to its sender.
  hearth::Task<void> on_message(Connection client, hearth::Message message) override {
    try {
      obey(client.attachment(), hearth::read_json<Frame>(message.json(), "frame"));
    } catch (const hearth::Error& error) {
      client.send(Json({{"type", "error"}, {"message", error.what()}}));
    }
    return {};
  }

  // Rejects a new state of a client (`source`), and accepts one of this agent itself.
  void validate_state(const Json&, std::optional<Connection> source) override {
    if (source) throw hearth::Error(HEARTH_E_FORBIDDEN, "only the room changes its state");
  }

  // One page, oldest message first. To read further back, pass its first id as before_id.
  Json history(std::optional<std::int64_t> before_id, std::optional<int> limit) {
    return sql("SELECT * FROM (SELECT id, nick, text, at FROM messages WHERE id < ifnull(?, 1e18) "
               "ORDER BY id DESC LIMIT max(1, min(ifnull(?, 50), 200))) ORDER BY id",
               before_id, limit)
        .json();
  }

 private:
  struct Frame {
    std::string type, to, text;
    HEARTH_FIELDS(type, to, text)
  };

  void obey(const Json& nick, const Frame& frame) {
    if (frame.text.empty() || frame.text.size() > options_.max_message_length) {
      throw hearth::Error(HEARTH_E_LIMIT, "the text is empty or too long");
    } else if (frame.type == "say") {
      const auto at = now().time_since_epoch().count();
      const auto id = sql("INSERT INTO messages(nick, text, at) VALUES (?, ?, ?)",
                          nick.get<std::string>(), frame.text, at)
                          .last_insert_rowid();
      sql("DELETE FROM messages WHERE id <= ?", id - options_.history_limit);
      // Leaves when the row is on disk: no client reads a message that a crash could still undo.
      broadcast(Json(
          {{"type", "message"}, {"id", id}, {"nick", nick}, {"text", frame.text}, {"at", at}}));
    } else if (frame.type == "whisper" && !connections("nick:" + frame.to).empty()) {
      broadcast_to("nick:" + frame.to,
                   Json({{"type", "whisper"}, {"nick", nick}, {"text", frame.text}}));
    } else {
      throw hearth::Error(HEARTH_E_INVALID, "no such type, or no client here has that nick");
    }
  }

  hearth::Task<void> show_people() {
    Json people = Json::array();
    for (const Connection& client : connections()) people.push_back(client.attachment());
    if (people != state()["people"]) set_state({{"people", people}});
    return {};
  }

  Options options_;
};

HEARTH_PLUGIN("chat-room", "1.0.0", ChatRoom)
