#pragma once
// A server with objects, and requests of clients and administrators.

#include "json/json.hpp"
#include "process/process_fixture.hpp"

#include <memory>
#include <string>

namespace hearth::testing {

class ObjectsTest : public ProcessTest {
 protected:
  ObjectsTest() {
    install(bundled("counter"), "counter.so");
    install(bundled("chat-room"), "chat-room.so");
    object_class("");
  }

  void object_class(const std::string& more) const {
    put("classes/counter.yaml", "class: counter\nobjects: true\n" + more);
  }
  void start(const std::string& more = "") {
    put("hearth.yaml", "log:\n  level: debug\n" + more);
    server_ = serve_ready({"--config", "hearth.yaml", "--shards", "1"});
    token_ = read_token();
  }
  void restart() {
    EXPECT_EQ(server_->stop(), kClean);
    server_ = serve_ready({"--config", "hearth.yaml", "--shards", "1"});
  }

  void install_durable_agent() const {
    install(built::agent("durable-agent"), "durable-agent.so");
    put("classes/durable-agent.yaml", "class: DurableAgent\nobjects: true\n");
  }

  Reply ask(const std::string& method, const std::string& path, const std::string& body = "",
            bool is_admin = true) const {
    return request(*server_, method, path,
                   is_admin ? "Authorization: Bearer " + token_ + "\r\n" : "", body);
  }
  // The data of an answer with this status.
  Json data(int status, const std::string& method, const std::string& path,
            const std::string& body = "") const {
    const Reply reply = ask(method, path, body);
    EXPECT_EQ(reply.status, status) << method << ' ' << path << ' ' << reply.body;
    const auto parsed = parse_json(reply.body);
    if (!parsed) return {};
    return parsed->value(status < 400 ? "data" : "code", Json());
  }
  Json increment(const std::string& id) const {
    return data(200, "POST", "/objects/counter/" + id + "/call/increment", "[]");
  }

  std::unique_ptr<ServerProcess> server_;
  std::string token_;
};

}  // namespace hearth::testing
