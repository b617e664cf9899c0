// What a new turn does to the line.
#include "rows.hpp"

#include <hearth/chat/line.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::milliseconds;
using Ids = std::vector<std::string>;

constexpr auto kQueue = LinePolicy::kQueue;
constexpr auto kLatest = LinePolicy::kLatest;
constexpr auto kMerge = LinePolicy::kMerge;
constexpr auto kDrop = LinePolicy::kDrop;
constexpr auto kDebounce = LinePolicy::kDebounce;

// A turn in the line: "s1" was submitted with the message "us1", "S1" is the same and runs. The
// other kinds are r, c and p.
TurnInLine turn_of(const std::string& id) {
  TurnInLine turn;
  turn.id = id;
  turn.is_running = id[0] < 'a';
  const char kind = static_cast<char>(id[0] | 0x20);
  turn.kind = kind == 's'   ? TurnKind::kSubmit
              : kind == 'r' ? TurnKind::kRegenerate
              : kind == 'c' ? TurnKind::kContinuation
                            : TurnKind::kProgram;
  turn.origin_ids = {"u" + id};
  return turn;
}

std::vector<TurnInLine> line_of(const Ids& ids) {
  std::vector<TurnInLine> line;
  for (const std::string& id : ids) line.push_back(turn_of(id));
  return line;
}

struct LineRow {
  const char* name;
  LinePolicy policy;
  Ids line;
  const char* arrives;
  Place place;
  Ids skipped;
  Ids joined;
  int wait_ms;
};

const std::vector<LineRow> kLineRows = {
    {"nothing runs", kQueue, {}, "s1", Place::kQueued, {}, {}, 0},
    {"one runs", kQueue, {"S1"}, "s2", Place::kQueued, {}, {}, 0},
    {"others wait", kQueue, {"S1", "s2", "c3"}, "s4", Place::kQueued, {}, {}, 0},

    {"latest of none", kLatest, {}, "s1", Place::kQueued, {}, {}, 0},
    {"what runs goes on", kLatest, {"S1"}, "s2", Place::kQueued, {}, {}, 0},
    {"what waits is skipped", kLatest, {"S1", "s2"}, "s3", Place::kQueued, {"s2"}, {}, 0},
    {"wherever it waits, and no other kind",
     kLatest,
     {"S1", "s2", "r3", "s4", "c5", "p6"},
     "s7",
     Place::kQueued,
     {"s2", "s4"},
     {},
     0},
    {"also if nothing runs yet", kLatest, {"s1"}, "s2", Place::kQueued, {"s1"}, {}, 0},

    {"merge of none", kMerge, {}, "s1", Place::kQueued, {}, {}, 0},
    {"what runs is not merged", kMerge, {"S1"}, "s2", Place::kQueued, {}, {}, 0},
    {"what waits is merged", kMerge, {"S1", "s2"}, "s3", Place::kQueued, {"s2"}, {"us2", "us3"}, 0},
    {"all at the end of the line",
     kMerge,
     {"S1", "s2", "p3", "s4", "s5"},
     "s6",
     Place::kQueued,
     {"s4", "s5"},
     {"us4", "us5", "us6"},
     0},
    {"none at its end", kMerge, {"S1", "s2", "c3"}, "s4", Place::kQueued, {}, {}, 0},

    {"drop of none", kDrop, {}, "s1", Place::kQueued, {}, {}, 0},
    {"while one runs", kDrop, {"S1"}, "s2", Place::kDropped, {}, {}, 0},
    {"while another kind waits", kDrop, {"c1"}, "s2", Place::kDropped, {}, {}, 0},

    {"debounce of none", kDebounce, {}, "s1", Place::kQueued, {}, {}, 0},
    {"waits while one runs", kDebounce, {"S1"}, "s2", Place::kQueued, {}, {}, 200},
    {"begins to wait again", kDebounce, {"s1", "p2"}, "s3", Place::kQueued, {"s1"}, {}, 200},

    {"regenerate", kQueue, {"S1", "s2"}, "r3", Place::kQueued, {}, {}, 0},
    {"a continuation waits for further answers", kQueue, {}, "c1", Place::kQueued, {}, {}, 50},
    {"behind the others", kQueue, {"S1", "s2"}, "c3", Place::kQueued, {}, {}, 50},
    {"what runs is not joined", kQueue, {"C1"}, "c2", Place::kQueued, {}, {}, 50},
    {"what waits is joined", kQueue, {"C1", "s2", "c3", "s4"}, "c5", Place::kJoins, {}, {}, 50},
};

