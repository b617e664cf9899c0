// Compressed messages, over the wire (RFC 7692).
#include "net/message_packing.hpp"
#include "net/raw_client.hpp"
#include "net/server_fixture.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::net {
namespace {

using hearth::testing::Frame;
using hearth::testing::RawClient;
using namespace std::chrono_literals;

// A client that compresses its messages, and decompresses the answers.
class PackingClient : public RawClient {
 public:
  PackingClient(std::uint16_t port, const std::string& offer)
      : RawClient(port), memory_(1U << 30U) {
    const auto reply = upgrade("/", "Sec-WebSocket-Extensions: " + offer + "\r\n");
    const auto says = [&](const char* what) { return reply.head.find(what) != std::string::npos; };
    accepted_ = says("\r\nSec-WebSocket-Extensions: permessage-deflate");
    keeps_ = !says("client_no_context_takeover");
    server_keeps_ = !says("server_no_context_takeover");
  }

  [[nodiscard]] bool accepted() const { return accepted_; }
  std::string pack(std::string_view message) {
    std::string packed;
    deflater_.pack(message, packed);
    if (!keeps_) deflater_.forget();
    return packed;
  }
  // The next message; `packed_` says how it came.
  Frame read_message() {
    const std::string head = read_exactly(2);
    Frame frame;
    frame.opcode = head[0] & 0x0F;
    was_packed_ = (head[0] & 0x40) != 0;
    std::size_t length = static_cast<unsigned char>(head[1]);
    const std::size_t more = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (more != 0) length = 0;
    for (const char c : read_exactly(more)) length = length << 8 | static_cast<unsigned char>(c);
    const std::string payload = read_exactly(length);
    if (!was_packed_) {
      frame.payload = payload;
      return frame;
    }
    HeldBytes held(memory_);
    const Unpacked outcome = inflater_.unpack(payload, 1U << 24U, frame.payload, held);
    EXPECT_EQ(outcome, Unpacked::kWhole);
    if (!server_keeps_) inflater_.forget();
    return frame;
  }
  [[nodiscard]] bool was_packed() const { return was_packed_; }

 private:
  ClientMemory memory_;
  MessageDeflater deflater_;
  MessageInflater inflater_{15};
  bool accepted_ = false;
  bool keeps_ = false;
  bool server_keeps_ = false;
  bool was_packed_ = false;
};

class WebSocketDeflateTest : public ServerFixture {
 protected:
  static constexpr const char* kOffer = "permessage-deflate; client_max_window_bits";

