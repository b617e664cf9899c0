#include "scenarios/random_steps.hpp"

#include <array>
#include <random>

namespace hearth::scenarios {
namespace {

class Walker {
 public:
  explicit Walker(std::uint64_t seed) : random_(seed) {}

  Walk walk() {
    const int length = 12 + below(20);
    for (int step = 0; step < length; ++step) one();
    for (const std::string& each : schedules_)
      call("unschedule", Value::array({"$" + each + ".id"}), "-");
    walk_.steps.push_back({{"advance", 1'800'000}});
    for (const char* list : {"dead", "items", "schedules", "records", "journal"})
      call(list, Value::array());
    return std::move(walk_);
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  std::string fresh(const std::string& prefix) { return prefix + std::to_string(++names_); }
  void call(const std::string& method, Value args, const std::string& as = "") {
    walk_.steps.push_back(
        {{"call", method}, {"args", std::move(args)}, {"as", as.empty() ? method : as}});
  }
  void pass(int ms) { walk_.steps.push_back({{"advance", ms}}); }

  void one() {
    switch (below(14)) {
      case 0:
      case 1: return begin();
      case 2:
        ++walk_.plain_fibers;
        return call("spawn", Value::array({Value{{"steps", 3}, {"ms", 20 + below(200)}}}));
      case 3: return note("later", Value::array({"note", below(2'000)}));
      case 4: return note("push", Value::array({"note"}));
      case 5: return every();
      case 6: return settle();
      case 7: return call("push", Value::array({"flaky", fresh("flaky ")}));
      case 8: return call("nest", Value::array());
      case 9: return interrupt();
      default: return pass(1 + below(400));
    }
  }
  void begin() {
    static constexpr std::array kHooks = {"continue", "continue", "nothing",
                                          "settle",   "throw",    "slow"};
    Value work{{"steps", 1 + below(4)},
               {"ms", 20 + below(150)},
               {"failures", below(3)},
               {"max_retries", below(4)},
               {"hook", kHooks[static_cast<std::size_t>(below(kHooks.size()))]}};
    if (below(3) == 0) work["key"] = "key " + std::to_string(below(2));
    const std::string as = fresh("begin ");
    call("begin", Value::array({std::move(work)}), as);
    if (!walk_.steps.back()["args"][0].contains("key")) fibers_.push_back(as);
  }
  void note(const std::string& method, Value args) {
    walk_.notes.push_back(fresh("note "));
    args.push_back(walk_.notes.back());
    call(method, std::move(args));
  }
  void every() {
    if (schedules_.size() == 2) return;
    schedules_.push_back(fresh("every "));
    call("every", Value::array({"note", 5'000 + below(30'000)}), schedules_.back());
  }
  void settle() {
    if (fibers_.empty()) return pass(10);
    const std::string id =
        "$" + fibers_[static_cast<std::size_t>(below(static_cast<int>(fibers_.size())))] +
        ".record.id";
    switch (below(4)) {
      case 0: return call("cancel", Value::array({id, "enough"}));
      case 1: return call("resolve", Value::array({id, "by hand"}));
      case 2: return call("retry", Value::array({id}));
      default: return call("inspect", Value::array({id}));
    }
  }
  void interrupt() {
    const int how = below(5);
    if (how == 0 && !std::exchange(is_upgraded_, true))
      return walk_.steps.push_back({{"upgrade", true}});
    if (how <= 2 || kills_ == 4) return walk_.steps.push_back({{"evict", true}});
    ++kills_;
    walk_.steps.push_back({{"kill", true}});
  }

  std::mt19937_64 random_;
  Walk walk_;
  int names_ = 0;
  int kills_ = 0;
  bool is_upgraded_ = false;
  std::vector<std::string> fibers_;
  std::vector<std::string> schedules_;
};

}  // namespace

Walk random_walk(std::uint64_t seed) {
  return Walker(seed).walk();
}

}  // namespace hearth::scenarios
