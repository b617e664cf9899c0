#include <hearth/fiber_calls.hpp>

namespace hearth::detail {

DeadFiber read_dead_fiber(const Json& record) {
  DeadFiber fiber;
  fiber.id = record.at("id").get<std::string>();
  fiber.name = record.at("name").get<std::string>();
  fiber.snapshot = find_json(record, "snapshot");
  fiber.created_at = read_time(record.at("created_at"));
  fiber.attempts = find_number(record, "attempts", 0);
  fiber.last_error = find_text(record, "error").value_or("");
  return fiber;
}

}  // namespace hearth::detail
