#pragma once
// Commands of an operator, and what they print.

#include "json/json.hpp"
#include "process/process_fixture.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace hearth::testing {

class OperatorTest : public ProcessTest {
 protected:
  // What the command prints. It succeeds.
  [[nodiscard]] std::string ask(const std::vector<std::string>& arguments) const {
    const auto command = run(arguments);
    const Ending ending = command->wait();
    EXPECT_EQ(ending, kClean) << command->log();
    return command->out();
  }
  [[nodiscard]] Json json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    return parse_json(ask(arguments)).value();
  }
  // What the command says when the server refuses it.
  [[nodiscard]] std::string refused(const std::vector<std::string>& arguments) const {
    const auto command = run(arguments);
    EXPECT_EQ(command->wait(), kFailed) << command->out();
    return command->log();
  }
  // What `look` has seen once it holds.
  template <class Look, class Holds>
  static Json soon(const Look& look, const Holds& holds) {
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    for (;;) {
      Json seen = look();
      if (holds(seen)) return seen;
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error(dump_json(seen));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
};

}  // namespace hearth::testing
