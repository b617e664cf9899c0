#pragma once
// A server with the class Versioned (tests/agents/versioned_agent.cpp), whose library is replaced
// while clients use it.

#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace hearth::testing {

// One agent of the class, over a WebSocket.
class VersionedClient : public AgentClient {
 public:
  // `name` may have a query behind it.
  VersionedClient(const ServerProcess& server, const std::string& name)
      : AgentClient(server, "/agents/versioned/" + name) {}
  // Throws unless this version answers.
  VersionedClient(const ServerProcess& server, const std::string& name, const std::string& version)
      : VersionedClient(server, name) {
    if (const Json found = call("version"); found != version)
      throw std::runtime_error("version " + dump_json(found));
  }

  void send(const std::string& text) { RawClient::send(text_frame(text)); }
  // The frames "first", "first + 1", ... without waiting for an answer.
  void send_numbers(int first, int count) {
    for (int i = 0; i < count; ++i) send(std::to_string(first + i));
  }
  // The server answers it as soon as it has read all earlier frames.
  void ping() { RawClient::send(frame(9, "ping")); }
  // A call whose answer has this id.
  void begin_as(const std::string& id, const std::string& method,
                const std::string& arguments = "[]") {
    send(R"({"type":"rpc","id":")" + id + R"(","method":")" + method + R"(","args":)" + arguments +
         "}");
  }

  // The next frame that is no frame of the protocol; "pong" for the answer to a ping. Throws if the
  // server closes the connection.
  std::string read() {
    for (;;) {
      Frame frame = read_frame();
      if (frame.opcode == 10) return "pong";
      if (frame.opcode == 8)
        throw std::runtime_error("closed: " + std::to_string(frame.close_code()));
      if (!frame.payload.starts_with('{')) return frame.payload;
      protocol_frames_.push_back(parse_json(frame.payload).value());
    }
  }
  // The frames of this type that read() has skipped.
  [[nodiscard]] std::ptrdiff_t frames_of_type(const std::string& type) const {
    return std::ranges::count_if(
        protocol_frames_, [&](const Json& frame) { return frame.value("type", "") == type; });
  }

 private:
  std::vector<Json> protocol_frames_;
};

// `server_` is the server; each test, or the constructor of its fixture, starts it.
class VersionedTest : public ProcessTest {
 protected:
  using Client = VersionedClient;

  ~VersionedTest() override {
    if (server_) server_->stop();
  }

  // Starts with version 1, unless a library is installed.
  void start(const std::string& configuration) {
    put("hearth.yaml", configuration);
    std::filesystem::create_directories(root_ / "classes");
    if (!std::filesystem::exists(file())) install(version_file("1"), "versioned.so");
    start_again();
  }
  // Starts with the installed library.
  void start_again() {
    server_ = serve_ready({"--config", "hearth.yaml", "--log-level", "debug"});
    reloads_ = 0;
  }

  static std::filesystem::path version_file(const std::string& version) {
    return built::agent("versioned-" + version);
  }
  [[nodiscard]] std::filesystem::path file() const { return root_ / "plugins" / "versioned.so"; }
  // As `install` and `mv` do: a new file under the old name.
  void replace(const std::string& version) const {
    ProcessTest::replace(version_file(version), "versioned.so");
  }
  void replace_and_wait(const std::string& version) {
    replace(version);
    server_->wait_for_log("reload.done", ++reloads_);
  }

  // A file that an agent waits for, as an argument or an option. It is not there before open().
  [[nodiscard]] std::string gate(const std::string& name) const { return (root_ / name).string(); }
  void open(const std::string& name) const { put(name, ""); }
  static std::string arguments(const std::string& text) { return dump_json(Json::array({text})); }

  // Waits until the call of another client is in progress: so often, over all versions.
  static void wait_for_attempt(Client& client, const std::string& what, int times = 1) {
    (void)soon([&] { return client.call("attempts", arguments(what)); },
               [&](const Json& attempts) { return attempts >= times; });
  }
  // Waits until that version answers a call of this agent.
  static void wait_for_version(Client& client, const std::string& version) {
    (void)soon([&] { return client.call("version"); },
               [&](const Json& found) { return found == version; });
  }

  std::size_t reloads_ = 0;
  std::unique_ptr<ServerProcess> server_;
};

}  // namespace hearth::testing
