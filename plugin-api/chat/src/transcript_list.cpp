// What a list of messages from a client changes in the transcript.
#include "parts.hpp"

#include <hearth/agent_base.hpp>
#include <hearth/chat/transcript.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hearth::chat {

namespace {

constexpr std::size_t kIdsOfStatement = 1'000;  // their JSON text is below a value's 2 MiB

}  // namespace

ListChange Transcript::accept(Json list, std::span<const std::int64_t> hashes,
                              ClientHistory history, bool is_regenerate, SentList sent,
                              std::span<const std::string> spared) {
  if (history == ClientHistory::kAppend) return append(list, is_regenerate, spared);
  return edit(std::move(list), hashes, is_regenerate, std::move(sent), spared);
}

void Transcript::find_stored(std::span<const SentMessage> messages, ClientHistory history,
                             std::unordered_set<std::string>& stored) const {
  std::vector<Wanted> wanted;
  wanted.reserve(messages.size());
  for (const SentMessage& each : messages) {
    if (each.id.empty()) continue;
    const bool is_any = history == ClientHistory::kAppend;
    wanted.push_back({each.id, is_any ? std::nullopt : std::optional(each.hash)});
  }
  const std::unordered_set<std::string> others = ids_not_stored(wanted);
  for (const Wanted& each : wanted) {
    std::string id(each.id);
    if (!others.contains(id)) stored.insert(std::move(id));
  }
}

ListChange Transcript::append(const Json& list, bool is_regenerate,
                              std::span<const std::string> spared) {
  ListChange change;
  std::unordered_set<std::string> fresh = ids_not_stored(wanted_of(list, {}));
  const std::string& last = list.empty() ? std::string() : parts::text(list.back(), "id");
  if (is_regenerate && !list.empty() && !fresh.contains(last)) {
    const auto from =
        agent_.sql("SELECT seq FROM chat_messages WHERE id = ?", last).value<std::uint64_t>();
    change.removed = remove_others({spared.begin(), spared.end()}, from);
  }
  for (const std::string& id : spared) fresh.erase(id);
  for (const Json& message : list) {
    const std::string& id = parts::text(message, "id");
    if (parts::text(message, "role") != "user" || fresh.erase(id) == 0) continue;
    put(message);
    change.written.push_back(id);
  }
  return change;
}

ListChange Transcript::edit(Json list, std::span<const std::int64_t> hashes, bool is_regenerate,
                            SentList sent, std::span<const std::string> spared) {
  const std::unordered_set<std::string> differing = ids_not_stored(wanted_of(list, hashes));
  std::unordered_set<std::string> kept = std::move(sent.stored);
  std::unordered_set<std::string> ids;
  Json rest = Json::array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    // The first one with an id counts, as in reconcile(), which lets us leave out the same ones.
    const std::string& id = parts::text(list[i], "id");
    if (kept.contains(id) || ids.contains(id)) continue;
    if (!differing.contains(id) && i + 1 < list.size()) {
      kept.insert(id);
      if (const auto hash = sent.hashes.find(id); hash != sent.hashes.end())
        agent_.sql("UPDATE chat_messages SET sent = ? WHERE id = ?", hash->second, id);
      continue;
    }
    ids.insert(id);
    rest.push_back(std::move(list[i]));
  }
  rest = with_equal_calls(std::move(rest), kept);
  kept.merge(ids);
  const Json found = candidates(rest, kept);
  const Reconciled reconciled = reconcile(std::move(rest), found);
  ListChange change;
  for (const Json& message : reconciled.messages) {
    const std::string& id = parts::text(message, "id");
    const auto hash = sent.hashes.find(id);
    const bool is_long = hash != sent.hashes.end();
    if (put(message, is_long ? std::optional(hash->second) : std::nullopt))
      change.written.push_back(id);
    kept.insert(id);
  }
  kept.insert(spared.begin(), spared.end());
  if (is_regenerate && reconciled.are_all_stored) change.removed = remove_others(kept);
  return change;
}

std::vector<Transcript::Wanted> Transcript::wanted_of(const Json& list,
                                                      std::span<const std::int64_t> hashes) {
  std::vector<Wanted> wanted;
  wanted.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    wanted.push_back(
        {parts::text(list[i], "id"), hashes.empty() ? std::nullopt : std::optional(hashes[i])});
  return wanted;
}

