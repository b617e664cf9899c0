// Which operation a request is about.
#include "durable/operations_fixture.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

namespace hearth::durable {
namespace {

namespace fs = std::filesystem;

constexpr auto kBegins = OperationDecision::kRun;

class OperationsIdentityTest : public OperationsFixture {
 protected:
  static OperationRequest charge(std::string_view key, FiberHandle fiber = 0,
                                 std::string_view arguments = "500") {
    OperationRequest request{.fiber = fiber, .kind = "charge", .arguments = arguments, .key = key};
    return request;
  }
  OperationBegun complete(const OperationRequest& request) {
    const OperationBegun begun = begin_request(request);
    EXPECT_EQ(begun.decision, kBegins);
    settle(begun, OperationOutcome::kCompleted);
    return begun;
  }

  struct Ids {
    std::string by_key;
    std::string by_fiber;  // empty: the fiber was there
  };
  // The ids of operations of an agent in this file: by the key "order 7", and in the fiber "f".
  Ids ids_in(const fs::path& file, const storage::AgentKey& key) {
    storage::AgentDatabase database(file, key);
    Fibers fibers(database, clock_, random_, {});
    fibers.load();
    Operations ledger(database, fibers, clock_, random_, ledger_settings_);
    ledger.load();
    Ids ids;
    const auto by_key = ledger.begin(charge("order 7"));
    EXPECT_TRUE(by_key) << by_key.error().message;
    if (by_key) ids.by_key = by_key->id;
    const auto started = fibers.start(request("f"));
    EXPECT_TRUE(started) << started.error().message;
    if (started && started->fiber != 0) {
      const auto by_fiber = ledger.begin(charge("", started->fiber));
      EXPECT_TRUE(by_fiber) << by_fiber.error().message;
      if (by_fiber) ids.by_fiber = by_fiber->id;
    }
    database.commit();
    ledger.close();
    fibers.ends().tellings().close();
    fibers.close();
    database.close();
    return ids;
  }
};

TEST_F(OperationsIdentityTest, P11_NoTwoAgentsGiveAnOperationTheSameId) {
  const fs::path root = directory_.path();
  std::set<std::string> ids;
  const auto add = [&](const Ids& of_agent) {
    ids.insert(of_agent.by_key);
    ids.insert(of_agent.by_fiber);
  };
  const Ids first = ids_in(root / "1.db", {"Worker", "b"});
  add(first);
  add(ids_in(root / "2.db", {"Worker", "c"}));
  add(ids_in(root / "3.db", {"Clerk", "b"}));
  EXPECT_EQ(ids.size(), 6U);
  EXPECT_EQ(ids_in(root / "1.db", {"Worker", "b"}).by_key, first.by_key) << "a restart";
  fs::copy_file(root / "1.db", root / "4.db");
  EXPECT_EQ(ids_in(root / "4.db", {"Worker", "b"}).by_key, first.by_key) << "a restored backup";
  fs::remove(root / "1.db");
  add(ids_in(root / "1.db", {"Worker", "b"}));
  EXPECT_EQ(ids.size(), 8U) << "it was destroyed, and made anew";
}

TEST_F(OperationsIdentityTest, P11_ABackupFromBeforeTheFirstOperationGivesTheSameIds) {
  const fs::path root = directory_.path();
  const storage::AgentKey key{"Worker", "b"};
  {
    storage::AgentDatabase database(root / "1.db", key);
    database.begin_write();
    database.commit();
    database.close();
  }
  fs::copy_file(root / "1.db", root / "2.db");
  EXPECT_EQ(ids_in(root / "1.db", key).by_key, ids_in(root / "2.db", key).by_key);
}

TEST_F(OperationsIdentityTest,
       P11_TheWordOfTheFirstCommitCountsAlsoBehindAnOperationThatWasRefused) {
  const fs::path file = directory_.path() / "1.db";
  const storage::AgentKey key{"Worker", "b"};
  ledger_settings_.kinds["charge"].cost_per_day = 1;
  std::string id;
  {
    storage::AgentDatabase database(file, key);
    Fibers fibers(database, clock_, random_, {});
    Operations ledger(database, fibers, clock_, random_, ledger_settings_);
    OperationRequest request = charge("order 7");
    request.cost = 2;
    EXPECT_EQ(ledger.begin(request).error().code, Errc::kLimitExceeded);
    EXPECT_FALSE(database.exists()) << "nothing was written for it";
    database.begin_write();
    database.commit();
    fs::copy_file(file, directory_.path() / "2.db");
    fs::copy_file(file.string() + "-wal", directory_.path() / "2.db-wal");
    const auto begun = ledger.begin(charge("order 7")).value();
    id = begun.id;
  }
  EXPECT_EQ(ids_in(directory_.path() / "2.db", key).by_key, id);
}

TEST_F(OperationsIdentityTest, P3_EqualNumbersAreEqualArguments) {
  struct Case {
    const char* first;
    const char* second;
    bool is_equal;
  };
  int number = 0;
  for (const Case& each : {
           Case{"500", "500.0", true},
           Case{"[1e3]", R"([1000])", true},
           Case{R"({"a":[-0.0]})", R"({"a":[0]})", true},
           Case{"9007199254740992.0", "9007199254740992", true},
           Case{"0.5", "0", false},
           Case{"1e300", "1", false},
           Case{"500", "\"500\"", false},
       }) {
    SCOPED_TRACE(std::string(each.first) + " and " + each.second);
    const std::string key = "key " + std::to_string(++number);
    const OperationBegun begun = complete(charge(key, 0, each.first));
    const auto again = ledger_->begin(charge(key, 0, each.second));
    ASSERT_EQ(again.has_value(), each.is_equal);
    if (again) {
      EXPECT_EQ(again->id, begun.id);
    } else {
      EXPECT_EQ(again.error().code, Errc::kConflict);
    }
    EXPECT_EQ(dump_json(record(begun.id).at("args")), dump_json(*parse_json(each.first)))
        << "they are kept as they were given";
  }
}

}  // namespace
}  // namespace hearth::durable
