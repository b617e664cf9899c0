#pragma once
// A few agents try a version of their class before all others.

#include "runtime/version_news.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace hearth::runtime {

// Each shard takes places for its agents when it gets to the trial.
// Threads  Any. Lifetime  Shared by the caller, by tasks posted to the shards, and by agents that
//                         may still try.
struct VersionTrial {
  // `ringing` rings when the trial has less to wait for; null: no ring.
  VersionTrial(std::size_t at_most, bool when_idle, std::shared_ptr<VersionNews> ringing = nullptr)
      : places(at_most), only_idle(when_idle), news(std::move(ringing)) {}

  void lose_candidate() {
    --candidates;
    if (news) news->ring();
  }
  // False: no place is left.
  bool take_place() {
    std::size_t left = places.load();
    while (left > 0 && !places.compare_exchange_weak(left, left - 1)) {
    }
    if (left > 0) ++tried;
    return left > 0;
  }

  std::atomic<std::size_t> places;  // places that are left; 0 closes the trial
  std::atomic<std::size_t> tried{0};
  std::atomic<bool> only_idle;             // a busy agent takes a place once it is idle
  std::atomic<std::size_t> candidates{0};  // busy agents that have no place yet
  const std::shared_ptr<VersionNews> news;
};

}  // namespace hearth::runtime
