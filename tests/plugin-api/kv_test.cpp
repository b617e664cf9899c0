// Values by key on the mock host.

#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using hearth::Json;

struct Draft {
  std::string text;
  int version = 1;
  HEARTH_FIELDS(text, version)
};

class NoteKeeper : public hearth::Agent {
 public:
  static void methods(hearth::Methods<NoteKeeper>& m) {
    m.add("put", &NoteKeeper::put);
    m.add("get", &NoteKeeper::get);
    m.add("remove", &NoteKeeper::remove);
    m.add("keys", &NoteKeeper::keys);
    m.add("usage", &NoteKeeper::usage);
    m.add("regret", &NoteKeeper::regret);
    m.add("from_sql", &NoteKeeper::from_sql);
    m.add("fill", &NoteKeeper::fill);
    m.add("fill_later", &NoteKeeper::fill_later);
    m.callback("fill_by_itself", &NoteKeeper::fill_by_itself);
  }
  void put(const std::string& key, const Draft& draft) { kv().put(key, draft); }
  std::optional<Draft> get(const std::string& key) { return kv().get<Draft>(key); }
  bool remove(const std::string& key) { return kv().remove(key); }
  std::vector<std::string> keys(const std::string& prefix, const std::string& after) {
    std::vector<std::string> all;
    for (const hearth::KvEntry& each : kv().list({.prefix = prefix, .after = after}))
      all.push_back(each.key);
    return all;
  }
  std::vector<std::uint64_t> usage() { return {kv().usage().keys, kv().usage().bytes}; }
  void regret(const std::string& key) {
    const auto undone = transaction();
    kv().put(key, 1);
  }
  std::string from_sql(const std::string& key) {
    return sql("SELECT value FROM cf_agents_kv WHERE key = ?", key).value<std::string>();
  }
  void fill(std::size_t bytes) { kv().put("k", std::string(bytes, 'x')); }
  hearth::Task<void> fill_later(std::size_t bytes) {
    co_await sleep(std::chrono::milliseconds(1));
    fill(bytes);
  }
  void fill_by_itself() { fill(kTooMuch); }
  void on_error(std::string_view where, const std::exception_ptr& /*error*/) override {
    told.emplace_back(where);
  }

  static constexpr std::size_t kTooMuch = std::size_t{1} << 20;  // with its quotes
  std::vector<std::string> told;
};

class KvTest : public OneAgent<NoteKeeper> {};

TEST_F(KvTest, AValueIsKeptThroughAnEviction) {
  EXPECT_EQ(agent_.call("get", "draft"), nullptr);
  agent_.call("put", "draft", Draft{"Dear Ada", 2});
  agent_.evict();
  EXPECT_EQ(agent_.call("get", "draft"), Json({{"text", "Dear Ada"}, {"version", 2}}));
  EXPECT_EQ(agent_.call("from_sql", "draft"), R"({"text":"Dear Ada","version":2})");
  EXPECT_EQ(agent_.call("remove", "draft"), true);
  EXPECT_EQ(agent_.call("remove", "draft"), false);
  EXPECT_EQ(agent_.call("usage"), Json({0, 0}));
}

TEST_F(KvTest, AreListedByPrefixAndInPages) {
  for (const char* key : {"note:2", "note:1", "other"}) agent_.call("put", key, Draft{});
  EXPECT_EQ(agent_.call("keys", "note:", ""), Json({"note:1", "note:2"}));
  EXPECT_EQ(agent_.call("keys", "", "note:1"), Json({"note:2", "other"}));
  EXPECT_EQ(agent_.call("keys", "note:", "note:2"), Json::array());
}

TEST_F(KvTest, ATransactionThatIsNotCommittedTakesItBack) {
  agent_.call("regret", "k");
  EXPECT_EQ(agent_.call("keys", "", ""), Json::array());
}

TEST_F(KvTest, WhatCannotBeAKeyIsRefused) {
  EXPECT_THROW(agent_.call("put", "", Draft{}), hearth::testing::CallError);
  EXPECT_THROW(agent_.call("get", std::string(2049, 'x')), hearth::testing::CallError);
}

TEST_F(KvTest, ALimitThatAMethodReachesIsOneForItsCallerToo) {
  auto client = agent_.connect();
  for (const char* method : {"fill", "fill_later"}) {
    const auto call = agent_.start(method, NoteKeeper::kTooMuch);
    const auto of_client = client.start(method, NoteKeeper::kTooMuch);
    host_.advance(std::chrono::milliseconds(1));
    EXPECT_EQ(call.status(), HEARTH_E_LIMIT) << method;
    EXPECT_EQ(call.error(), "a value has at most 1048576 bytes");
    EXPECT_EQ(of_client.error(), call.error());
  }
  const std::vector<std::string> told = {"fill", "fill", "fill_later", "fill_later"};
  EXPECT_EQ(agent_.as<NoteKeeper>().told, told) << "it is no answer of the author's";
  EXPECT_EQ(agent_.start("put", "", Draft{}).status(), HEARTH_E_PLUGIN)
      << "other codes are the host's word to the agent";
}

TEST_F(KvTest, WorkOfItsOwnThatReachesALimitIsTriedAgain) {
  agent_.as<NoteKeeper>().queue("fill_by_itself");
  host_.advance(std::chrono::seconds(10));
  EXPECT_EQ(agent_.as<NoteKeeper>().told.size(), 3U);
}

}  // namespace
