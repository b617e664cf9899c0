#include "server/event_stream.hpp"

#include "support/recording_logger.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hearth::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A client that takes parts, or leaves them where they are.
class Client final : public net::HttpExchange {
 public:
  struct Seen {
    std::mutex mutex;
    int status = 0;
    std::string text;
    bool reads = true;
    bool is_finished = false;
    bool is_cut = false;
    std::function<void()> left;
  };
  Client(net::HttpHeaders headers, std::shared_ptr<Seen> seen) : seen_(std::move(seen)) {
    request_.method = "GET";
    request_.headers = std::move(headers);
  }
  ~Client() override {
    const std::lock_guard lock(seen_->mutex);
    seen_->is_cut = !seen_->is_finished;
  }
  [[nodiscard]] const net::HttpRequest& request() const override { return request_; }
  void respond(net::HttpResponse response) override {
    const std::lock_guard lock(seen_->mutex);
    seen_->status = response.status;
    seen_->text = response.body;
    seen_->is_finished = true;
  }
  void start(net::HttpResponse response) override {
    const std::lock_guard lock(seen_->mutex);
    seen_->status = response.status;
    seen_->text = response.body;
  }
  void write(std::string part) override {
    const std::lock_guard lock(seen_->mutex);
    seen_->text += part;
  }
  void finish() override {
    const std::lock_guard lock(seen_->mutex);
    seen_->is_finished = true;
  }
  void when_drained(std::function<void()> notice) override {
    bool reads = false;
    {
      const std::lock_guard lock(seen_->mutex);
      reads = seen_->reads;
    }
    if (reads) notice();
  }
  void read_body(std::size_t /*bytes*/, net::BodyListener /*listener*/) override {}
  void on_abort(std::function<void()> notice) override {
    const std::lock_guard lock(seen_->mutex);
    seen_->left = std::move(notice);
  }

 private:
  net::HttpRequest request_;
  const std::shared_ptr<Seen> seen_;
};

class EventStreamTest : public ::testing::Test {
 protected:
  EventStreamTest() { stream_.add_routes(rows_); }

  using Seen = std::shared_ptr<Client::Seen>;
  Seen read(std::string_view query, net::HttpHeaders headers = {}, bool reads = true,
            std::string_view actor = "administrator") {
    auto seen = std::make_shared<Client::Seen>();
    seen->reads = reads;
    rows_.front().answer({.exchange = std::make_shared<Client>(std::move(headers), seen),
                          .values = {},
                          .query = query,
                          .actor = actor});
    return seen;
  }
  static bool comes(const Seen& seen, const std::function<bool(const Client::Seen&)>& what) {
    const auto end = steady_clock::now() + std::chrono::seconds(10);
    while (steady_clock::now() < end) {
      {
        const std::lock_guard lock(seen->mutex);
        if (what(*seen)) return true;
      }
      std::this_thread::sleep_for(milliseconds(2));
    }
    return false;
  }
  static bool has(const Seen& seen, const std::string& text) {
    return comes(seen,
                 [&](const Client::Seen& now) { return now.text.find(text) != std::string::npos; });
  }

  SystemClock clock_;
  testing::RecordingLogger log_;
  EventStream stream_{log_, clock_, milliseconds(200)};
  std::vector<api::Route> rows_;
};

TEST_F(EventStreamTest, AReaderGetsWhatComesAndEndsWithTheServer) {
  stream_.write(LogLevel::kInfo, "before", {});
  const Seen seen = read("class=Counter");
  EXPECT_TRUE(has(seen, "id: ")) << "its cursor, at once";
  stream_.write(LogLevel::kInfo, "other", {{"class", "Room"}});
  stream_.write(LogLevel::kWarn, "mine", {{"class", "Counter"}});
  EXPECT_TRUE(has(seen, R"("event":"mine","class":"Counter")"));
  EXPECT_EQ(seen->text.find("before"), std::string::npos);
  EXPECT_EQ(seen->text.find("other"), std::string::npos);
  stream_.stop();
  EXPECT_TRUE(seen->is_finished);
  EXPECT_FALSE(seen->is_cut);
  EXPECT_EQ(read("")->status, 503) << "the server stops";
}

