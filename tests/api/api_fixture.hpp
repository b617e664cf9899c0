#pragma once
// The whole server except shared libraries: real loops, a real runtime over real files, a real
// port.

#include "api/http_api.hpp"
#include "api/noting_rows.hpp"
#include "api/plain_agents.hpp"
#include "net/http_server.hpp"
#include "net/raw_client.hpp"
#include "process/contains.hpp"
#include "protocol/class_segment.hpp"
#include "protocol/server_frames.hpp"
#include "runtime/asio_loop.hpp"
#include "storage/data_directory.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"
#include "telemetry/metrics.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::api::testing {

using hearth::testing::answer_of;
using hearth::testing::answers;
using hearth::testing::contains;
using hearth::testing::Frame;
using hearth::testing::lacks;
using hearth::testing::RawClient;
using hearth::testing::Reply;

// A client that is connected to an agent.
class Client : public RawClient {
 public:
  Client(std::uint16_t port, const std::string& target, int receive_buffer = 0)
      : RawClient(port, receive_buffer) {
    const Reply reply = upgrade(target);
    EXPECT_EQ(reply.status, 101) << reply.head;
  }

  void say(std::string_view text) { send(text_frame(text)); }

  // Sends a call and reads one frame.
  std::string call(std::string_view method, std::string_view arguments = "[]") {
    say(call_text("c", method, arguments));
    return read_text();
  }

  static std::string call_text(std::string_view id, std::string_view method,
                               std::string_view arguments = "[]") {
    return R"({"type":"rpc","id":")" + std::string(id) + R"(","method":")" + std::string(method) +
           R"(","args":)" + std::string(arguments) + "}";
  }

  // Reads the greeting: the identity, the state if there is one, and the MCP servers.
  void read_greeting() {
    while (read_text().find("cf_agent_mcp_servers") == std::string::npos) {
    }
  }
};

// One that has read its greeting.
class GreetedClient : public Client {
 public:
  GreetedClient(std::uint16_t port, const std::string& target) : Client(port, target) {
    read_greeting();
  }
};

// A socket without a network. It notes how it is closed, and whether it is read from.
class NotedSocket final : public net::WebSocket {
 public:
  void send(std::string_view, bool) override {}
  void send(SharedBytes, bool) override {}
  void close(CloseCode code, std::string_view why) override {
    closed_with = code;
    reason = why;
  }
  void abort() override {}
  void pause_reading() override { is_paused = true; }
  void resume_reading() override { is_paused = false; }
  void when_drained(std::function<void()> notice) override { notice(); }
  [[nodiscard]] std::size_t buffered() const override { return 0; }
  [[nodiscard]] bool is_open() const override { return closed_with == 0; }
  [[nodiscard]] std::uint64_t sends() const override { return 0; }

  CloseCode closed_with = 0;
  std::string reason;
  bool is_paused = false;
};

inline std::string http(std::string_view method, std::string_view target,
                        std::string_view extra = "", std::string_view body = "") {
  std::string text =
      std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: test\r\n";
  text += extra;
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + std::string(body);
}

class ApiFixture : public ::testing::Test {
 protected:
  // Call it once, before the first client, unless one loop will do.
  void start(unsigned loop_count = 1) {
    auto opened = storage::DataDirectory::open(directory_.path() / "data");
    ASSERT_TRUE(opened) << opened.error().message;
    data_.emplace(*std::move(opened));
    std::vector<runtime::ShardLoop*> shards;
    std::vector<net::NetLoop> net_loops;
    for (unsigned i = 0; i < loop_count; ++i) {
      loops_.push_back(std::make_unique<runtime::AsioLoop>(clock_));
      shards.push_back(loops_.back().get());
      net_loops.push_back({loops_.back()->context(), loops_.back()->turn_end()});
    }
    runtime::RuntimeOptions options;
    options.state_frame = protocol::state_frame;
    options.sync_calls = sync_calls_;
    options.limits = limits_;
    runtime_ =
        std::make_unique<runtime::Runtime>(shards, *data_, logger_, metrics_, std::move(options));
    serve("Sampler", sampler);
    serve("Counter", counter);
    serve("Room", room);
    serve("Broken", broken);
    HttpApiOptions api_options;
    api_options.max_name_bytes = 256;
    api_options.edge = edge_;
    if (has_desks_) {
      admin_.emplace(kAdminToken, metrics_, console_);
      api_options.admin = &*admin_;
      api_options.rows = desks_.rows();
      for (Route& row : more_rows_) api_options.rows.push_back(row);
    }
    api_ =
        std::make_unique<HttpApi>(*runtime_, readiness_, metrics_, random_, logger_, api_options);
    for (const auto& loop : loops_) loop->start();
    auto listening = net::HttpServer::listen(net_options_, net_loops, *api_,
                                             {logger_, metrics_, runtime_->client_memory()});
    ASSERT_TRUE(listening) << listening.error().message;
    server_ = *std::move(listening);
    readiness_.set(Readiness::Phase::kReady);
    server_->start();
  }