  void start_with(Compression compression) {
    options_.compression = compression;
    start();
  }
  static std::string text_of(std::size_t size) {
    std::string text;
    while (text.size() < size) text += "{\"number\":" + std::to_string(text.size()) + "}";
    text.resize(size);
    return text;
  }
};

TEST_F(WebSocketDeflateTest, MessagesComeBackWhateverIsAgreed) {
  for (const Compression wanted :
       {Compression::kNoContextTakeover, Compression::kContextTakeover}) {
    start_with(wanted);
    for (const std::string offer :
         {"permessage-deflate", kOffer, "permessage-deflate; server_no_context_takeover",
          "permessage-deflate; client_no_context_takeover; client_max_window_bits",
          "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12"}) {
      SCOPED_TRACE(offer);
      PackingClient client(port(), offer);
      ASSERT_TRUE(client.accepted());
      for (int turn = 0; turn < 3; ++turn) {
        for (const std::size_t size : {1UL, 127UL, 128UL, 5000UL, 70'000UL, 400'000UL}) {
          const std::string text = text_of(size);
          client.send(RawClient::frame(RawClient::kPackedText, client.pack(text)));
          EXPECT_EQ(client.read_message().payload, text);
          EXPECT_EQ(client.was_packed(), size >= MessagePacking::kSmallest);
        }
        client.send(RawClient::text_frame("as it is"));
        EXPECT_EQ(client.read_message().payload, "as it is");
        client.send(RawClient::frame(RawClient::kPackedBinary, client.pack("\xFF not a text")));
        const Frame binary = client.read_message();
        EXPECT_EQ(binary.opcode, 2);
        EXPECT_EQ(binary.payload, "\xFF not a text");
      }
    }
    stop();
    loops_.reset();
  }
}

TEST_F(WebSocketDeflateTest, WhatAMessageUnpacksToCountsForItsAddress) {
  options_.per_address.exempt.clear();
  options_.per_address.bytes = 10'000;
  start_with(Compression::kNoContextTakeover);
  PackingClient client(port(), kOffer);
  const std::string text(40'000, 'x');
  for (int i = 0; i < 2; ++i) {
    client.send(RawClient::frame(RawClient::kPackedText, client.pack(text)));
    EXPECT_EQ(client.read_message().payload, text);
  }
  client.send(RawClient::frame(RawClient::kPackedText, client.pack(text)));
  EXPECT_EQ(client.read_frame().close_code(), 1013);
  EXPECT_EQ(closed_.wait().code, 1013);
}

TEST_F(WebSocketDeflateTest, FragmentsWithAPingBetweenAreOneMessage) {
  start_with(Compression::kContextTakeover);
  PackingClient client(port(), kOffer);
  const std::string text = text_of(3000);
  for (int turn = 0; turn < 2; ++turn) {
    const std::string packed = client.pack(text);
    client.send(RawClient::frame(RawClient::kPackedText, packed.substr(0, 5), false) +
                RawClient::frame(9, "are you there") +
                RawClient::frame(0, packed.substr(5, 1), false) + RawClient::frame(0, "", false) +
                RawClient::frame(0, packed.substr(6)));
    const Frame pong = client.read_message();
    EXPECT_EQ(pong.opcode, 10);
    EXPECT_FALSE(client.was_packed());
    EXPECT_EQ(pong.payload, "are you there");
    EXPECT_EQ(client.read_message().payload, text);
  }
}

TEST_F(WebSocketDeflateTest, ABurstInPiecesStaysInOrder) {
  start_with(Compression::kContextTakeover);
  PackingClient client(port(), kOffer);
  std::string burst;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::string text = "message " + std::to_string(i) + text_of(i);
    const bool is_packed = i % 3 != 0;
    burst += RawClient::frame(is_packed ? RawClient::kPackedText : 1,
                              is_packed ? client.pack(text) : text);
  }
  for (std::size_t at = 0; at < burst.size(); at += 97) client.send(burst.substr(at, 97));
  for (std::size_t i = 0; i < 300; ++i) {
    EXPECT_EQ(client.read_message().payload, "message " + std::to_string(i) + text_of(i));
  }
}

TEST_F(WebSocketDeflateTest, AMessageOfAPauseIsUnpackedAfterwards) {
  Events<std::string> heard;
  on_open_ = [](WebSocket& socket) { socket.pause_reading(); };
  start_with(Compression::kNoContextTakeover);
  PackingClient client(port(), kOffer);
  client.send(RawClient::frame(RawClient::kPackedText, client.pack(text_of(500))) +
              RawClient::frame(RawClient::kPackedBinary, client.pack("second")));
  const auto socket = opened_.wait();
  loops_->run_on(0, [&] { socket->resume_reading(); });
  EXPECT_EQ(client.read_message().payload, text_of(500));
  const Frame second = client.read_message();
  EXPECT_EQ(second.opcode, 2);
  EXPECT_EQ(second.payload, "second");
}

TEST_F(WebSocketDeflateTest, BytesForManyArePackedForEach) {
  on_open_ = [this](WebSocket& socket) {
    socket.send(SharedBytes(*memory_, text_of(1000)), true);
    socket.send(SharedBytes(*memory_, text_of(MessagePacking::kLargest + 1)), true);
  };
  start_with(Compression::kContextTakeover);
  for (int i = 0; i < 2; ++i) {
    PackingClient client(port(), kOffer);
    EXPECT_EQ(client.read_message().payload, text_of(1000));
    EXPECT_TRUE(client.was_packed());
    EXPECT_EQ(client.read_message().payload, text_of(MessagePacking::kLargest + 1));
    EXPECT_FALSE(client.was_packed());
  }
}

// ---- bad peers ----------------------------------------------------------------------------------

TEST_F(WebSocketDeflateTest, WhatMayNotBeEndsTheConnection) {
  options_.max_frame = 100'000;
  start_with(Compression::kContextTakeover);
  struct Case {
    const char* name;
    std::string offer;
    std::string (*frames)(PackingClient&);
    int code;
    std::string reason;
  };
  const std::string not_data = "the message is not deflate data";
  const std::vector<Case> cases = {
      {"the bit without an agreement", "none",
       [](PackingClient& client) {
         return RawClient::frame(RawClient::kPackedText, client.pack("x"));
       },
       1002, ""},
      {"the bit on a continuation", kOffer,
       [](PackingClient& client) {
         return RawClient::frame(RawClient::kPackedText, client.pack("x"), false) +
                RawClient::frame(0x40, "x");
       },
       1002, ""},
      {"the bit on a ping", kOffer, [](PackingClient&) { return RawClient::frame(0x49, "x"); },
       1002, ""},
      {"another reserved bit", kOffer,
       [](PackingClient& client) { return RawClient::frame(0x61, client.pack("x")); }, 1002, ""},
      {"without a mask", kOffer,
       [](PackingClient& client) {
         return RawClient::frame(RawClient::kPackedText, client.pack("x"), true, false);
       },
       1002, ""},
      {"no deflate data", kOffer,
       [](PackingClient&) { return RawClient::frame(RawClient::kPackedText, "\x07"); }, 1007,
       not_data},
      {"no data", kOffer,
       [](PackingClient&) { return RawClient::frame(RawClient::kPackedText, ""); }, 1007, not_data},
      {"a text that is none", kOffer,
       [](PackingClient& client) {
         return RawClient::frame(RawClient::kPackedText, client.pack("\xFF"));
       },
       1007, "text is not valid UTF-8"},
      {"a bomb", kOffer,
       [](PackingClient& client) {
         return RawClient::frame(RawClient::kPackedText, client.pack(std::string(100'001, '0')));
       },
       1009, "message too big"},
      {"too long before it is unpacked", kOffer,
       [](PackingClient&) {
         return RawClient::frame(RawClient::kPackedText, std::string(100'001, '0'));
       },
       1009, "message too big"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    PackingClient client(port(), each.offer);
    client.send(RawClient::text_frame("before"));
    EXPECT_EQ(client.read_message().payload, "before");
    client.send(each.frames(client));
    const Frame end = client.read_message();
    EXPECT_EQ(end.close_code(), each.code);
    if (!each.reason.empty()) EXPECT_EQ(end.close_reason(), each.reason);
    client.close();
    EXPECT_EQ(closed_.wait().code, each.code);
  }
  loops_->run_on(0, [&] { EXPECT_EQ(memory_->used(), 0U) << "what was unpacked is given back"; });
}

TEST_F(WebSocketDeflateTest, WhatAContextTakesIsOnTheAccount) {
  start_with(Compression::kContextTakeover);
  PackingClient client(port(), kOffer);
  client.send(RawClient::text_frame(text_of(10)));
  EXPECT_EQ(client.read_message().payload, text_of(10));
  loops_->run_on(0, [&] { EXPECT_EQ(memory_->used(), 0U) << "nothing was compressed yet"; });
  client.send(RawClient::frame(RawClient::kPackedText, client.pack(text_of(200))));
  EXPECT_EQ(client.read_message().payload, text_of(200));
  loops_->run_on(0, [&] { EXPECT_EQ(memory_->used(), MessagePacking::kMostKept); });
  client.close();
  closed_.wait();
  while (server_->connections() != 0) std::this_thread::yield();
  EXPECT_EQ(memory_->used(), 0U);
}

TEST_F(WebSocketDeflateTest, AnOverdrawnAccountLeavesAnswersUncompressedAndEndsWhoPacks) {
  memory_limit_ = 1000;
  start_with(Compression::kContextTakeover);
  const HeldBytes others(*memory_, 2000);
  PackingClient client(port(), kOffer);
  client.send(RawClient::text_frame(text_of(1000)));
  EXPECT_EQ(client.read_message().payload, text_of(1000));
  EXPECT_FALSE(client.was_packed());
  client.send(RawClient::frame(RawClient::kPackedText, client.pack("x")));
  EXPECT_EQ(client.read_message().close_code(), 1013);
  EXPECT_EQ(closed_.wait().code, 1013);
  EXPECT_EQ(dropped("memory"), 1);
}

}  // namespace
}  // namespace hearth::net
