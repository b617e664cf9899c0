#pragma once
// A fiber whose recovery is given up.

#include "durable/fibers.hpp"
#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hearth::durable {

// Gives up the recovery of this fiber, which runs or recovers, and leaves the others alone.
inline void die(Fibers& fibers, storage::AgentDatabase& database, const std::string& id,
                std::string_view why) {
  for (FiberHandle fiber = 1; fiber < 100 && !fibers.recovery().line().is_claimed(id); ++fiber) {
    const Job* const running = fibers.runs().find_running(fiber);
    if (running == nullptr || running->id != id) continue;
    EXPECT_TRUE(fibers.wait_for_code(fiber));
    storage::Statement(database.connection(),
                       "UPDATE cf_agents_jobs SET due_at = 1 WHERE id = '" + id + "'")
        .execute();
    EXPECT_TRUE(fibers.recovery().claim_uncounted(id));
  }
  EXPECT_TRUE(fibers.recovery().failed(id, why, true).dead);
}

}  // namespace hearth::durable
