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

namespace hearth::loader::testing {

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
  Result<void> retry_fiber(std::string_view id) override {
    return told("retry_fiber " + std::string(id));
  }
  Result<runtime::RequestView> request(runtime::CallId call) override {
    const auto done = told("request " + std::to_string(call));
    if (!done) return done.error();
    return view;
  }

 private:
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

}  // namespace hearth::loader::testing
