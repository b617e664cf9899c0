// Runs a scenario on the mock host that authors' unit tests use: mock_world SCENARIOS LIBRARY
// NEXT_LIBRARY SCENARIO prints what was seen. A program of its own: see scenario.hpp.
#include "scenario.hpp"

#include <hearth/testing/host.hpp>

#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using parity::Value;

class MockWorld final : public parity::World {
 public:
  MockWorld(const std::string& library, std::string next)
      : next_path_(std::move(next)),
        library_(host_.load(library)),
        agent_(host_.create(library_.find_class("ParityAgent"), "a")),
        watcher_(agent_.connect()) {}
  ~MockWorld() override { agent_.evict(); }

  std::size_t start(const std::string& method, const Value& args) override {
    calls_.push_back(agent_.start_raw(method, args.dump()));
    return calls_.size() - 1;
  }
  Value answer(std::size_t call) override {
    const hearth::testing::Call& each = calls_.at(call);
    if (!each.done()) return "open";
    if (each.failed()) return {{"error", each.error()}};
    return {{"ok", each.value()}};
  }
  Value shown() override { return watcher_.state(); }
  void advance(int ms) override { host_.advance(std::chrono::milliseconds(ms)); }
  void kill() override {
    agent_.kill();
    host_.advance(std::chrono::milliseconds(0));
  }
  void evict() override {
    agent_.evict();
    host_.advance(std::chrono::milliseconds(0));
  }
  void upgrade() override {
    next_.emplace(host_.load(next_path_));
    agent_.become(next_->find_class("ParityAgent"));
    host_.advance(std::chrono::milliseconds(0));
  }
  void fire(const std::string& schedule) override { host_.fire(schedule); }

 private:
  const std::string next_path_;
  std::optional<hearth::testing::Library> next_;
  hearth::testing::Host host_;
  hearth::testing::Library library_;
  hearth::testing::AgentHandle agent_;
  hearth::testing::Client watcher_;
  std::vector<hearth::testing::Call> calls_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return 2;
  try {
    const Value scenarios = Value::parse(std::ifstream(arguments[1]));
    MockWorld world(arguments[2], arguments[3]);
    const Value seen = parity::Run(world).all(scenarios.at(arguments[4]).at("steps"));
    std::puts(seen.dump().c_str());
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "mock_world: %s\n", failure.what());
    return 1;
  }
}
