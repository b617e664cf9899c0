// The counter of the first example for clients of objects. Plugin "seed-counter".
//
//   methods   increment({amount}) -> {value}: adds a number; get() -> {value}; reset();
//             slow(ms) -> "slept": answers so much later; fails() never answers
//   storage   count

#include <hearth/agent.hpp>

#include <chrono>
#include <cstdint>
#include <string>

class Counter : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Counter>& m) {
    m.add("increment", &Counter::increment);
    m.add("get", &Counter::get);
    m.add("reset", &Counter::reset);
    m.add("slow", &Counter::slow);
    m.add("fails", &Counter::fails);
  }

  struct Amount {
    std::int64_t amount = 1;
    HEARTH_FIELDS(amount)
  };
  struct Value {
    std::int64_t value = 0;
    HEARTH_FIELDS(value)
  };

  Value increment(Amount by) {
    const Value now{get().value + by.amount};
    kv().put("count", now.value);
    return now;
  }
  Value get() { return {kv().get<std::int64_t>("count").value_or(0)}; }
  void reset() { kv().remove("count"); }
  hearth::Task<std::string> slow(int ms) {
    co_await sleep(std::chrono::milliseconds(ms));
    co_return "slept";
  }
  void fails() { throw hearth::Error(HEARTH_E_INVALID, "it always fails"); }
};

HEARTH_PLUGIN("seed-counter", "1.0.0", Counter)
