// The messages of a chat in an agent's database, on the mock host.
#include "rows.hpp"

#include <hearth/chat/transcript.hpp>
#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hearth::chat {
namespace {

class Archive : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Archive>& m) { m.add("commit", &Archive::commit); }
  void commit() {}

  Transcript transcript{*this};
};

Json user(std::string_view id, std::string_view text) {
  return {{"id", id}, {"role", "user"}, {"parts", {{{"type", "text"}, {"text", text}}}}};
}

Json answer(std::string_view id, std::string_view text) {
  Json message = user(id, text);
  message["role"] = "assistant";
  return message;
}

Json call_part(std::string_view call, int input, bool is_settled) {
  Json part{{"type", "tool-geo"},
            {"toolCallId", call},
            {"state", is_settled ? "output-available" : "input-available"},
            {"input", {{"n", input}}}};
  if (is_settled) part["output"] = 1;
  return part;
}

class TranscriptTest : public ::testing::Test {
 protected:
  [[nodiscard]] Transcript& transcript() { return agent_.as<Archive>().transcript; }
  // What is written so far stays, and the agent is made anew.
  void kill() {
    agent_.call("commit");
    agent_.kill();
  }
  template <class T>
  [[nodiscard]] T value(std::string_view sql) {
    return agent_.as<Archive>().sql(sql).value<T>();
  }
  [[nodiscard]] Json all(std::size_t page_bytes = 1'000) {
    std::string text;
    TranscriptPage page;
    do {
      page = transcript().page(page.cursor, page_bytes);
      text += page.text;
    } while (!page.is_last);
    return json(text);
  }
  void fill(const Json& messages) {
    transcript().clear();
    for (const Json& message : messages) transcript().put(message);
  }
  ListChange accept(const Json& list, ClientHistory history, bool is_regenerate = false) {
    return transcript().accept(list, hash_messages(list), history, is_regenerate);
  }

  testing::Host host_;
  testing::AgentHandle agent_ = host_.create<Archive>("a");
};

TEST_F(TranscriptTest, MessagesOfAnySizeComeBackAsTheyAreAndInTheirOrder) {
  const std::size_t frame = to_text(user("m0", "")).size();
  std::vector<std::string> texts = {"", "hi", "\u00e9\U0001F600\"\\\n"};
  for (const std::size_t size : {kPieceBytes - 1, kPieceBytes, kPieceBytes + 1})
    texts.push_back(text_of('a', size - frame));
  // The first piece would end in each byte of a character.
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::string text = text_of('a', shift);
    while (text.size() < kPieceBytes + 8) text += "\U0001F600";
    texts.push_back(text);
  }
  texts.push_back(text_of('a', 3 * kPieceBytes));
  Json messages = Json::array();
  for (const std::string& text : texts)
    messages.push_back(user("m" + std::to_string(messages.size()), text));
  for (const Json& message : messages) EXPECT_TRUE(transcript().put(message));
  kill();
  EXPECT_EQ(transcript().size(), messages.size());
  for (const Json& message : messages) {
    const std::string id = message["id"];
    EXPECT_TRUE(transcript().find(id) == message) << id;
  }
  EXPECT_TRUE(transcript().last() == messages.back());
  EXPECT_TRUE(all() == messages);
  EXPECT_EQ(transcript().find("m99"), std::nullopt);
  EXPECT_LE(value<std::size_t>("SELECT max(length(CAST(text AS BLOB))) FROM chat_pieces"),
            kPieceBytes);
}

TEST_F(TranscriptTest, AMessageOverTheLimitIsRefusedAndChangesNothing) {
  const Json largest = user("u1", text_of('a', kMaxMessageBytes - to_text(user("u1", "")).size()));
  EXPECT_TRUE(transcript().put(largest));
  transcript().put(user("u1", "hi"));
  try {
    transcript().put(user("u1", largest["parts"][0]["text"].get<std::string>() + "a"));
    ADD_FAILURE() << "it was put";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), HEARTH_E_LIMIT);
  }
  EXPECT_EQ(all(), Json::array({user("u1", "hi")}));
}

TEST_F(TranscriptTest, OnlyWhatHasChangedIsWritten) {
  const std::string big = text_of('a', kPieceBytes);
  fill({user("u1", "hi"), answer("a1", big), user("u2", "ho")});
  kill();
  const auto before = value<int>("SELECT total_changes()");
  EXPECT_FALSE(transcript().put(user("u1", "hi")));
  EXPECT_FALSE(transcript().put(answer("a1", big)));
  EXPECT_EQ(value<int>("SELECT total_changes()"), before);
  EXPECT_TRUE(transcript().put(answer("a1", "short")));
  EXPECT_EQ(all(), Json({user("u1", "hi"), answer("a1", "short"), user("u2", "ho")}));
  EXPECT_EQ(value<int>("SELECT count(*) FROM chat_pieces"), 0);
}

