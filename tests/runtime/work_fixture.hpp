#pragma once
// An agent whose durable work a test scripts, through the whole runtime.

#include "fakes.hpp"
#include "storage/directory.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime::testing {

// HTTP requests run `on_request`, and START runs `on_start`. Durable work is written down by kind
// as "name body", and then passed to `on_work`. All other events, and work without a script, are
// completed at once.
class WorkTest : public ::testing::Test {
 protected:
  using Work = std::function<Result<void>(HostCalls&, const AgentEvent&)>;

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
    auto answer = shard_.request("POST", "", name);
    shard_.settle();
    on_request = nullptr;
    return answer;
  }
  // A later turn of the youngest agent, without a client.
  void act(std::function<void(HostCalls&)> action) {
    shard_.script.on_result = [action = std::move(action)](
                                  HostCalls& host, const OperationResult&) { action(host); };
    shard_.runtime().post(shard_.script.host->handle(), 1);
    shard_.settle();
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
  // Work that begins and does not end by itself.
  static Result<void> hang(HostCalls&, const AgentEvent&) { return {}; }
  // The text of a member, with its quotes if it has any.
  static std::string member(const std::string& text, const std::string& name) {
    const auto at = text.find("\"" + name + "\":");
    if (at == std::string::npos) return "none";
    const auto begin = at + name.size() + 3;
    return text.substr(begin, text.find_first_of(",}]", begin) - begin);
  }

  std::function<void(HostCalls&)> on_request;
  std::function<void(HostCalls&)> on_start;
  Work on_work;
  std::map<EventKind, std::vector<std::string>> seen;
  std::vector<std::string> order;  // names of all durable work
  ShardFixture shard_;
};

}  // namespace hearth::runtime::testing
