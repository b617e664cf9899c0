#pragma once
// The messages of a chat in the agent's database, in their order. Only the messages that are asked
// for are in memory.
//
// Messages  JSON values without a fault (message_fault), sanitised by the caller. They are stored
//           as their to_text(), of at most kMaxMessageBytes, and given back as they are.
// Stored    chat_messages(seq, id, role, hash, sent, split, pending, body): `hash` is that of the
//           text, and `sent` that of the text as a client has last sent it in a long frame. A text
//           over kPieceBytes is in chat_pieces, and `body` is empty. chat_calls has the tool calls
//           of each message, and what reconcile() finds it by. SQL may read them.
// Promises  Written with the running turn, as all SQL. A message keeps its place.
// Threads, lifetime  A member of the agent, whose constructor makes the tables.
// Failure   SqlError

#include <hearth/chat/long_frame.hpp>
#include <hearth/chat/message.hpp>
#include <hearth/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace hearth {
class Agent;
}

namespace hearth::chat {

// What a list of messages from a client may change.
enum class ClientHistory : std::uint8_t {
  kAppend,  // adds user messages with new ids; what is stored stays as it is
  kEdit,    // changes and adds any messages: all clients are trusted
};

struct ListChange {
  std::vector<std::string> written;  // ids of the new and the changed messages, in the list's order
  std::size_t removed = 0;
};

struct TranscriptPage {
  std::string text;          // the texts of all pages in a row are one JSON array
  std::uint64_t cursor = 0;  // where the next page begins
  bool is_last = false;
};

// Of each message, for Transcript::accept(). Pure: for an offload, since it costs some milliseconds
// for each megabyte.
[[nodiscard]] std::vector<std::int64_t> hash_messages(const Json& messages);

class Transcript {
 public:
  explicit Transcript(Agent& agent);
  Transcript(const Transcript&) = delete;
  Transcript& operator=(const Transcript&) = delete;

  [[nodiscard]] std::optional<Json> find(std::string_view id) const;
  // Empty: there is no such message.
  [[nodiscard]] std::string role_of(std::string_view id) const;
  // The newest message with this tool call: providers use an id again.
  [[nodiscard]] std::optional<Json> find_call(std::string_view call) const;
  [[nodiscard]] std::optional<Json> last() const;
  [[nodiscard]] bool has_pending() const;  // an answer with is_pending()
  [[nodiscard]] std::size_t size() const;
  // The last messages, in their order, as many as fit, and at least one. Their model_bytes() are
  // counted, and of their texts kMaxHistoryBytes at most.
  [[nodiscard]] std::vector<Json> newest(std::size_t max_bytes) const;

  // The messages behind the cursor, as many as fit, and at least one. Does not parse them. Messages
  // may change between two pages.
  [[nodiscard]] TranscriptPage page(std::uint64_t after, std::size_t max_bytes) const;

  // Adds it at the end, or replaces the one with its id. False: it is stored as it is. `sent_hash`:
  // of its text as a client has written it.
  // Failure   Error(LIMIT): it has more than kMaxMessageBytes
  bool put(const Json& message, std::optional<std::int64_t> sent_hash = {});

  // Of the messages of a long frame, adds those to `stored` that accept() would leave as they are:
  // with kAppend all that are stored, with kEdit those that were sent with this text before.
  // Some milliseconds for each thousand.
  void find_stored(std::span<const SentMessage> messages, ClientHistory history,
                   std::unordered_set<std::string>& stored) const;

  // What a client has sent: reconcile() with what is stored, then put(). Regenerate removes the
  // answer that is to be made again: with kAppend what is behind the last message of the list, if
  // that is stored; with kEdit what is not in the list, if all of the list is stored.
  //
  // `hashes`: hash_messages(list). `sent`: of a long frame, without the messages it has left out.
  // `spared`: ids that regenerate leaves, and under which kAppend writes nothing: of turns that run
  // or wait.
  ListChange accept(Json list, std::span<const std::int64_t> hashes, ClientHistory history,
                    bool is_regenerate, SentList sent = {},
                    std::span<const std::string> spared = {});

  // Makes one message of these, which are in order: with the id of the last one, all their text in
  // one part with blank lines between, and then the other parts. The others are removed. False: one
  // of them is not stored, or the message would be too large; nothing has changed.
  bool join(std::span<const std::string> ids);

  // False: there is no such message.
  bool remove(std::string_view id);
  void clear();
  // Removes the oldest until `count` are left, but none from the first of `kept` on. Gives how many
  // were removed.
  std::size_t keep_newest(std::size_t count, const std::vector<std::string>& kept);

 private:
  struct Hashes {
    std::int64_t stored = 0;
    std::int64_t sent = 0;
  };
  struct Row {
    std::uint64_t seq = 0;
    Hashes hashes;
  };
  struct Wanted {
    std::string_view id;
    std::optional<std::int64_t> hash;  // nothing: any
  };

  [[nodiscard]] std::string text_of(std::uint64_t seq) const;
  [[nodiscard]] std::optional<Json> message_of(std::optional<std::uint64_t> seq) const;
  [[nodiscard]] std::optional<Row> row_of(std::string_view id) const;
  void write(std::optional<std::uint64_t> seq, const Json& message, const Hashes& hashes,
             const std::string& text);
  void tell_operators();
  [[nodiscard]] static std::vector<Wanted> wanted_of(const Json& list,
                                                     std::span<const std::int64_t> hashes);
  [[nodiscard]] std::unordered_set<std::string> ids_not_stored(
      std::span<const Wanted> messages) const;
  [[nodiscard]] Json with_equal_calls(Json rest, const std::unordered_set<std::string>& kept) const;
  [[nodiscard]] Json candidates(const Json& rest, const std::unordered_set<std::string>& ids) const;
  ListChange append(const Json& list, bool is_regenerate, std::span<const std::string> spared);
  ListChange edit(Json list, std::span<const std::int64_t> hashes, bool is_regenerate,
                  SentList sent, std::span<const std::string> spared);
  // Of those behind this place (0: of all).
  std::size_t remove_others(const std::unordered_set<std::string>& kept, std::uint64_t behind = 0);

  Agent& agent_;
};

}  // namespace hearth::chat
