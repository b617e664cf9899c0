#include "net/byte_stream.hpp"

#include "net/net_loop.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::net {
namespace {

// A wire that does what the test says.
class ScriptedStream final : public ByteStream {
 public:
  ScriptedStream(const NetLoop& loop, BufferPool& pool)
      : ByteStream(loop.context.get_executor(), pool, loop.turn_end) {}

  // The peer sends, or ends its side, or the connection breaks.
  void peer_says(std::string_view bytes) {
    arrived_ += bytes;
    serve();
  }
  void peer_ends(error_code how = asio::error::eof) {
    end_ = how;
    serve();
  }
  // The system takes this many more bytes.
  void make_room(std::size_t bytes) {
    room = bytes;
    if (std::exchange(waits_, false)) asio::post(executor(), [this] { writable({}); });
  }

  std::vector<std::string> sent;  // one entry a send
  std::size_t room = std::numeric_limits<std::size_t>::max();
  error_code send_error;
  std::size_t unacknowledged = 0;
  bool send_ended = false;
  bool last_words_wait = false;  // once: there is no room for what the kind of stream says itself
  bool wire_closed = false;

 private:
  void start_read(ReadBuffers into, ReadHandler handler) override {
    into_ = into;
    handler_.emplace(std::move(handler));  // Boost 1.81's move assignment calls itself for ever
    serve();
  }
  std::size_t read_now(ReadBuffers into, error_code& error) override {
    if (arrived_.empty()) {
      error = asio::error::would_block;
      return 0;
    }
    return take(into);
  }
  std::size_t send_now(std::span<const asio::const_buffer> pieces, error_code& error) override {
    std::string bytes;
    for (const asio::const_buffer& piece : pieces) {
      bytes.append(static_cast<const char*>(piece.data()), piece.size());
    }
    if (send_error) {
      error = send_error;
      return 0;
    }
    const std::size_t taken = std::min(bytes.size(), room);
    if (taken == 0) error = asio::error::would_block;
    room -= taken;
    sent.push_back(bytes.substr(0, taken));
    return taken;
  }
  std::size_t on_the_way() override { return unacknowledged; }
  void start_wait_writable() override { waits_ = true; }
  bool wire_has_ended() override { return end_.failed(); }
  bool try_shutdown_send() override {
    send_ended = !std::exchange(last_words_wait, false);
    return send_ended;
  }
  void cancel_wire() override { complete(asio::error::operation_aborted, 0); }
  void close_wire() override {
    wire_closed = true;
    complete(asio::error::operation_aborted, 0);
  }

  void serve() {
    if (!handler_) return;
    if (!arrived_.empty()) {
      complete({}, take(into_));
    } else if (end_) {
      complete(end_, 0);
    }
  }
  std::size_t take(ReadBuffers into) {
    const std::size_t bytes = asio::buffer_copy(into, asio::buffer(arrived_));
    arrived_.erase(0, bytes);
    return bytes;
  }
  void complete(error_code error, std::size_t bytes) {
    if (!handler_) return;
    asio::post(executor(), [this, handler = std::move(*handler_), error, bytes]() mutable {
      read_done(std::move(handler), error, bytes);
    });
    handler_.reset();
  }

  std::string arrived_;
  error_code end_;
  ReadBuffers into_;
  std::optional<ReadHandler> handler_;
  bool waits_ = false;
};

class ByteStreamTest : public ::testing::Test {
 protected:
  void settle() {
    loop_.restart();
    loop_.poll();
  }
  // Reads once; the result shows up in got_ and error_.
  void read(std::size_t room = 4) {
    into_.assign(room, '\0');
    stream_->async_read_some({asio::buffer(into_), asio::mutable_buffer()},
                             [this](error_code error, std::size_t bytes) {
                               got_ = into_.substr(0, bytes);
                               error_ = error;
                             });
  }
  void read_and_settle(std::size_t room = 4) {
    read(room);
    settle();
  }
  void hear(std::string_view bytes) {
    stream_->peer_says(bytes);
    settle();
  }
  void hear_the_end() {
    stream_->peer_ends();
    settle();
  }
  void make_room(std::size_t bytes) {
    stream_->make_room(bytes);
    settle();
  }
  void append_soon(std::string_view bytes) {
    stream_->append(bytes);
    stream_->flush_soon();
  }
  void expect_closed() const {
    EXPECT_TRUE(stream_->wire_closed);
    EXPECT_EQ(closed_, 1);
  }
  void finish(Linger linger, ByteStream::MaySay may_say = nullptr) {
    stream_->finish(linger, [this] { ++closed_; }, std::move(may_say));
  }
  // The peer says so much in small pieces, and is not cut off.
  void talk(std::size_t bytes) {
    const std::string piece(16 * 1024, 'x');
    for (std::size_t said = 0; said < bytes; said += piece.size()) {
      hear(piece);
      ASSERT_FALSE(stream_->wire_closed) << said << ": what was read before does not count";
    }
  }
  using Sends = std::vector<std::string>;

