#pragma once
// Live agents whose calls and messages, or whose durable work, a test scripts, through the whole
// runtime.

#include "fakes.hpp"
#include "storage/directory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::runtime::testing {

class LiveAgentTest : public ::testing::Test {
 protected:
  // `handler` gets calls and messages; everything else is completed at once.
  void on_call(EventHandler handler) {
    shard_.script.on_event = [handler = std::move(handler)](
                                 HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kCall || event.kind == EventKind::kMessage ||
          event.kind == EventKind::kRequest || event.kind == EventKind::kStateCheck) {
        return handler(host, event);
      }
      return complete(host, event);
    };
  }

  // The call that keep_open() has left open.
  CallId kept() { return shard_.script.open_calls.at(0); }

  // The bytes of the parameter of an operation.
  static std::string_view bytes_of(const std::uint64_t& number) {
    return {reinterpret_cast<const char*>(&number), sizeof(number)};
  }

  ShardFixture shard_;
};

// HTTP requests run `on_request`, and START runs `on_start`. Durable work is written down by kind
// as "name body", and then passed to `on_work`. All other events, and work without a script, are
// completed at once.
class WorkTest : public ::testing::Test {
 protected:
  WorkTest() {
    shard_.script.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kRequest && on_request) on_request(host);
      if (event.kind == EventKind::kStart && on_start) on_start(host);
      if (rule_of(event.kind).sender == EventSender::kWork) {
        seen[event.kind].push_back(std::string(event.name) + " " + std::string(event.body));
        order.emplace_back(event.name);
        if (on_work) return on_work(host, event);
      }
      return complete(host, event);
    };
  }

  // One turn of a live agent.
  std::shared_ptr<Answer> visit(std::function<void(HostCalls&)> action,
                                const std::string& name = "a") {
    on_request = std::move(action);
    auto answer = shard_.ask("POST", "", name);
    on_request = nullptr;
    return answer;
  }
  // One turn that makes these.
  void schedule(const std::vector<durable::ScheduleRequest>& requests,
                const std::string& name = "a") {
    visit(
        [&](HostCalls& host) {
          for (const auto& request : requests) EXPECT_TRUE(host.create_schedule(request));
        },
        name);
  }
  void push(const std::vector<const char*>& callbacks) {
    visit([&](HostCalls& host) {
      for (const char* callback : callbacks) EXPECT_TRUE(host.push_item(item(callback)));
    });
  }
  void start_fiber(const char* fiber, const std::string& name = "a") {
    visit([=](HostCalls& host) { EXPECT_TRUE(host.start_fiber(fiber)); }, name);
  }
  // A later turn of the youngest agent, without a client.
  void act(std::function<void(HostCalls&)> action) { shard_.act(std::move(action)); }

  // Completes calls of several agents, one after the other, also those that begin meanwhile.
  using Open = std::vector<std::pair<HostCalls*, CallId>>;
  void answer_each(const Open& open, const std::function<void(std::size_t)>& answered = {}) {
    shard_.script.on_result = [&](HostCalls& host, const OperationResult&) {
      for (const auto& [agent, call] : open)
        if (agent == &host) (void)host.complete(call, std::string_view());
    };
    for (std::size_t i = 0; i < open.size(); ++i) {
      shard_.runtime().post(open[i].first->handle(), 1);
      shard_.settle();
      if (answered) answered(i);
    }
    shard_.script.on_result = nullptr;
  }

  std::vector<std::string>& runs() { return seen[EventKind::kSchedule]; }
  std::vector<std::string>& items() { return seen[EventKind::kQueueItem]; }
  std::vector<std::string>& told() { return seen[EventKind::kFiberSettled]; }
  std::vector<std::string>& plans() { return seen[EventKind::kFibersRecovered]; }
  std::vector<std::string>& recovered() { return seen[EventKind::kFiberRecovered]; }

  // The entry of an agent in the wake index on disk.
  std::optional<storage::WakeEntry> wake_of(const std::string& name = "a") {
    storage::Directory directory(shard_.data().directory_path());
    for (const storage::WakeEntry& entry : directory.wakes()) {
      if (entry.key.name == name) return entry;
    }
    return std::nullopt;
  }

  static durable::ScheduleRequest after(std::int64_t milliseconds, const char* callback) {
    durable::ScheduleRequest request;
    request.type = durable::ScheduleType::kDelay;
    request.callback = callback;
    request.when_ms = milliseconds;
    return request;
  }
  static durable::ScheduleRequest every(std::int64_t milliseconds, const char* callback) {
    durable::ScheduleRequest request = after(milliseconds, callback);
    request.type = durable::ScheduleType::kInterval;
    return request;
  }
  static durable::QueueRequest item(const char* callback, const char* payload = "") {
    durable::QueueRequest request;
    request.callback = callback;
    request.payload = payload;
    return request;
  }
  static durable::FiberRequest managed(const char* name, const char* id) {
    durable::FiberRequest request;
    request.name = name;
    request.id = id;
    return request;
  }
  // The text of a member, with its quotes if it has any.
  static std::string member(const std::string& text, const std::string& name) {
    const auto at = text.find("\"" + name + "\":");
    if (at == std::string::npos) return "none";
    const auto begin = at + name.size() + 3;
    return text.substr(begin, text.find_first_of(",}]", begin) - begin);
  }

  // The id of a fiber in what its hook is told.
  static std::string id_in(const AgentEvent& event) { return id_in(std::string(event.body)); }
  static std::string id_in(const std::string& text) {
    const std::string id = member(text, "id");
    return id.substr(1, id.size() - 2);
  }

  std::function<void(HostCalls&)> on_request;
  std::function<void(HostCalls&)> on_start;
  EventHandler on_work;
  std::map<EventKind, std::vector<std::string>> seen;
  std::vector<std::string> order;  // names of all durable work
  ShardFixture shard_;
};

}  // namespace hearth::runtime::testing
