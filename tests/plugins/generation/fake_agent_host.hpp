#pragma once
// An agent's host that keeps what it is told and answers what the test says.

#include "runtime/agent_host.hpp"
#include "storage/plugin_sql.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins::testing {

class FakeAgentHost final : public runtime::AgentHost {
 public:
  explicit FakeAgentHost(runtime::AgentHandle handle) : handle_(handle) {}

  // What the next functions answer, and what they were told: "complete 7 ok [1,2]".
  std::optional<Error> answer;  // of functions that give a Result
  bool storage_breaks = false;  // the next call throws StorageError
  std::optional<std::string> its_state;
  std::map<runtime::ConnectionId, runtime::Connection> clients;
  storage::PluginSql* database = nullptr;
  runtime::RequestView view;
  bool its_schedule_is_new = true;
  std::vector<std::string> calls;
  std::string broken;

  [[nodiscard]] runtime::AgentHandle handle() const override { return handle_; }

  Result<void> complete(runtime::CallId call, const Result<std::string_view>& outcome) override {
    return told(
        "complete " + std::to_string(call) + " " +
        (outcome ? "ok " + std::string(*outcome)
                 : std::string(to_string(outcome.error().code)) + " " + outcome.error().message));
  }
  Result<void> emit(runtime::CallId call, std::string_view part) override {
    return told("emit " + std::to_string(call) + " " + std::string(part));
  }
  Result<runtime::OperationId> submit(std::uint32_t operation, std::string_view request,
                                      std::uint64_t token) override {
    const auto done = told("submit " + std::to_string(operation) + " " +
                           std::to_string(request.size()) + " bytes " + std::to_string(token));
    if (!done) return done.error();
    return runtime::OperationId{99};
  }
  Result<void> cancel(runtime::OperationId operation) override {
    return told("cancel " + std::to_string(operation));
  }
  Result<void> evict() override { return told("evict"); }
  Result<void> destroy() override {
    if (storage_breaks) throw StorageError("the disk is gone");
    return told("destroy");
  }
  void log(LogLevel level, std::string_view text) override {
    calls.push_back("log " + std::to_string(static_cast<int>(level)) + " " + std::string(text));
  }
  std::optional<std::string_view> state() override {
    if (storage_breaks) throw StorageError("the disk is gone");
    return its_state;
  }
  Result<void> set_state(runtime::ConnectionId on_behalf, std::string_view json) override {
    return told("set_state " + std::to_string(on_behalf) + " " + std::string(json));
  }
  Result<void> set_default_state(std::string_view json) override {
    return told("set_default_state " + std::string(json));
  }
  storage::PluginSql& sql() override {
    if (storage_breaks) throw StorageError("the disk is gone");
    if (database == nullptr) throw std::logic_error("this test has no database");
    return *database;
  }
  void storage_failed(std::string_view what) override { broken = what; }
  runtime::Connection* find_connection(runtime::ConnectionId id) override {
    const auto found = clients.find(id);
    return found == clients.end() ? nullptr : &found->second;
  }
  runtime::ConnectionId next_connection(runtime::ConnectionId after,
                                        std::string_view tag) override {
    for (auto& [id, client] : clients) {
      if (id > after && (tag.empty() || client.client_id == tag)) return id;
    }
    return 0;
  }
  Result<void> add_tag(runtime::ConnectionId id, std::string_view tag) override {
    return told("add_tag " + std::to_string(id) + " " + std::string(tag));
  }
  Result<void> set_flags(runtime::ConnectionId id, std::uint32_t flags) override {
    return told("set_flags " + std::to_string(id) + " " + std::to_string(flags));
  }
  Result<void> set_attachment(runtime::ConnectionId id, std::string_view bytes) override {
    return told("set_attachment " + std::to_string(id) + " " + std::string(bytes));
  }
  Result<void> send(runtime::ConnectionId id, runtime::FrameKind kind,
                    std::string_view payload) override {
    return told("send " + std::to_string(id) + " " + std::to_string(static_cast<int>(kind)) + " " +
                std::string(payload));
  }
  Result<void> broadcast(runtime::FrameKind kind, std::string_view payload, std::string_view tag,
                         std::span<const runtime::ConnectionId> except) override {
    std::string text = "broadcast " + std::to_string(static_cast<int>(kind)) + " " +
                       std::string(payload) + " to '" + std::string(tag) + "' but";
    for (const auto id : except) text += " " + std::to_string(id);
    return told(std::move(text));
  }
  Result<void> close(runtime::ConnectionId id, std::uint32_t code,
                     std::string_view reason) override {
    return told("close " + std::to_string(id) + " " + std::to_string(code) + " " +
                std::string(reason));
  }
  Result<void> acquire_keep_alive() override { return told("acquire_keep_alive"); }
  Result<void> release_keep_alive() override { return told("release_keep_alive"); }
  Result<runtime::StartedFiber> start_fiber(std::string_view name,
                                            std::string_view replaces) override {
    const auto done = told("start_fiber " + std::string(name) + " " + std::string(replaces));
    if (!done) return done.error();
    return runtime::StartedFiber{5, "fiber id"};
  }
  Result<void> stash(std::uint64_t fiber, std::string_view json) override {
    return told("stash " + std::to_string(fiber) + " " + std::string(json));
  }
  Result<void> finish_fiber(std::uint64_t fiber) override {
    return told("finish_fiber " + std::to_string(fiber));
  }
  Result<void> fail_fiber(std::uint64_t fiber, std::string_view why) override {
    return told("fail_fiber " + std::to_string(fiber) + " " + std::string(why));
  }
  Result<void> retry_fiber(std::string_view id) override {
    return told("retry_fiber " + std::string(id));
  }
  Result<std::string> list_dead_fibers(std::string_view after, std::size_t limit) override {
    return record("list_dead_fibers " + std::string(after) + " " + std::to_string(limit));
  }
  // Durable requests are written down with all that they say: "create_schedule type=1 callback=tick
  // ...".
  Result<durable::Schedules::Created> create_schedule(
      const durable::ScheduleRequest& request) override {
    std::string text = "create_schedule type=" + number(request.type);
    text += " callback=" + std::string(request.callback);
    text += " payload=" + std::string(request.payload);
    text += " when=" + std::to_string(request.when_ms);
    text += " cron=" + std::string(request.cron) + " zone=" + std::string(request.time_zone);
    text += " idempotent=" + number(request.idempotent) + " misfire=" + number(request.misfire);
    text += "/" + std::to_string(request.misfire_limit) + " overlap=" + number(request.overlap);
    text += request.fixed_rate ? " fixed" : "";
    text += " retry=" + std::to_string(request.max_attempts) + "/" +
            std::to_string(request.retry_base_ms) + "/" + std::to_string(request.retry_max_ms);
    const auto done = told(std::move(text));
    if (!done) return done.error();
    return durable::Schedules::Created{"its record", "its id", its_schedule_is_new};
  }
  Result<std::string> get_schedule(std::string_view id) override {
    return record("get_schedule " + std::string(id));
  }
  Result<std::string> list_schedules(const durable::ScheduleFilter& filter) override {
    return record(
        "list_schedules type=" + (filter.type ? number(*filter.type) : "any") +
        " callback=" + std::string(filter.callback) + " state=" + std::string(filter.state) +
        " from=" + std::to_string(filter.from_ms) + " until=" + std::to_string(filter.until_ms) +
        " after=" + std::string(filter.after) + " limit=" + std::to_string(filter.limit));
  }
  Result<void> cancel_schedule(std::string_view id) override {
    return told("cancel_schedule " + std::string(id));
  }
  Result<void> pause_schedule(std::string_view id, bool paused) override {
    return told("pause_schedule " + std::string(id) + (paused ? " on" : " off"));
  }
  Result<void> retry_schedule(std::string_view id) override {
    return told("retry_schedule " + std::string(id));
  }
  Result<std::string> push_item(const durable::QueueRequest& request) override {
    return record("push_item callback=" + std::string(request.callback) + " payload=" +
                  std::string(request.payload) + " retry=" + std::to_string(request.max_attempts) +
                  "/" + std::to_string(request.retry_base_ms) + "/" +
                  std::to_string(request.retry_max_ms));
  }
  Result<std::string> get_item(std::string_view id) override {
    return record("get_item " + std::string(id));
  }
  Result<std::string> list_items(const durable::QueueFilter& filter) override {
    return record("list_items " + in_words(filter));
  }
  Result<void> remove_item(std::string_view id) override {
    return told("remove_item " + std::string(id));
  }
  Result<std::uint64_t> remove_items(const durable::QueueFilter& filter) override {
    const auto done = told("remove_items " + in_words(filter));
    if (!done) return done.error();
    return std::uint64_t{3};
  }
  Result<void> retry_item(std::string_view id) override {
    return told("retry_item " + std::string(id));
  }
  Result<durable::ManagedFibers::Started> start_managed(
      const durable::ManagedRequest& request) override {
    const auto done = told(
        "start_managed policy=" + number(request.policy) + " name=" + std::string(request.name) +
        " id=" + std::string(request.id) + " key=" + std::string(request.key) +
        " input=" + std::string(request.input) + " metadata=" + std::string(request.metadata) +
        " retry=" + std::to_string(request.max_retries) + "/" +
        std::to_string(request.retry_base_ms) + "/" + std::to_string(request.retry_max_ms));
    if (!done) return done.error();
    return durable::ManagedFibers::Started{5, "its id", "its record"};
  }
  Result<std::uint64_t> resume_managed(std::string_view id) override {
    const auto done = told("resume_managed " + std::string(id));
    if (!done) return done.error();
    return std::uint64_t{6};
  }
  Result<std::string> settle_managed(std::uint64_t fiber, durable::FiberStatus status,
                                     std::string_view body) override {
    return record("settle_managed " + std::to_string(fiber) + " " + number(status) + " " +
                  std::string(body));
  }
  Result<std::string> inspect_managed(std::string_view id, std::string_view key) override {
    return record("inspect_managed id=" + std::string(id) + " key=" + std::string(key));
  }
  Result<std::string> list_managed(const durable::ManagedFilter& filter) override {
    return record("list_managed " + in_words(filter));
  }
  Result<void> cancel_managed(std::string_view id, std::string_view key,
                              std::string_view reason) override {
    return told("cancel_managed id=" + std::string(id) + " key=" + std::string(key) + " " +
                std::string(reason));
  }
  Result<void> resolve_managed(std::string_view id, std::string_view outcome) override {
    return told("resolve_managed " + std::string(id) + " " + std::string(outcome));
  }
  Result<void> retry_managed(std::string_view id) override {
    return told("retry_managed " + std::string(id));
  }
  Result<std::uint64_t> remove_managed(const durable::ManagedFilter& filter) override {
    const auto done = told("remove_managed " + in_words(filter));
    if (!done) return done.error();
    return std::uint64_t{4};
  }
  Result<runtime::RequestView> request(runtime::CallId call) override {
    const auto done = told("request " + std::to_string(call));
    if (!done) return done.error();
    return view;
  }

