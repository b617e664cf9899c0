#pragma once
// A RuntimeWorld in a process of its own (world_main.cpp), which a step "kill" really kills.

#include "scenarios/scenario.hpp"
#include "support/temp_directory.hpp"

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace hearth::scenarios {

class KilledWorld final : public World {
 public:
  KilledWorld();
  ~KilledWorld() override;

  std::size_t start(const std::string& method, const Value& args) override;
  Value answer(std::size_t call) override;
  Value shown() override;
  void advance(int ms) override;
  void kill() override;
  void evict() override;
  void upgrade() override;

 private:
  // What the process answers, {"value": ...}. Throws if it has ended by itself.
  Value ask(const Value& command);
  void start_process();
  void end_process();

  testing::TempDirectory directory_;
  int life_ = 0;
  int passed_ms_ = 0;
  bool is_upgraded_ = false;
  pid_t pid_ = -1;
  std::FILE* commands_ = nullptr;
  std::FILE* answers_ = nullptr;

  struct StartedCall {
    int life;
    std::size_t number;  // in that life
    Value answer;        // the last one that was seen
  };
  std::vector<StartedCall> calls_;
  std::size_t calls_in_life_ = 0;
  Value shown_;
};

}  // namespace hearth::scenarios
