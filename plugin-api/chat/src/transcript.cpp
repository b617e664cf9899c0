#include "parts.hpp"

#include <hearth/agent_base.hpp>
#include <hearth/chat/prompt.hpp>
#include <hearth/chat/transcript.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hearth::chat {

namespace {

constexpr std::array kTranscriptTables = {
    "CREATE TABLE IF NOT EXISTS chat_messages(seq INTEGER PRIMARY KEY, id TEXT NOT NULL, "
    "role TEXT NOT NULL, hash INTEGER NOT NULL, sent INTEGER NOT NULL, split INTEGER NOT NULL, "
    "pending INTEGER NOT NULL, body TEXT NOT NULL)",
    // With the hashes, so that a list is compared without reading the table.
    "CREATE INDEX IF NOT EXISTS chat_messages_by_id ON chat_messages(id, hash, sent)",
    "CREATE INDEX IF NOT EXISTS chat_messages_pending ON chat_messages(seq) WHERE pending",
    "CREATE TABLE IF NOT EXISTS chat_pieces(message INTEGER NOT NULL, piece INTEGER NOT NULL, "
    "text TEXT NOT NULL, PRIMARY KEY(message, piece)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS chat_calls(message INTEGER NOT NULL, call TEXT NOT NULL, "
    "key INTEGER NOT NULL, PRIMARY KEY(message, call)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS chat_calls_by_call ON chat_calls(call, message)",
    "CREATE INDEX IF NOT EXISTS chat_calls_by_key ON chat_calls(key, message)",
    "CREATE TRIGGER IF NOT EXISTS chat_messages_gone AFTER DELETE ON chat_messages BEGIN "
    "DELETE FROM chat_pieces WHERE message = OLD.seq; "
    "DELETE FROM chat_calls WHERE message = OLD.seq; END",
};

// One user message of several.
Json joined(const std::vector<Json>& messages) {
  std::string text;
  Json others = Json::array();
  for (const Json& message : messages) {
    for (const Json& part : parts::of(message)) {
      if (parts::text(part, "type") != "text") {
        others.push_back(part);
        continue;
      }
      if (!text.empty()) text += "\n\n";
      text += parts::text(part, "text");
    }
  }
  Json all = Json::array();
  if (!text.empty()) all.push_back({{"type", "text"}, {"text", std::move(text)}});
  for (Json& part : others) all.push_back(std::move(part));
  Json message = messages.back();
  message["parts"] = std::move(all);
  return message;
}

}  // namespace

std::vector<std::int64_t> hash_messages(const Json& messages) {
  std::vector<std::int64_t> hashes;
  hashes.reserve(messages.size());
  for (const Json& message : messages) hashes.push_back(parts::hash(to_text(message)));
  return hashes;
}

Transcript::Transcript(Agent& agent) : agent_(agent) {
  for (const char* const sql : kTranscriptTables) agent_.sql(sql);
}

// ---- reading ------------------------------------------------------------------------------------

std::optional<Json> Transcript::find(std::string_view id) const {
  const std::optional<Row> row = row_of(id);
  return message_of(row ? std::optional(row->seq) : std::nullopt);
}

std::string Transcript::role_of(std::string_view id) const {
  return agent_.sql("SELECT role FROM chat_messages WHERE id = ?", id)
      .optional<std::string>()
      .value_or(std::string());
}

std::optional<Json> Transcript::find_call(std::string_view call) const {
  if (call.empty()) return std::nullopt;
  return message_of(agent_
                        .sql("SELECT message FROM chat_calls WHERE call = ? ORDER BY message DESC "
                             "LIMIT 1",
                             call)
                        .optional<std::uint64_t>());
}

std::optional<Json> Transcript::last() const {
  return message_of(agent_.sql("SELECT seq FROM chat_messages ORDER BY seq DESC LIMIT 1")
                        .optional<std::uint64_t>());
}

bool Transcript::has_pending() const {
  return agent_.sql("SELECT 1 FROM chat_messages WHERE pending LIMIT 1")
      .optional<int>()
      .has_value();
}

std::size_t Transcript::size() const {
  return agent_.sql("SELECT count(*) FROM chat_messages").value<std::size_t>();
}

TranscriptPage Transcript::page(std::uint64_t after, std::size_t max_bytes) const {
  TranscriptPage page{.text = after == 0 ? "[" : "", .cursor = after, .is_last = true};
  std::size_t count = 0;
  Query rows =
      agent_.sql("SELECT seq, split, body FROM chat_messages WHERE seq > ? ORDER BY seq", after);
  while (auto row = rows.optional<std::tuple<std::uint64_t, bool, std::string>>()) {
    const auto& [seq, is_split, body] = *row;
    const bool is_over = is_split || page.text.size() + body.size() > max_bytes;
    if (is_over && count > 0) {
      page.is_last = false;
      break;
    }
    if (page.cursor > 0) page.text += ',';
    page.text += is_split ? text_of(seq) : body;
    page.cursor = seq;
    ++count;
  }
  if (page.is_last) page.text += ']';
  return page;
}

std::optional<Transcript::Row> Transcript::row_of(std::string_view id) const {
  const auto row = agent_.sql("SELECT seq, hash, sent FROM chat_messages WHERE id = ?", id)
                       .optional<std::tuple<std::uint64_t, std::int64_t, std::int64_t>>();
  if (!row) return std::nullopt;
  return Row{std::get<0>(*row), {std::get<1>(*row), std::get<2>(*row)}};
}

