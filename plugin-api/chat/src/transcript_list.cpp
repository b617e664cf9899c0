// What a list of messages from a client changes in the transcript.
#include "parts.hpp"

#include <hearth/agent_base.hpp>
#include <hearth/chat/transcript.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace hearth::chat {

namespace {

constexpr std::size_t kIdsOfStatement = 1'000;  // their JSON text is below a value's 2 MiB

// For each message of the list, whether it has a call that another one has, too.
std::vector<bool> share_calls(const Json& list) {
  std::unordered_map<std::string_view, std::size_t> first;  // message with this call
  std::vector<bool> share(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const Json& part : parts::of(list[i])) {
      if (!is_tool_part(part)) continue;
      const auto [found, is_new] = first.emplace(parts::text(part, "toolCallId"), i);
      if (found->second != i) share[found->second] = share[i] = true;
    }
  }
  return share;
}

}  // namespace

ListChange Transcript::accept(Json list, std::span<const std::int64_t> hashes,
                              ClientHistory history, bool is_regenerate) {
  if (history == ClientHistory::kAppend) return append(list, is_regenerate);
  return edit(std::move(list), hashes, is_regenerate);
}

ListChange Transcript::append(const Json& list, bool is_regenerate) {
  ListChange change;
  std::unordered_set<std::string> fresh = ids_not_stored(list, {});
  const std::string& last = list.empty() ? std::string() : parts::text(list.back(), "id");
  if (is_regenerate && !list.empty() && !fresh.contains(last)) {
    const Query gone = agent_.sql(
        "DELETE FROM chat_messages WHERE seq > (SELECT seq FROM chat_messages WHERE id = ?)", last);
    change.removed = static_cast<std::size_t>(gone.changes());
  }
  for (const Json& message : list) {
    const std::string& id = parts::text(message, "id");
    if (parts::text(message, "role") != "user" || fresh.erase(id) == 0) continue;
    put(message);
    change.written.push_back(id);
  }
  return change;
}

ListChange Transcript::edit(Json list, std::span<const std::int64_t> hashes, bool is_regenerate) {
  const std::unordered_set<std::string> differing = ids_not_stored(list, hashes);
  const std::vector<bool> is_shared = share_calls(list);
  std::unordered_set<std::string> ids;
  std::vector<std::string> kept;
  Json rest = Json::array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    // The first one with an id counts, as in reconcile(), which lets us leave out the same ones.
    const std::string& id = parts::text(list[i], "id");
    if (!ids.insert(id).second) continue;
    if (!differing.contains(id) && !is_shared[i] && i + 1 < list.size())
      kept.push_back(id);
    else
      rest.push_back(std::move(list[i]));
  }
  const Json found = candidates(rest, ids);
  const Reconciled reconciled = reconcile(std::move(rest), found);
  ListChange change;
  for (const Json& message : reconciled.messages) {
    const std::string& id = parts::text(message, "id");
    if (put(message)) change.written.push_back(id);
    kept.push_back(id);
  }
  if (is_regenerate && reconciled.are_all_stored) change.removed = remove_others(kept);
  return change;
}

// The ids of the messages that are not stored with their hash, or at all if there are no hashes. An
// id that the list has twice may be among them, too.
std::unordered_set<std::string> Transcript::ids_not_stored(
    const Json& list, std::span<const std::int64_t> hashes) const {
  std::unordered_set<std::string> ids;
  for (std::size_t begin = 0; begin < list.size(); begin += kIdsOfStatement) {
    std::string wanted;  // {"id":hash, ...}, which is faster than a Json
    for (std::size_t i = begin; i < std::min(list.size(), begin + kIdsOfStatement); ++i) {
      wanted += wanted.empty() ? '{' : ',';
      detail::append_json_string(wanted, parts::text(list[i], "id"));
      wanted.append(":").append(hashes.empty() ? "null" : std::to_string(hashes[i]));
    }
    wanted += '}';
    Query rows = agent_.sql(
        "SELECT key FROM json_each(?) AS wanted WHERE NOT EXISTS (SELECT 1 FROM chat_messages "
        "WHERE id = wanted.key AND (wanted.value IS NULL OR hash = wanted.value))",
        wanted);
    while (auto id = rows.optional<std::string>()) ids.insert(std::move(*id));
  }
  return ids;
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

std::size_t Transcript::remove_others(std::span<const std::string> ids) {
  const std::unordered_set<std::string_view> kept(ids.begin(), ids.end());
  std::vector<std::uint64_t> others;
  {
    Query rows = agent_.sql("SELECT id, seq FROM chat_messages");
    while (const auto row = rows.optional<std::tuple<std::string, std::uint64_t>>())
      if (!kept.contains(std::get<0>(*row))) others.push_back(std::get<1>(*row));
  }
  for (const std::uint64_t seq : others) agent_.sql("DELETE FROM chat_messages WHERE seq = ?", seq);
  return others.size();
}

}  // namespace hearth::chat
