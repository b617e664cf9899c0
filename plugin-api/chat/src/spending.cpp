#include <hearth/chat/spending.hpp>
#include <hearth/json.hpp>

#include <algorithm>
#include <limits>

namespace hearth::chat {
namespace {

constexpr double kMillion = 1e6;

// Providers and files give the counts: no sum overflows.
std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

double cost_of(const Price& price, std::int64_t input, std::int64_t cached, std::int64_t output) {
  const std::int64_t from_cache = std::clamp<std::int64_t>(cached, 0, input);
  return (static_cast<double>(input - from_cache) * price.input +
          static_cast<double>(from_cache) * price.cached.value_or(price.input) +
          static_cast<double>(output) * price.output) /
         kMillion;
}

// The name of the first limit that would be exceeded. Empty: none.
std::string exceeded_limit(const Spent& spent, const Limits& limits, const Reservation& call) {
  if (limits.calls && sum(spent.calls, 1) > *limits.calls)
    return "calls to the model (" + std::to_string(*limits.calls) + ")";
  if (limits.tokens && sum(spent.tokens, call.tokens) > *limits.tokens)
    return "tokens (" + std::to_string(*limits.tokens) + ")";
  if (limits.cost && spent.cost + call.cost > *limits.cost)
    return "cost (" + to_text(*limits.cost) + ")";
  return {};
}

void add(Spent& spent, std::int64_t calls, std::int64_t tokens, double cost) {
  spent.calls = std::max<std::int64_t>(sum(spent.calls, calls), 0);
  spent.tokens = std::max<std::int64_t>(sum(spent.tokens, tokens), 0);
  spent.cost = std::max(spent.cost + cost, 0.0);
}

}  // namespace

std::int64_t estimate_tokens(std::size_t bytes) {
  // English has about four bytes a token, JSON and other scripts have fewer.
  return static_cast<std::int64_t>(bytes / 3);
}

Reserved reserve(Spent& turn, DaySpent& day, const Budget& budget, const Estimate& estimate,
                 Time now) {
  const std::int64_t today = std::chrono::floor<std::chrono::days>(now).time_since_epoch().count();
  const std::int64_t input = std::max<std::int64_t>(estimate.input_tokens, 0);
  const std::int64_t output = std::max<std::int64_t>(estimate.output_tokens, 0);
  const Reservation call{today, sum(input, output), cost_of(budget.price, input, 0, output)};
  const Spent of_today = day.day == today ? day.spent : Spent{};
  std::string limit = exceeded_limit(turn, budget.turn, call);
  if (!limit.empty()) return {std::nullopt, "This answer has reached its limit of " + limit + "."};
  limit = exceeded_limit(of_today, budget.day, call);
  if (!limit.empty())
    return {std::nullopt, "This chat has reached its daily limit of " + limit + "."};
  day = {today, of_today};
  add(turn, 1, call.tokens, call.cost);
  add(day.spent, 1, call.tokens, call.cost);
  return {call, {}};
}

void settle(Spent& turn, DaySpent& day, const Price& price, const Reservation& reservation,
            const Usage& usage) {
  if (!usage.input_tokens || !usage.output_tokens) return;
  const std::int64_t input = std::max<std::int64_t>(*usage.input_tokens, 0);
  const std::int64_t output = std::max<std::int64_t>(*usage.output_tokens, 0);
  const std::int64_t tokens = sum(input, output) - reservation.tokens;
  const double cost =
      cost_of(price, input, usage.cached_tokens.value_or(0), output) - reservation.cost;
  add(turn, 0, tokens, cost);
  if (day.day == reservation.day) add(day.spent, 0, tokens, cost);
}

void release(Spent& turn, DaySpent& day, const Reservation& reservation) {
  add(turn, -1, -reservation.tokens, -reservation.cost);
  if (day.day == reservation.day) add(day.spent, -1, -reservation.tokens, -reservation.cost);
}

}  // namespace hearth::chat