// The ids of those that are not stored with their hash. An id that is there twice may be among
// them, too.
std::unordered_set<std::string> Transcript::ids_not_stored(std::span<const Wanted> messages) const {
  std::unordered_set<std::string> ids;
  while (!messages.empty()) {
    const auto some = messages.first(std::min(messages.size(), kIdsOfStatement));
    messages = messages.subspan(some.size());
    std::string wanted;  // {"id":hash, ...}, which is faster than a Json
    for (const Wanted& each : some) {
      wanted += wanted.empty() ? '{' : ',';
      append_json_text(wanted, each.id);
      wanted.append(":").append(each.hash ? std::to_string(*each.hash) : "null");
    }
    wanted += '}';
    Query rows = agent_.sql(
        "SELECT key FROM json_each(?) AS wanted WHERE NOT EXISTS (SELECT 1 FROM chat_messages "
        "WHERE id = wanted.key AND (wanted.value IS NULL OR hash = wanted.value OR "
        "sent = wanted.value))",
        wanted);
    while (auto id = rows.optional<std::string>()) ids.insert(std::move(*id));
  }
  return ids;
}

// The rest of a list with those of its other messages, which are stored as they are, that have a
// call of the rest: what a call has come to there counts.
Json Transcript::with_equal_calls(Json rest, const std::unordered_set<std::string>& kept) const {
  std::unordered_set<std::string_view> calls;
  std::set<std::uint64_t> others;
  for (const Json& message : rest) {
    for (const Json& part : parts::of(message)) {
      if (!is_tool_part(part) || !calls.insert(parts::text(part, "toolCallId")).second) continue;
      Query rows = agent_.sql(
          "SELECT seq, id FROM chat_calls JOIN chat_messages ON seq = message WHERE call = ?",
          parts::text(part, "toolCallId"));
      while (const auto row = rows.optional<std::tuple<std::uint64_t, std::string>>())
        if (kept.contains(std::get<1>(*row))) others.insert(std::get<0>(*row));
    }
  }
  if (others.empty()) return rest;
  Json all = Json::array();
  for (const std::uint64_t seq : others) all.push_back(parse_json(text_of(seq)));
  for (Json& message : rest) all.push_back(std::move(message));
  return all;
}

// The stored messages among which reconcile() finds the rest of a list: those with its ids, and
// those that can be equal and that no message of the list has the id of.
Json Transcript::candidates(const Json& rest, const std::unordered_set<std::string>& ids) const {
  constexpr std::size_t kSpare = 3;  // that differ in other calls
  std::set<std::uint64_t> wanted;
  std::unordered_map<std::int64_t, std::size_t> looked_for;  // by key: how many messages
  for (const Json& message : rest) {
    if (const auto row = row_of(parts::text(message, "id"))) {
      wanted.insert(row->seq);
    } else if (parts::text(message, "role") == "assistant") {
      for (const parts::Key& key : parts::keys_of(message)) ++looked_for[parts::hash(key.text)];
    }
  }
  for (const auto& [key, count] : looked_for) {
    std::size_t free = count + kSpare;
    Query rows = agent_.sql(
        "SELECT seq, id FROM chat_calls JOIN chat_messages ON seq = message WHERE key = ? "
        "ORDER BY message",
        key);
    while (free > 0) {
      const auto row = rows.optional<std::tuple<std::uint64_t, std::string>>();
      if (!row) break;
      if (ids.contains(std::get<1>(*row))) continue;
      wanted.insert(std::get<0>(*row));
      --free;
    }
  }
  Json stored = Json::array();
  for (const std::uint64_t seq : wanted) stored.push_back(parse_json(text_of(seq)));
  return stored;
}

std::size_t Transcript::remove_others(const std::unordered_set<std::string>& kept,
                                      std::uint64_t behind) {
  std::vector<std::uint64_t> others;
  {
    Query rows = agent_.sql("SELECT id, seq FROM chat_messages WHERE seq > ?", behind);
    while (const auto row = rows.optional<std::tuple<std::string, std::uint64_t>>())
      if (!kept.contains(std::get<0>(*row))) others.push_back(std::get<1>(*row));
  }
  for (const std::uint64_t seq : others) agent_.sql("DELETE FROM chat_messages WHERE seq = ?", seq);
  tell_operators();
  return others.size();
}

}  // namespace hearth::chat
