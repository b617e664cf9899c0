#include "extensions/queue.hpp"

#include "extensions/abi_request.hpp"
#include "extensions/durable_work.hpp"

#include <utility>

namespace hearth::extensions {

Result<std::string> push_item(AgentContext& agent, const durable::QueueRequest& request) {
  if (auto refusal = agent.work_refusal()) return *std::move(refusal);
  auto pushed = agent.work().queue().push(request);
  if (pushed.has_error()) return pushed.error();
  agent.work().keep_trace(durable::JobKind::kItem, pushed->id, agent.calls().trace());
  agent.work().report(DurableEvent::kQueueCreate, pushed->id, request.callback);
  return std::move(pushed->record);
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

constexpr std::size_t kItemsListedByDefault = 100;
constexpr std::size_t kMostItemsListed = 1000;

hearth_status push_agents_item(AgentContext& it, const hearth_queue_request* request,
                               hearth_bytes* record) {
  const auto given = read_struct(request);
  if (!given) return bad_struct(it);
  const auto callback = text_of(given->callback);
  const auto payload = text_of(given->payload);
  if (!callback || !payload) return bad_slice(it);
  durable::QueueRequest wanted;
  wanted.callback = *callback;
  wanted.payload = *payload;
  wanted.max_attempts = given->max_attempts;
  wanted.retry_base_ms = given->retry_base_ms;
  wanted.retry_max_ms = given->retry_max_ms;
  return lend_result(it, push_item(it, wanted), record);
}

hearth_status get_item(AgentContext& it, std::string_view id, hearth_bytes* record) {
  return lend_result(it, it.work().queue().get(id), record);
}

// Reads the filter of list() and remove_all(); its views point into the plugin's memory. HEARTH_OK
// if it is valid.
hearth_status read_queue_filter(AgentContext& it, const hearth_queue_filter* filter,
                                durable::QueueFilter& wanted) {
  const auto given = read_struct(filter);
  if (!given) return bad_struct(it);
  const auto texts =
      texts_of({given->callback, given->state, given->member, given->value, given->after});
  if (!texts) return bad_slice(it);
  const auto& [callback, state, member, value, after] = *texts;
  const auto limit = read_limit(given->limit, kItemsListedByDefault, kMostItemsListed);
  if (!limit) return fail(it, HEARTH_E_INVALID, "at most 1000 items are listed at once");
  wanted = {callback, state, member, value, after, *limit};
  return HEARTH_OK;
}

hearth_status list_items(AgentContext& it, const hearth_queue_filter* filter,
                         hearth_bytes* records) {
  durable::QueueFilter wanted;
  if (const auto status = read_queue_filter(it, filter, wanted); status != HEARTH_OK) return status;
  return lend_result(it, it.work().queue().list(wanted), records);
}

hearth_status remove_item(AgentContext& it, std::string_view id) {
  return status_of(it, it.work().queue().remove(id));
}

hearth_status remove_items(AgentContext& it, const hearth_queue_filter* filter,
                           std::uint64_t* removed) {
  durable::QueueFilter wanted;
  if (const auto status = read_queue_filter(it, filter, wanted); status != HEARTH_OK) return status;
  if (const auto refusal = it.work_refusal()) return fail(it, *refusal);
  const auto count = it.work().queue().remove_all(wanted);
  if (!count) return fail(it, count.error());
  if (removed != nullptr) *removed = *count;
  return HEARTH_OK;
}

hearth_status retry_item(AgentContext& it, std::string_view id) {
  return status_of(it, it.work().queue().retry(id));
}

constexpr hearth_queue_v1 kQueue{kDoor<push_agents_item>, kDoor<get_item>,
                                 kDoor<list_items>,       kDoor<remove_item, DoorKind::kWork>,
                                 kDoor<remove_items>,     kDoor<retry_item, DoorKind::kWork>};

}  // namespace

const hearth_queue_v1& queue_extension() noexcept {
  return kQueue;
}

}  // namespace hearth::extensions
