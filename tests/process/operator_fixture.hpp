#pragma once
// Commands of an operator, and what they print.

#include "json/json.hpp"
#include "process/process_fixture.hpp"

#include <string>
#include <vector>

namespace hearth::testing {

class OperatorTest : public ProcessTest {
 protected:
  [[nodiscard]] Json json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    return parse_json(ask(arguments)).value();
  }
};

}  // namespace hearth::testing
