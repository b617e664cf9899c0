// The mock host's own strictness: a plugin that breaks the rules of abi.h is noticed in its unit tests.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>

#ifdef __has_feature
#define HEARTH_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define HEARTH_ADDRESS_SANITIZER 0
#endif

namespace {

using hearth::testing::Host;
using hearth::testing::Slices;

// AddressSanitizer reports the read itself.
#if !defined(__SANITIZE_ADDRESS__) && !HEARTH_ADDRESS_SANITIZER
TEST(MockHostTest, RecalledBytesAreOverwritten) {
  Slices slices;
  const hearth_bytes kept = slices.lend("secret");
  EXPECT_EQ(hearth::detail::view(kept), "secret");
  slices.recall();
  EXPECT_EQ(hearth::detail::view(kept), std::string(6, '\xDD'));
}
#endif

// Keeps what it was lent.
struct Keeper {
  hearth_bytes name;
  hearth_bytes state;
};
Keeper keeper;  // NOLINT

class Keeps : public hearth::Agent {
 public:
  Keeps() {
    const auto& tables = activation().tables();
    keeper.state = {nullptr, 0};
    EXPECT_EQ(tables.state->set_default(tables.host, activation().id(), {"{\"a\":1}", 7}),
              HEARTH_OK);
    EXPECT_EQ(tables.state->get(tables.host, activation().id(), &keeper.state), HEARTH_OK);
    first = std::string(hearth::detail::view(keeper.state));
    hearth_bytes again = {nullptr, 0};
    EXPECT_EQ(tables.state->get(tables.host, activation().id(), &again), HEARTH_OK);
    kept_is_void = keeper.state.ptr != again.ptr;
  }
  std::string first;
  bool kept_is_void = false;
};

TEST(MockHostTest, BytesOfTheHostAreVoidAtTheNextCall) {
  Host host;
  auto agent = host.create<Keeps>("k");
  EXPECT_EQ(agent.as<Keeps>().first, "{\"a\":1}");
  EXPECT_TRUE(agent.as<Keeps>().kept_is_void);
}

TEST(MockHostTest, TheClockMovesOnlyByHand) {
  Host host;
  auto agent = host.create<Keeps>("k");
  auto& keeps = agent.as<Keeps>();
  const auto before = keeps.now();
  const auto uptime = keeps.uptime();
  host.advance(std::chrono::minutes(5));
  EXPECT_EQ(keeps.now() - before, std::chrono::minutes(5));
  EXPECT_EQ(keeps.uptime() - uptime, std::chrono::minutes(5));
  host.set_wall(before);
  EXPECT_EQ(keeps.now(), before);
  EXPECT_EQ(keeps.uptime() - uptime, std::chrono::minutes(5));
}

TEST(MockHostTest, FunctionsOfAGoneAgentAnswerGone) {
  Host host;
  auto agent = host.create<Keeps>("k");
  const hearth_agent id = agent.as<Keeps>().activation().id();
  agent.evict();
  hearth_bytes text = {nullptr, 0};
  EXPECT_EQ(host.table()->last_error(host.table(), id, &text), HEARTH_E_GONE);
  EXPECT_EQ(host.table()->complete(host.table(), id, 1, HEARTH_OK, {nullptr, 0}), HEARTH_E_GONE);
}

TEST(MockHostTest, AnExtensionItDoesNotHaveIsNull) {
  const Host host;
  EXPECT_EQ(host.table()->get_extension(host.table(), "hearth.nothing/1"), nullptr);
  EXPECT_NE(host.table()->get_extension(host.table(), HEARTH_EXT_SQL), nullptr);
}

class Rests : public hearth::Agent {
 public:
  hearth::Task<void> on_start() override {
    for (;;) co_await sleep(std::chrono::milliseconds(0));
  }
};

TEST(MockHostTest, AnAgentThatNeverRestsIsAnErrorNotAHang) {
  Host host;
  EXPECT_THROW(host.create<Rests>("r"), std::runtime_error);
}

}  // namespace