TEST(LineTest, EachTurnGetsThePlaceOfItsRow) {
  const Time now(std::chrono::hours(500'000));
  const LineConfig config{kQueue, milliseconds(200)};
  for (const LineRow& row : kLineRows) {
    SCOPED_TRACE(row.name);
    LineConfig with = config;
    with.policy = row.policy;
    const auto line = line_of(row.line);
    const Placement placement = place_turn(line, turn_of(row.arrives), with, now);
    EXPECT_EQ(placement.place, row.place);
    EXPECT_EQ(placement.skipped, row.skipped);
    EXPECT_EQ(placement.joined, row.joined);
    EXPECT_EQ(placement.continuation, row.place == Place::kJoins ? "c3" : "");
    if (row.place != Place::kDropped)
      EXPECT_EQ(placement.not_before, now + milliseconds(row.wait_ms));
  }
}

TEST(LineTest, AContinuationJoinsOnlyOneOfItsMessage) {
  std::vector<TurnInLine> line = line_of({"C1", "c2", "c3"});
  line[1].message_id = "m1";
  line[2].message_id = "m2";
  TurnInLine arrives = turn_of("c4");
  for (const auto& [message, joins] : {std::pair("m1", "c2"), {"m2", "c3"}, {"m3", ""}}) {
    arrives.message_id = message;
    const Placement placement = place_turn(line, arrives, {kQueue}, {});
    EXPECT_EQ(placement.continuation, joins) << message;
    EXPECT_EQ(placement.place, *joins == '\0' ? Place::kQueued : Place::kJoins) << message;
  }
}

TEST(LineTest, NoPolicyIsForKindsThatWereNotSubmitted) {
  const auto line = line_of({"S1", "s2"});
  for (const LinePolicy policy : {kQueue, kLatest, kMerge, kDrop, kDebounce}) {
    for (const char* arrives : {"r3", "c3", "p3"}) {
      const Placement placement = place_turn(line, turn_of(arrives), {policy}, {});
      EXPECT_EQ(placement.place, Place::kQueued) << arrives;
      EXPECT_TRUE(placement.skipped.empty() && placement.joined.empty()) << arrives;
      EXPECT_LE(placement.not_before, Time(kCoalesce)) << arrives;
    }
  }
}

TEST(LineTest, ATimeOfDebounceThatIsNoneIsTheUsualOne) {
  for (const int time : {0, -1}) {
    EXPECT_EQ(
        place_turn(line_of({"S1"}), turn_of("s2"), {kDebounce, milliseconds(time)}, {}).not_before,
        Time(milliseconds(750)));
  }
}

// A client repeats the messages that it has no answer to.
TEST(LineTest, MessagesOfTurnsThatStayAreNotJoined) {
  auto line = line_of({"S1", "s2", "s3"});
  line[0].origin_ids = {"us1"};
  line[1].origin_ids = {"us1", "us2"};
  line[2].origin_ids = {"us1", "us2", "us3"};
  TurnInLine turn = turn_of("s4");
  turn.origin_ids = {"us1", "us2", "us3", "us4"};
  const Placement placement = place_turn(line, turn, {kMerge}, {});
  EXPECT_EQ(placement.skipped, (Ids{"s2", "s3"}));
  EXPECT_EQ(placement.joined, (Ids{"us2", "us3", "us4"}));
}

TEST(LineTest, AFullLineRefusesAllButContinuations) {
  Ids ids = {"S0"};
  for (std::size_t i = 1; i < kMaxQueuedTurns; ++i) ids.push_back("s" + std::to_string(i));
  ASSERT_EQ(place_turn(line_of(ids), turn_of("s"), {kQueue}, {}).place, Place::kQueued);
  ids.push_back("s");
  const auto line = line_of(ids);
  for (const LinePolicy policy : {kQueue, kDrop, kLatest, kMerge, kDebounce}) {
    const Placement placement = place_turn(line, turn_of("s"), {policy}, {});
    EXPECT_EQ(placement.place, policy == kQueue  ? Place::kFull
                               : policy == kDrop ? Place::kDropped
                                                 : Place::kQueued);
    EXPECT_EQ(placement.skipped.size(), placement.place == Place::kQueued ? kMaxQueuedTurns : 0);
  }
  EXPECT_EQ(place_turn(line, turn_of("r"), {kLatest}, {}).place, Place::kFull);
  EXPECT_EQ(place_turn(line, turn_of("p"), {kLatest}, {}).place, Place::kFull);
  EXPECT_EQ(place_turn(line, turn_of("c"), {kQueue}, {}).place, Place::kQueued);
}

}  // namespace
}  // namespace hearth::chat
