#pragma once
// Two classes on two shards that call each other. Both loops are driven by hand.

#include "runtime/fakes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime::testing {

// Results of the calls of one agent: "part 1", "end ok 2", "end not_found: why", and "(began)".
using Told = std::vector<std::string>;

// The code of one class, which runs `methods`. A call that a method leaves open stays in progress.
struct CallingScript {
  using Method = std::function<void(HostCalls& host, const AgentEvent& event)>;
  std::map<std::string, Method> methods;
  std::map<std::string, Told> told;         // by the name of the agent
  std::vector<std::string> callers;         // caller() of each call: JSON, or "none"
  std::vector<std::string> begun;           // "agent method"
  std::map<std::string, HostCalls*> hosts;  // of live agents
  std::function<void(HostCalls&, const OperationResult&)> on_result;
  std::function<void(const AgentEvent&)> on_message;
  Method on_schedule;
  bool idempotent = false;
  bool holds_connects = false;         // CONNECT stays in progress
  std::vector<std::string> exclusive;  // methods, sorted
  std::string name;
};

class CallingInstance final : public AgentInstance {
 public:
  CallingInstance(CallingScript& script, extensions::AgentContext& agent, std::string name)
      : script_(script), host_(agent), name_(std::move(name)) {
    script_.hosts[name_] = &host_;
  }
  ~CallingInstance() override { script_.hosts.erase(name_); }

  Result<void> on_event(const AgentEvent& event) override {
    if (event.kind == EventKind::kMessage && script_.on_message) script_.on_message(event);
    if (event.kind == EventKind::kSchedule && script_.on_schedule) {
      script_.on_schedule(host_, event);
      return {};
    }
    if (event.kind == EventKind::kConnect && script_.holds_connects) return {};
    if (event.kind != EventKind::kCall && event.kind != EventKind::kRequest)
      return event.call == 0 ? Result<void>() : host_.complete(event.call, std::string_view());
    script_.begun.push_back(name_ + " " + std::string(event.name));
    const auto caller = host_.caller(event.call);
    script_.callers.push_back(caller ? *caller : "none");
    const auto found = script_.methods.find(std::string(event.name));
    if (found == script_.methods.end()) return Error{Errc::kNotFound, "no such method"};
    found->second(host_, event);
    return {};
  }
  void on_cancel(CallId) override {}
  void on_result(const OperationResult& result) override {
    if (script_.on_result) return script_.on_result(host_, result);
    std::string line = result.is_final ? "end " : "part ";
    if (result.outcome) {
      line += result.is_final ? "ok " + std::string(*result.outcome) : std::string(*result.outcome);
    } else {
      line += std::string(to_string(result.outcome.error().code)) + ": " +
              result.outcome.error().message;
    }
    if ((result.flags & HEARTH_CALL_BEGAN) != 0) line += " (began)";
    script_.told[name_].push_back(line);
  }

 private:
  CallingScript& script_;
  HostCalls host_;
  const std::string name_;
};

class CallingClass final : public AgentClass {
 public:
  explicit CallingClass(CallingScript& script) : script_(script) {}
  [[nodiscard]] std::string_view name() const override { return script_.name; }
  [[nodiscard]] std::string_view version() const override { return "1"; }
  [[nodiscard]] std::string_view origin() const override { return "test"; }
  [[nodiscard]] bool is_idempotent(std::string_view) const override { return script_.idempotent; }
  [[nodiscard]] std::span<const std::string> exclusive_methods() const override {
    return script_.exclusive;
  }
  [[nodiscard]] bool checks_state() const override { return false; }
  [[nodiscard]] bool watches_state() const override { return false; }
  Result<std::unique_ptr<AgentInstance>> create(extensions::AgentContext& host,
                                                std::string_view name,
                                                std::string_view) const override {
    return std::make_unique<CallingInstance>(script_, host, std::string(name));
  }
  [[nodiscard]] bool runs_jobs() const override { return false; }
  Result<void> run_offloaded(std::uint64_t, bool, const OffloadOrigin&) const override {
    return {};
  }

 private:
  CallingScript& script_;
};