TEST_F(TranscriptTest, PagesInARowAreOneArrayWhateverTheirSize) {
  EXPECT_EQ(transcript().page(0, 100).text, "[]");
  const Json messages = {user("u1", "hi"), answer("a1", text_of('a', kPieceBytes + 9)),
                         user("u2", text_of('b', 300)), user("u3", "ho")};
  fill(messages);
  for (const std::size_t bytes : {0U, 1U, 100U, 400U, 10'000'000U}) EXPECT_EQ(all(bytes), messages);
  EXPECT_EQ(json(transcript().page(0, 1).text + "]"), Json::array({messages[0]}));
}

TEST_F(TranscriptTest, APageHasWhatFits) {
  fill({user("u1", "a"), user("u2", "b"), user("u3", "c")});
  const std::size_t size = to_text(user("u1", "a")).size();
  for (const auto& [bytes, cursor] :
       {std::pair{std::size_t{0}, 1U}, {2 * size, 1U}, {1 + 2 * size, 2U}, {4 * size, 3U}}) {
    EXPECT_EQ(transcript().page(0, bytes).cursor, cursor) << bytes;
    EXPECT_EQ(transcript().page(0, bytes).is_last, cursor == 3) << bytes;
  }
}

TEST_F(TranscriptTest, MessagesMayChangeBetweenTwoPages) {
  const Json messages = {user("u1", "a"), user("u2", "b"), user("u3", "c")};
  fill(messages);
  TranscriptPage first = transcript().page(0, 1);
  transcript().put(user("u4", "d"));
  transcript().remove("u2");
  std::string text = first.text;
  for (TranscriptPage page = first; !page.is_last; text += page.text)
    page = transcript().page(page.cursor, 1);
  EXPECT_EQ(json(text), Json({user("u1", "a"), user("u3", "c"), user("u4", "d")}));

  first = transcript().page(0, 1);
  transcript().clear();
  EXPECT_EQ(json(first.text + transcript().page(first.cursor, 1).text),
            Json::array({user("u1", "a")}));
}

TEST_F(TranscriptTest, ACallIsInItsNewestMessage) {
  fill({assistant("[]"), user("u1", "hi")});
  Json first = answer("a1", "");
  first["parts"].push_back(call_part("c1", 1, true));
  first["parts"].push_back(call_part("c2", 1, true));
  Json second = answer("a2", "");
  second["parts"].push_back(call_part("c1", 2, false));
  transcript().put(first);
  transcript().put(second);
  kill();
  EXPECT_EQ(transcript().find_call("c1"), second);
  EXPECT_EQ(transcript().find_call("c2"), first);
  EXPECT_EQ(transcript().find_call("c3"), std::nullopt);
  EXPECT_EQ(transcript().find_call(""), std::nullopt) << "not a message without calls";
  transcript().put(answer("a2", "no call any more"));
  EXPECT_EQ(transcript().find_call("c1"), first);
}

TEST_F(TranscriptTest, WhatIsRemovedLeavesNothing) {
  Json message = answer("a1", text_of('a', kPieceBytes));
  message["parts"].push_back(call_part("c1", 1, true));
  const auto is_empty = [&] {
    return value<int>(
               "SELECT (SELECT count(*) FROM chat_messages) + (SELECT count(*) FROM "
               "chat_pieces) + (SELECT count(*) FROM chat_calls)") == 0;
  };
  transcript().put(message);
  EXPECT_FALSE(is_empty());
  EXPECT_FALSE(transcript().remove("a2"));
  EXPECT_TRUE(transcript().remove("a1"));
  EXPECT_TRUE(is_empty());
  transcript().put(message);
  EXPECT_EQ(transcript().keep_newest(0, {}), 1U);
  EXPECT_TRUE(is_empty());
  transcript().put(message);
  transcript().clear();
  EXPECT_TRUE(is_empty());
  EXPECT_EQ(transcript().last(), std::nullopt);
}

TEST_F(TranscriptTest, TheNewestAreKept) {
  const Json messages = {user("u1", "a"), user("u2", "b"), user("u3", "c")};
  fill(messages);
  EXPECT_EQ(transcript().keep_newest(4, {}), 0U);
  EXPECT_EQ(transcript().keep_newest(3, {}), 0U);
  EXPECT_EQ(transcript().keep_newest(2, {}), 1U);
  EXPECT_EQ(all(), Json({messages[1], messages[2]}));
}

