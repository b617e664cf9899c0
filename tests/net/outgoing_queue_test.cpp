#include "net/outgoing_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace hearth::net {
namespace {

class OutgoingQueueTest : public ::testing::Test {
 protected:
  SharedBytes shared(std::string text) { return {memory_, std::move(text)}; }
  // What would leave with one call.
  std::string front() {
    OutgoingQueue::Buffers place;
    std::string text;
    for (const asio::const_buffer& piece : queue_.front(place)) {
      text.append(static_cast<const char*>(piece.data()), piece.size());
    }
    return text;
  }

  static constexpr std::size_t kEmpty = 4096;
  ClientMemory memory_{1'000'000};
  BufferPool pool_{memory_};
  OutgoingQueue queue_{pool_};
};

TEST_F(OutgoingQueueTest, KeepsTheOrderOfBothKinds) {
  queue_.append("a");
  queue_.append("b");
  queue_.append("", shared("SHARED"));
  queue_.append("");
  queue_.append("", shared(""));
  queue_.append("h", shared("S2"));
  queue_.append("c");
  EXPECT_EQ(queue_.size(), 12U);
  EXPECT_EQ(front(), "abSHAREDhS2c");
}

TEST_F(OutgoingQueueTest, CountsTheListOfItsPieces) {
  const SharedBytes frame = shared(std::string(300, 'x'));
  for (int i = 0; i < 1000; ++i) queue_.append("head", frame);
  EXPECT_EQ(queue_.size(), 304'000U);
  EXPECT_GE(queue_.own(), 50'000U) << "each frame takes a place in the list";
  EXPECT_LE(queue_.own(), 150'000U) << "and only one";
}

TEST_F(OutgoingQueueTest, DropsAnyNumberOfBytes) {
  const std::string whole = "abSHAREDcdSHARED2";
  for (std::size_t first = 0; first <= whole.size(); ++first) {
    queue_.append("ab");
    queue_.append("", shared("SHARED"));
    queue_.append("cd");
    queue_.append("", shared("SHARED2"));
    queue_.drop(first);
    EXPECT_EQ(front(), whole.substr(first));
    EXPECT_EQ(queue_.size(), whole.size() - first);
    queue_.append("more");
    EXPECT_EQ(queue_.take_all(), whole.substr(first) + "more");
    EXPECT_EQ(queue_.size(), 0U);
    EXPECT_LE(queue_.own(), kEmpty);
    EXPECT_EQ(memory_.used(), 0U) << "what has left is let go";
  }
}

TEST_F(OutgoingQueueTest, ManyPiecesLeaveAFewAtATime) {
  std::string expected;
  std::string left;
  for (int round = 0; round < 1000; ++round) {
    const std::string text = std::to_string(round) + ",";
    queue_.append(text.substr(0, 1), shared(text.substr(1)));
    expected += text;
    if (round % 3 != 0) continue;
    const std::string now = front();
    const std::size_t taken = now.size() / 2;
    left += now.substr(0, taken);
    queue_.drop(taken);
  }
  while (queue_.size() != 0) {
    const std::string now = front();
    left += now;
    queue_.drop(now.size());
  }
  EXPECT_EQ(left, expected);
}

TEST_F(OutgoingQueueTest, OfWhatHasLeftOnlyTheLastPieceIsKept) {
  for (int i = 0; i < 100; ++i) queue_.append(std::string(100'000, 'x'));
  queue_.drop(9'999'999);
  EXPECT_EQ(queue_.size(), 1U);
  EXPECT_LE(queue_.own(), 400'000U);
  queue_.clear();
  EXPECT_LE(queue_.own(), kEmpty);
}

}  // namespace
}  // namespace hearth::net
