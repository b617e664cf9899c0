#include "extensions/kv.hpp"

#include "extensions/abi_fixture.hpp"
#include "extensions/sql.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiKvTest : public AbiHostTest {
 protected:
  hearth_status put(std::string_view key, std::string_view json) {
    return kv_.put(host_, kAgent, slice(key), slice(json));
  }
  // The value, or the status.
  std::string get(std::string_view key) { return lent(kv_.get, slice(key)); }
  hearth_status remove(std::string_view key) { return kv_.remove(host_, kAgent, slice(key)); }
  std::string list(std::string_view prefix = "", std::string_view after = "",
                   std::uint32_t limit = 0) {
    const hearth_kv_filter filter = {.struct_size = sizeof filter,
                                     .limit = limit,
                                     .prefix = slice(prefix),
                                     .after = slice(after)};
    return lent(kv_.list, &filter);
  }
  // Keys and bytes. Checks that the counts match the rows.
  std::pair<std::uint64_t, std::uint64_t> usage() {
    std::pair<std::uint64_t, std::uint64_t> used;
    EXPECT_EQ(kv_.usage(host_, kAgent, &used.first, &used.second), HEARTH_OK);
    storage::PluginSql& sql = agent_.of<SqlExtension>().sql();
    if (const auto counted = sql.prepare(
            "SELECT count(*), sum(length(CAST(key AS BLOB)) + length(CAST(value AS BLOB))) "
            "FROM cf_agents_kv")) {
      EXPECT_TRUE(sql.step(*counted));
      EXPECT_EQ(sql.column_int64(*counted, 0).value(), static_cast<std::int64_t>(used.first));
      EXPECT_EQ(sql.column_int64(*counted, 1).value(), static_cast<std::int64_t>(used.second));
      EXPECT_TRUE(sql.finalize(*counted));
    }
    return used;
  }

  const hearth_kv_v1& kv_ = extension<hearth_kv_v1>(HEARTH_EXT_KV);
};

TEST_F(AbiKvTest, WantsALiveAgentOnItsThreadAndAHost) {
  hearth_bytes out{};
  for (const auto& [host, agent, status] : refused_callers()) {
    hearth_kv_filter filter{};
    filter.struct_size = sizeof filter;
    EXPECT_EQ(kv_.get(host, agent, slice("k"), &out), status);
    EXPECT_EQ(kv_.put(host, agent, slice("k"), slice("1")), status);
    EXPECT_EQ(kv_.remove(host, agent, slice("k")), status);
    EXPECT_EQ(kv_.list(host, agent, &filter, &out), status);
    EXPECT_EQ(kv_.usage(host, agent, nullptr, nullptr), status);
  }
  EXPECT_FALSE(agent_.has_stored());
}