TEST_F(EventStreamTest, WhoComesBackGetsWhatItMissedAndTheHeaderWins) {
  const Seen first = read("");
  ASSERT_TRUE(has(first, "id: "));
  const std::string id = first->text.substr(first->text.find("id: ") + 4);
  const std::string cursor = id.substr(0, id.find('\n'));
  first->left();
  stream_.write(LogLevel::kInfo, "missed", {});
  EXPECT_TRUE(comes(first, [](const Client::Seen& now) { return now.is_cut; }));
  EXPECT_TRUE(has(read("after=" + cursor), R"("event":"missed")"));
  EXPECT_TRUE(has(read("after=x-1", {{"Last-Event-ID", cursor}}), R"("event":"missed")"));
  EXPECT_TRUE(has(read("after=x-1"), "event: gap"));
}

TEST_F(EventStreamTest, OneThatDoesNotReadIsCutAndHoldsNobodyUp) {
  const Seen idle = read("", {}, false);
  const Seen busy = read("");
  ASSERT_TRUE(has(busy, "id: "));
  for (int i = 0; i < 2000; ++i) stream_.write(LogLevel::kInfo, "e" + std::to_string(i), {});
  EXPECT_TRUE(has(busy, R"("event":"e1999")"));
  EXPECT_TRUE(comes(idle, [](const Client::Seen& now) { return now.is_cut; }));
  EXPECT_LT(idle->text.size(), 2 * EventStream::kPart);
  for (int i = 0; i < 2000; i += 100)
    EXPECT_NE(busy->text.find("\"e" + std::to_string(i) + "\""), std::string::npos) << i;
}

TEST_F(EventStreamTest, AReaderOfTheConsoleIsCutWhenItsSessionHasEnded) {
  std::atomic<bool> goes_on = true;
  stream_.use_sessions([&](const net::HttpRequest&) { return goes_on.load(); });
  const Seen page = read("", {}, true, "console");
  const Seen tail = read("");
  ASSERT_TRUE(has(page, "id: "));
  goes_on = false;
  EXPECT_TRUE(comes(page, [](const Client::Seen& now) { return now.is_cut; }));
  stream_.write(LogLevel::kInfo, "later", {});
  EXPECT_TRUE(has(tail, "later"));
  EXPECT_EQ(page->text.find("later"), std::string::npos);
  stream_.stop();
}

TEST_F(EventStreamTest, FinerLevelsAreMadeOnlyWhileAReaderAsksForThem) {
  class Quiet final : public Logger {
    [[nodiscard]] bool enabled(LogLevel level) const override { return level >= LogLevel::kWarn; }
    void write(LogLevel level, std::string_view, std::span<const LogField>) override {
      EXPECT_GE(level, LogLevel::kWarn);
    }
  } quiet;
  EventStream stream(quiet, clock_);
  stream.add_routes(rows_);
  rows_.erase(rows_.begin());
  EXPECT_TRUE(stream.enabled(LogLevel::kInfo));
  EXPECT_FALSE(stream.enabled(LogLevel::kDebug));
  const Seen seen = read("level=debug");
  EXPECT_TRUE(stream.enabled(LogLevel::kDebug));
  stream.write(LogLevel::kDebug, "fine", {});
  EXPECT_TRUE(has(seen, "fine"));
  seen->left();
  stream.write(LogLevel::kInfo, "wake", {});
  EXPECT_TRUE(comes(seen, [](const Client::Seen& now) { return now.is_cut; }));
  EXPECT_FALSE(stream.enabled(LogLevel::kDebug));
}

TEST_F(EventStreamTest, WhatIsWrongIsRefused) {
  struct Row {
    const char* query;
    int status;
  };
  for (const Row& row : std::vector<Row>{
           {"level=loud", 400}, {"since_ms=-1", 400}, {"after=5", 400}, {"level=warn", 200}}) {
    EXPECT_EQ(read(row.query)->status, row.status) << row.query;
  }
  std::vector<Seen> many;
  for (std::size_t i = 1; i < EventStream::kMaxReaders; ++i) many.push_back(read(""));
  EXPECT_EQ(many.back()->status, 200);
  EXPECT_EQ(read("")->status, 503);
}

}  // namespace
}  // namespace hearth::server
