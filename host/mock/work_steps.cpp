#include "mock/work_steps.hpp"

namespace hearth::mock {

void WorkSteps::report(extensions::DurableEvent event, const extensions::LineOrigin& /*whose*/,
                       std::string_view /*id*/, std::string_view detail) {
  std::string step(extensions::traits_of(event).name);
  if (!detail.empty()) step.append(" ").append(detail);
  steps_.push_back(std::move(step));
}

}  // namespace hearth::mock
