#include "extensions/fibers_2.hpp"

#include "extensions/abi_request.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/fibers.hpp"
#include "extensions/managed_fibers.hpp"

#include <utility>

namespace hearth::extensions {
namespace {

using durable::FiberKeeping;

constexpr std::uint32_t kStartFlags =
    HEARTH_FIBER_KEEP_RECORD | HEARTH_FIBER_TAKE_UP | HEARTH_FIBER_TURN;

hearth_status start_fiber_2(const hearth_host* host, hearth_agent agent,
                            const hearth_fiber_start* request, hearth_fiber* fiber,
                            hearth_bytes* record) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto given = read_struct(request);
    if (!given) return bad_struct(it);
    const auto name = text_of(given->name);
    const auto id = text_of(given->id);
    const auto key = text_of(given->key);
    const auto parent = text_of(given->parent);
    const auto input = text_of(given->input);
    const auto metadata = text_of(given->metadata);
    if (!name || !id || !key || !parent || !input || !metadata) return bad_slice(it);
    if (fiber == nullptr) return fail(it, HEARTH_E_INVALID, "start() needs a place for the fiber");
    if (given->policy > HEARTH_FIBER_REPLACE_FAILED || (given->flags & ~kStartFlags) != 0)
      return fail(it, HEARTH_E_INVALID, "start() has an unknown policy or flag");
    durable::ManagedRequest wanted;
    wanted.policy = static_cast<durable::SettledKey>(given->policy);
    wanted.name = *name;
    wanted.id = *id;
    wanted.key = *key;
    wanted.parent = *parent;
    wanted.input = *input;
    wanted.metadata = *metadata;
    wanted.max_retries = given->max_retries;
    wanted.retry_base_ms = given->retry_base_ms;
    wanted.retry_max_ms = given->retry_max_ms;
    wanted.keeping =
        (given->flags & HEARTH_FIBER_KEEP_RECORD) != 0 ? FiberKeeping::kKept : FiberKeeping::kBrief;
    wanted.take_up = (given->flags & HEARTH_FIBER_TAKE_UP) != 0;
    wanted.is_turn = (given->flags & HEARTH_FIBER_TURN) != 0;
    auto started = ManagedFiberExtension(it).start(wanted);
    if (!started) return fail(it, started.error(), HEARTH_E_GONE);
    *fiber = started->fiber;
    lend(it, std::move(started->record), record);
    return kOk;
  });
}

hearth_status resume_fiber_2(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                             hearth_fiber* fiber) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto text = text_of(id);
    if (!text) return bad_slice(it);
    if (fiber == nullptr) return fail(it, HEARTH_E_INVALID, "resume() needs a place for the fiber");
    const auto resumed = ManagedFiberExtension(it).resume(*text, true);
    if (!resumed) return fail(it, resumed.error());
    *fiber = *resumed;
    return kOk;
  });
}

hearth_status cancel_fiber_2(const hearth_host* host, hearth_agent agent, hearth_bytes id,
                             hearth_bytes key, hearth_bytes reason, hearth_bytes* record) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto its_id = text_of(id);
    const auto its_key = text_of(key);
    const auto why = bytes_of(reason);
    if (!its_id || !its_key || !why) return bad_slice(it);
    return lend_result(
        it, ManagedFiberExtension(it).cancel(*its_id, *its_key, readable_reason(*why)), record);
  });
}

hearth_status revive_fiber_2(const hearth_host* host, hearth_agent agent,
                             hearth_bytes id) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto text = text_of(id);
    if (!text) return bad_slice(it);
    const auto revived = ManagedFiberExtension(it).retry(*text);
    if (revived || revived.error().code != Errc::kNotFound) return status_of(it, revived);
    return status_of(it, FiberExtension(it).retry(*text));
  });
}

hearth_status once_fiber_2(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                           hearth_bytes mark, uint32_t* is_first) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto text = text_of(mark);
    if (!text) return bad_slice(it);
    if (is_first == nullptr) return no_place(it);
    if (auto refusal = it.work_refusal()) return fail(it, *refusal);
    const auto first = it.work().managed().once(fiber, *text);
    if (!first) return fail(it, first.error(), HEARTH_E_GONE);
    *is_first = *first ? 1 : 0;
    return kOk;
  });
}

hearth_status works_for_fiber_2(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                                std::uint64_t call) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    it.works_for(fiber, call);
    return kOk;
  });
}

}  // namespace

const hearth_fibers_v2& fibers_2_extension() noexcept {
  static const hearth_managed_fibers_v1& records = managed_fibers_extension();
  static const hearth_fibers_v2 table = {start_fiber_2,  resume_fiber_2,  fibers_extension().stash,
                                         records.settle, records.inspect, records.list,
                                         cancel_fiber_2, records.resolve, revive_fiber_2,
                                         records.remove, once_fiber_2,    works_for_fiber_2};
  return table;
}

}  // namespace hearth::extensions
