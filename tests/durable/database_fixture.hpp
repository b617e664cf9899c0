#pragma once
// An agent's database, which a test opens again and again, with the agent's clock and randomness.

#include "base/clock.hpp"
#include "storage/agent_database.hpp"
#include "support/manual_clock.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace hearth::durable {

class DatabaseFixture : public ::testing::Test {
 protected:
  explicit DatabaseFixture(std::uint64_t seed = 7) : random_(seed) {}

  // As after a kill of the process: only committed data is left. Nothing uses the old one any more.
  void open_database() {
    database_.reset();
    database_ = std::make_unique<storage::AgentDatabase>(directory_.path() / "a.db",
                                                         storage::AgentKey{"Worker", "a"});
  }
  [[nodiscard]] std::int64_t now() const { return unix_millis(clock_.wall_now()); }

  hearth::testing::TempDirectory directory_;
  hearth::testing::ManualClock clock_;
  hearth::testing::SeededRandom random_;
  std::unique_ptr<storage::AgentDatabase> database_;
};

}  // namespace hearth::durable
