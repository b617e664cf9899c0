// Requests to other servers, on the mock host.

#include "fields.hpp"

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace {

using hearth::Json;
using hearth::Task;
using hearth::testing::FetchReply;
using hearth::testing::Host;
using hearth::testing::SentRequest;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Item {
  std::string name;
  int price = 0;
  HEARTH_FIELDS(name, price)
};

class Asker : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Asker>& m) {
    m.add("text", &Asker::text);
    m.add("head", &Asker::head);
    m.add("post", &Asker::post);
    m.add("item", &Asker::item);
    m.add("pieces", &Asker::pieces);
    m.add("first_piece", &Asker::first_piece);
    m.add("events", &Asker::events);
    m.add("stream", &Asker::stream);
    m.add("failure", &Asker::failure);
    m.add("text_within", &Asker::text_within);
    m.add("late_failure", &Asker::late_failure);
    m.add("write_and_ask", &Asker::write_and_ask);
    m.add("stoppable", &Asker::stoppable);
    m.add("keep", &Asker::keep);
    m.add("read_kept", &Asker::read_kept);
    m.add("stop", &Asker::stop);
    m.add("try_often", &Asker::try_often);
    m.add("begin", &Asker::begin);
    m.add("cancel", &Asker::cancel);
    m.fiber("ask", &Asker::ask_in_fiber);
  }

  Task<std::string> text(std::string url) {
    auto response = co_await fetch(url);
    co_return co_await response.text();
  }
  Task<std::string> text_within(int ms) {
    try {
      hearth::FetchRequest request{.url = "https://a.example/", .timeout = milliseconds(ms)};
      auto response = co_await fetch(std::move(request));
      co_return co_await response.text();
    } catch (const hearth::FetchError& error) {
      co_return std::to_string(error.code()) + " in phase " +
          std::to_string(static_cast<unsigned>(error.phase()));
    }
  }
  Task<Json> head(std::string url) {
    const hearth::FetchResponse response = co_await fetch(url);
    co_return Json{{"status", response.status()},
                   {"ok", response.ok()},
                   {"url", response.url()},
                   {"count", response.headers().size()},
                   {"type", response.header("content-TYPE").value_or("none")},
                   {"other", response.header("x").value_or("none")}};
  }
  Task<unsigned> post(Json body) {
    hearth::FetchRequest request{.method = "POST",
                                 .url = "https://a.example/items",
                                 .headers = {{"X-Run", "1"}},
                                 .json = std::move(body),
                                 .timeout = seconds(30),
                                 .credential = "shop"};
    const auto response = co_await fetch(std::move(request));
    co_return response.status();
  }
  Task<Item> item() {
    auto response = co_await fetch("https://a.example/item");
    co_return co_await response.json<Item>();
  }
  Task<std::vector<std::string>> pieces(std::size_t window) {
    hearth::FetchRequest request{.url = "https://a.example/pieces", .window = window};
    auto response = co_await fetch(std::move(request));
    std::vector<std::string> all;
    while (auto piece = co_await response.next()) all.push_back(*std::move(piece));
    EXPECT_FALSE(co_await response.next()) << "the end is given again";
    co_return all;
  }
  Task<std::string> first_piece() {
    auto response = co_await fetch("https://a.example/pieces");
    auto piece = co_await response.next();
    co_return piece.value_or("none");
  }
  Task<std::vector<std::string>> events() {
    auto response = co_await fetch("https://a.example/events");
    hearth::SseReader reader(response);
    std::vector<std::string> all;
    while (auto event = co_await reader.next()) all.push_back(event->event + ":" + event->data);
    co_return all;
  }
  // The data of the events, and the end: "whole", or the failure.
  Task<std::string> stream(std::string last, bool may_close) {
    auto response = co_await fetch("https://a.example/events");
    hearth::SseReader reader(response, {.last = last, .may_close = may_close});
    std::string all;
    try {
      while (auto event = co_await reader.next()) all += event->data + " ";
      EXPECT_FALSE(co_await reader.next()) << "the end is given again";
      all += "whole";
    } catch (const hearth::FetchError& error) {
      EXPECT_EQ(error.code(), HEARTH_E_BUSY);
      EXPECT_EQ(error.phase(), hearth::FetchPhase::kBody);
      EXPECT_TRUE(error.sent());
      all += "cut";
    }
    co_return all;
  }
  static Json told(const hearth::FetchError& error) {
    return {{"code", error.code()},
            {"phase", static_cast<int>(error.phase())},
            {"sent", error.sent()},
            {"text", error.what()}};
  }
  Task<Json> failure(std::string url) {
    try {
      static_cast<void>(co_await fetch(url));
    } catch (const hearth::FetchError& error) {
      co_return told(error);
    }
    co_return nullptr;
  }
  Task<Json> late_failure() {
    auto response = co_await fetch("https://a.example/");
    std::string seen;
    try {
      while (auto piece = co_await response.next()) seen += *piece;
    } catch (const hearth::FetchError& error) {
      Json all = told(error);
      all["seen"] = seen;
      co_return all;
    }
    co_return nullptr;
  }
  Task<std::string> write_and_ask() {
    set_state("written");
    auto response = co_await fetch("https://a.example/");
    co_return co_await response.text();
  }

  // Requests that are stopped.
  hearth::FetchRequest request() {
    return {.url = "https://a.example/", .stop = stop_.get_token()};
  }
  Task<Json> stoppable() {
    std::string seen;
    Json end = "whole";
    try {
      auto response = co_await fetch(request());
      while (auto piece = co_await response.next()) seen += *piece;
    } catch (const hearth::FetchError& error) {
      EXPECT_TRUE(error.is_final());
      end = told(error);
    }
    co_return Json{{"seen", seen}, {"end", end}};
  }
  Task<void> keep() { kept_.emplace(co_await fetch(request())); }
  Task<Json> read_kept() {
    try {
      co_return co_await kept_->text();
    } catch (const hearth::FetchError& error) {
      co_return told(error);
    }
  }
  void stop() { stop_.request_stop(); }
  Task<int> try_often() {
    int attempts = 0;
    const auto attempt = [this, &attempts]() -> Task<void> {
      ++attempts;
      static_cast<void>(co_await fetch(request()));
    };
    try {
      co_await retry(attempt);
    } catch (const hearth::FetchError&) {
      co_return attempts;
    }
    co_return 0;
  }
  // When it is cancelled, it tells the other server.
  Task<void> ask_in_fiber(hearth::FiberContext& fiber) {
    try {
      auto response = co_await fetch("https://a.example/slow");
      static_cast<void>(co_await response.text());
    } catch (const hearth::FetchError& error) {
      EXPECT_EQ(error.code(), HEARTH_E_CANCELLED);
    }
    EXPECT_TRUE(fiber.stop_token().stop_requested());
    static_cast<void>(co_await fetch("https://a.example/never-mind"));
    log.info("told");
  }
  std::string begin() { return start_fiber("ask").id(); }
  bool cancel(std::string id) { return cancel_fiber(id); }

 private:
  std::stop_source stop_;
  std::optional<hearth::FetchResponse> kept_;
};

