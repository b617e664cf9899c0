#pragma once
// What the code of a live agent may ask of its host, and what it has asked for.

#include "extensions/agent_context.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/shard_metrics.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::runtime {

class AgentCalls;
class AgentCode;
class AgentStore;
class WorkDelivery;
struct ShardServices;

// Lifetime  The parts outlive it.
class LiveContext final : public extensions::AgentContext {
 public:
  struct LiveParts {
    const std::string& segment;  // how URLs name the class
    ShardServices& services;
    const AgentClass& agent_class;
    AgentStore& store;
    AgentCode& code;
    const AgentCalls& calls;  // for log lines
    WorkDelivery& work;
    ClassMetrics& figures;
    const std::function<void()>& look;  // durable work may be due, perhaps of another agent
  };
  LiveContext(const Parts& parts, const LiveParts& live) : AgentContext(parts), live_(live) {}

  void enter(extensions::AgentPhase phase) { phase_ = phase; }
  [[nodiscard]] ClassMetrics& figures() { return live_.figures; }
  [[nodiscard]] bool wants_eviction() const { return wish_ == Wish::kLeave; }
  // The agent is condemned: no event is delivered any more.
  [[nodiscard]] bool wants_destruction() const { return wish_ == Wish::kBeDestroyed; }

  // ---- AgentContext ----
  [[nodiscard]] extensions::AgentPhase phase() const override { return phase_; }
  [[nodiscard]] extensions::EgressPtr egress() const override;
  void commit_now() override;
  void fiber_continued(std::string_view id) override;
  [[nodiscard]] std::optional<durable::Effect> listed_effect(std::string_view kind) const override {
    return live_.agent_class.listed_effect(kind);
  }
  void works_for(durable::FiberHandle fiber, CallId call) override;
  Result<void> evict() override;
  Result<void> destroy() override;
  void log(LogLevel level, std::string_view text) override;
  void count_event(std::string_view name) override { live_.figures.named_event(name); }
  Result<void> audit(std::string_view what, std::string_view detail) override;
  void storage_failed(std::string_view what) override;

 private:
  enum class Wish : std::uint8_t { kStay, kLeave, kBeDestroyed };

  const LiveParts live_;
  extensions::AgentPhase phase_ = extensions::AgentPhase::kStarting;
  Wish wish_ = Wish::kStay;
};

}  // namespace hearth::runtime