TEST_F(AbiKvTest, AValueIsKeptReplacedAndRemoved) {
  EXPECT_EQ(get("k"), "HEARTH_E_NOT_FOUND");
  EXPECT_EQ(remove("k"), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(list(), "[]");
  EXPECT_EQ(usage(), std::pair(std::uint64_t{0}, std::uint64_t{0}));
  EXPECT_FALSE(agent_.has_stored()) << "who only asks leaves nothing";
  EXPECT_EQ(put("k", R"({"a":[1,2]})"), HEARTH_OK);
  EXPECT_EQ(get("k"), R"({"a":[1,2]})");
  EXPECT_EQ(usage(), std::pair(std::uint64_t{1}, std::uint64_t{12}));
  EXPECT_EQ(put("k", "null"), HEARTH_OK);
  EXPECT_EQ(get("k"), "null");
  EXPECT_EQ(usage(), std::pair(std::uint64_t{1}, std::uint64_t{5}));
  EXPECT_EQ(remove("k"), HEARTH_OK);
  EXPECT_EQ(get("k"), "HEARTH_E_NOT_FOUND");
  EXPECT_EQ(usage(), std::pair(std::uint64_t{0}, std::uint64_t{0}));
}

TEST_F(AbiKvTest, KeysAreBoundedTexts) {
  const std::string longest(2048, 'x');
  for (const std::string& bad : {std::string(), longest + 'x', std::string("a\0b", 3)}) {
    EXPECT_EQ(put(bad, "1"), HEARTH_E_INVALID);
    EXPECT_EQ(get(bad), "HEARTH_E_INVALID");
    EXPECT_EQ(remove(bad), HEARTH_E_INVALID);
  }
  EXPECT_EQ(put(kNotUtf8, "1"), HEARTH_E_INVALID);
  EXPECT_EQ(kv_.put(host_, kAgent, kNullWithLength, slice("1")), HEARTH_E_INVALID);
  EXPECT_EQ(list(kNotUtf8), "HEARTH_E_INVALID");
  EXPECT_FALSE(agent_.has_stored());
  EXPECT_EQ(put(longest, "1"), HEARTH_OK);
  EXPECT_EQ(put("\xc3\xa4 \"quoted\"", "2"), HEARTH_OK);
  EXPECT_EQ(list("\xc3"), "HEARTH_E_INVALID");
  EXPECT_EQ(list("\xc3\xa4"), "[{\"key\":\"\xc3\xa4 \\\"quoted\\\"\",\"value\":2}]");
}

TEST_F(AbiKvTest, WhatIsNoJsonIsRefused) {
  for (const std::string_view bad : {"", "{", "nul", "\"\xff\""})
    EXPECT_EQ(put("k", bad), HEARTH_E_INVALID) << bad;
  EXPECT_EQ(kv_.put(host_, kAgent, slice("k"), kNullWithLength), HEARTH_E_INVALID);
  EXPECT_FALSE(agent_.has_stored());
}

TEST_F(AbiKvTest, AreListedByPrefixInPagesInTheOrderOfTheirKeys) {
  for (const std::string_view key : {"b:2", "a", "b:1", "c", "b", "b:3"})
    EXPECT_EQ(put(key, "1"), HEARTH_OK);
  const auto entries = [](std::initializer_list<std::string_view> keys) {
    std::string text = "[";
    for (const std::string_view key : keys)
      text += (text.size() == 1 ? "{\"key\":\"" : ",{\"key\":\"") + std::string(key) +
              "\",\"value\":1}";
    return text + "]";
  };
  EXPECT_EQ(list(), entries({"a", "b", "b:1", "b:2", "b:3", "c"}));
  EXPECT_EQ(list("b:"), entries({"b:1", "b:2", "b:3"}));
  EXPECT_EQ(list("b:", "", 2), entries({"b:1", "b:2"}));
  EXPECT_EQ(list("b:", "b:2", 2), entries({"b:3"}));
  EXPECT_EQ(list("b:", "b:3"), "[]");
  EXPECT_EQ(list("b:", "a"), entries({"b:1", "b:2", "b:3"})) << "before the prefix";
  EXPECT_EQ(list("b:", "c"), "[]") << "behind it";
  EXPECT_EQ(list("", "b:15"), entries({"b:2", "b:3", "c"})) << "which was never there";
  EXPECT_EQ(list("x"), "[]");
  EXPECT_EQ(list("", "", 1001), "HEARTH_E_INVALID");
  EXPECT_EQ(kv_.list(host_, kAgent, nullptr, nullptr), HEARTH_E_INVALID);
}

TEST_F(AbiKvTest, APageOfLargeValuesEndsBeforeItsLimit) {
  const std::string large = '"' + std::string(1'000'000, 'x') + '"';
  for (const std::string_view key : {"a", "b", "c", "d", "e", "f"})
    ASSERT_EQ(put(key, large), HEARTH_OK) << last_error();
  const std::string first = list();
  EXPECT_NE(first.find("\"e\""), std::string::npos);
  EXPECT_EQ(first.find("\"f\""), std::string::npos);
  EXPECT_EQ(list("", "e").size(), std::string(R"([{"key":"f","value":}])").size() + large.size());
}

TEST_F(AbiKvTest, AValueMayBeAPartOfARowThatTheAgentReads) {
  ASSERT_EQ(put("k", R"("v")"), HEARTH_OK);
  storage::PluginSql& sql = agent_.of<SqlExtension>().sql();
  const auto row = sql.prepare("SELECT key, value FROM cf_agents_kv").value();
  ASSERT_TRUE(sql.step(row));
  EXPECT_EQ(put(sql.column_text(row, 0).value(), sql.column_text(row, 1).value()), HEARTH_OK);
  EXPECT_EQ(get("k"), R"("v")");
  EXPECT_FALSE(sql.prepare("DELETE FROM cf_agents_kv")) << "plugins only read";
}

TEST_F(AbiKvTest, ARollbackTakesValuesAndCountsBackAndTheTablesToo) {
  storage::PluginSql& sql = agent_.of<SqlExtension>().sql();
  for (int round = 0; round < 2; ++round) {
    const auto savepoint = sql.begin_savepoint();
    ASSERT_TRUE(savepoint);
    EXPECT_EQ(put("undone", "1"), HEARTH_OK) << last_error();
    EXPECT_EQ(get("undone"), "1");
    ASSERT_TRUE(sql.rollback_to(*savepoint));
    EXPECT_EQ(get("undone"), "HEARTH_E_NOT_FOUND");
    EXPECT_EQ(usage(), std::pair(std::uint64_t(round), std::uint64_t(round == 0 ? 0 : 5)));
    if (round == 0) EXPECT_EQ(put("kept", "1"), HEARTH_OK) << last_error();
  }
  EXPECT_EQ(get("kept"), "1");
}

TEST_F(AbiKvTest, ABrokenDiskBreaksTheAgent) {
  agent_.break_storage();
  EXPECT_EQ(put("k", "1"), HEARTH_E_IO);
  EXPECT_NE(agent_.broken, "");
}

// ---- limits ----

ClassSettings small_settings() {
  ClassSettings settings;
  settings.kv = {.max_keys = 2, .max_value_bytes = 10, .max_total_bytes = 16};
  return settings;
}

TEST(KvLimitsTest, PastThemNothingIsChanged) {
  hearth::testing::TestAgent agent(7, small_settings());
  KvExtension& kv = agent.of<KvExtension>();
  const auto refused = [&](std::string_view key, std::string_view json, std::string_view why,
                           Errc code = Errc::kLimitExceeded) {
    const auto outcome = kv.put(key, json);
    return outcome.has_error() && outcome.error().code == code &&
           outcome.error().message.find(why) != std::string::npos;
  };
  EXPECT_TRUE(refused("a", R"("123456789")", "a value has at most 10 bytes", Errc::kTooLarge));
  EXPECT_TRUE(kv.put("a", R"("12345678")"));
  EXPECT_TRUE(refused("b", "12345", "the keys and values of an agent have at most 16 bytes"));
  EXPECT_TRUE(kv.put("b", "123"));
  EXPECT_TRUE(refused("c", "1", "an agent has at most 2 keys"));
  EXPECT_TRUE(refused("b", "12345", "at most 16 bytes")) << "replacing counts what goes";
  EXPECT_TRUE(kv.put("b", "1234"));
  EXPECT_EQ(kv.get("b").value(), "1234");
  EXPECT_EQ(kv.usage().keys, 2U);
  EXPECT_EQ(kv.usage().bytes, 16U);
  EXPECT_TRUE(kv.remove("a"));
  EXPECT_TRUE(kv.put("c", "1"));
}

}  // namespace
}  // namespace hearth::extensions