class FetchTest : public ::testing::Test {
 protected:
  void answer(FetchReply reply) {
    host_.on_fetch([this, reply](const SentRequest& request) {
      sent_.push_back(request);
      return reply;
    });
  }

  Host host_;
  std::vector<SentRequest> sent_;
  hearth::testing::AgentHandle agent_ = host_.create<Asker>("a");
};

TEST_F(FetchTest, GivesTheHeadAndTheBody) {
  answer({.status = 404, .headers = {{"Content-Type", "text/plain"}}, .body = "no"});
  EXPECT_EQ(agent_.call("head", "https://a.example/x"), Json({{"status", 404},
                                                              {"ok", false},
                                                              {"url", "https://a.example/x"},
                                                              {"count", 1},
                                                              {"type", "text/plain"},
                                                              {"other", "none"}}));
  EXPECT_EQ(agent_.call("text", "https://a.example/x"), "no");
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0].method, "GET");
  EXPECT_EQ(sent_[0].body, "");
  ASSERT_EQ(sent_[0].headers.size(), 1U);
  EXPECT_EQ(sent_[0].headers[0].first, "traceparent");
}

TEST_F(FetchTest, SendsJsonHeadersAndTheNameOfACredential) {
  answer({.status = 201});
  EXPECT_EQ(agent_.call("post", Json{{"a", 1}}), 201);
  EXPECT_EQ(sent_[0].method, "POST");
  EXPECT_EQ(sent_[0].body, R"({"a":1})");
  EXPECT_EQ(sent_[0].header("X-Run"), "1");
  EXPECT_EQ(sent_[0].header("Content-Type"), "application/json");
  EXPECT_EQ(sent_[0].credential, "shop");
}

TEST_F(FetchTest, ReadsJsonIntoAStruct) {
  answer({.pieces = {R"({"name":"tea",)", R"("price":3})"}});
  EXPECT_EQ(agent_.call("item"), Json({{"name", "tea"}, {"price", 3}}));
  answer({.body = R"({"name":7})"});
  EXPECT_TRUE(agent_.start("item").failed());
  answer({.body = "{"});
  EXPECT_TRUE(agent_.start("item").failed());
}

TEST_F(FetchTest, PiecesComeAsTheyAreReadWhateverTheWindow) {
  answer({.pieces = {"one", "two", "three"}});
  for (const std::uint64_t window : {1UL, 4UL, 1000UL, UINT64_MAX})
    EXPECT_EQ(agent_.call("pieces", window), Json({"one", "two", "three"})) << window;
}