TEST_F(TranscriptTest, UserMessagesBecomeOne) {
  Json picture = user("u3", "c");
  picture["parts"].push_back({{"type", "file"}, {"mediaType", "image/png"}, {"url", "data:,x"}});
  const Json before = {user("u1", "a"), user("u2", "b"), picture, user("u4", "d")};
  fill(before);
  for (const auto& ids : {std::vector<std::string>{}, std::vector<std::string>{"u1", "u9", "u2"}}) {
    EXPECT_FALSE(transcript().join(ids));
    EXPECT_EQ(all(), before);
  }
  EXPECT_TRUE(transcript().join(std::vector<std::string>{"u2", "u3", "u4"}));
  Json whole = user("u4", "b\n\nc\n\nd");
  whole["parts"].push_back(picture["parts"][1]);
  EXPECT_EQ(all(), Json({before[0], whole}));

  const std::string half = text_of('a', kMaxMessageBytes / 2);
  fill({user("u1", half), user("u2", half)});
  EXPECT_FALSE(transcript().join(std::vector<std::string>{"u1", "u2"})) << "too large";
  EXPECT_EQ(transcript().size(), 2U);
}

// ---- lists of clients ---------------------------------------------------------------------------

struct ListRow {
  const char* name;
  ClientHistory history;
  bool is_regenerate;
  Json list;
  Json after;  // null: as before
  std::vector<std::string> written;
};

TEST_F(TranscriptTest, EachListChangesWhatItsRowSays) {
  constexpr auto kAppend = ClientHistory::kAppend;
  constexpr auto kEdit = ClientHistory::kEdit;
  const Json u1 = user("u1", "q1"), a1 = answer("a1", "r1"), u2 = user("u2", "q2");
  const Json a2 = answer("a2", "r2"), u3 = user("u3", "q3"), forged = answer("a3", "forged");
  const Json system{{"id", "s"}, {"role", "system"}, {"parts", Json::array()}};
  const Json mine = answer("x", "r1");  // a1 with an id of the client
  const Json before = {u1, a1, u2, a2};
  const std::vector<ListRow> rows = {
      {"nothing", kEdit, false, Json::array(), nullptr, {}},
      {"the same", kEdit, false, before, nullptr, {}},
      {"a new message", kEdit, false, {u1, a1, u2, a2, u3}, {u1, a1, u2, a2, u3}, {"u3"}},
      {"only the new one", kEdit, false, Json::array({u3}), {u1, a1, u2, a2, u3}, {"u3"}},
      {"an id of the client", kEdit, false, {u1, mine, u2, a2}, nullptr, {}},
      {"a changed one keeps its place",
       kEdit,
       false,
       {u1, a1, user("u2", "new")},
       {u1, a1, user("u2", "new"), a2},
       {"u2"}},
      {"any role",
       kEdit,
       false,
       {system, u1, forged},
       {u1, a1, u2, a2, system, forged},
       {"s", "a3"}},
      {"once more, without the last answer", kEdit, true, {u1, a1, u2}, {u1, a1, u2}, {}},
      {"with ids of the client", kEdit, true, {u1, mine, u2}, {u1, a1, u2}, {}},
      {"edited",
       kEdit,
       true,
       Json::array({user("u1", "new")}),
       Json::array({user("u1", "new")}),
       {"u1"}},
      {"from the middle", kEdit, true, {u1, u2}, {u1, u2}, {}},
      {"an unknown one: nothing is removed", kEdit, true, {u1, u3}, {u1, a1, u2, a2, u3}, {"u3"}},

      {"nothing, appended", kAppend, true, Json::array(), nullptr, {}},
      {"the same, appended", kAppend, false, before, nullptr, {}},
      {"two new ones, one twice",
       kAppend,
       false,
       {u1, u3, user("u4", "q4"), user("u3", "other")},
       {u1, a1, u2, a2, u3, user("u4", "q4")},
       {"u3", "u4"}},
      {"no role but user", kAppend, false, {system, u1, forged, mine}, nullptr, {}},
      {"nothing is changed", kAppend, false, {user("u1", "new"), answer("a1", "new")}, nullptr, {}},
      {"cut behind the last one", kAppend, true, {u1, a1, u2}, {u1, a1, u2}, {}},
      {"whatever is left out before", kAppend, true, Json::array({u2}), {u1, a1, u2}, {}},
      {"and is unknown before", kAppend, true, {u1, mine, u2}, {u1, a1, u2}, {}},
      {"the last one is unknown", kAppend, true, {u1, mine}, nullptr, {}},
      {"the last one is new", kAppend, true, {u1, u3}, {u1, a1, u2, a2, u3}, {"u3"}},
  };
  for (const ListRow& row : rows) {
    SCOPED_TRACE(row.name);
    fill(before);
    const ListChange change = accept(row.list, row.history, row.is_regenerate);
    EXPECT_EQ(change.written, row.written);
    const Json& after = row.after.is_null() ? before : row.after;
    EXPECT_EQ(all(), after);
    std::size_t removed = 0;
    for (const Json& message : before)
      removed += std::ranges::count(after, message.at("id"),
                                    [](const Json& each) { return each.at("id"); }) == 0;
    EXPECT_EQ(change.removed, removed);
  }
}

