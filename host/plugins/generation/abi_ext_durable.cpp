// hearth.keep_alive/1 and hearth.fibers/1.

#include "plugins/generation/abi_call.hpp"
#include "plugins/generation/abi_extensions.hpp"

#include <utility>

namespace hearth::plugins {
namespace {

using runtime::AgentHost;

// ---- hearth.keep_alive/1 ----

hearth_status acquire(const hearth_host* host, hearth_agent agent) noexcept {
  return for_agent(host, agent,
                   [](AgentHost& it) { return status_of(it, it.acquire_keep_alive()); });
}

hearth_status release(const hearth_host* host, hearth_agent agent) noexcept {
  return for_agent(host, agent,
                   [](AgentHost& it) { return status_of(it, it.release_keep_alive()); });
}

// ---- hearth.fibers/1 ----

hearth_status start_fiber(const hearth_host* host, hearth_agent agent, hearth_bytes name,
                          hearth_bytes replaces, hearth_fiber* fiber, hearth_bytes* id) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    const auto fiber_name = text_of(name);
    const auto old = text_of(replaces);
    if (!fiber_name || !old) return bad_slice(it);
    if (fiber == nullptr) return fail(it, HEARTH_E_INVALID, "start() needs a place for the fiber");
    auto started = it.start_fiber(*fiber_name, *old);
    if (!started) return fail(it, started.error());
    *fiber = started->handle;
    it.lent_text = std::move(started->id);
    if (id != nullptr) *id = slice_of(it.lent_text);
    return hearth_status{HEARTH_OK};
  });
}

hearth_status stash(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                    hearth_bytes json) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    const auto text = text_of(json);
    if (!text) return bad_slice(it);
    return status_of(it, it.stash(fiber, *text), HEARTH_E_GONE);
  });
}

hearth_status finish_fiber(const hearth_host* host, hearth_agent agent,
                           hearth_fiber fiber) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    return status_of(it, it.finish_fiber(fiber), HEARTH_E_GONE);
  });
}

hearth_status retry_fiber(const hearth_host* host, hearth_agent agent, hearth_bytes id) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    const auto text = text_of(id);
    if (!text) return bad_slice(it);
    return status_of(it, it.retry_fiber(*text));
  });
}

hearth_status fail_fiber(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                         hearth_bytes why) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    // Any bytes: the work must be able to end whatever its exception says, and the log makes them
    // fit.
    const auto bytes = bytes_of(why);
    if (!bytes) return bad_slice(it);
    return status_of(it, it.fail_fiber(fiber, *bytes), HEARTH_E_GONE);
  });
}

hearth_status list_dead_fibers(const hearth_host* host, hearth_agent agent, hearth_bytes after,
                               std::uint32_t limit, hearth_bytes* records) noexcept {
  return for_agent(host, agent, [&](AgentHost& it) {
    const auto last = text_of(after);
    if (!last) return bad_slice(it);
    if (records == nullptr)
      return fail(it, HEARTH_E_INVALID, "list_dead() needs a place for the records");
    auto page = it.list_dead_fibers(*last, limit);
    if (!page) return fail(it, page.error());
    it.lent_text = std::move(*page);
    *records = slice_of(it.lent_text);
    return hearth_status{HEARTH_OK};
  });
}

constexpr hearth_keep_alive_v1 kKeepAlive{acquire, release};
constexpr hearth_fibers_v1 kFibers{start_fiber, stash,      finish_fiber,
                                   retry_fiber, fail_fiber, list_dead_fibers};

}  // namespace

const hearth_keep_alive_v1& keep_alive_extension() noexcept {
  return kKeepAlive;
}

const hearth_fibers_v1& fibers_extension() noexcept {
  return kFibers;
}

}  // namespace hearth::plugins
