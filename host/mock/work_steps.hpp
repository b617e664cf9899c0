#pragma once
// The steps of one agent's durable work, named as in a server's log.

#include "extensions/durable_events.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace hearth::mock {

class WorkSteps final : public extensions::DurableEvents {
 public:
  void report(extensions::DurableEvent event, const extensions::LineOrigin& whose,
              std::string_view id, std::string_view detail) override;

  // "fiber:run:failed no such page", in order.
  [[nodiscard]] const std::vector<std::string>& steps() const { return steps_; }

 private:
  std::vector<std::string> steps_;
};

}  // namespace hearth::mock
