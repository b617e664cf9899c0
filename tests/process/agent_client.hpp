#pragma once
// Calls of an agent's methods over a WebSocket.

#include "json/json.hpp"
#include "net/raw_client.hpp"
#include "support/server_process.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace hearth::testing {

// One agent of a server. Every wait has RawClient's time limit, and throws then.
class AgentClient : public RawClient {
 public:
  // `path` as in "/agents/counter/a".
  AgentClient(std::uint16_t port, const std::string& path, int receive_buffer = 0)
      : RawClient(port, receive_buffer) {
    const Reply reply = upgrade(path);
    if (reply.status != 101) throw std::runtime_error("not upgraded: " + reply.head);
  }
  AgentClient(const ServerProcess& server, const std::string& path, int receive_buffer = 0)
      : AgentClient(server.port(), path, receive_buffer) {}

  // The test may wait for the answer later, or never.
  void begin(const std::string& method, const std::string& arguments = "[]") {
    RawClient::send(text_frame(R"({"type":"rpc","id":"1","method":")" + method + R"(","args":)" +
                               arguments + "}"));
  }
  // The whole answer: {"success", "result" or "error"}.
  Json answer() {
    for (;;) {
      Json frame = parse_json(read_text()).value();
      if (frame.is_object() && frame.at("type") == "rpc") return frame;
    }
  }
  // The result in the answer; throws if the method fails.
  Json result() {
    const Json frame = answer();
    if (frame.at("success") != true) throw std::runtime_error(dump_json(frame));
    return frame.value("result", Json());
  }
  Json call(const std::string& method, const std::string& arguments = "[]") {
    begin(method, arguments);
    return result();
  }
  // What comes behind all texts.
  Frame close_frame() {
    Frame frame = read_frame();
    while (frame.opcode == 1) frame = read_frame();
    return frame;
  }
};

}  // namespace hearth::testing
