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

struct Transcript::Known {
  std::unordered_map<std::string, Row> rows;  // by id
  std::unordered_set<std::uint64_t> seqs;

  [[nodiscard]] const Row* find(const Json& message) const {
    const auto found = rows.find(parts::text(message, "id"));
    return found == rows.end() ? nullptr : &found->second;
  }
};

struct Transcript::Rest {
  Json messages = Json::array();
  std::vector<std::string> same;  // ids of what is stored as it is
};

ListChange Transcript::accept(Json list, std::span<const std::int64_t> hashes,
                              ClientHistory history, bool is_regenerate) {
  if (history == ClientHistory::kAppend) return append(list, is_regenerate);
  return edit(std::move(list), hashes, is_regenerate);
}

ListChange Transcript::append(const Json& list, bool is_regenerate) {
  ListChange change;
  const Known stored = known(list);
  if (is_regenerate && !list.empty()) {
    if (const Row* const last = stored.find(list.back()); last != nullptr) {
      const Query gone = agent_.sql("DELETE FROM chat_messages WHERE seq > ?", last->seq);
      change.removed = static_cast<std::size_t>(gone.changes());
    }
  }
  std::unordered_set<std::string_view> added;
  for (const Json& message : list) {
    const std::string& id = parts::text(message, "id");
    if (parts::text(message, "role") != "user" || stored.find(message) != nullptr) continue;
    if (!added.insert(id).second) continue;
    put(message);
    change.written.push_back(id);
  }
  return change;
}

ListChange Transcript::edit(Json list, std::span<const std::int64_t> hashes, bool is_regenerate) {
  const Known stored = known(list);
  const std::vector<bool> is_shared = share_calls(list);
  Rest rest;
  std::unordered_set<std::string> ids;
  for (std::size_t i = 0; i < list.size(); ++i) {
    // The first one with an id counts, as in reconcile(), which lets us leave out the same ones.
    if (!ids.insert(parts::text(list[i], "id")).second) continue;
    const Row* const row = stored.find(list[i]);
    if (row != nullptr && row->hash == hashes[i] && !is_shared[i] && i + 1 < list.size())
      rest.same.push_back(parts::text(list[i], "id"));
    else
      rest.messages.push_back(std::move(list[i]));
  }
  const Json found = candidates(rest, stored);
  const Reconciled reconciled = reconcile(std::move(rest.messages), found);
  ListChange change;
  std::vector<std::string>& kept = rest.same;
  for (const Json& message : reconciled.messages) {
    const std::string& id = parts::text(message, "id");
    if (put(message)) change.written.push_back(id);
    kept.push_back(id);
  }
  if (is_regenerate && reconciled.are_all_stored) change.removed = remove_others(kept);
  return change;
}

Transcript::Known Transcript::known(const Json& list) const {
  Known known;
  for (std::size_t begin = 0; begin < list.size(); begin += kIdsOfStatement) {
    Json ids = Json::array();
    for (std::size_t i = begin; i < std::min(list.size(), begin + kIdsOfStatement); ++i)
      ids.push_back(list[i].at("id"));
    Query rows = agent_.sql(
        "SELECT id, seq, hash FROM chat_messages WHERE id IN (SELECT value FROM json_each(?))",
        ids);
    while (auto row = rows.optional<std::tuple<std::string, std::uint64_t, std::int64_t>>()) {
      auto& [id, seq, hash] = *row;
      known.seqs.insert(seq);
      known.rows.emplace(std::move(id), Row{seq, hash});
    }
  }
  return known;
}

// The stored messages among which reconcile() finds the rest: those with their ids, and those that
// can be equal.
Json Transcript::candidates(const Rest& rest, const Known& known) const {
  constexpr std::size_t kSpare = 3;  // that differ in other calls
  std::set<std::uint64_t> wanted;
  std::unordered_map<std::int64_t, std::size_t> looked_for;  // by key: how many messages
  for (const Json& message : rest.messages) {
    if (const Row* const row = known.find(message); row != nullptr) {
      wanted.insert(row->seq);
    } else if (parts::text(message, "role") == "assistant") {
      for (const parts::Key& key : parts::keys_of(message)) ++looked_for[parts::hash(key.text)];
    }
  }
  for (const auto& [key, count] : looked_for) {
    std::size_t free = count + kSpare;
    Query rows = agent_.sql("SELECT message FROM chat_calls WHERE key = ? ORDER BY message", key);
    while (free > 0) {
      const auto seq = rows.optional<std::uint64_t>();
      if (!seq) break;
      if (known.seqs.contains(*seq)) continue;
      wanted.insert(*seq);
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
