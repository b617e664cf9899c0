#include "extensions/queue.hpp"

#include "extensions/abi_call.hpp"
#include "extensions/durable_work.hpp"

#include <utility>

namespace hearth::extensions {

Result<std::string> push_item(AgentContext& agent, const durable::QueueRequest& request) {
  if (auto refusal = agent.work_refusal()) return *std::move(refusal);
  auto pushed = agent.work().queue().push(request);
  if (pushed.has_error()) return pushed.error();
  agent.work().reports().keep_trace(durable::JobKind::kItem, pushed->id, agent.calls().trace());
  agent.work().reports().add(DurableEvent::kQueueCreate, pushed->id, request.callback);
  return std::move(pushed->record);
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

Result<std::string> push_agents_item(AgentContext& it, const hearth_queue_request& request) {
  const auto texts = texts_of({request.callback, request.payload});
  if (!texts) return bad_slice();
  durable::QueueRequest wanted;
  wanted.callback = (*texts)[0];
  wanted.payload = (*texts)[1];
  wanted.max_attempts = request.max_attempts;
  wanted.retry_base_ms = request.retry_base_ms;
  wanted.retry_max_ms = request.retry_max_ms;
  return push_item(it, wanted);
}

// The views of the result point into the plugin's memory.
Result<durable::QueueFilter> read_queue_filter(const hearth_queue_filter& filter) {
  const auto texts =
      texts_of({filter.callback, filter.state, filter.member, filter.value, filter.after});
  if (!texts) return bad_slice();
  const auto& [callback, state, member, value, after] = *texts;
  return durable::QueueFilter{callback, state, member, value, after, filter.limit};
}

Result<std::string> list_items(AgentContext& it, const hearth_queue_filter& filter) {
  const auto wanted = read_queue_filter(filter);
  if (!wanted) return wanted.error();
  return it.work().queue().list(*wanted);
}

Result<void> remove_item(AgentContext& it, std::string_view id) {
  return it.work().queue().remove(id);
}

Result<void> remove_items(AgentContext& it, const hearth_queue_filter& filter,
                          std::uint64_t* removed) {
  const auto wanted = read_queue_filter(filter);
  if (!wanted) return wanted.error();
  if (const auto refusal = it.work_refusal()) return *refusal;
  const auto count = it.work().queue().remove_all(*wanted);
  if (!count) return count.error();
  if (removed != nullptr) *removed = *count;
  return {};
}

}  // namespace

constexpr hearth_queue_v1 kQueueTable{
    kDoor<push_agents_item>, kDoor<&durable::Queue::get>,
    kDoor<list_items>,       kDoor<remove_item, DoorKind::kWork>,
    kDoor<remove_items>,     kDoor<&durable::Queue::retry, DoorKind::kWork>};

}  // namespace hearth::extensions