TEST_F(FetchTest, SlowRepliesComeAtTheirTime) {
  answer({.pieces = {"a", "b"}, .after = seconds(5), .between = seconds(2)});
  const auto call = agent_.start("pieces", 1000);
  host_.advance(milliseconds(8999));
  EXPECT_FALSE(call.done());
  host_.advance(milliseconds(1));
  EXPECT_EQ(call.value(), Json({"a", "b"}));
}

TEST_F(FetchTest, ATimeoutEndsASlowReply) {
  answer({.pieces = {"a", "b"}, .after = seconds(5), .between = seconds(2)});
  const std::string timeout = std::to_string(HEARTH_E_TIMEOUT);
  for (const auto& [ms, expected] : {std::pair<int, std::string>{4'999, timeout + " in phase 6"},
                                     {8'999, timeout + " in phase 7"},
                                     {9'000, "ab"}}) {
    const auto call = agent_.start("text_within", ms);
    host_.advance(milliseconds(ms));
    EXPECT_EQ(call.value(), Json(expected)) << ms;
    host_.advance(seconds(10));
  }
}

TEST_F(FetchTest, WhoNeedsNoMoreEndsTheRequest) {
  answer({.pieces = {"a", "b"}, .between = seconds(2)});
  EXPECT_EQ(agent_.call("first_piece"), "a");
  EXPECT_EQ(agent_.call("first_piece"), "a");
  host_.advance(seconds(10));
  EXPECT_EQ(agent_.unfinished(), 0U);
}

TEST_F(FetchTest, EventsAreRead) {
  answer({.pieces = {"data: on", "e\n\nevent: e\ndata:", " two\n\n"}});
  EXPECT_EQ(agent_.call("events"), Json({"message:one", "e:two"}));
}

TEST_F(FetchTest, AStreamOfEventsThatIsCutIsNotWhole) {
  const std::string two = "data: a\n\nevent: stop\ndata: b\n\n";
  const std::string done = two + "data: [DONE]\n\ndata: c\n\n";
  const FetchReply::Failure broken{.phase = HEARTH_FETCH_PHASE_BODY, .sent = true};
  struct Case {
    FetchReply reply;
    const char* last;
    bool may_close;
    const char* end;
  };
  for (const auto& [reply, last, may_close, end] :
       {Case{{.body = two}, "", false, "a b whole"},
        Case{{.body = two, .until_close = true}, "", false, "a b cut"},
        Case{{.body = two, .until_close = true}, "", true, "a b whole"},
        Case{{.body = two, .failure = broken}, "", true, "a b cut"},
        Case{{.body = done}, "[DONE]", false, "a b whole"},
        Case{{.body = done, .until_close = true}, "[DONE]", false, "a b whole"},
        Case{{.body = done, .failure = broken}, "[DONE]", false, "a b whole"},
        Case{{.body = done}, "stop", false, "a b whole"},
        Case{{.body = two}, "[DONE]", false, "a b cut"},
        Case{{.body = two + "data: [DONE]\n"}, "[DONE]", false, "a b cut"},
        Case{{.body = two, .until_close = true}, "[DONE]", true, "a b cut"}}) {
    answer(reply);
    EXPECT_EQ(agent_.call("stream", last, may_close), end)
        << reply.body << last << may_close << reply.until_close;
  }
}

TEST_F(FetchTest, AFailureSaysWhereAndWhetherAnythingWasSent) {
  FetchReply reply{.status = 0};
  reply.failure = {.code = HEARTH_E_TIMEOUT,
                   .phase = HEARTH_FETCH_PHASE_HEADERS,
                   .sent = true,
                   .text = "too slow"};
  answer(reply);
  EXPECT_EQ(agent_.call("failure", "https://a.example/"),
            Json({{"code", HEARTH_E_TIMEOUT}, {"phase", 6}, {"sent", true}, {"text", "too slow"}}));
  reply = {.body = "half"};
  reply.failure = {.phase = HEARTH_FETCH_PHASE_BODY, .sent = true, .text = "cut off"};
  answer(reply);
  EXPECT_EQ(agent_.call("late_failure"), Json({{"code", HEARTH_E_BUSY},
                                               {"phase", 7},
                                               {"sent", true},
                                               {"text", "cut off"},
                                               {"seen", "half"}}));
}

TEST_F(FetchTest, APieceThatComesFirstIsNoHead) {
  answer({.status = 0, .body = R"({"status":200,"url":"https://a.example/","headers":[]})"});
  EXPECT_EQ(fields(agent_.call("failure", "https://a.example/"), {"code", "phase", "sent"}),
            Json({HEARTH_E_BUSY, 6, true}));
}

TEST_F(FetchTest, OneThatCannotBeginFailsInThePhaseOfTheRules) {
  EXPECT_EQ(agent_.call("failure", "ftp://a.example/"),
            Json({{"code", HEARTH_E_INVALID},
                  {"phase", 1},
                  {"sent", false},
                  {"text", "a URL begins with http:// or https://"}}));
}

TEST_F(FetchTest, WithoutAReplyOfTheTestItFails) {
  EXPECT_EQ(fields(agent_.call("failure", "https://a.example/"), {"code", "phase"}),
            Json({HEARTH_E_BUSY, 2}));
}

TEST_F(FetchTest, LeavesWhenWhatWasWrittenBeforeIsStored) {
  Json seen;
  host_.on_fetch([&](const SentRequest&) {
    seen = agent_.state();
    return FetchReply{.body = "ok"};
  });
  EXPECT_EQ(agent_.call("write_and_ask"), "ok");
  EXPECT_EQ(seen, "written");
}

TEST_F(FetchTest, AStopEndsAWaitWhereverItIs) {
  const FetchReply slow{.pieces = {"a", "b"}, .after = seconds(1), .between = seconds(1)};
  struct Case {
    int ms;  // until the stop
    Json seen;
    int phase;
    bool sent;
  };
  for (const auto& [ms, seen, phase, sent] :
       {Case{-1, "", 1, false}, Case{0, "", 6, true}, Case{999, "", 6, true},
        Case{1500, "a", 7, true}, Case{2500, "ab", 7, true}}) {
    SCOPED_TRACE(ms);
    agent_ = host_.create<Asker>("stopped after " + std::to_string(ms));
    sent_.clear();
    answer(slow);
    if (ms < 0) agent_.call("stop");
    const auto call = agent_.start("stoppable");
    if (ms > 0) host_.advance(milliseconds(ms));
    if (ms >= 0) {
      EXPECT_FALSE(call.done());
      agent_.call("stop");
    }
    EXPECT_EQ(call.value(), Json({{"seen", seen},
                                  {"end",
                                   {{"code", HEARTH_E_CANCELLED},
                                    {"phase", phase},
                                    {"sent", sent},
                                    {"text", "the request was stopped"}}}}));
    EXPECT_EQ(sent_.size(), sent ? 1U : 0U);
    host_.advance(seconds(10));
    EXPECT_EQ(agent_.call("try_often"), 1) << "it is not tried again";
  }
}

TEST_F(FetchTest, AStopDropsWhatWasNotReadUnlessItIsAll) {
  for (const auto& between : {seconds(0), seconds(1)}) {
    agent_ = host_.create<Asker>("kept " + std::to_string(between.count()));
    answer({.pieces = {"a", "b"}, .between = between});
    agent_.call("keep");
    agent_.call("stop");
    const Json read = agent_.call("read_kept");
    if (between.count() == 0) {
      EXPECT_EQ(read, "ab");
    } else {
      EXPECT_EQ(read.at("code"), HEARTH_E_CANCELLED);
      EXPECT_EQ(agent_.call("read_kept"), read) << "the end is given again";
    }
  }
}

TEST_F(FetchTest, ACancelEndsARequestOfItsFiberAndNoLaterOne) {
  host_.on_fetch([this](const SentRequest& request) {
    sent_.push_back(request);
    return FetchReply{.after = seconds(sent_.size() == 1 ? 1000 : 1)};
  });
  const Json id = agent_.call("begin");
  agent_.call("cancel", id);
  ASSERT_EQ(sent_.size(), 2U) << "it goes on at once";
  EXPECT_EQ(sent_[1].url, "https://a.example/never-mind");
  host_.advance(seconds(1));
  EXPECT_EQ(host_.log(), (std::vector<std::string>{"info told"}));
  EXPECT_EQ(agent_.keep_alive(), 0U);
}

TEST_F(FetchTest, AnEvictionOfARequestThatMayBeStopped) {
  answer({.body = "late", .after = seconds(5)});
  static_cast<void>(agent_.start("stoppable"));
  agent_.evict();
  agent_.call("stop");
  host_.advance(seconds(10));
  EXPECT_EQ(agent_.unfinished(), 0U);
}

TEST_F(FetchTest, AnEvictionEndsIt) {
  answer({.body = "late", .after = seconds(5)});
  const auto call = agent_.start("text", "https://a.example/");
  EXPECT_TRUE(agent_.is_live());
  agent_.evict();
  host_.advance(seconds(10));
  EXPECT_EQ(call.error(), "the agent was evicted (admin); try again");
  EXPECT_EQ(agent_.call("failure", "nowhere").at("code"), HEARTH_E_INVALID) << "it goes on";
}

}  // namespace
