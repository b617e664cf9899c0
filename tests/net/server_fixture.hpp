#pragma once
// A server on real loops and a real port, with a handler that a test scripts.

#include "base/logger.hpp"
#include "net/http_server.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::net {

// Events that loops report to the test. wait() fails after ten seconds.
template <class Event>
class Events {
 public:
  void add(Event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  // The next event that no wait() has returned yet.
  Event wait() {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, std::chrono::seconds(10),
                                        [this] { return taken_ < events_.size(); });
    if (!came) throw std::runtime_error("an expected event did not come");
    return events_[taken_++];
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return events_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
  std::size_t taken_ = 0;
};

// Loops with one thread each.
class Loops {
 public:
  explicit Loops(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      loops_.push_back(std::make_unique<asio::io_context>(1));
      turn_ends_.push_back(std::make_unique<TurnEnd>(
          [&loop = *loops_.back()](std::function<void()> task) { asio::post(loop, task); }));
      net_loops_.push_back({*loops_.back(), *turn_ends_.back()});
      guards_.push_back(asio::make_work_guard(*loops_.back()));
      threads_.emplace_back([&loop = *loops_.back()] { loop.run(); });
    }
  }
  // Without a stop(): if a handler is left, the loop does not end and the test hangs.
  ~Loops() {
    guards_.clear();
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] const std::vector<NetLoop>& all() const { return net_loops_; }

  // Runs `call` on a loop's thread and waits for it.
  template <class Call>
  void run_on(std::size_t loop, Call call) {
    std::promise<void> done;
    asio::post(*loops_[loop], [&] {
      call();
      done.set_value();
    });
    done.get_future().get();
  }
  // The index of the loop whose thread this is, or nothing.
  [[nodiscard]] std::optional<std::size_t> current() const {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      if (loops_[i]->get_executor().running_in_this_thread()) return i;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::unique_ptr<asio::io_context>> loops_;
  std::vector<std::unique_ptr<TurnEnd>> turn_ends_;
  std::vector<NetLoop> net_loops_;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> guards_;
  std::vector<std::thread> threads_;
};

struct Closed {
  int code = 0;
  std::string reason;
  bool was_clean = false;

  friend bool operator==(const Closed&, const Closed&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Closed& it) {
    return out << it.code << " \"" << it.reason << '"' << (it.was_clean ? ", clean" : "");
  }
};

// Echoes, unless the test says otherwise.
class ScriptedListener final : public WebSocketListener {
 public:
  using OnMessage = std::function<void(WebSocket&, std::string_view, bool)>;
  ScriptedListener(std::shared_ptr<WebSocket> socket, OnMessage on_message, Events<Closed>& closed)
      : socket_(std::move(socket)), on_message_(std::move(on_message)), closed_(closed) {}

  void on_message(std::string_view payload, bool is_text) override {
    if (on_message_) return on_message_(*socket_, payload, is_text);
    socket_->send(payload, is_text);
  }
  void on_close(std::uint16_t code, std::string_view reason, bool was_clean) override {
    const std::shared_ptr<WebSocket> forgotten = std::exchange(socket_, nullptr);
    closed_.add({code, std::string(reason), was_clean});
  }

 private:
  std::shared_ptr<WebSocket> socket_;
  const OnMessage on_message_;
  Events<Closed>& closed_;
};

class ServerFixture : public ::testing::Test, public HttpHandler {
 protected:
  // `loops_` exists from then on. Without it the first port() starts the server.
  void start(std::size_t loop_count = 1) {
    loops_.emplace(loop_count);
    server_ = HttpServer::listen(options_, loops_->all(), *this, supplies()).value();
    server_->start();
  }
  virtual void start_by_default() { start(); }

  void stop(std::chrono::milliseconds grace = std::chrono::seconds(5)) {
    std::promise<void> stopped;
    server_->stop(grace, [&stopped] { stopped.set_value(); });
    stopped.get_future().get();
    EXPECT_EQ(server_->connections(), 0U);
    server_.reset();
  }

  // Drops the last opened socket on its loop, so that no test races with it.
  ~ServerFixture() override {
    if (server_) stop();
    held_.clear();
    loops_.reset();
  }

  [[nodiscard]] std::uint16_t port() {
    if (!server_) start_by_default();
    return server_->port();
  }
  [[nodiscard]] NetSupplies supplies() {
    if (!memory_) memory_.emplace(memory_limit_);
    return {*logger_, metrics_, *memory_};
  }
  // How many clients were given up for `reason`.
  [[nodiscard]] int dropped(const std::string& reason) const {
    const std::string text = metrics_.text();
    const std::string series = "hearth_clients_dropped_total{reason=\"" + reason + "\"} ";
    const std::size_t place = text.find(series);
    return place == std::string::npos ? -1 : std::stoi(text.substr(place + series.size()));
  }

  // For on_upgrade_: each WebSocket opens on this loop.
  static std::function<UpgradePlan(const HttpRequest&)> on_loop(std::size_t loop) {
    return [loop](const HttpRequest&) {
      UpgradePlan plan;
      plan.loop = loop;
      return plan;
    };
  }

  // HttpHandler: what the test scripted, or sensible defaults.
  void on_request(std::shared_ptr<HttpExchange> exchange) override {
    if (on_request_) return on_request_(std::move(exchange));
    HttpResponse response;
    response.body = exchange->request().method + " " + exchange->request().target + " " +
                    exchange->request().body;
    exchange->respond(std::move(response));
  }
  UpgradePlan on_upgrade(const HttpRequest& request) override {
    UpgradePlan plan;
    if (on_upgrade_) plan = on_upgrade_(request);
    if (!plan.opened) {
      plan.opened = [this](std::shared_ptr<WebSocket> socket) {
        if (on_open_) on_open_(*socket);
        opened_.add(socket);
        return std::make_shared<ScriptedListener>(socket, on_message_, closed_);
      };
    }
    return plan;
  }

  NetOptions options_;
  std::size_t memory_limit_ = std::size_t{256} << 20;
  std::function<void(std::shared_ptr<HttpExchange>)> on_request_;
  std::function<UpgradePlan(const HttpRequest&)> on_upgrade_;
  std::function<void(WebSocket&)> on_open_;
  ScriptedListener::OnMessage on_message_;
  Events<std::shared_ptr<WebSocket>> opened_;
  Events<Closed> closed_;

  std::vector<std::shared_ptr<HttpExchange>> held_;
  std::unique_ptr<Logger> logger_ = make_null_logger();
  Metrics metrics_;
  std::optional<ClientMemory> memory_;  // once it is supplied
  std::optional<Loops> loops_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace hearth::net
