#include "extensions/abi_host.hpp"

#include "extensions/abi_fixture.hpp"
#include "extensions/abi_status.hpp"

#include <hearth/ext/agent.h>
#include <hearth/ext/clock.h>
#include <hearth/ext/connections.h>
#include <hearth/ext/http.h>
#include <hearth/ext/log.h>
#include <hearth/ext/random.h>
#include <hearth/ext/sql.h>
#include <hearth/ext/state.h>

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace hearth::extensions {
namespace {

using namespace testing;

// ---- the table itself ----

TEST_F(AbiHostTest, TheTableSaysWhatItIs) {
  EXPECT_EQ(host_->struct_size, sizeof(hearth_host));
  EXPECT_EQ(host_->abi_major, HEARTH_ABI_MAJOR);
  EXPECT_EQ(host_->abi_minor, HEARTH_ABI_MINOR);
  EXPECT_EQ(&AbiHost::of(host_), &abi_);
}

TEST_F(AbiHostTest, OnlyAWholeIdNamesAnExtension) {
  EXPECT_NE(host_->get_extension(host_, HEARTH_EXT_SQL), nullptr);
  for (const char* id : {"", "hearth.sql", "hearth.sql/2", "HEARTH.SQL/1", "hearth.sql/1 "}) {
    EXPECT_EQ(host_->get_extension(host_, id), nullptr) << id;
  }
  EXPECT_EQ(host_->get_extension(host_, std::string(100'000, 'x').c_str()), nullptr);
  EXPECT_EQ(host_->get_extension(host_, nullptr), nullptr);
}

TEST_F(AbiHostTest, UnknownAgentsAreGoneAndForeignOnesOnTheWrongThread) {
  hearth_bytes out{};
  std::uint64_t id = 0;
  const auto& state = extension<hearth_state_v1>(HEARTH_EXT_STATE);
  for (const hearth_agent nobody : {hearth_agent{0}, hearth_agent{1}, ~hearth_agent{0}}) {
    EXPECT_EQ(host_->complete(host_, nobody, 1, HEARTH_OK, kNothing), HEARTH_E_GONE);
    EXPECT_EQ(host_->submit(host_, nobody, HEARTH_OP_SLEEP, kNothing, 1, &id), HEARTH_E_GONE);
    EXPECT_EQ(host_->last_error(host_, nobody, &out), HEARTH_E_GONE);
    EXPECT_EQ(state.get(host_, nobody, &out), HEARTH_E_GONE);
  }
  constexpr auto kElsewhere = TestDirectory::kElsewhere;
  EXPECT_EQ(host_->complete(host_, kElsewhere, 1, HEARTH_OK, kNothing), HEARTH_E_WRONG_THREAD);
  EXPECT_EQ(state.get(host_, kElsewhere, &out), HEARTH_E_WRONG_THREAD);
  EXPECT_TRUE(agent_.told.empty());
}

TEST_F(AbiHostTest, ANullHostIsInvalid) {
  EXPECT_EQ(host_->complete(nullptr, kAgent, 1, HEARTH_OK, kNothing), HEARTH_E_INVALID);
  EXPECT_EQ(host_->post(nullptr, kAgent, 1), HEARTH_E_INVALID);
}

TEST_F(AbiHostTest, CompletePassesAnswersAndErrors) {
  EXPECT_EQ(host_->complete(host_, kAgent, 1, HEARTH_OK, slice("[1]")), HEARTH_OK);
  EXPECT_EQ(host_->complete(host_, kAgent, 2, HEARTH_OK, kNothing), HEARTH_OK);
  EXPECT_EQ(host_->complete(host_, kAgent, 3, HEARTH_E_PLUGIN, slice("boom")), HEARTH_OK);
  EXPECT_EQ(host_->complete(host_, kAgent, 4, HEARTH_E_NOT_FOUND, kNothing), HEARTH_OK);
  EXPECT_EQ(host_->complete(host_, kAgent, 5, -1000, slice("odd")), HEARTH_OK);
  EXPECT_EQ(agent_.told,
            (Lines{"complete 1 ok [1]", "complete 2 ok ", "complete 3 plugin_error boom",
                   "complete 4 not_found the agent failed with HEARTH_E_NOT_FOUND",
                   "complete 5 plugin_error odd"}));
}

TEST_F(AbiHostTest, CompleteRefusesWhatIsNoOutcome) {
  EXPECT_EQ(host_->complete(host_, kAgent, 1, HEARTH_ROW, kNothing), HEARTH_E_INVALID);
  EXPECT_EQ(host_->complete(host_, kAgent, 1, HEARTH_OK, kNullWithLength), HEARTH_E_INVALID);
  EXPECT_TRUE(agent_.told.empty());
}

// A failure must reach the caller, whatever bytes its text holds.
TEST_F(AbiHostTest, TheTextOfAFailureIsMadeFitAndCut) {
  EXPECT_EQ(host_->complete(host_, kAgent, 1, HEARTH_E_PLUGIN, slice(kNotUtf8)), HEARTH_OK);
  EXPECT_EQ(host_->complete(host_, kAgent, 2, HEARTH_E_PLUGIN, slice(std::string(10'000, 'x'))),
            HEARTH_OK);
  EXPECT_EQ(agent_.told[0], "complete 1 plugin_error \\xff\\xfe");
  EXPECT_EQ(agent_.told[1].size(), std::string("complete 2 plugin_error ").size() + 4096);
}

TEST_F(AbiHostTest, FailuresOfTheRuntimeBecomeStatuses) {
  const std::array<std::pair<Errc, hearth_status>, 7> expected = {
      {{Errc::kNotFound, HEARTH_E_GONE},
       {Errc::kInvalidArgument, HEARTH_E_INVALID},
       {Errc::kLimitExceeded, HEARTH_E_LIMIT},
       {Errc::kTooLarge, HEARTH_E_LIMIT},
       {Errc::kClosing, HEARTH_E_CLOSING},
       {Errc::kUnsupported, HEARTH_E_UNSUPPORTED},
       {Errc::kForbidden, HEARTH_E_FORBIDDEN}}};
  for (const auto& [code, status] : expected) {
    answer(code, "it said no");
    EXPECT_EQ(host_->emit(host_, kAgent, 1, slice("x")), status);
    EXPECT_EQ(last_error(), "it said no");
  }
}

TEST_F(AbiHostTest, SubmitGivesTheNumberOfTheOperation) {
  std::uint64_t id = 0;
  EXPECT_EQ(host_->submit(host_, kAgent, HEARTH_OP_SLEEP, slice("12345678"), 5, &id), HEARTH_OK);
  EXPECT_EQ(id, 99U);
  EXPECT_EQ(host_->submit(host_, kAgent, HEARTH_OP_SLEEP, slice("12345678"), 5, nullptr),
            HEARTH_E_INVALID);
  EXPECT_EQ(host_->credit(host_, kAgent, 99, 4096), HEARTH_OK);
  EXPECT_EQ(host_->cancel(host_, kAgent, 99), HEARTH_OK);
  EXPECT_EQ(agent_.told, (Lines{"submit 1 8 bytes 5", "credit 99 4096", "cancel 99"}));
  answer(Errc::kNotFound);
  EXPECT_EQ(host_->cancel(host_, kAgent, 99), HEARTH_E_GONE);
}

TEST_F(AbiHostTest, PostsReachTheDirectory) {
  EXPECT_EQ(host_->post(host_, kAgent, 17), HEARTH_OK);
  EXPECT_EQ(agents_.posted, std::vector<std::uint64_t>{17});
  EXPECT_EQ(host_->post(host_, 1, 17), HEARTH_E_GONE);
}

TEST_F(AbiHostTest, AStorageErrorBreaksTheAgentAndCrossesAsIo) {
  agent_.break_storage();
  const auto& state = extension<hearth_state_v1>(HEARTH_EXT_STATE);
  EXPECT_EQ(state.set(host_, kAgent, 0, kNullWithLength), HEARTH_E_INVALID);
  EXPECT_EQ(state.set(host_, kAgent, 0, slice("1")), HEARTH_E_IO);
  EXPECT_EQ(last_error(), "the agent's storage failed") << "and not why another call was refused";
  EXPECT_NE(agent_.broken, "");
}

TEST(AbiStatusTest, EveryStatusHasAName) {
  for (hearth_status status = HEARTH_E_UNREADABLE; status < 0; ++status) {
    EXPECT_TRUE(status_name(status).starts_with("HEARTH_E_")) << status;
  }
  EXPECT_EQ(status_name(-77), "the unknown status -77");
  EXPECT_EQ(to_errc(-77), Errc::kPlugin);
}

TEST(AbiStatusTest, CodesSurviveTheWayThereAndBack) {
  for (const Errc code :
       {Errc::kNotFound, Errc::kConflict, Errc::kInvalidArgument, Errc::kLimitExceeded,
        Errc::kClosing, Errc::kUnavailable, Errc::kTimeout, Errc::kCancelled, Errc::kForbidden,
        Errc::kUnsupported, Errc::kPlugin, Errc::kFinal, Errc::kUnreadable}) {
    EXPECT_EQ(to_errc(to_status(code)), code) << to_string(code);
  }
}

// ---- small extensions ----

TEST_F(AbiHostTest, LogLinesNameTheAgentOrTheLibrary) {
  const auto& log = extension<hearth_log_v1>(HEARTH_EXT_LOG);
  log.write(host_, kAgent, HEARTH_LOG_WARN, slice("of an agent"));
  log.write(host_, kAgent, 99, slice("of an unknown level"));
  log.write(host_, 0, HEARTH_LOG_ERROR, slice("of the library"));
  log.write(host_, TestDirectory::kElsewhere, HEARTH_LOG_INFO, slice("of another thread"));
  log.write(host_, 0, HEARTH_LOG_INFO, kNullWithLength);
  EXPECT_EQ(agent_.told, (Lines{"log 3 of an agent", "log 2 of an unknown level"}));
  EXPECT_EQ(logger_.events().size(), 2U);
  EXPECT_TRUE(logger_.contains("error plugin.log library=plain.so text=\"of the library\""));
  EXPECT_TRUE(logger_.contains("of another thread"));
}

TEST_F(AbiHostTest, OnlyALineWithANameIsCountedAsAnEvent) {
  const auto& log = extension<hearth_log_v1>(HEARTH_EXT_LOG);
  log.write(host_, kAgent, HEARTH_LOG_WARN, slice("a:b c"));
  log.write(host_, kAgent, HEARTH_LOG_WARN | HEARTH_LOG_EVENT, slice("a:b c"));
  log.write(host_, kAgent, HEARTH_LOG_DEBUG | HEARTH_LOG_EVENT, slice("alone"));
  log.write(host_, 0, HEARTH_LOG_INFO | HEARTH_LOG_EVENT, slice("x y"));
  EXPECT_EQ(agent_.told,
            (Lines{"log 3 a:b c", "event a:b", "log 3 a:b c", "event alone", "log 1 alone"}));
}

TEST_F(AbiHostTest, LogLinesAreCut) {
  const auto& log = extension<hearth_log_v1>(HEARTH_EXT_LOG);
  log.write(host_, kAgent, HEARTH_LOG_INFO, slice(std::string(100'000, 'x')));
  EXPECT_EQ(agent_.told[0].size(), std::string("log 2 ").size() + 8192);
}

TEST_F(AbiHostTest, ClocksAreTheHosts) {
  const auto& clock = extension<hearth_clock_v1>(HEARTH_EXT_CLOCK);
  const auto wall = clock.wall_ms(host_);
  const auto steady = clock.steady_ns(host_);
  EXPECT_EQ(wall, unix_millis(agent_.clock.wall_now()));
  agent_.clock.advance(std::chrono::milliseconds(5));
  EXPECT_EQ(clock.wall_ms(host_), wall + 5);
  EXPECT_EQ(clock.steady_ns(host_), steady + 5'000'000);
}

TEST_F(AbiHostTest, RandomBytesAreTheHosts) {
  const auto& random = extension<hearth_random_v1>(HEARTH_EXT_RANDOM);
  std::array<std::byte, 16> mine{};
  std::array<std::byte, 16> its{};
  hearth::testing::SeededRandom(7).fill(mine);
  EXPECT_EQ(random.fill(host_, its.data(), its.size()), HEARTH_OK);
  EXPECT_EQ(mine, its);
  EXPECT_EQ(random.fill(host_, nullptr, 1), HEARTH_E_INVALID);
  EXPECT_EQ(random.fill(host_, nullptr, 0), HEARTH_OK);
  EXPECT_EQ(random.fill(host_, its.data(), (std::size_t{1} << 20) + 1), HEARTH_E_INVALID);
}

TEST_F(AbiHostTest, EvictIsAsked) {
  const auto& life = extension<hearth_agent_v1>(HEARTH_EXT_AGENT);
  EXPECT_EQ(life.evict(host_, kAgent), HEARTH_OK);
  answer(Errc::kClosing);
  EXPECT_EQ(life.evict(host_, kAgent), HEARTH_E_CLOSING);
}

TEST_F(AbiHostTest, DestroyIsAskedAndSaysWhenItDidNotHappen) {
  const auto& life = extension<hearth_agent_v1>(HEARTH_EXT_AGENT);
  EXPECT_EQ(life.destroy(host_, kAgent), HEARTH_OK);
  EXPECT_EQ(agent_.told.back(), "destroy");
  answer(Errc::kClosing);
  EXPECT_EQ(life.destroy(host_, kAgent), HEARTH_E_CLOSING);
  agent_.destruction_fails = true;
  EXPECT_EQ(life.destroy(host_, kAgent), HEARTH_E_IO);
  EXPECT_EQ(agent_.broken, "the disk is gone");
  EXPECT_EQ(life.destroy(host_, kAgent + 1), HEARTH_E_GONE);
}

}  // namespace
}  // namespace hearth::extensions
