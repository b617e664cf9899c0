#pragma once
// What a turn and a day may cost, in calls, tokens and money. A call is reserved with its upper
// bound before it is made, and settled with what it has used; both are kept with the turn, so that
// a crash in between leaves the upper bound.

#include <hearth/chat/usage.hpp>
#include <hearth/fields.hpp>
#include <hearth/time.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace hearth::chat {

// Of a million tokens, in any currency.
struct Price {
  double input = 0;
  std::optional<double> cached = {};  // absent: as `input`
  double output = 0;
  HEARTH_FIELDS(input, cached, output)
};

// Absent: no limit.
struct Limits {
  std::optional<std::int64_t> calls = {};
  std::optional<std::int64_t> tokens = {};
  std::optional<double> cost = {};
  HEARTH_FIELDS(calls, tokens, cost)
};

struct Budget {
  Limits turn = {};
  Limits day = {};  // of the agent, by UTC
  Price price = {};
  HEARTH_FIELDS(turn, day, price)
};

struct Spent {
  std::int64_t calls = 0;
  std::int64_t tokens = 0;
  double cost = 0;
  HEARTH_FIELDS(calls, tokens, cost)
};

// The day's sum begins again with the first call of a day.
struct DaySpent {
  std::int64_t day = 0;  // days since 1970
  Spent spent = {};
  HEARTH_FIELDS(day, spent)
};

// What a call will use at most.
struct Estimate {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;  // 0: not limited, so that only the input is reserved
};

// Tokens of a request's body, from its bytes: for a prompt whose size no provider has reported yet.
[[nodiscard]] std::int64_t estimate_tokens(std::size_t bytes);

struct Reservation {
  std::int64_t day = 0;
  std::int64_t tokens = 0;
  double cost = 0;
  HEARTH_FIELDS(day, tokens, cost)
};

struct Reserved {
  std::optional<Reservation> reservation;  // nothing: the call would exceed a limit
  std::string refusal;                     // then: a sentence for the client that names the limit
};

// Adds the call to both sums, or changes nothing.
[[nodiscard]] Reserved reserve(Spent& turn, DaySpent& day, const Budget& budget,
                               const Estimate& estimate, Time now);

// Puts what the call has used in the place of what was reserved. What the provider has not reported
// stays reserved. The call counts in any case.
void settle(Spent& turn, DaySpent& day, const Price& price, const Reservation& reservation,
            const Usage& usage);

// Takes a call back that has not left the server.
void release(Spent& turn, DaySpent& day, const Reservation& reservation);

}  // namespace hearth::chat
