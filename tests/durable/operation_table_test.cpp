// The files of operations.
#include "durable/operations_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace hearth::durable {
namespace {

namespace fs = std::filesystem;

class OperationFilesTest : public OperationsFixture {
 protected:
  OperationBegun begin(std::string_view key) {
    return begin_request({.effect = Effect::kIdempotent, .kind = "../../kind", .key = key});
  }
  std::string path(const OperationBegun& begun) {
    const auto path = ledger_->path_of(begun.id);
    return path ? *path : "none";
  }
};

TEST_F(OperationFilesTest, APathIsTheSameInEachAttemptAndOfNoNameFromOutside) {
  const OperationBegun first = begin("../../../key");
  const fs::path file = path(first);
  EXPECT_EQ(file.parent_path(), directory_.path() / "a.files");
  EXPECT_EQ(file.filename(), first.id);
  EXPECT_EQ(first.id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(fs::status(file.parent_path()).permissions(), fs::perms::owner_all);
  EXPECT_NE(path(begin("other")), file);
  std::ofstream(file) << "result";
  crash_all();
  EXPECT_EQ(*ledger_->path_of(begin("../../../key").id), file);
  EXPECT_TRUE(fs::exists(file));
}

TEST_F(OperationFilesTest, OnlyOneThatRunsHasAPath) {
  EXPECT_EQ(ledger_->path_of("../a").error().code, Errc::kNotFound);
  const OperationBegun begun = begin("k");
  ASSERT_TRUE(ledger_->settle(begun.operation, OperationOutcome::kCompleted, "1"));
  EXPECT_EQ(ledger_->path_of(begun.id).error().code, Errc::kNotFound);
  EXPECT_FALSE(fs::exists(directory_.path() / "a.files")) << "nobody asked for one";
}

TEST_F(OperationFilesTest, ADirectoryThatCannotBeMadeIsSaid) {
  std::ofstream(directory_.path() / "a.files") << "in the way";
  EXPECT_EQ(ledger_->path_of(begin("k").id).error().code, Errc::kUnavailable);
}

TEST_F(OperationFilesTest, AFileGoesWithItsRow) {
  const OperationBegun old = begin("old");
  const OperationBegun open = begin("open");
  const std::string file = path(old);
  const std::string other = path(open);
  std::ofstream(file) << "result";
  std::ofstream(other) << "result";
  ASSERT_TRUE(ledger_->settle(old.operation, OperationOutcome::kCompleted, "1"));
  clock_.advance(std::chrono::hours(24 * 40));
  ledger_->sweep();
  EXPECT_FALSE(fs::exists(file));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_EQ(ledger_->records().inspect(old.id).error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace hearth::durable
