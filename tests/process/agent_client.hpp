#pragma once
// Calls of an agent's methods over a WebSocket.

#include "json/json.hpp"
#include "net/raw_client.hpp"
#include "support/server_process.hpp"

#include <stdexcept>
#include <string>

namespace hearth::testing {

// One agent of a server. Every wait has RawClient's time limit, and throws then.
class AgentClient {
 public:
  // `path` as in "/agents/counter/a".
  AgentClient(const ServerProcess& server, const std::string& path) : client_(server.port()) {
    const Reply reply = client_.upgrade(path);
    if (reply.status != 101) throw std::runtime_error("not upgraded: " + reply.head);
  }

  // The test may wait for the answer later, or never.
  void begin(const std::string& method, const std::string& arguments = "[]") {
    client_.send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":")" + method +
                                       R"(","args":)" + arguments + "}"));
  }
  // The whole answer: {"success", "result" or "error"}.
  Json answer() {
    for (;;) {
      Json frame = parse_json(client_.read_text()).value();
      if (frame.is_object() && frame.at("type") == "rpc") return frame;
    }
  }
  // The result of the method; throws if it fails.
  Json call(const std::string& method, const std::string& arguments = "[]") {
    begin(method, arguments);
    const Json frame = answer();
    if (frame.at("success") != true) throw std::runtime_error(dump_json(frame));
    return frame.value("result", Json());
  }

 protected:
  RawClient client_;
};

}  // namespace hearth::testing