// Methods that answer at once: with this, with an error, or with their arguments.
inline CallingScript::Method answer_with(const std::string& json) {
  return [json](HostCalls& host, const AgentEvent& event) {
    EXPECT_TRUE(host.complete(event.call, std::string_view(json)));
  };
}
inline CallingScript::Method answer_with(Errc code, const std::string& text) {
  return [code, text](HostCalls& host, const AgentEvent& event) {
    EXPECT_TRUE(host.complete(event.call, Error{code, text}));
  };
}
inline void echo(HostCalls& host, const AgentEvent& event) {
  EXPECT_TRUE(host.complete(event.call, event.body));
}
// A method that stays open.
inline void keep_waiting(HostCalls&, const AgentEvent&) {}

// Classes "Asking" and "ToldRoom" (at asking and told-room).
class AgentCallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    asking.name = "Asking";
    room.name = "ToldRoom";
  }
  void TearDown() override {
    if (!runtime_) return;
    // The objects that a test's methods refer to are gone.
    for (CallingScript* const script : {&asking, &room}) {
      script->methods.clear();
      script->on_message = {};
      script->on_schedule = {};
      script->on_result = [](HostCalls&, const OperationResult&) {};
    }
    stop();
  }

  void start(ClassSettings asking_settings = {}, ClassSettings room_settings = {},
             RuntimeLimits limits = {}) {
    auto opened = storage::DataDirectory::open(directory_.path() / "data");
    data_.emplace(std::move(opened.value()));
    RuntimeOptions options;
    options.limits = limits;
    options.state_frame = [](std::string_view json) { return std::string(json); };
    options.random = &random_;
    // As the server's, with plainer rules: capitals are another spelling, and "?" is no name.
    options.object_name = [](std::string_view name) -> Result<std::string> {
      if (name == "?") return Error{Errc::kInvalidArgument, "that is no name"};
      std::string small(name);
      for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      return small;
    };
    ShardLoop* loops[] = {&first, &second};
    runtime_ = std::make_unique<Runtime>(loops, *data_, logger, metrics_, std::move(options));
    runtime_->classes().add(
        {"asking", std::make_shared<CallingClass>(asking), std::move(asking_settings)});
    runtime_->classes().add(
        {"told-room", std::make_shared<CallingClass>(room), std::move(room_settings)});
    runtime_->start_alarms();
  }
  void stop() {
    bool stopped = false;
    runtime_->stop(std::chrono::milliseconds(0), [&] { stopped = true; });
    advance(std::chrono::milliseconds(1));
    ASSERT_TRUE(stopped);
    runtime_.reset();
    settle();
    data_.reset();
  }
  void settle() {
    for (int round = 0; round < 100; ++round) {
      first.settle();
      second.settle();
    }
  }
  void advance(std::chrono::milliseconds time) {
    settle();
    first.advance(time);
    second.advance(time);
    settle();
  }
  // An agent of the class that lives on this shard.
  std::string name_on(unsigned shard, std::string_view agent_class, const std::string& stem = "a") {
    for (int number = 0;; ++number) {
      const std::string name = stem + std::to_string(number);
      if (runtime_->shard_index({std::string(agent_class), name}) == shard) return name;
    }
  }
  // An agent of Asking on shard 0, and one of ToldRoom, on shard 1 unless the test says another.
  std::string caller() { return name_on(0, "Asking"); }
  std::string callee(unsigned shard = 1) { return name_on(shard, "ToldRoom"); }
  storage::AgentKey asking_agent() { return {"Asking", caller()}; }
  storage::AgentKey room_agent() { return {"ToldRoom", callee()}; }
  std::shared_ptr<Answer> go(const std::string& method = "go") {
    return call(asking_agent(), method);
  }
  Told& told() { return asking.told[caller()]; }
  // As an HTTP request, which belongs to no connection: for a method of `agent`.
  std::shared_ptr<Answer> call(const storage::AgentKey& agent, const std::string& method,
                               const std::string& body = "[]") {
    auto answer = std::make_shared<Answer>();
    auto head = std::make_unique<RequestHead>();
    const std::string segment = agent.agent_class == "Asking" ? "asking" : "told-room";
    const unsigned index = runtime_->shard_index(agent);
    runtime_->shard(index).request(agent, segment, method, body, std::move(head),
                                   std::make_unique<FakeSink>(answer));
    settle();
    return answer;
  }

  CallingScript asking;
  CallingScript room;
  ManualLoop first;
  ManualLoop second;
  hearth::testing::RecordingLogger logger;
  std::unique_ptr<Runtime> runtime_;

 private:
  Metrics metrics_;
  hearth::testing::SeededRandom random_;
  hearth::testing::TempDirectory directory_;
  std::optional<storage::DataDirectory> data_;
};

}  // namespace hearth::runtime::testing
