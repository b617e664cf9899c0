// hearth.queue/1.

#include "plugins/generation/abi_extensions.hpp"
#include "plugins/generation/abi_request.hpp"

namespace hearth::plugins {
namespace {

using runtime::AgentHost;

constexpr std::size_t kItemsListedByDefault = 100;
constexpr std::size_t kMostItemsListed = 1000;

hearth_status push_item(const hearth_host* host, hearth_agent agent,
                        const hearth_queue_request* request, hearth_bytes* record) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
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
    return lend_result(it, it.push_item(wanted), record);
  });
}

hearth_status get_item(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                       hearth_bytes* record) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    const auto text = text_of(id);
    if (!text) return bad_slice(it);
    return lend_result(it, it.get_item(*text), record);
  });
}

// The filter that list() and remove_all() share; HEARTH_OK if it is one. Its views are the
// plugin's.
hearth_status read_queue_filter(AgentHost& it, const hearth_queue_filter* filter,
                                durable::QueueFilter& wanted) {
  const auto given = read_struct(filter);
  if (!given) return bad_struct(it);
  const auto callback = text_of(given->callback);
  const auto state = text_of(given->state);
  const auto member = text_of(given->member);
  const auto value = text_of(given->value);
  const auto after = text_of(given->after);
  if (!callback || !state || !member || !value || !after) return bad_slice(it);
  const auto limit = read_limit(given->limit, kItemsListedByDefault, kMostItemsListed);
  if (!limit) return fail(it, HEARTH_E_INVALID, "at most 1000 items are listed at once");
  wanted = {*callback, *state, *member, *value, *after, *limit};
  return HEARTH_OK;
}

hearth_status list_items(const hearth_host* host, hearth_agent agent,
                         const hearth_queue_filter* filter, hearth_bytes* records) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    durable::QueueFilter wanted;
    if (const auto status = read_queue_filter(it, filter, wanted); status != HEARTH_OK)
      return status;
    return lend_result(it, it.list_items(wanted), records);
  });
}

hearth_status remove_item(const hearth_host* host, hearth_agent agent, hearth_bytes id) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    const auto text = text_of(id);
    if (!text) return bad_slice(it);
    return status_of(it, it.remove_item(*text));
  });
}

hearth_status remove_items(const hearth_host* host, hearth_agent agent,
                           const hearth_queue_filter* filter, std::uint64_t* removed) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    durable::QueueFilter wanted;
    if (const auto status = read_queue_filter(it, filter, wanted); status != HEARTH_OK)
      return status;
    const auto count = it.remove_items(wanted);
    if (!count) return fail(it, count.error());
    if (removed != nullptr) *removed = *count;
    return hearth_status{HEARTH_OK};
  });
}

hearth_status retry_item(const hearth_host* host, hearth_agent agent, hearth_bytes id) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    const auto text = text_of(id);
    if (!text) return bad_slice(it);
    return status_of(it, it.retry_item(*text));
  });
}

constexpr hearth_queue_v1 kQueue{push_item,   get_item,     list_items,
                                 remove_item, remove_items, retry_item};

}  // namespace

const hearth_queue_v1& queue_extension() noexcept {
  return kQueue;
}

}  // namespace hearth::plugins
