#include "durable/operation_answers.hpp"

#include "durable/fibers_fixture.hpp"
#include "durable/operations.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace hearth::durable {
namespace {

class OperationAnswersTest : public FibersFixture {
 protected:
  OperationAnswersTest() {
    OperationRequest request;  // its row makes the tables
    request.kind = "charge";
    request.key = "k";
    Operations ledger(*database_, *fibers_, clock_, random_, settings_);
    EXPECT_TRUE(ledger.begin(request));
    answers_.emplace(table_);
  }
  ~OperationAnswersTest() override {
    answers_.reset();
    database_->commit();
  }
  std::int64_t pieces() {
    return count("SELECT count(*) FROM cf_agents_operation_documents WHERE part >= 16");
  }

  static constexpr std::int64_t kRow = 1;
  OperationSettings settings_;
  OperationTable table_{*database_};
  std::optional<OperationAnswers> answers_;
};

TEST_F(OperationAnswersTest, ARequestIsReadAsItWasWritten) {
  EXPECT_FALSE(answers_->find(kRow));
  DispatchedRequest request{.fingerprint = "f", .dispatched_at_ms = 7};
  answers_->write(kRow, request);
  auto found = answers_->find(kRow);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fingerprint, "f");
  EXPECT_EQ(found->dispatched_at_ms, 7);
  EXPECT_FALSE(found->status);
  EXPECT_FALSE(found->upstream_id);
  request.status = 404;
  request.upstream_id = "req-\"1\"";
  request.can_resume = request.whole = true;
  answers_->write(kRow, request);
  found = answers_->find(kRow);
  EXPECT_EQ(found->status, 404);
  EXPECT_EQ(found->upstream_id, "req-\"1\"");
  EXPECT_TRUE(found->can_resume);
  EXPECT_TRUE(found->whole);
}

TEST_F(OperationAnswersTest, OnlyAGoodAnswerWhoseRestCanBeAskedForGoesOn) {
  DispatchedRequest request;
  request.can_resume = true;
  EXPECT_FALSE(request.is_resumable()) << "none has come";
  for (const std::int64_t status : {199, 300, 404, 500}) {
    request.status = status;
    EXPECT_FALSE(request.is_resumable()) << status;
  }
  request.status = 206;
  EXPECT_TRUE(request.is_resumable());
  request.can_resume = false;
  EXPECT_FALSE(request.is_resumable());
}

TEST_F(OperationAnswersTest, PiecesArePutTogetherWhateverBytesTheyHave) {
  answers_->write(kRow, {});
  const std::string odd("a\0\xff\n", 4);
  std::string all;
  for (int i = 0; i < 3000; ++i) {
    answers_->append(kRow, odd);
    all += odd;
  }
  EXPECT_EQ(answers_->body(kRow), all);
  EXPECT_EQ(answers_->find(kRow)->bytes, all.size());
  EXPECT_EQ(pieces(), 13) << "of 960 bytes";
  const std::string large(3 * OperationAnswers::kPieceBytes, 'x');
  answers_->append(kRow, large);
  EXPECT_EQ(answers_->body(kRow), all + large);
  EXPECT_EQ(pieces(), 16) << "of 8 KiB";
}

TEST_F(OperationAnswersTest, ATokenAtATimeWritesOnePageEach) {
  answers_->write(kRow, {});
  constexpr int kTokens = 2'000;
  const std::string token(100, 't');
  const auto written = [this] {
    int pages = 0;
    int most = 0;
    sqlite3_db_status(&database_->connection(), SQLITE_DBSTATUS_CACHE_WRITE, &pages, &most, 0);
    return pages;
  };
  const int before = written();
  for (int i = 0; i < kTokens; ++i) {
    database_->begin_write();
    answers_->append(kRow, token);
    database_->commit();
  }
  EXPECT_LT(written() - before, kTokens * 5 / 4);
  EXPECT_EQ(answers_->body(kRow).size(), kTokens * token.size());
}

TEST_F(OperationAnswersTest, PiecesOfNoSizeWasteTheMostOfTheirPages) {
  for (const std::size_t size : {40U, 500U, 700U, 961U, 1'100U, 3'000U, 8'000U, 9'000U, 20'000U}) {
    SCOPED_TRACE(size);
    answers_->drop(kRow);
    answers_->write(kRow, {});
    constexpr std::size_t kBytes = std::size_t{256} << 10;
    const auto pages = [this] {
      return count(
          "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count");
    };
    const auto before = pages();
    for (std::size_t bytes = 0; bytes < kBytes; bytes += size)
      answers_->append(kRow, std::string(size, 'x'));
    EXPECT_LT(static_cast<std::size_t>(pages() - before) * 4096, kBytes * 2);
  }
}

TEST_F(OperationAnswersTest, ABodyIsCutAndGoesOn) {
  answers_->write(kRow, {});
  const std::string large(2 * OperationAnswers::kPieceBytes + 5, 'x');
  answers_->append(kRow, large);
  answers_->cut(kRow, large.size());
  EXPECT_EQ(answers_->body(kRow), large);
  answers_->cut(kRow, OperationAnswers::kPieceBytes + 1);
  answers_->append(kRow, "y");
  EXPECT_EQ(answers_->body(kRow), std::string(OperationAnswers::kPieceBytes + 1, 'x') + "y");
  answers_->cut(kRow, 0);
  EXPECT_EQ(answers_->body(kRow), "");
}

TEST_F(OperationAnswersTest, AnAnswerGoesAloneOrWithItsRequest) {
  answers_->write(kRow, {});
  answers_->put_head(kRow, "{}");
  answers_->append(kRow, "x");
  EXPECT_EQ(answers_->head(kRow), "{}");
  answers_->drop_answer(kRow);
  EXPECT_TRUE(answers_->find(kRow));
  EXPECT_EQ(answers_->head(kRow), "");
  EXPECT_EQ(answers_->body(kRow), "");
  answers_->drop(kRow);
  EXPECT_FALSE(answers_->find(kRow));
  EXPECT_EQ(count("SELECT count(*) FROM cf_agents_operation_documents"), 1) << "the arguments";
}

}  // namespace
}  // namespace hearth::durable
