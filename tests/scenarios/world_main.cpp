// The process of a KilledWorld: scenario_world DIRECTORY LIFE PASSED_MS first|upgraded. Each line
// of the input is a command; each has a line as its answer.
#include "scenarios/runtime_world.hpp"

#include <cstdio>
#include <iostream>
#include <string>

namespace hearth::scenarios {
namespace {

Value obey(RuntimeWorld& world, const Value& command) {
  const std::string what = command.at("do").get<std::string>();
  if (what == "start")
    return world.start(command.at("method").get<std::string>(), command.at("args"));
  if (what == "answer") return world.answer(command.at("call").get<std::size_t>());
  if (what == "shown") return world.shown();
  if (what == "advance") world.advance(command.at("ms").get<int>());
  if (what == "evict") world.evict();
  if (what == "upgrade") world.upgrade();
  return nullptr;
}

}  // namespace
}  // namespace hearth::scenarios

int main(int count, char** words) {
  using namespace hearth::scenarios;
  if (count != 5) return 2;
  // All files are in one directory, whose state at a kill is what the next life has.
  RuntimeWorld world({.directory = words[1],
                      .life = std::stoi(words[2]),
                      .passed = std::chrono::milliseconds(std::stoi(words[3])),
                      .is_upgraded = std::string(words[4]) == "upgraded",
                      .keeps_directory = true});
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << Value({{"value", obey(world, Value::parse(line))}}).dump() << std::endl;
  }
  return 0;
}