  ~ApiFixture() override {
    if (server_ == nullptr) return;
    stop_runtime();
    wait([this](std::function<void()> done) {
      server_->stop(std::chrono::seconds(5), std::move(done));
    });
    EXPECT_EQ(server_->connections(), 0U);
    server_.reset();
    for (const auto& loop : loops_) loop->stop();
    runtime_.reset();
  }

  void stop_runtime() {
    if (std::exchange(stopped_, true)) return;
    wait([this](std::function<void()> done) {
      runtime_->stop(std::chrono::seconds(5), std::move(done));
    });
  }

  void serve(std::string name, Behaviour behaviour, runtime::ClassSettings settings = {}) {
    if (runtime_ == nullptr) start();
    std::string segment = protocol::kebab_case(name);
    auto agent_class = std::make_shared<PlainClass>(std::move(name), std::move(behaviour));
    ASSERT_TRUE(
        runtime_->classes().add({std::move(segment), std::move(agent_class), std::move(settings)}));
  }

  [[nodiscard]] HttpApi& api() { return *api_; }
  [[nodiscard]] std::uint16_t port() {
    if (server_ == nullptr) start();
    return server_->port();
  }

  [[nodiscard]] Client connect(const std::string& target) { return Client(port(), target); }
  [[nodiscard]] GreetedClient greet(const std::string& target) {
    return GreetedClient(port(), target);
  }

  Reply get(std::string_view target) { return ask(http("GET", target)); }
  Reply ask(const std::string& request, bool has_body = true) {
    return RawClient(port()).request(request, has_body);
  }

  // The first frame to a WebSocket. It tells how the WebSocket ends if it is accepted and closed.
  Frame first_frame(const std::string& target) { return connect(target).read_frame(); }
  // 0: it stays open.
  int close_code(const std::string& target) { return first_frame(target).close_code(); }
  static std::string error_code(const Reply& reply) {
    constexpr std::string_view kBegin = R"("code":")";
    const std::size_t at = reply.body.find(kBegin) + kBegin.size();
    return reply.body.substr(at, reply.body.find('"', at) - at);
  }

  // The loop whose thread this is.
  [[nodiscard]] std::optional<unsigned> current_loop() const {
    for (unsigned i = 0; i < loops_.size(); ++i) {
      if (loops_[i]->on_this_thread()) return i;
    }
    return std::nullopt;
  }

  static constexpr const char* kAdminToken = "token-of-the-administrators";

  net::NetOptions net_options_;
  EdgeRules edge_;                 // set before start()
  runtime::RuntimeLimits limits_;  // ... too
  // Whether there are the rows of /admin and /objects. Set it before start().
  bool has_desks_ = false;
  NotingRows desks_;
  // The same, beside these rows.
  std::vector<Route> more_rows_;
  ConsoleSessions* console_ = nullptr;
  storage::SyncCalls* sync_calls_ = nullptr;  // set before start(); must outlive this
  Readiness readiness_;
  hearth::testing::RecordingLogger logger_;
  Metrics metrics_;
  std::unique_ptr<runtime::Runtime> runtime_;

 private:
  static void wait(const std::function<void(std::function<void()>)>& begin) {
    std::promise<void> over;
    begin([&over] { over.set_value(); });
    over.get_future().get();
  }

  SystemClock clock_;
  hearth::testing::SeededRandom random_{1};
  hearth::testing::TempDirectory directory_;
  std::optional<storage::DataDirectory> data_;
  std::vector<std::unique_ptr<runtime::AsioLoop>> loops_;
  std::optional<AdminApi> admin_;
  std::unique_ptr<HttpApi> api_;
  std::unique_ptr<net::HttpServer> server_;
  bool stopped_ = false;
};

}  // namespace hearth::api::testing
