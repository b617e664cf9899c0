#include "runtime/agent_handles.hpp"

#include "extensions/abi_host.hpp"
#include "fakes.hpp"
#include "support/manual_clock.hpp"
#include "support/seeded_random.hpp"

#include <hearth/abi.h>
#include <hearth/ext/kv.h>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {
namespace {

using testing::kUsualAgent;
using testing::ShardFixture;

TEST(AgentHandlesTest, AHandleNamesOneStayInMemory) {
  ShardFixture shard;
  shard.ask("GET");
  const AgentHandle first = shard.script.host->handle();
  EXPECT_NE(shard.shard().find_agent(first), nullptr);
  shard.evict();
  EXPECT_EQ(shard.shard().find_agent(first), nullptr);

  shard.ask("GET");
  const AgentHandle second = shard.script.host->handle();
  EXPECT_NE(second, first);
  EXPECT_NE(shard.shard().find_agent(second), nullptr);
  EXPECT_EQ(shard.shard().find_agent(first), nullptr) << "for ever";
}

// Code of an instance that is gone, as a library has it: with the handle that it was given.
TEST(AgentHandlesTest, R11_WhatAnInstanceThatIsGoneWritesIsRefused) {
  ShardFixture shard;
  hearth::testing::ManualClock clock;
  hearth::testing::SeededRandom random(7);
  const extensions::AbiHost abi({shard.runtime(), clock, random, shard.logger}, "test");
  const hearth_host* const host = abi.table();
  const auto& kv = *static_cast<const hearth_kv_v1*>(host->get_extension(host, HEARTH_EXT_KV));
  const auto slice = [](std::string_view text) { return hearth_bytes{text.data(), text.size()}; };
  AgentHandle gone = 0;
  std::vector<hearth_status> statuses;
  std::string kept;
  shard.script.on_event = [&](HostCalls& calls, const AgentEvent& event) -> Result<void> {
    if (event.call == 0) return {};
    if (event.kind != EventKind::kRequest) return calls.complete(event.call, std::string_view());
    const AgentHandle own = calls.handle();
    const auto write = [&](AgentHandle by, std::string_view value) {
      statuses.push_back(kv.put(host, by, slice("key"), slice(value)));
    };
    write(own, gone == 0 ? "1" : "2");
    if (gone != 0) write(gone, "3");
    hearth_bytes value{};
    statuses.push_back(kv.get(host, own, slice("key"), &value));
    kept.assign(static_cast<const char*>(value.ptr), value.len);
    if (gone != 0) statuses.push_back(kv.get(host, gone, slice("key"), &value));
    gone = own;
    return calls.complete(event.call, std::string_view());
  };
  shard.ask("POST");
  EXPECT_EQ(kept, "1");
  shard.evict();
  statuses.clear();
  shard.ask("POST");
  EXPECT_EQ(statuses,
            (std::vector<hearth_status>{HEARTH_OK, HEARTH_E_GONE, HEARTH_OK, HEARTH_E_GONE}));
  EXPECT_EQ(kept, "2") << "and the next instance is not touched";
}

TEST(AgentHandlesTest, TwoAgentsHaveTwo) {
  ShardFixture shard;
  shard.ask("GET");
  const AgentHandle first = shard.script.host->handle();
  shard.ask("GET", "", "b");
  EXPECT_NE(shard.shard().find_agent(first), shard.shard().find_agent(shard.script.host->handle()));
}

TEST(AgentHandlesTest, AHandleSaysItsShard) {
  ShardFixture shard;
  shard.ask("GET");
  const AgentHandle handle = shard.script.host->handle();
  EXPECT_EQ(AgentHandles::shard_of(handle), 0U);
  EXPECT_EQ(AgentHandles::shard_of(handle | AgentHandle{3} << 56U), 3U);
}

TEST(AgentHandlesTest, ZeroNamesNone) {
  ShardFixture shard;
  shard.ask("GET");
  EXPECT_EQ(shard.shard().find_agent(0), nullptr);
}

}  // namespace
}  // namespace hearth::runtime
