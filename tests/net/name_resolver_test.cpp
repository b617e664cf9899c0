#include "net/name_resolver.hpp"

#include "support/manual_clock.hpp"

#include <boost/asio/basic_datagram_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/udp.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace hearth::net {
namespace {

namespace asio = boost::asio;

// A name server that knows all names that end in "known.test": 192.0.2.7 and 2001:db8::7.
class NameServer {
 public:
  explicit NameServer(asio::io_context& loop)
      : socket_(loop, {asio::ip::make_address("127.0.0.1"), 0}) {
    receive();
  }
  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(socket_.local_endpoint().port());
  }
  int asked_ = 0;
  bool is_mute_ = false;
  char seconds_ = 60;  // time to live of its records

 private:
  void receive() {
    socket_.async_receive_from(asio::buffer(packet_), from_, [this](auto error, std::size_t size) {
      if (error) return;
      ++asked_;
      if (!is_mute_)
        socket_.send_to(asio::buffer(answer(std::string(packet_.data(), size))), from_);
      receive();
    });
  }
  // The question again, and one record if it is about the name.
  [[nodiscard]] std::string answer(std::string packet) const {
    const std::size_t end = packet.find('\0', 12) + 5;  // of the question: its name, type and class
    packet.resize(end);
    const bool is_known = packet.find("\x05known\x04test") != std::string::npos;
    const bool is_v6 = packet[end - 3] == 28;
    packet[2] = '\x81';
    packet[3] = is_known ? '\x80' : '\x83';
    packet[7] = is_known ? '\1' : '\0';
    packet[11] = '\0';
    if (!is_known) return packet;
    packet += std::string("\xC0\x0C\0", 3) + packet[end - 3] + std::string("\0\1\0\0\0", 5) +
              seconds_ + '\0';
    packet += is_v6 ? std::string("\x10\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\7", 17)
                    : std::string("\4\xC0\0\2\7", 5);
    return packet;
  }

  asio::basic_datagram_socket<asio::ip::udp> socket_;
  asio::ip::udp::endpoint from_;
  std::array<char, 512> packet_{};
};

class NameResolverTest : public ::testing::Test {
 protected:
  using Found = Result<std::vector<IpAddress>>;

  Found resolve(const std::string& name) {
    std::optional<Found> found;
    const auto query = resolver_(name, [&](Found got) { found = std::move(got); });
    EXPECT_FALSE(found) << "not from inside the call";
    for (int i = 0; i < 1000 && !found; ++i) {
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(20));
    }
    return found.value_or(Found(Error{Errc::kTimeout, "no answer"}));
  }

  asio::io_context loop_{1};
  NameServer server_{loop_};
  testing::ManualClock clock_;
  NameResolver resolver_ =
      make_name_resolver(loop_, server_.address(), [this] { return clock_.steady_now(); });
};

TEST_F(NameResolverTest, ANameHasItsAddressesOfBothVersions) {
  const auto found = resolve("known.test").value();
  std::vector<std::string> texts;
  for (const IpAddress& address : found) texts.push_back(to_text(address));
  std::ranges::sort(texts);
  EXPECT_EQ(texts, (std::vector<std::string>{"192.0.2.7", "2001:db8::7"}));
}

// Each time a server is asked for both versions.
TEST_F(NameResolverTest, AnAnswerIsKeptForItsTimeToLive) {
  struct Case {
    char time_to_live;
    std::chrono::seconds until_next;
    int asked;
  };
  using std::chrono::seconds;
  for (const Case& each : {Case{0, seconds(0), 4}, Case{5, seconds(4), 2}, Case{5, seconds(5), 4},
                           Case{120, seconds(59), 2}, Case{120, kLongestKept, 4}}) {
    server_.asked_ = 0;
    server_.seconds_ = each.time_to_live;
    clock_.advance(kLongestKept);
    const auto first = resolve("known.test").value();
    clock_.advance(each.until_next);
    const auto again = resolve("known.test").value();
    EXPECT_EQ(server_.asked_, each.asked) << int{each.time_to_live};
    EXPECT_EQ(first, again);
  }
}

TEST_F(NameResolverTest, FailuresAndForgottenAnswersAreNotMixedUp) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(resolve("unknown.test").error().code, Errc::kUnavailable);
  EXPECT_EQ(server_.asked_, 4) << "a failure is not kept";
  ASSERT_TRUE(resolve("known.test"));
  int told = 0;
  resolver_("known.test", [&](const Found&) { ++told; }).reset();
  EXPECT_TRUE(resolve("known.test"));
  EXPECT_EQ(told, 0) << "a kept answer can be forgotten, too";
}

TEST_F(NameResolverTest, OfTooManyNamesTheOneThatEndsFirstGoes) {
  for (std::size_t i = 0; i <= kMostKept; ++i) {
    ASSERT_TRUE(resolve("x" + std::to_string(i) + ".known.test"));
    clock_.advance(std::chrono::milliseconds(1));
  }
  server_.asked_ = 0;
  ASSERT_TRUE(resolve("x1.known.test"));
  EXPECT_EQ(server_.asked_, 0);
  ASSERT_TRUE(resolve("x0.known.test"));
  EXPECT_EQ(server_.asked_, 2);
}

TEST_F(NameResolverTest, TheHostsFileIsAskedFirst) {
  const auto found = resolve("localhost").value();
  for (const IpAddress& address : found) EXPECT_FALSE(is_public(address));
  EXPECT_EQ(server_.asked_, 0);
}

TEST_F(NameResolverTest, WhoForgetsIsNotTold) {
  int told = 0;
  auto forgotten = resolver_("known.test", [&](const Found&) { ++told; });
  forgotten.reset();
  EXPECT_TRUE(resolve("known.test"));
  EXPECT_EQ(told, 0);
}

TEST_F(NameResolverTest, AQueryMayOutliveTheResolver) {
  server_.is_mute_ = true;
  int told = 0;
  const auto query = resolver_("known.test", [&](const Found&) { ++told; });
  resolver_ = nullptr;
  loop_.restart();
  loop_.poll();
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace hearth::net
