#include <hearth/detail/fiber_start.hpp>

namespace hearth::detail {

void check_fiber_options(const FiberOptions& options) {
  const auto refuse = [](const char* text) { throw Error(HEARTH_E_INVALID, text); };
  // For the host an empty id means none.
  if (options.id && options.id->empty()) refuse("a fiber's id must not be empty");
  if (options.key && options.key->empty()) refuse("a fiber's key must not be empty");
  if (options.lane && options.lane->empty()) refuse("a fiber's lane must not be empty");
  if (options.max_retries < 0) refuse("max_retries must be >= 0");
  if (options.retry_delay.count() <= 0) refuse("retry_delay must be > 0");
  if (options.retry_delay > options.max_retry_delay)
    refuse("retry_delay must be <= max_retry_delay");
}

void need_agent(const Activation& activation) {
  if (!activation.has_agent())
    throw Error(HEARTH_E_INVALID, "begin fibers in on_start() or later: not in the constructor",
                true);
}

std::unique_ptr<BoundFiber> need_named(Activation& activation, std::string_view name,
                                       const Json& input, bool is_stored) {
  need_agent(activation);
  auto bound =
      is_stored ? bind_stored(activation, name, input) : bind_named(activation, name, input);
  if (!bound)
    throw Error(HEARTH_E_INVALID,
                "the class " + std::string(activation.definition().name) + " lists no fiber " +
                    std::string(name) + ": m.fiber(\"...\", &Class::function)",
                true);
  return bound;
}

FiberRow resume_fiber(Activation& activation, const RecoveredFiber& fiber) {
  FiberRow row = {0, fiber.id, fiber.name, fiber.snapshot};
  activation.check(fiber_table(activation)
                       .resume(activation.host(), activation.id(),
                               slice(std::string_view(fiber.id)), &row.handle),
                   "resume fiber");
  Recovery* const recovery = activation.context().recovery;
  if (recovery && recovery->fiber.id == fiber.id) recovery->continued = true;
  return row;
}

ChildFiber child_options(Activation& activation, const std::string& name, Json input,
                         FiberOptions options) {
  ChildFiber child = {{}, std::move(input), std::move(options), false};
  FiberRoot* const parent = find_fiber(activation, activation.context().fiber);
  if (!parent) return child;
  child.parent = parent->fiber().id();
  if (!child.options.key && !child.options.id) {
    child.options.key = parent->next_child_key(name);
    child.options.policy = FiberPolicy::kReplaceFailed;
    // Its place in the parent's run identifies it, even if its input has the time in it.
    const auto before = find_record(activation, {}, *child.options.key);
    child.is_stored = before && (!before->settled() || before->status == FiberStatus::kCompleted);
    if (child.is_stored) child.input = before->input;
  } else if (!child.options.keep_record && child.options.policy == FiberPolicy::kJoin) {
    // A failed child exists for its parent alone: a retry of the parent begins it again.
    child.options.policy = FiberPolicy::kReplaceFailed;
  }
  return child;
}

}  // namespace hearth::detail
