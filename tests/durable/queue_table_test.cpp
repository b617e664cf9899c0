#include "durable/queue_table.hpp"

#include "storage/statement.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

class QueueTableTest : public ::testing::Test {
 protected:
  std::int64_t append(std::string callback) {
    QueueRow row;
    row.id = callback + "'s id";
    row.callback = std::move(callback);
    return table_.append(row);
  }
  void bury(std::int64_t seq) {
    auto row = table_.find(seq);
    row->dead = true;
    table_.update(*row);
  }
  std::string walked(const QueueQuery& query) {
    std::string callbacks;
    table_.walk(query, [&](const QueueRow& row) {
      callbacks += row.callback;
      return true;
    });
    return callbacks;
  }

  hearth::testing::TempDirectory directory_;
  storage::AgentDatabase database_{directory_.path() / "a.db", {"Worker", "a"}};
  QueueTable table_{database_};
};

TEST_F(QueueTableTest, ARowComesBackWithEveryColumn) {
  EXPECT_FALSE(table_.head());
  QueueRow in;
  in.id = "x";
  in.callback = "mail";
  in.created_at_ms = 3;
  in.retry = RetryPolicy{7, std::chrono::milliseconds(8), std::chrono::milliseconds(9)};
  in.payload = "[1]";
  in.seq = table_.append(in);
  in.deliveries = 4;
  in.failures = 2;
  in.interruptions = 1;
  in.next_at_ms = 55;
  in.last_error = "no";
  table_.update(in);
  database_.commit();
  const auto head = table_.head();
  ASSERT_TRUE(head);
  EXPECT_EQ(head->seq, in.seq);
  EXPECT_EQ(head->interruptions, 1);
  EXPECT_EQ(head->next_at_ms, 55);
  EXPECT_EQ(head->longest_wait_ms, 9);
  const auto out = table_.find("x");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->seq, in.seq);
  EXPECT_EQ(out->callback, "mail");
  EXPECT_EQ(out->created_at_ms, 3);
  EXPECT_EQ(out->deliveries, 4);
  EXPECT_EQ(out->failures, 2);
  EXPECT_EQ(out->interruptions, 1);
  EXPECT_EQ(out->next_at_ms, 55);
  EXPECT_EQ(out->retry, in.retry);
  EXPECT_EQ(out->last_error, "no");
  EXPECT_EQ(out->payload, "[1]");
  EXPECT_FALSE(table_.find("absent"));
}

TEST_F(QueueTableTest, TheHeadIsTheFirstThatIsNotDeadAndIsFoundByItsIndex) {
  const std::int64_t a = append("a");
  const std::int64_t b = append("b");
  append("c");
  bury(a);
  EXPECT_EQ(table_.head()->seq, b);
  storage::Statement plan(database_.connection(),
                          "EXPLAIN QUERY PLAN SELECT seq FROM cf_agents_queues INDEXED BY "
                          "cf_agents_queues_alive WHERE dead = 0 ORDER BY seq LIMIT 1");
  storage::Rows rows = plan.query();
  ASSERT_TRUE(rows.next());
  EXPECT_NE(rows.text(3).find("cf_agents_queues_alive"), std::string_view::npos);
  EXPECT_FALSE(rows.next()) << "and not sorted after that";
}

TEST_F(QueueTableTest, AWalkSeesWhatItsQueryNames) {
  const std::int64_t a = append("a");
  const std::int64_t b = append("b");
  append("c");
  bury(b);
  EXPECT_EQ(walked({}), "abc");
  EXPECT_EQ(walked({.callback = "c"}), "c");
  EXPECT_EQ(walked({.dead = true}), "b");
  EXPECT_EQ(walked({.dead = false, .except = a}), "c");
  EXPECT_EQ(walked({.only = b}), "b");
  EXPECT_EQ(walked({.after = a}), "bc");
  EXPECT_EQ(table_.erase({.dead = true}), 1U);
  EXPECT_EQ(table_.size(), 2U);
  EXPECT_EQ(table_.size_bound(), 3U);
}

TEST_F(QueueTableTest, WhatIsMovedToTheEndIsAliveThere) {
  const std::int64_t a = append("a");
  append("b");
  bury(a);
  table_.move_to_end(a);
  EXPECT_EQ(walked({}), "ba");
  EXPECT_FALSE(table_.find("a's id")->dead);
}

TEST_F(QueueTableTest, ATableThatWasRolledBackIsMadeAgain) {
  database_.begin_write();
  storage::Statement(database_.connection(), "SAVEPOINT plugin").execute();
  append("lost");
  storage::Statement(database_.connection(), "ROLLBACK TO plugin").execute();
  storage::Statement(database_.connection(), "RELEASE plugin").execute();
  append("kept");
  database_.commit();
  EXPECT_EQ(walked({}), "kept");
}

}  // namespace
}  // namespace hearth::durable
