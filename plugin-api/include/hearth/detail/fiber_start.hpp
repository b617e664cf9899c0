#pragma once
// Begins, continues and finds fibers.

#include <hearth/detail/fiber_waits.hpp>
#include <hearth/fiber_options.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hearth::detail {

void check_fiber_options(const FiberOptions& options);
// Failure: Error(INVALID) in the constructor of the agent, which fibers could not reach yet.
void need_agent(const Activation& activation);

// The function that is listed under `name`, with `input`; null if there is none. In dispatch.cpp.
std::unique_ptr<BoundFiber> bind_named(Activation& activation, std::string_view name,
                                       const Json& input);
// The same with an input that is stored. Failure: Unreadable.
std::unique_ptr<BoundFiber> bind_stored(Activation& activation, std::string_view name,
                                        const Json& input);
// The same, but throws Error(INVALID) if there is none.
std::unique_ptr<BoundFiber> need_named(Activation& activation, std::string_view name,
                                       const Json& input, bool is_stored = false);

// The function that was listed with `name`; null: none. In dispatch.cpp.
ShouldRetry should_retry_of(const Activation& activation, std::string_view name);
// In dispatch.cpp.
bool is_listed_fiber(const Activation& activation, std::string_view name) noexcept;

// The class decides itself how interrupted fibers go on. In dispatch.hpp.
bool has_recovery_hook(const Activation& activation) noexcept;

// The host's answer to a start.
struct OpenedFiber {
  FiberRow row;  // handle 0: the work is not the caller's, or begins later
  FiberRecord record;
  bool is_new = false;  // the caller's, or begins later, in its lane
};

// Continues the interrupted fiber, under its id and with its checkpoint.
FiberRow resume_fiber(Activation& activation, const RecoveredFiber& fiber);

// The interrupted fiber that a fiber called `name` continues if it is begun now: the fiber of the
// running hook, once, if only the name distinguishes the two. For a listed function the input must
// be the same; a given function has its input in itself.
inline const RecoveredFiber* continued_by(const Activation& activation, std::string_view name,
                                          const Json& input, const FiberOptions& options,
                                          bool is_listed) {
  const Recovery* const recovery = activation.context().recovery;
  if (!recovery || recovery->continued || recovery->fiber.name != name) return nullptr;
  if (is_listed && recovery->fiber.input != input) return nullptr;
  const auto& record = recovery->fiber.record;
  const bool is_told_apart = options.key || options.id || (record && !record->brief);
  return is_told_apart ? nullptr : &recovery->fiber;
}

inline OpenedFiber open_fiber(Activation& activation, std::string_view name, const Json& input,
                              const FiberOptions& options, std::string_view parent = {},
                              bool is_listed = false) {
  need_agent(activation);
  check_fiber_options(options);
  OpenedFiber opened;
  if (const auto* const continued = continued_by(activation, name, input, options, is_listed)) {
    opened.row = resume_fiber(activation, *continued);
    opened.record = find_record(activation, opened.row.id, {}).value_or(FiberRecord());
    opened.is_new = true;
    return opened;
  }
  const std::string input_text = to_text(input);
  const std::string metadata = to_text(options.metadata);
  hearth_fiber_start request = {};
  request.struct_size = sizeof request;
  request.policy = static_cast<std::uint32_t>(FiberPolicy(options.policy));
  if (options.keep_record) request.flags |= HEARTH_FIBER_KEEP_RECORD;
  if (options.turn) request.flags |= HEARTH_FIBER_TURN;
  if (options.reset_by_progress) request.flags |= HEARTH_FIBER_RESET;
  // The caller can do the work, but a class with the hook decides first.
  if (!parent.empty() || !has_recovery_hook(activation)) request.flags |= HEARTH_FIBER_TAKE_UP;
  request.name = slice(name);
  if (options.id) request.id = slice(std::string_view(*options.id));
  if (options.key) request.key = slice(std::string_view(*options.key));
  if (options.lane) request.lane = slice(std::string_view(*options.lane));
  request.parent = slice(parent);
  request.input = slice(std::string_view(input_text));
  request.metadata = slice(std::string_view(metadata));
  request.max_retries = static_cast<std::uint32_t>(options.max_retries);
  request.retry_base_ms = static_cast<std::uint64_t>(options.retry_delay.count());
  request.retry_max_ms = static_cast<std::uint64_t>(options.max_retry_delay.count());
  if (options.policy == FiberPolicy::kReplace || options.policy == FiberPolicy::kReplaceFailed)
    tell_waiters(activation);
  hearth_bytes record = {nullptr, 0};
  activation.check(
      fiber_table(activation)
          .start(activation.host(), activation.id(), &request, &opened.row.handle, &record),
      "start fiber");
  const Json receipt = parse_record(view(record));
  opened.record = read_fiber(receipt);
  opened.is_new = opened.row.handle != 0 || find_number(receipt, "accepted", false);
  opened.row.id = opened.record.id;
  opened.row.name = name;
  opened.row.snapshot = opened.record.snapshot;
  return opened;
}

// The fiber must wait before it goes on, and only this function can do its work.
template <class Function>
void keep_for_later(Activation& activation, const OpenedFiber& opened, std::string_view parent,
                    Function function) {
  const FiberRecord& record = opened.record;
  if (record.settled() || record.status == FiberStatus::kRunning) return;
  if (parent.empty() && !opened.is_new && has_recovery_hook(activation)) return;
  activation.kept_work()[record.id] =
      std::make_unique<KeptFunction<Function>>(fiber_context(activation), std::move(function));
}

// A fiber that another fiber waits for. Its key is the same in each run that begins with the same
// checkpoint, so that it is not begun twice.
struct ChildFiber {
  std::string parent;
  Json input;
  FiberOptions options;
  bool is_stored = false;  // the input, by an earlier run
};
ChildFiber child_options(Activation& activation, const std::string& name, Json input,
                         FiberOptions options);

// The value of a settled record, for a caller that has waited for it.
template <class Value>
Value value_of(const FiberRecord& record) {
  if (record.status != FiberStatus::kCompleted)
    throw Error(HEARTH_E_PLUGIN,
                record.error.value_or("fiber " + record.name + " did not complete"));
  if constexpr (!std::is_void_v<Value>) return read_stored<Value>(record.result, "result");
}

}  // namespace hearth::detail