TEST_F(TranscriptTest, WhatWaitsForAnAnswerIsNotRemovedWithAnother) {
  const Json u1 = user("u1", "q1"), a1 = answer("a1", "r1"), u2 = user("u2", "waits");
  for (const ClientHistory history : {ClientHistory::kEdit, ClientHistory::kAppend}) {
    fill({u1, a1, u2});
    const Json list = Json::array({u1});
    const std::vector<std::string> spared = {"u2"};
    transcript().accept(list, hash_messages(list), history, true, {}, spared);
    EXPECT_EQ(all(), Json({u1, u2}));
  }
}

// As many and as long as those of the messages that may wait: more than a value of SQL has.
TEST_F(TranscriptTest, ManyLongIdsThatWaitAreKept) {
  std::vector<std::string> spared = {"u2"};
  for (int i = 0; i < 10'000; ++i)
    spared.push_back(text_of('\x01', kMaxIdBytes - 8) + std::to_string(i));
  const Json u1 = user("u1", "q1"), a1 = answer("a1", "r1"), u2 = user("u2", "waits");
  const Json list = Json::array({u1});
  fill({u1, a1, u2});
  transcript().accept(list, hash_messages(list), ClientHistory::kAppend, true, {}, spared);
  EXPECT_EQ(all(), Json({u1, u2}));
  EXPECT_EQ(transcript().keep_newest(0, spared), 1U);
  EXPECT_EQ(all(), Json::array({u2}));
}

// Lists in which ids, texts and calls meet in many ways.
class RandomLists {
 public:
  Json list(char prefix, int most) {
    Json list = Json::array();
    for (int i = below(most) + 1; i > 0; --i) {
      Json message = answer({}, below(2) == 0 ? "ok" : "no");
      if (below(4) == 0) message["role"] = "user";
      for (int calls = below(3); calls > 0 && message["role"] != "user"; --calls)
        message["parts"].push_back(call_part(calls == 1 ? "c1" : "c2", below(2), below(2) == 0));
      message["id"] = (below(3) == 0 ? prefix : 'm') + std::to_string(below(2 * most));
      list.push_back(message);
    }
    return list;
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  std::mt19937 random_{7};
};

TEST_F(TranscriptTest, AListIsReconciledAsWithAllMessages) {
  RandomLists random;
  int found = 0;
  for (int round = 0; round < 500; ++round) {
    fill(random.list('s', 5));
    const Json stored = all();
    Json list = random.list('x', 5);
    for (const Json& message : stored)
      if (round % 2 == 0) list.insert(list.begin(), message);
    const Reconciled expected = reconcile(list, stored);
    const ListChange change = accept(list, ClientHistory::kEdit);
    SCOPED_TRACE(to_text(stored) + " " + to_text(list));
    std::size_t added = 0;
    std::vector<std::string> written;
    for (const Json& message : expected.messages) {
      const std::string id = message["id"];
      EXPECT_EQ(transcript().find(id), message);
      const auto before =
          std::ranges::find(stored, Json(id), [](const Json& each) { return each.at("id"); });
      if (before == stored.end()) ++added;
      if (before == stored.end() || *before != message) written.push_back(id);
      found += before != stored.end() && *before != message;
    }
    EXPECT_EQ(change.written, written);
    ASSERT_EQ(transcript().size(), stored.size() + added);
  }
  EXPECT_GT(found, 100);
}

// As a client writes it: the members in another order than to_text() has them.
std::string written(const Json& list) {
  std::string text;
  for (const Json& message : list) {
    text += text.empty() ? "" : ",";
    text += R"({"role":)" + to_text(message["role"]) + R"(,"parts":)" + to_text(message["parts"]) +
            R"(,"id":)" + to_text(message["id"]) + "}";
  }
  return R"({"type":"cf_agent_chat_messages","messages":[)" + text + "]}";
}

TEST_F(TranscriptTest, AListOfALongFrameIsReconciledAsAWholeOne) {
  RandomLists random;
  int left_out = 0;
  const auto send = [&](const Json& list) {
    const LongFrame frame = LongFrame::split(written(list)).value();
    SentList sent;
    transcript().find_stored(frame.earlier(), ClientHistory::kEdit, sent.stored);
    left_out += static_cast<int>(sent.stored.size());
    sent.hashes = frame.hashes_without(sent.stored);
    const Json rest = json(frame.without(sent.stored)).at("messages");
    transcript().accept(rest, hash_messages(rest), ClientHistory::kEdit, false, std::move(sent));
  };
  for (int round = 0; round < 500; ++round) {
    transcript().clear();
    send(random.list('s', 5));
    const Json stored = all();
    Json list = random.list('x', 5);
    for (const Json& message : stored)
      if (round % 2 == 0) list.insert(list.begin(), message);
    const Reconciled expected = reconcile(list, stored);
    SCOPED_TRACE(to_text(stored) + " " + to_text(list));
    send(list);
    std::size_t added = 0;
    for (const Json& message : expected.messages) {
      EXPECT_EQ(transcript().find(message["id"].get<std::string>()), message);
      const auto before =
          std::ranges::find(stored, message["id"], [](const Json& each) { return each.at("id"); });
      if (before == stored.end()) ++added;
    }
    ASSERT_EQ(transcript().size(), stored.size() + added);
  }
  EXPECT_GT(left_out, 100);
}

TEST_F(TranscriptTest, AMessageIsKnownByTheTextInWhichItWasLastSent) {
  const Json list = {user("u1", "a"), answer("a1", "b"), user("u2", "c"), answer("a2", "d")};
  const LongFrame frame = LongFrame::split(written(list)).value();
  const auto stored = [&](ClientHistory history) {
    std::unordered_set<std::string> ids;
    transcript().find_stored(frame.earlier(), history, ids);
    return ids;
  };
  const std::unordered_set<std::string> earlier = {"u1", "a1", "u2"};
  EXPECT_TRUE(stored(ClientHistory::kAppend).empty());
  fill(list);
  EXPECT_EQ(stored(ClientHistory::kAppend), earlier);
  EXPECT_TRUE(stored(ClientHistory::kEdit).empty()) << "in this form it was not sent";
  const SentList sent{{}, frame.hashes_without({})};
  const auto change = [&] {
    return transcript().accept(list, hash_messages(list), ClientHistory::kEdit, false, sent);
  };
  EXPECT_TRUE(change().written.empty());
  EXPECT_EQ(stored(ClientHistory::kEdit), earlier);
  transcript().put(answer("a1", "changed"));
  EXPECT_EQ(stored(ClientHistory::kEdit), (std::unordered_set<std::string>{"u1", "u2"}));
  EXPECT_EQ(change().written, std::vector<std::string>{"a1"});
  EXPECT_EQ(stored(ClientHistory::kEdit), earlier);
}

TEST_F(TranscriptTest, MessagesThatAListDoesNotChangeAreNotRead) {
  const Json list = {user("u1", "a"), answer("a1", "b"), user("u2", "c")};
  fill({list[0], list[1], answer("a0", "not in the list")});
  agent_.as<Archive>().sql("UPDATE chat_messages SET body = 'not JSON'");
  EXPECT_EQ(accept(list, ClientHistory::kEdit).written, std::vector<std::string>{"u2"});
  EXPECT_EQ(transcript().find("u2"), list[2]);
}

// One id for all calls, as some providers have it, and a long list of a client with its own ids.
TEST_F(TranscriptTest, ALongListIsReadInGroups) {
  Json stored = Json::array();
  Json list = Json::array();
  for (int i = 0; i < 2'500; ++i) {
    Json message = answer("a" + std::to_string(i), "ok");
    if (i % 2 == 0) message["parts"].push_back(call_part("c1", i, true));
    stored.push_back(message);
    if (i % 5 == 0) message["id"] = "x" + std::to_string(i);
    list.push_back(message);
  }
  fill(stored);
  EXPECT_TRUE(accept(list, ClientHistory::kEdit).written.empty());
  EXPECT_EQ(transcript().size(), stored.size());
}

}  // namespace
}  // namespace hearth::chat
