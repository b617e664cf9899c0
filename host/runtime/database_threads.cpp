#include "runtime/database_threads.hpp"

#include "runtime/live_agent.hpp"

namespace hearth::runtime {

void DatabaseThreads::close(LiveAgent& live, const std::function<void(const std::string&)>& done) {
  const bool elsewhere = closers_ != nullptr && closers_->run([&live, done, &loop = loop_](bool) {
    loop.post([done, trouble = live.close_database()] { done(trouble); });
  });
  if (!elsewhere) done(live.close_database());
}

void DatabaseThreads::checkpoint(LiveAgent& live) {
  live.lend();
  const auto checkpoint = [&live, &loop = loop_](bool) {
    loop.post([&live, trouble = live.checkpoint()] { live.take_back(trouble); });
  };
  if (checkpointers_ == nullptr || !checkpointers_->run(checkpoint)) checkpoint(true);
}

}  // namespace hearth::runtime