std::string Transcript::text_of(std::uint64_t seq) const {
  auto text = agent_.sql("SELECT body FROM chat_messages WHERE seq = ?", seq).value<std::string>();
  if (!text.empty()) return text;
  Query pieces = agent_.sql("SELECT text FROM chat_pieces WHERE message = ? ORDER BY piece", seq);
  while (const auto piece = pieces.optional<std::string>()) text += *piece;
  return text;
}

std::optional<Json> Transcript::message_of(std::optional<std::uint64_t> seq) const {
  if (!seq) return std::nullopt;
  return parse_json(text_of(*seq));
}

std::vector<Json> Transcript::newest(std::size_t max_bytes) const {
  std::vector<Json> messages;
  std::size_t bytes = 0;
  std::size_t text_bytes = 0;
  Query rows = agent_.sql("SELECT seq FROM chat_messages ORDER BY seq DESC");
  while (const auto seq = rows.optional<std::uint64_t>()) {  // older rows are not read
    const std::string text = text_of(*seq);
    Json message = parse_json(text);
    text_bytes += text.size();
    bytes += model_bytes(message);
    if ((bytes > max_bytes || text_bytes > kMaxHistoryBytes) && !messages.empty()) break;
    messages.push_back(std::move(message));
  }
  std::ranges::reverse(messages);
  return messages;
}

// ---- writing ------------------------------------------------------------------------------------

bool Transcript::put(const Json& message, std::optional<std::int64_t> sent_hash) {
  const std::string text = to_text(message);
  if (text.size() > kMaxMessageBytes) throw Error(HEARTH_E_LIMIT, "The message is too large.");
  const std::optional<Row> row = row_of(parts::text(message, "id"));
  const Hashes hashes{parts::hash(text), sent_hash.value_or(parts::hash(text))};
  if (row && row->hashes.stored == hashes.stored) {
    if (sent_hash && hashes.sent != hashes.stored && hashes.sent != row->hashes.sent)
      agent_.sql("UPDATE chat_messages SET sent = ? WHERE seq = ?", hashes.sent, row->seq);
    return false;
  }
  write(row ? std::optional(row->seq) : std::nullopt, message, hashes, text);
  return true;
}

void Transcript::write(std::optional<std::uint64_t> seq, const Json& message, const Hashes& hashes,
                       const std::string& text) {
  const std::string& role = parts::text(message, "role");
  const bool is_split = text.size() > kPieceBytes;
  const bool pends = role == "assistant" && is_pending(message);
  const std::string_view body = is_split ? std::string_view() : std::string_view(text);
  if (seq) {
    agent_.sql(
        "UPDATE chat_messages SET role = ?, hash = ?, sent = ?, split = ?, pending = ?, body = ? "
        "WHERE seq = ?",
        role, hashes.stored, hashes.sent, is_split, pends, body, *seq);
    agent_.sql("DELETE FROM chat_pieces WHERE message = ?", *seq);
    agent_.sql("DELETE FROM chat_calls WHERE message = ?", *seq);
  } else {
    const Query added = agent_.sql(
        "INSERT INTO chat_messages(id, role, hash, sent, split, pending, body) VALUES (?, ?, ?, ?, "
        "?, ?, ?)",
        parts::text(message, "id"), role, hashes.stored, hashes.sent, is_split, pends, body);
    seq = static_cast<std::uint64_t>(added.last_insert_rowid());
  }
  std::size_t begin = 0;
  for (int piece = 0; is_split && begin < text.size(); ++piece) {
    const std::size_t end = parts::piece_end(text, begin);
    agent_.sql("INSERT INTO chat_pieces VALUES (?, ?, ?)", *seq, piece,
               std::string_view(text).substr(begin, end - begin));
    begin = end;
  }
  if (role != "assistant") return;
  tell_operators();
  for (const parts::Key& key : parts::keys_of(message))
    agent_.sql("INSERT INTO chat_calls VALUES (?, ?, ?)", *seq, key.call, parts::hash(key.text));
}

bool Transcript::join(std::span<const std::string> ids) {
  std::vector<Json> messages;
  for (const std::string& id : ids) {
    std::optional<Json> message = find(id);
    if (!message) return false;
    messages.push_back(std::move(*message));
  }
  if (messages.empty()) return false;
  const Json message = joined(messages);
  if (!message_fault(message).empty() || to_text(message).size() > kMaxMessageBytes) return false;
  for (const std::string& id : ids.first(ids.size() - 1)) remove(id);
  put(message);
  return true;
}

// The server knows this key, and looks into the chat for the calls that wait.
void Transcript::tell_operators() {
  agent_.waits_for_person(has_pending() ? "a call of a tool is answered" : "", "hearth.chat");
}

bool Transcript::remove(std::string_view id) {
  const bool was_there = agent_.sql("DELETE FROM chat_messages WHERE id = ?", id).changes() != 0;
  tell_operators();
  return was_there;
}

void Transcript::clear() {
  agent_.sql("DELETE FROM chat_messages");
  tell_operators();
}

std::size_t Transcript::keep_newest(std::size_t count, const std::vector<std::string>& kept) {
  const std::unordered_set<std::string> ids(kept.begin(), kept.end());
  std::vector<std::uint64_t> old;
  {
    Query rows = agent_.sql(
        "SELECT id, seq FROM chat_messages WHERE seq <= (SELECT seq FROM chat_messages "
        "ORDER BY seq DESC LIMIT 1 OFFSET ?) ORDER BY seq",
        count);
    while (const auto row = rows.optional<std::tuple<std::string, std::uint64_t>>()) {
      if (ids.contains(std::get<0>(*row))) break;
      old.push_back(std::get<1>(*row));
    }
  }
  for (const std::uint64_t seq : old) agent_.sql("DELETE FROM chat_messages WHERE seq = ?", seq);
  tell_operators();
  return old.size();
}

}  // namespace hearth::chat
