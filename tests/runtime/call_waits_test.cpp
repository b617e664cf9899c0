#include "runtime/call_waits.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

using extensions::WaitingAgent;
using storage::AgentKey;

// A wait of some agents for a callee, each agent a letter. A capital letter: that agent's call, in
// progress or waited for, runs alone.
struct Waits {
  std::string who;
  char callee;
};

AgentKey key_of(char letter) {
  return {"Class", std::string(1, static_cast<char>(letter | 0x20))};
}
bool is_alone(char letter) {
  return letter < 'a';
}
std::vector<WaitingAgent> waiting_of(const Waits& wait) {
  std::vector<WaitingAgent> all;
  for (const char each : wait.who) all.push_back({key_of(each), is_alone(each)});
  return all;
}
bool add(CallWaits& waits, const Waits& wait) {
  return waits.add(waiting_of(wait), key_of(wait.callee), is_alone(wait.callee));
}
void remove(CallWaits& waits, const Waits& wait) {
  waits.remove(waiting_of(wait), key_of(wait.callee), is_alone(wait.callee));
}

struct Case {
  std::vector<Waits> before;
  Waits last;
  bool circle;
};

TEST(CallWaitsTest, ACircleIsRefusedIfEachHoldsUpTheOneBefore) {
  const std::vector<Case> cases{
      // An agent calls itself.
      {{}, {"A", 'A'}, true},
      {{}, {"A", 'a'}, true},
      {{}, {"a", 'A'}, true},
      {{}, {"a", 'a'}, false},
      {{}, {"BA", 'A'}, true},
      {{}, {"Ba", 'a'}, false},
      // Two.
      {{{"A", 'B'}}, {"B", 'A'}, true},
      {{{"A", 'b'}}, {"b", 'a'}, false},
      {{{"A", 'b'}}, {"B", 'a'}, true},
      {{{"a", 'B'}}, {"b", 'A'}, true},
      {{{"a", 'b'}}, {"B", 'A'}, true},
      {{{"A", 'b'}}, {"b", 'A'}, false},
      {{{"a", 'B'}}, {"b", 'a'}, false},
      // Three, whichever comes last.
      {{{"A", 'B'}, {"B", 'C'}}, {"C", 'A'}, true},
      {{{"B", 'C'}, {"C", 'A'}}, {"A", 'B'}, true},
      {{{"A", 'b'}, {"b", 'C'}}, {"C", 'A'}, false},
      {{{"a", 'B'}, {"b", 'C'}}, {"c", 'A'}, true},
  };
  for (const Case& each : cases) {
    CallWaits waits;
    std::string told;
    for (const Waits& wait : each.before) {
      ASSERT_TRUE(add(waits, wait));
      told += wait.who + ">" + wait.callee + " ";
    }
    EXPECT_EQ(add(waits, each.last), !each.circle)
        << told << each.last.who << ">" << each.last.callee;
  }
}

TEST(CallWaitsTest, WhatIsOverCountsNoMore) {
  CallWaits waits;
  const Waits first{"A", 'B'};
  EXPECT_TRUE(add(waits, first));
  EXPECT_TRUE(add(waits, first)) << "two calls at once";
  remove(waits, first);
  EXPECT_FALSE(add(waits, {"B", 'A'}));
  remove(waits, first);
  EXPECT_TRUE(add(waits, {"B", 'A'}));
}

}  // namespace
}  // namespace hearth::runtime
