#include "net/incoming_frames.hpp"

#include "net/raw_client.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace hearth::net {
namespace {

using hearth::testing::RawClient;

class IncomingFramesTest : public ::testing::Test {
 protected:
  // Of an address that may send so much in ten seconds.
  std::shared_ptr<const ClientAddress> address(std::uint32_t messages, std::size_t bytes) {
    AddressLimits limits;
    limits.messages = messages / 10;
    limits.bytes = bytes / 10;
    const auto policy = std::make_shared<const AddressPolicy>(limits, metrics_, *logger_);
    auto use = std::make_shared<AddressUse>(policy);
    EXPECT_TRUE(use->may_connect(std::chrono::steady_clock::now()));
    return std::make_shared<const ClientAddress>(std::move(use));
  }
  // As one read, into a buffer in two pieces that the bytes do not fill.
  static bool pass(IncomingFrames& frames, std::string& bytes, std::size_t first) {
    std::string rest = bytes.substr(first) + "not read";
    const bool passed = frames.pass({asio::buffer(bytes.data(), first), asio::buffer(rest)},
                                    bytes.size(), bytes.size());
    bytes = bytes.substr(0, first) + rest.substr(0, bytes.size() - first);
    return passed;
  }

  Metrics metrics_;
  std::unique_ptr<Logger> logger_ = make_null_logger();
};

TEST_F(IncomingFramesTest, EachFrameIsAMessageHoweverItIsCut) {
  IncomingFrames frames(address(20, 1'000'000), nullptr);
  std::string ping = RawClient::frame(9, "");
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(pass(frames, ping, static_cast<std::size_t>(i) % (ping.size() + 1))) << i;
  EXPECT_FALSE(frames.has_refused());
  EXPECT_FALSE(pass(frames, ping, 0));
  EXPECT_TRUE(frames.has_refused());
  std::string nothing;
  EXPECT_FALSE(pass(frames, nothing, 0)) << "what comes later is refused, too";
}

TEST_F(IncomingFramesTest, TheRestOfAFrameCostsItsBytesAlone) {
  IncomingFrames frames(address(10, 1000), nullptr);
  std::string begin = RawClient::frame(2, std::string(2000, 'x')).substr(0, 100);
  EXPECT_TRUE(pass(frames, begin, 50));
  std::string more(1, 'x');
  for (int i = 0; i < 900; ++i) EXPECT_TRUE(pass(frames, more, 0)) << i;
  std::string too_many(100, 'x');
  EXPECT_FALSE(pass(frames, too_many, 0));
}

TEST_F(IncomingFramesTest, WhatHasArrivedIsChargedWhateverIsRead) {
  std::string begin = RawClient::frame(2, std::string(2000, 'x')).substr(0, 100);
  const ByteStream::ReadBuffers read{asio::buffer(begin), asio::mutable_buffer()};
  IncomingFrames padded(address(10, 1000), nullptr);
  EXPECT_TRUE(padded.pass(read, 1, 900));
  EXPECT_FALSE(padded.pass(read, 1, 200));
  IncomingFrames charged_before(address(10, 1000), nullptr);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(charged_before.pass(read, begin.size(), 0)) << i;
}

TEST_F(IncomingFramesTest, CompressedOnesAreCountedAndMadePlain) {
  const auto packed = std::make_shared<PackedFrames>();
  IncomingFrames frames(address(10, 1'000'000), packed);
  std::string two = RawClient::frame(0x41, "one") + RawClient::frame(0x42, "two");
  for (int i = 0; i < 5; ++i) {
    std::string bytes = two;
    EXPECT_TRUE(pass(frames, bytes, 3));
    EXPECT_EQ(bytes, RawClient::frame(2, "one") + RawClient::frame(2, "two"));
    EXPECT_TRUE(packed->take().is_text);
    EXPECT_FALSE(packed->take().is_text);
  }
  EXPECT_FALSE(pass(frames, two, 3));
}

TEST_F(IncomingFramesTest, WithoutAnAddressNothingIsRefused) {
  IncomingFrames frames(nullptr, std::make_shared<PackedFrames>());
  for (int i = 0; i < 1000; ++i) {
    std::string ping = RawClient::frame(9, "");
    ASSERT_TRUE(pass(frames, ping, 0));
  }
}

}  // namespace
}  // namespace hearth::net
