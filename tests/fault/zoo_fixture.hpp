#pragma once
// A server with a library that breaks a rule, a visitor that uses its agents, and a neighbour that
// uses other agents.

#include "json/json.hpp"
#include "process/supervised_fixture.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace hearth::testing {

// Increments a counter all the time, one call after the other, and writes down the results.
//
// Promises  A call that fails is retried, at once when the server takes connections again. Its
//           measured wait lasts until the answer.
// Threads   One of its own; the members may be called from any.
class Neighbour {
 public:
  struct Account {
    int calls = 0;
    int interruptions = 0;  // calls that lost their connection
    std::string errors;     // missing and wrong answers
    std::chrono::milliseconds longest_wait{0};
  };

  explicit Neighbour(std::uint16_t port) : port_(port), thread_([this] { run(); }) {}
  ~Neighbour() { stop(); }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  // From now on it calls a server at another port.
  void move_to(std::uint16_t port) { port_ = port; }
  // Waits for so many more answers, so that they show what the server does now.
  void be_answered(int times = 3) {
    const int until = answered_ + times;
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    while (answered_ < until) {
      if (std::chrono::steady_clock::now() > deadline)
        throw std::runtime_error("the neighbour gets no answers");
      std::this_thread::sleep_for(kPace);
    }
  }
  // Ends it. Call it before the server is stopped.
  Account stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    return account_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPace{2};

  void run() {
    while (!stopping_) {
      const Clock::time_point begun = Clock::now();
      lost_ = false;
      while (!call() && !stopping_) std::this_thread::sleep_for(kPace);
      if (lost_) ++account_.interruptions;
      const auto took = std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - begun);
      account_.longest_wait = std::max(account_.longest_wait, took);
      std::this_thread::sleep_for(kPace);
    }
  }

  // False: there was no answer.
  bool call() {
    try {
      if (!client_) client_ = std::make_unique<RawClient>(port_);
      const Reply reply = client_->request(
          "POST /agents/counter/neighbour HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
          "0\r\n\r\n");
      judge(reply);
      ++account_.calls;
      ++answered_;
      return true;
    } catch (const std::runtime_error&) {
      // A server that ends may still take a connection, and a server that starts takes none: both
      // belong to the same interruption.
      lost_ = lost_ || client_ != nullptr;
      client_.reset();
      return false;
    }
  }

  // No increment is lost. A call whose answer was lost may have counted.
  void judge(const Reply& reply) {
    const auto body = parse_json(reply.body);
    const std::int64_t count =
        reply.status == 200 && body && body->is_object() ? body->value("count", 0) : 0;
    if (count <= last_) account_.errors += reply.head.substr(0, 40) + reply.body + "\n";
    last_ = std::max(last_, count);
  }

  std::atomic<std::uint16_t> port_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> answered_ = 0;
  // Only its thread uses these until that thread has ended.
  std::unique_ptr<RawClient> client_;
  std::int64_t last_ = 0;
  bool lost_ = false;  // the call in progress has lost a connection
  Account account_;
  std::thread thread_;  // the last member: it uses the others
};

// Uses the agents "a" and "b" of a class as a client of zoo.c or zoo.cpp does, and writes down each
// answer that a good library would not have given.
class Visitor {
 public:
  // `segment`: the class in addresses.
  Visitor(std::uint16_t port, std::string segment) : port_(port), segment_(std::move(segment)) {}

  // Whether the server still answers. complaints() has the wrong answers.
  bool lives(const std::function<void(Visitor&)>& visit) {
    try {
      visit(*this);
      return true;
    } catch (const std::runtime_error& gone) {
      complaints_ += std::string("[") + gone.what() + "]";
      return false;
    }
  }

  void connect(std::unique_ptr<RawClient>& client, const std::string& name) {
    client = std::make_unique<RawClient>(port_);
    const Reply reply = client->request(RawClient::upgrade_text(path(name)), false);
    if (reply.status == 101) return;
    complain("connect", std::to_string(reply.status));
    client.reset();
  }
  // Sends a text, and expects no answer.
  static void say(std::unique_ptr<RawClient>& client) {
    if (client) client->send(RawClient::text_frame("hello"));
  }
  // Calls a method. Any other result or error is a complaint.
  void call(std::unique_ptr<RawClient>& client, const std::string& method,
            const std::string& expected, const std::string& arguments = "[]") {
    if (!client) return;
    client->send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":")" + method +
                                       R"(","args":)" + arguments + "}"));
    for (;;) {
      const Frame frame = client->read_frame();
      if (frame.opcode == 8) {
        complain(method,
                 "closed " + std::to_string(frame.close_code()) + " " + frame.close_reason());
        client.reset();
        return;
      }
      const auto json = parse_json(frame.payload);
      if (!json || !json->is_object() || json->value("type", "") != "rpc") continue;
      const std::string result = json->value("success", false)
                                     ? dump_json(json->value("result", Json()))
                                     : json->value("error", "");
      if (result != expected) complain(method, result);
      return;
    }
  }
  void request(const std::string& name) {
    RawClient client(port_);
    const Reply reply = client.request("GET " + path(name) +
                                       " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    if (reply.status != 200 || reply.body != "ok")
      complain("request", std::to_string(reply.status) + " " + reply.body);
  }

  [[nodiscard]] const std::string& complaints() const { return complaints_; }

  std::unique_ptr<RawClient> a;
  std::unique_ptr<RawClient> b;

 private:
  [[nodiscard]] std::string path(const std::string& name) const {
    return "/agents/" + segment_ + "/" + name;
  }
  void complain(const std::string& what, const std::string& answer) {
    complaints_ += what + ": " + answer + "; ";
  }

  std::uint16_t port_;
  std::string segment_;
  std::string complaints_;
};

}  // namespace hearth::testing
