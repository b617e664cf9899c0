// Bodies that on_request reads as they arrive, on the mock host.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using hearth::Task;
using hearth::testing::Host;
using hearth::testing::HttpUpload;

class Intake : public hearth::Agent {
 public:
  static constexpr bool kReadsBodies = true;

  Task<hearth::Response> on_request(const hearth::Request& request) override {
    EXPECT_EQ(request.body().empty(), !request.query("whole").has_value());
    if (request.query("refuse")) co_return hearth::Response::text("no", 409);
    std::string all;
    try {
      while (auto piece = co_await request.next()) {
        pieces.push_back(*piece);
        all += *piece;
        if (request.query("slow")) co_await sleep(std::chrono::seconds(1));
      }
      const auto after = co_await request.next();
      EXPECT_FALSE(after);
    } catch (const hearth::Error& error) {
      failures.push_back(error.code());
      throw;
    }
    co_return hearth::Response::text(all);
  }

  static inline std::vector<std::string> pieces;
  static inline std::vector<hearth_status> failures;
};

class Outdated : public hearth::Agent {
 public:
  Task<hearth::Response> on_request(const hearth::Request& request) override {
    std::string all;
    while (auto piece = co_await request.next()) all += *piece + "|";
    co_return hearth::Response::text(all);
  }
};

class RequestBodyTest : public ::testing::Test {
 protected:
  RequestBodyTest() {
    Intake::pieces.clear();
    Intake::failures.clear();
  }
  Host host_;
};

using Pieces = std::vector<std::string>;

TEST_F(RequestBodyTest, EachPieceIsReadWhenItComes) {
  auto agent = host_.create<Intake>("a");
  HttpUpload upload = agent.start_upload("POST", "/x");
  EXPECT_FALSE(upload.done());
  upload.send("one");
  EXPECT_EQ(Intake::pieces, Pieces({"one"}));
  upload.send("two");
  EXPECT_EQ(Intake::pieces, Pieces({"one", "two"}));
  EXPECT_FALSE(upload.done());
  upload.end();
  ASSERT_TRUE(upload.done());
  EXPECT_EQ(upload.answer().body, "onetwo");
}

TEST_F(RequestBodyTest, ABodyThatCameWholeIsOnePiece) {
  auto reader = host_.create<Intake>("a");
  EXPECT_EQ(reader.request("POST", "?whole=1", "hello").body, "hello");
  EXPECT_EQ(Intake::pieces, Pieces({"hello"}));
  EXPECT_EQ(reader.request("GET").body, "");
  auto other = host_.create<Outdated>("b");
  EXPECT_EQ(other.request("POST", "", "hello").body, "hello|");
  EXPECT_THROW(other.start_upload("POST"), std::logic_error);
}

// The agent has read one piece. Of the others those wait in the host that 256 KiB of credit let in.
TEST_F(RequestBodyTest, OnlyAWindowWaitsForTheAgent) {
  constexpr std::size_t kPiece = 100'000;
  auto agent = host_.create<Intake>("a");
  HttpUpload upload = agent.start_upload("POST", "?slow=1");
  for (int n = 0; n < 6; ++n) upload.send(std::string(kPiece, 'x'));
  EXPECT_EQ(upload.unread(), 2 * kPiece);
  host_.advance(std::chrono::seconds(1));
  EXPECT_EQ(upload.unread(), kPiece);
  upload.end();
  host_.advance(std::chrono::seconds(5));
  EXPECT_EQ(upload.unread(), 0U);
  EXPECT_EQ(upload.answer().body.size(), 6 * kPiece);
}

TEST_F(RequestBodyTest, AClientThatLeavesIsAnError) {
  auto agent = host_.create<Intake>("a");
  HttpUpload upload = agent.start_upload("POST");
  upload.send("half");
  upload.cut();
  EXPECT_TRUE(upload.done());
  EXPECT_EQ(Intake::failures, std::vector<hearth_status>({HEARTH_E_GONE}));
}

TEST_F(RequestBodyTest, AnAnswerNeedsNoBody) {
  auto agent = host_.create<Intake>("a");
  HttpUpload upload = agent.start_upload("POST", "?refuse=1");
  EXPECT_EQ(upload.answer().status, 409U);
  upload.send("unread");
  EXPECT_EQ(upload.unread(), 6U);
  EXPECT_EQ(agent.unfinished(), 0U);
}

TEST_F(RequestBodyTest, AnEvictionEndsTheReading) {
  auto agent = host_.create<Intake>("a");
  HttpUpload upload = agent.start_upload("POST");
  upload.send("half");
  agent.evict();
  upload.send("rest");
  upload.end();
  EXPECT_EQ(Intake::pieces, Pieces({"half"}));
  HttpUpload again = agent.start_upload("POST");
  again.send("whole");
  again.end();
  EXPECT_EQ(again.answer().body, "whole");
}

}  // namespace
