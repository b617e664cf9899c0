#pragma once
// What turns and days have spent, as it is kept: a turn's sum in its row, the day's with the agent.
// See spending.hpp for the rules.
//
// Promises  A call is reserved once, and settled or given back once, also over a crash: what
//           changes is one commit with the row of the turn, which the caller saves.

#include <hearth/chat/spending.hpp>
#include <hearth/chat/turns.hpp>
#include <hearth/chat/usage.hpp>

#include <string>

namespace hearth {
class Agent;
}

namespace hearth::chat {

class Account {
 public:
  Account(Agent& agent, const Budget& budget) : agent_(agent), budget_(budget) {}
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  // Empty: the call is reserved in `turn`. Else a sentence that names the limit.
  [[nodiscard]] std::string reserve(TurnRecord& turn, const Estimate& estimate);
  // The call that is reserved, if one is, has used so much. What `usage` does not say counts as it
  // was reserved.
  void settle(TurnRecord& turn, const Usage& usage);
  // It has not left the server.
  void give_back(TurnRecord& turn);

 private:
  [[nodiscard]] DaySpent day() const;
  void keep(const DaySpent& day);

  Agent& agent_;
  Budget budget_;
};

}  // namespace hearth::chat