  asio::io_context loop_{1};
  TurnEnd turn_end_{[this](std::function<void()> task) { asio::post(loop_, std::move(task)); }};
  ClientMemory memory_{std::size_t{1} << 20};
  BufferPool pool_{memory_};
  std::shared_ptr<ScriptedStream> stream_ =
      std::make_shared<ScriptedStream>(NetLoop{loop_, turn_end_}, pool_);
  std::string into_;
  std::optional<std::string> got_;
  error_code error_;
  int closed_ = 0;
};

TEST_F(ByteStreamTest, LastWordsOfTheStreamThatFindNoRoomLeaveWhenThereIs) {
  stream_->last_words_wait = true;
  finish(Linger::kUntilSent);
  stream_->flush();
  settle();
  EXPECT_FALSE(stream_->send_ended);
  EXPECT_EQ(closed_, 0);
  make_room(1);
  EXPECT_TRUE(stream_->send_ended);
  EXPECT_EQ(closed_, 1);
}

TEST_F(ByteStreamTest, NothingLeavesWithoutAFlush) {
  stream_->append("abc");
  settle();
  EXPECT_TRUE(stream_->sent.empty());
  EXPECT_EQ(stream_->buffered(), 3U);
}

TEST_F(ByteStreamTest, WhatOneTurnAppendsLeavesInOneSend) {
  append_soon("a");
  append_soon("b");
  asio::post(loop_, [this] { append_soon("c"); });
  settle();
  EXPECT_EQ(stream_->sent, Sends{"abc"});
  EXPECT_EQ(stream_->sends(), 1U);
  EXPECT_EQ(stream_->bytes_taken(), 3U);
  EXPECT_EQ(stream_->buffered(), 0U);
}

TEST_F(ByteStreamTest, ASingleAppendLeavesAtTheFirstHop) {
  append_soon("a");
  loop_.restart();
  loop_.poll_one();
  EXPECT_EQ(stream_->sent, Sends{"a"});
}

TEST_F(ByteStreamTest, GatheringIsBoundedInTurnsAndInBytes) {
  struct Case {
    int turns;
    std::string each_turn;
    std::size_t most;  // of one send
  };
  const Case cases[] = {
      {100, "x", TurnEnd::kMostTurns + 3U},
      {10, std::string(ByteStream::kMostGathered / 2, 'x'), ByteStream::kMostGathered * 3 / 2},
  };
  for (const Case& param : cases) {
    int turns = 0;
    const std::function<void()> go_on = [&] {
      if (++turns > param.turns) return;
      append_soon(param.each_turn);
      asio::post(loop_, go_on);
    };
    stream_->sent.clear();
    asio::post(loop_, go_on);
    settle();
    EXPECT_GE(stream_->sent.size(), 2U) << "everything waited for the last append";
    for (const std::string& sent : stream_->sent) EXPECT_LE(sent.size(), param.most);
  }
}

TEST_F(ByteStreamTest, ReadingSendsWhatWasAppendedFirst) {
  stream_->append("answer");
  read();
  EXPECT_EQ(stream_->sent, Sends{"answer"}) << "without waiting for a turn";
}

TEST_F(ByteStreamTest, AnswersWaitWhileThePeersBytesAreAlreadyThere) {
  stream_->peer_says("12345678abc");
  read_and_settle();
  EXPECT_EQ(got_, "1234");
  stream_->append("one ");
  read();
  EXPECT_TRUE(stream_->sent.empty()) << "the read used all its room, and there is more";
  loop_.restart();
  loop_.poll_one();
  EXPECT_EQ(got_, "5678");
  stream_->append("two");
  read_and_settle();
  EXPECT_EQ(got_, "abc");
  EXPECT_EQ(stream_->sent, Sends{"one two"});
}

TEST_F(ByteStreamTest, AnswersLeaveEvenIfTheReaderStopsInTheMiddle) {
  stream_->peer_says("12345678");
  read_and_settle();
  stream_->append("one");
  read_and_settle();  // and no further read
  EXPECT_EQ(stream_->sent, Sends{"one"});
}

TEST_F(ByteStreamTest, PreloadedBytesAreReadFirst) {
  stream_->preload("early");
  stream_->peer_says("late");
  read();
  EXPECT_FALSE(got_) << "completed inside the call";
  settle();
  EXPECT_EQ(got_, "earl");
  read_and_settle();
  EXPECT_EQ(got_, "y");
  read_and_settle();
  EXPECT_EQ(got_, "late");
}

TEST_F(ByteStreamTest, TellsHowMuchHasArrivedOnce) {
  stream_->preload("early");
  stream_->peer_says("12345678ab");
  read_and_settle(8);
  EXPECT_EQ(stream_->take_arrived(), 0U) << "somebody has read, and was charged, before";
  read_and_settle(8);
  EXPECT_EQ(stream_->take_arrived(), 8U);
  EXPECT_EQ(stream_->take_arrived(), 0U);
  stream_->append("x");  // the next read is made at once, since the last one was filled
  read_and_settle(8);
  EXPECT_EQ(got_, "ab");
  EXPECT_EQ(stream_->take_arrived(), 2U);
}

TEST_F(ByteStreamTest, TellsWhetherAnythingWasHeard) {
  EXPECT_FALSE(stream_->take_heard());
  read();
  EXPECT_TRUE(stream_->reading());
  hear("x");
  EXPECT_FALSE(stream_->reading());
  EXPECT_TRUE(stream_->take_heard());
  EXPECT_FALSE(stream_->take_heard());
}

TEST_F(ByteStreamTest, TheRestOfAPartialSendFollowsWhenThereIsRoom) {
  stream_->room = 2;
  stream_->append("abcdef");
  stream_->flush();
  EXPECT_EQ(stream_->buffered(), 4U);
  stream_->append("gh");
  stream_->flush();
  EXPECT_EQ(stream_->sent, Sends{"ab"}) << "a full system is not asked again";
  make_room(3);
  make_room(100);
  EXPECT_EQ(stream_->sent, (Sends{"ab", "cde", "fgh"}));
  EXPECT_EQ(stream_->buffered(), 0U);
}

TEST_F(ByteStreamTest, ALongQueueKeepsItsOrderWhileItIsShortened) {
  std::string all;
  for (int i = 0; i < 40'000; ++i) all += std::to_string(i) + ",";
  stream_->room = 1000;
  stream_->append(all);
  stream_->flush();
  for (int i = 0; i < 50 && stream_->buffered() != 0; ++i) {
    make_room(20'000);
  }
  std::string arrived;
  for (const std::string& each : stream_->sent) arrived += each;
  EXPECT_EQ(arrived, all);
}

TEST_F(ByteStreamTest, AFailedSendClosesTheStreamAndFailsTheRead) {
  read();
  stream_->send_error = asio::error::broken_pipe;
  stream_->append("x");
  stream_->flush();
  EXPECT_FALSE(stream_->is_open());
  settle();
  EXPECT_TRUE(error_);
  stream_->append("dropped");
  EXPECT_EQ(stream_->buffered(), 0U);
}

TEST_F(ByteStreamTest, FinishSendsTheRestAndWaitsForThePeersEnd) {
  stream_->room = 1;
  stream_->append("abc");
  finish(Linger::kUntilPeerEnds);
  EXPECT_FALSE(stream_->send_ended);
  stream_->append("too late");
  make_room(100);
  EXPECT_EQ(stream_->sent, (Sends{"a", "bc"}));
  EXPECT_TRUE(stream_->send_ended);
  hear("still talking");
  EXPECT_FALSE(stream_->wire_closed);
  hear_the_end();
  expect_closed();
}

TEST_F(ByteStreamTest, APeerThatGoesOnTalkingIsCutOff) {
  const std::string piece(16 * 1024, 'x');
  for (std::size_t said = 0; said < 2 * ByteStream::kMostDrained; said += piece.size()) {
    stream_->peer_says(piece);
    read_and_settle(piece.size());
  }
  finish(Linger::kUntilPeerEnds);
  talk(ByteStream::kMostDrained);
  hear("x");
  expect_closed();
}

TEST_F(ByteStreamTest, OneThatIsRefusedForWhatItUsesIsCutOffSoonAndChargedNothing) {
  finish(Linger::kBriefly, [](std::size_t) {
    ADD_FAILURE() << "it has paid already";
    return false;
  });
  talk(ByteStream::kMostDrainedBriefly);
  hear("x");
  expect_closed();
}

TEST_F(ByteStreamTest, WhatIsDroppedIsChargedAndEndsWhereThePeerMaySayNoMore) {
  stream_->peer_says("abcd");
  read_and_settle();
  std::size_t charged = 0;
  const auto owner = std::make_shared<int>();
  finish(Linger::kUntilPeerEnds, [&charged, owner](std::size_t bytes) {
    charged += bytes;
    return charged <= 8;
  });
  EXPECT_EQ(charged, 4U) << "nobody was told of it";
  hear("efgh");
  EXPECT_FALSE(stream_->wire_closed);
  hear("i");
  EXPECT_TRUE(stream_->wire_closed);
  EXPECT_EQ(charged, 9U);
  EXPECT_EQ(closed_, 1);
  EXPECT_EQ(owner.use_count(), 1) << "it may hold whoever holds the stream";
}

TEST_F(ByteStreamTest, FinishDoesNotWaitForAPeerThatHasSaidEverything) {
  stream_->append("abc");
  finish(Linger::kUntilSent);
  EXPECT_EQ(closed_, 0) << "called from inside finish()";
  settle();
  EXPECT_EQ(stream_->sent, Sends{"abc"});
  expect_closed();
}

TEST_F(ByteStreamTest, FinishFailsThePendingReadBeforeItReadsItself) {
  read();
  finish(Linger::kUntilPeerEnds);
  settle();
  EXPECT_EQ(error_, asio::error::operation_aborted);
  hear("dropped");
  EXPECT_EQ(got_, "");
  hear_the_end();
  EXPECT_EQ(closed_, 1);
}

TEST_F(ByteStreamTest, AHalfClosedPeerStillGetsTheRest) {
  stream_->room = 1;
  stream_->append("abc");
  stream_->peer_ends();
  finish(Linger::kUntilPeerEnds);
  settle();
  EXPECT_FALSE(stream_->wire_closed);
  make_room(100);
  EXPECT_EQ(stream_->sent, (Sends{"a", "bc"}));
  EXPECT_EQ(closed_, 1);
}

TEST_F(ByteStreamTest, AbortEndsAFinishThatGetsNowhere) {
  stream_->room = 0;
  stream_->append("abc");
  finish(Linger::kUntilPeerEnds);
  settle();
  EXPECT_EQ(closed_, 0);
  stream_->abort();
  settle();
  EXPECT_EQ(closed_, 1);
  stream_->abort();
  settle();
  EXPECT_EQ(closed_, 1);
}

TEST_F(ByteStreamTest, FinishAfterAbortStillReports) {
  stream_->abort();
  finish(Linger::kUntilPeerEnds);
  settle();
  EXPECT_EQ(closed_, 1);
}

TEST_F(ByteStreamTest, ASendThatFailsWhileFinishingReportsOnce) {
  stream_->append("abc");
  stream_->send_error = asio::error::connection_reset;
  finish(Linger::kUntilPeerEnds);
  settle();
  EXPECT_EQ(closed_, 1);
}

TEST(BufferPoolTest, LendsWhatCameBackAndKeepsNothingLarge) {
  ClientMemory account(0);
  BufferPool pool(account);
  std::string buffer = pool.take();
  EXPECT_GE(buffer.capacity(), 1000U);
  buffer.assign(10'000, 'x');
  const char* const memory = buffer.data();
  pool.give(std::move(buffer));
  std::string again = pool.take();
  EXPECT_EQ(again.data(), memory);
  EXPECT_TRUE(again.empty());
  again.assign(1'000'000, 'x');
  pool.give(std::move(again));
  EXPECT_LT(pool.take().capacity(), 1'000'000U);
}

TEST_F(ByteStreamTest, TellsWhenMostHasLeft) {
  std::vector<std::string> told;
  const auto tell_at = [&](std::size_t bytes, const char* name) {
    stream_->when_drained(bytes, [&told, name] { told.emplace_back(name); });
  };
  stream_->make_room(0);
  tell_at(0, "nothing waits");
  EXPECT_TRUE(told.empty()) << "never inside the call";
  settle();
  stream_->append("0123456789");
  stream_->flush();
  tell_at(4, "four");
  tell_at(0, "none");
  tell_at(10, "ten");
  settle();
  EXPECT_EQ(told, Sends({"nothing waits", "ten"}));
  make_room(6);
  EXPECT_EQ(told.back(), "four");
  stream_->abort();
  settle();
  EXPECT_EQ(told, Sends({"nothing waits", "ten", "four", "none"}));
  tell_at(0, "closed");
  settle();
  EXPECT_EQ(told.back(), "closed");
}

}  // namespace
}  // namespace hearth::net