 private:
  template <class Enum>
  static std::string number(Enum value) {
    return std::to_string(static_cast<std::uint32_t>(value));
  }
  static std::string in_words(const durable::QueueFilter& filter) {
    return "callback=" + std::string(filter.callback) + " state=" + std::string(filter.state) +
           " " + std::string(filter.member) + "=" + std::string(filter.value) +
           " after=" + std::string(filter.after) + " limit=" + std::to_string(filter.limit);
  }
  static std::string in_words(const durable::ManagedFilter& filter) {
    return "statuses=" + std::to_string(filter.statuses) + " name=" + std::string(filter.name) +
           " before=" + std::to_string(filter.before_ms) + " after=" + std::string(filter.after) +
           " limit=" + std::to_string(filter.limit) + (filter.dead ? " dead" : "");
  }
  Result<std::string> record(std::string call) {
    const auto done = told(std::move(call));
    if (!done) return done.error();
    return std::string("its record");
  }
  Result<void> told(std::string call) {
    if (storage_breaks) throw StorageError("the disk is gone");
    calls.push_back(std::move(call));
    if (answer) return *answer;
    return {};
  }

  runtime::AgentHandle handle_;
};

// Finds the one agent that the test has, and another one that lives on another thread.
class FakeAgentDirectory final : public runtime::AgentDirectory {
 public:
  explicit FakeAgentDirectory(runtime::AgentHost* agent = nullptr) : agent_(agent) {}

  static constexpr runtime::AgentHandle kElsewhere = 666;
  std::vector<std::uint64_t> posted;

  Found find(runtime::AgentHandle handle) override {
    if (handle == kElsewhere) return {.lookup = Lookup::kWrongThread, .host = nullptr};
    if (agent_ == nullptr || handle != agent_->handle()) return {};
    return {.lookup = Lookup::kFound, .host = agent_};
  }
  bool post(runtime::AgentHandle handle, std::uint64_t token) override {
    if (agent_ == nullptr || handle != agent_->handle()) return false;
    posted.push_back(token);
    return true;
  }

 private:
  runtime::AgentHost* agent_;
};

}  // namespace hearth::plugins::testing
