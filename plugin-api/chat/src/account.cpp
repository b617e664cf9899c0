#include "account.hpp"

#include <hearth/agent_base.hpp>

namespace hearth::chat {

namespace {

constexpr const char* kDayKey = "hearth.chat.day";

}  // namespace

DaySpent Account::day() const {
  return agent_.kv().get<DaySpent>(kDayKey).value_or(DaySpent());
}

void Account::keep(const DaySpent& day) {
  agent_.kv().put(kDayKey, Json(day));
}

std::string Account::reserve(TurnRecord& turn, const Estimate& estimate) {
  DaySpent today = day();
  Reserved reserved = chat::reserve(turn.spent, today, budget_, estimate, agent_.now());
  if (!reserved.reservation) return reserved.refusal;
  turn.plan.reservation = reserved.reservation;
  keep(today);
  return {};
}

void Account::settle(TurnRecord& turn, const Usage& usage) {
  if (!turn.plan.reservation) return;
  DaySpent today = day();
  chat::settle(turn.spent, today, budget_.price, *turn.plan.reservation, usage);
  keep(today);
  turn.plan.reservation.reset();
}

void Account::give_back(TurnRecord& turn) {
  if (!turn.plan.reservation) return;
  DaySpent today = day();
  release(turn.spent, today, *turn.plan.reservation);
  keep(today);
  turn.plan.reservation.reset();
}

}  // namespace hearth::chat
