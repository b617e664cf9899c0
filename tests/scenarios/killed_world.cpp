#include "scenarios/killed_world.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

#include <signal.h>

namespace hearth::scenarios {
namespace {

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  return ends;
}

}  // namespace

KilledWorld::KilledWorld() {
  start_process();
}

KilledWorld::~KilledWorld() {
  end_process();
}

void KilledWorld::start_process() {
  const auto [child_in, commands] = make_pipe();
  const auto [answers, child_out] = make_pipe();
  const std::array<std::string, 5> words{SCENARIO_WORLD, directory_.path().string(),
                                         std::to_string(life_), std::to_string(passed_ms_),
                                         is_upgraded_ ? "upgraded" : "first"};
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(child_in, STDIN_FILENO);
    ::dup2(child_out, STDOUT_FILENO);
    ::execl(words[0].c_str(), words[0].c_str(), words[1].c_str(), words[2].c_str(),
            words[3].c_str(), words[4].c_str(), nullptr);
    ::_exit(127);
  }
  ::close(child_in);
  ::close(child_out);
  commands_ = ::fdopen(commands, "w");
  answers_ = ::fdopen(answers, "r");
}

void KilledWorld::end_process() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  std::fclose(commands_);
  std::fclose(answers_);
}

Value KilledWorld::ask(const Value& command) {
  std::fputs((command.dump() + "\n").c_str(), commands_);
  std::fflush(commands_);
  char* line = nullptr;
  std::size_t room = 0;
  const ssize_t bytes = ::getline(&line, &room, answers_);
  const std::string text(line, bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
  std::free(line);  // NOLINT(cppcoreguidelines-no-malloc): from getline
  if (bytes < 0) throw std::runtime_error("the process has ended at " + command.dump());
  return Value::parse(text).at("value");
}

std::size_t KilledWorld::start(const std::string& method, const Value& args) {
  ask({{"do", "start"}, {"method", method}, {"args", args}});
  calls_.push_back({life_, calls_in_life_++, "open"});
  return calls_.size() - 1;
}

Value KilledWorld::answer(std::size_t call) {
  StartedCall& started = calls_.at(call);
  if (started.life == life_) started.answer = ask({{"do", "answer"}, {"call", started.number}});
  return started.answer;
}

Value KilledWorld::shown() {
  return life_ == 0 ? ask({{"do", "shown"}}) : shown_;
}

void KilledWorld::advance(int ms) {
  ask({{"do", "advance"}, {"ms", ms}});
  passed_ms_ += ms;
}

void KilledWorld::kill() {
  shown_ = shown();
  for (std::size_t call = 0; call < calls_.size(); ++call) answer(call);
  end_process();
  ++life_;
  calls_in_life_ = 0;
  start_process();
}

void KilledWorld::evict() {
  ask({{"do", "evict"}});
}

void KilledWorld::upgrade() {
  ask({{"do", "upgrade"}});
  is_upgraded_ = true;
}

}  // namespace hearth::scenarios
