// Clients that send requests and do not read answers, or begin a request and do not end it, against
// a server with default settings. The memory that they can take is bounded, and other clients are
// served meanwhile.
#include "process/process_fixture.hpp"

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <poll.h>

namespace hearth::testing {
namespace {

using Clients = std::vector<std::unique_ptr<RawClient>>;
constexpr std::size_t kMiB = std::size_t{1} << 20;
// Of a sanitizer's build it is not the server's memory that is measured.
#if defined(__SANITIZE_ADDRESS__) || (defined(__has_feature) && __has_feature(address_sanitizer))
constexpr bool kMeasuresMemory = false;
#else
constexpr bool kMeasuresMemory = true;
#endif

// The most that a process has had in RAM at once, in bytes.
std::size_t peak_memory(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  std::size_t kilobytes = 0;
  while (status >> word) {
    if (word == "VmHWM:") status >> kilobytes;
  }
  return kilobytes * 1024;
}

class MemoryAttackTest : public ProcessTest {
 protected:
  MemoryAttackTest() {
    install(bundled("counter"), "counter.so");
    install(bundled("chat-room"), "chat-room.so");
    put("classes/chat-room.yaml", "class: ChatRoom\noptions:\n  max_message_length: 100000\n");
    server_ = serve_ready();
    EXPECT_EQ(increment(*server_, "good"), R"({"count":1})");
    before_ = peak_memory(server_->pid());
  }

  // After the attack, while its clients are still there.
  void expect_served_within(std::size_t bytes) {
    EXPECT_EQ(increment(*server_, "good"), R"({"count":2})");
    const std::size_t grown = peak_memory(server_->pid()) - before_;
    RecordProperty("grown_kib", static_cast<int>(grown / 1024));
    if (kMeasuresMemory) EXPECT_LE(grown, bytes);
  }

  // Sends `text` over and over until the server takes no more for a second, or has closed.
  static void push(RawClient& client, const std::string& text) {
    std::size_t at = 0;
    for (;;) {
      const ssize_t sent = client.send_some(std::string_view(text).substr(at));
      if (sent < 0 || (sent == 0 && !client.takes_more_within(std::chrono::seconds(1)))) return;
      at = (at + static_cast<std::size_t>(sent)) % text.size();
    }
  }

  std::unique_ptr<RawClient> connect(int receive_buffer = 0) const {
    return std::make_unique<RawClient>(server_->port(), receive_buffer);
  }

  [[nodiscard]] std::size_t client_memory() const {
    const std::string text = request(*server_, "GET", "/metrics").body;
    const std::string name = "\nhearth_client_memory_bytes ";
    return std::stoul(text.substr(text.find(name) + name.size()));
  }

  std::unique_ptr<ServerProcess> server_;
  std::size_t before_ = 0;
};

TEST_F(MemoryAttackTest, RequestsSentAheadWhoseAnswersAreNeverRead) {
  const auto client = connect(4096);
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  push(*client, requests);
  expect_served_within(16 * kMiB);
}

TEST_F(MemoryAttackTest, PingsWhoseAnswersAreNeverReadUntilTheClientIsCutOff) {
  const auto client = connect(4096);
  ASSERT_EQ(client->upgrade("/agents/counter/a").status, 101);
  std::string pings;
  for (int i = 0; i < 1000; ++i) pings += RawClient::frame(9, std::string(125, 'p'));
  const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
  ssize_t sent = 0;
  for (std::size_t at = 0; sent >= 0 && std::chrono::steady_clock::now() < deadline;) {
    sent = client->send_some(std::string_view(pings).substr(at));
    if (sent == 0) (void)client->takes_more_within(std::chrono::milliseconds(100));
    if (sent > 0) at = (at + static_cast<std::size_t>(sent)) % pings.size();
  }
  EXPECT_EQ(sent, -1) << "the client was not cut off";
  expect_served_within(16 * kMiB);
  EXPECT_TRUE(contains(request(*server_, "GET", "/metrics").body,
                       "hearth_clients_dropped_total{reason=\"reads_slowly\"} 1\n"));
}

TEST_F(MemoryAttackTest, AHundredUnfinishedMessagesOfTheLargestSize) {
  const std::string message = RawClient::text_frame(std::string(4 * kMiB, 'x'));
  Clients clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(connect());
    ASSERT_EQ(clients.back()->upgrade("/agents/counter/a").status, 101);
    (void)clients.back()->send(std::string_view(message).substr(0, message.size() - 1));
  }
  EXPECT_LE(client_memory(), 300 * kMiB);
  expect_served_within(400 * kMiB);
}

TEST_F(MemoryAttackTest, AHundredUnfinishedBodiesOfTheLargestSize) {
  const std::string body(4 * kMiB - 1, 'x');
  Clients clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(connect());
    (void)clients.back()->send(
        "POST /agents/counter/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4194304\r\n\r\n");
    (void)clients.back()->send(body);
  }
  EXPECT_LE(client_memory(), 300 * kMiB);
  expect_served_within(400 * kMiB);
}

TEST_F(MemoryAttackTest, ABroadcastToTwoHundredClientsThatNeverRead) {
  Clients clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(connect(4096));
    ASSERT_EQ(clients.back()->upgrade("/agents/chat-room/a").status, 101);
  }
  const auto speaker = connect();
  ASSERT_EQ(speaker->upgrade("/agents/chat-room/a").status, 101);
  const std::string say =
      RawClient::text_frame(R"({"type":"say","text":")" + std::string(64 * 1024, 'x') + R"("})");
  for (int id = 1; id <= 150; ++id) {
    speaker->send(say);
    while (speaker->read_text().find(R"("id":)" + std::to_string(id) + ',') == std::string::npos) {
    }
  }
  expect_served_within(64 * kMiB);
  EXPECT_TRUE(contains(request(*server_, "GET", "/metrics").body,
                       "hearth_clients_dropped_total{reason=\"send_queue\"} 200\n"));
}

}  // namespace
}  // namespace hearth::testing
