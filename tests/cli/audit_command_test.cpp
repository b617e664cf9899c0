#include "cli/audit_command.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace hearth::cli {
namespace {

TEST(AuditTargetTest, AsksForTheLastEntriesThatFit) {
  EXPECT_EQ(audit_target({}, 0), "/admin/audit?last=100");
  AuditCommand command;
  command.lines = 5;
  command.event = "AdminEvict";
  command.actor = "administrator";
  command.agent_class = "Counter";
  command.agent = "a/b";
  command.since = std::chrono::seconds(30);
  EXPECT_EQ(audit_target(command, 100'000),
            "/admin/audit?last=5&event=AdminEvict&actor=administrator&class=Counter&agent=a%252Fb"
            "&since_ms=70000");
}

TEST(AuditTargetTest, WhatFollowsIsNoOlderThanTheFirstPage) {
  AuditCommand command;
  command.event = "AdminEvict";
  EXPECT_EQ(audit_target_after(command, 0, 7), "/admin/audit?limit=1000&after=7&event=AdminEvict");
  command.since = std::chrono::seconds(2);
  EXPECT_EQ(audit_target_after(command, 5'000, 0),
            "/admin/audit?limit=1000&after=0&event=AdminEvict&since_ms=3000")
      << "the first page was empty";
}

}  // namespace
}  // namespace hearth::cli
