#include "runtime/destructions.hpp"

#include <chrono>
#include <utility>

namespace hearth::runtime {
namespace {

constexpr std::chrono::minutes kNextAttempt{1};
constexpr std::chrono::seconds kOneCopy{1};

}  // namespace

Destructions::Destructions(Parts parts, std::function<bool(const storage::AgentKey&)> is_in_memory,
                           std::function<void(const storage::AgentKey&)> is_over)
    : parts_(std::move(parts)),
      is_in_memory_(std::move(is_in_memory)),
      is_over_(std::move(is_over)) {}

void Destructions::finish(const storage::AgentKey& key) {
  finish(key, [this, key] { is_over_(key); });
}

void Destructions::finish(const storage::AgentKey& key, const std::function<void()>& done) {
  if (under_way_.contains(key)) return;
  if (!parts_.condemned.may_remove_files(key)) {
    finish_later(kOneCopy);
    return done();
  }
  under_way_.insert(key);
  const auto finish = [this, key, done](const std::string& trouble) {
    under_way_.erase(key);
    if (!parts_.condemned.finish(key, trouble)) finish_later();
    parts_.alarms.forget_failures(key);
    done();
  };
  const bool elsewhere =
      parts_.remover != nullptr &&
      parts_.remover->run([this, key, finish, alive = parts_.alive, &loop = parts_.loop](bool) {
        loop.post([alive, finish, trouble = remove_files(key)] {
          if (*alive) finish(trouble);
        });
      });
  if (!elsewhere) finish(remove_files(key));
}

std::string Destructions::remove_files(const storage::AgentKey& key) const {
  if (!parts_.sync.wait({parts_.directory_wal}))
    return "the directory of agents could not be synced";
  return parts_.condemned.remove_files(key);
}

void Destructions::finish_later() {
  finish_later(kNextAttempt);
}

void Destructions::finish_later(std::chrono::seconds delay) {
  if (stopped_ || std::exchange(waits_, true)) return;
  timer_ = LoopTimer(parts_.loop, parts_.loop.clock().steady_now() + delay, [this] {
    waits_ = false;
    for (const storage::AgentKey& key : parts_.condemned.unfinished(is_in_memory_)) finish(key);
    if (!parts_.condemned.empty()) finish_later();
  });
}

void Destructions::stop() {
  stopped_ = true;
  timer_.cancel();
}

}  // namespace hearth::runtime
