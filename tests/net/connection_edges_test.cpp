// The rows of connection_edges.txt, over real sockets.
#include "net/raw_client.hpp"
#include "net/server_fixture.hpp"
#include "support/built.hpp"
#include "support/edge_table.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::net {
namespace {

using hearth::testing::Frame;
using hearth::testing::RawClient;
using hearth::testing::Reply;

constexpr std::string_view kFin = "<fin>";

std::string frame_of(const std::string& kind, const std::string& text) {
  if (kind == "part") return RawClient::frame(1, text, false);
  if (kind == "rest") return RawClient::frame(0, text);
  if (kind == "ping") return RawClient::frame(9, text);
  if (kind != "close") return RawClient::text_frame(text);
  const std::size_t space = std::min(text.find(' '), text.size());
  return RawClient::close_frame(std::stoi(text.substr(0, space)),
                                text.substr(std::min(space + 1, text.size())));
}

// The bytes of a row. <fin> stays as it is.
std::string bytes_of(std::string_view column) {
  static const std::map<std::string, std::string> kWords{
      {"get", "GET / HTTP/1.1\r\nHost: t\r\n"},
      {"post", "POST / HTTP/1.1\r\nHost: t\r\n"},
      {"chunked", "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"next", "GET /next HTTP/1.1\r\nHost: t\r\n\r\n"},
      {"fin", std::string(kFin)}};
  std::string bytes;
  while (!column.empty()) {
    const std::size_t open = std::min(column.find('<'), column.size());
    bytes += hearth::testing::unescaped(column.substr(0, open));
    column.remove_prefix(open);
    if (column.empty()) break;
    const std::size_t end = column.find('>');
    const std::string word(column.substr(1, end - 1));
    const std::size_t space = std::min(word.find(' '), word.size());
    const auto known = kWords.find(word);
    bytes +=
        known != kWords.end()
            ? known->second
            : frame_of(word.substr(0, space),
                       hearth::testing::unescaped(word.substr(std::min(space + 1, word.size()))));
    column.remove_prefix(end + 1);
  }
  return bytes;
}

// "[GET / ] 400 end": a text in brackets is one word.
std::vector<std::string> words_of(std::string_view answer) {
  std::vector<std::string> words;
  while (!answer.empty()) {
    const std::size_t end =
        std::min(answer.front() == '[' ? answer.find(']') + 1 : answer.find(' '), answer.size());
    words.emplace_back(answer.substr(0, end));
    answer.remove_prefix(std::min(end + 1, answer.size()));
  }
  return words;
}

class ConnectionEdgesTest : public ServerFixture {
 protected:
  ConnectionEdgesTest() {
    options_.max_body = 1U << 20U;
    on_message_ = [](WebSocket& socket, std::string_view text, bool is_text) {
      if (text == "bye") return socket.close(4002, "");
      socket.send(text, is_text);
    };
    start();
  }

  static void send(RawClient& client, std::string bytes, bool in_pieces) {
    const bool ends = bytes.ends_with(kFin);
    if (ends) bytes.resize(bytes.size() - kFin.size());
    const std::size_t piece = in_pieces ? 1 : std::max<std::size_t>(bytes.size(), 1);
    for (std::size_t at = 0; at < bytes.size() && client.send(bytes.substr(at, piece));
         at += piece) {
    }
    if (ends) client.end_sending();
  }

  // What the server answers, in the words of the table: as many as `wanted` has.
  std::string heard_of_http(RawClient& client, const std::vector<std::string>& wanted) {
    std::string heard;
    for (const std::string& word : wanted) {
      heard += heard.empty() ? "" : " ";
      if (word == "end") {
        heard += client.at_end() ? "end" : "more";
      } else if (word == "open") {
        client.send("GET /open HTTP/1.1\r\nHost: t\r\n\r\n");
        heard += client.read_reply().body == "GET /open " ? "open" : "more";
      } else {
        const Reply reply = client.read_reply();
        heard += reply.status == 200 ? '[' + reply.body + ']' : std::to_string(reply.status);
      }
    }
    return heard;
  }

  std::string heard_of_web_socket(RawClient& client, const std::vector<std::string>& wanted) {
    std::string heard;
    for (const std::string& word : wanted) {
      heard += heard.empty() ? "" : " ";
      if (word == "end") {
        heard += client.at_end() ? "end" : "more";
      } else if (word.starts_with("told:")) {
        heard += "told:" + std::to_string(closed_.wait().code);
      } else {
        const Frame frame = client.read_frame();
        const int code = frame.close_code();
        if (frame.opcode == 1) heard += '[' + frame.payload + ']';
        if (frame.opcode == 8) heard += "close:" + (code == 0 ? "" : std::to_string(code));
        if (frame.opcode == 10) heard += "pong:" + frame.payload;
      }
    }
    return heard;
  }
};

TEST_F(ConnectionEdgesTest, EachRowIsAnsweredAsItsClauseSays) {
  const auto file = hearth::testing::built::sources() / "tests/net/connection_edges.txt";
  for (const std::vector<std::string>& row : hearth::testing::read_edge_table(file, 3)) {
    const std::vector<std::string> wanted = words_of(row[2]);
    const bool is_web_socket = wanted.back().starts_with("told:");
    for (const bool in_pieces : {false, true}) {
      RawClient client(port());
      if (is_web_socket) client.upgrade();
      send(client, bytes_of(row[1]), in_pieces);
      std::string heard;
      try {
        heard = is_web_socket ? heard_of_web_socket(client, wanted) : heard_of_http(client, wanted);
      } catch (const std::exception& failure) {
        heard = failure.what();
      }
      EXPECT_EQ(heard, row[2]) << row[0] << (in_pieces ? ", byte by byte" : "") << "\n" << row[1];
    }
  }
}

}  // namespace
}  // namespace hearth::net
