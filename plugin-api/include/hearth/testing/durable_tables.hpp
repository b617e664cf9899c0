#pragma once
// The mock host's hearth.keep_alive/1 and hearth.fibers/1. Simpler than a server: dead fibers stay,
// and an eviction is counted like the end of a process.

#include <hearth/ext/fibers.h>
#include <hearth/ext/keep_alive.h>
#include <hearth/testing/caller.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::testing::detail {

inline hearth_status acquire_keep_alive(const hearth_host* host, hearth_agent agent) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  ++caller.agent->keep_alive;
  return HEARTH_OK;
}
inline hearth_status release_keep_alive(const hearth_host* host, hearth_agent agent) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (caller.agent->keep_alive == 0)
    return caller.fail(HEARTH_E_INVALID, "no keep-alive reference is held");
  --caller.agent->keep_alive;
  return HEARTH_OK;
}

inline hearth_status start_fiber(const hearth_host* host, hearth_agent agent, hearth_bytes name,
                                 hearth_bytes replaces, hearth_fiber* handle, hearth_bytes* id) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (name.len == 0 || name.len > 256 || !is_utf8(view(name)))
    return caller.fail(HEARTH_E_INVALID, "a fiber's name is 1 to 256 bytes of UTF-8");
  if (caller.in_transaction()) return caller.fail_in_transaction();
  if (caller.engine.start_fiber_status != HEARTH_OK)
    return caller.fail(caller.engine.start_fiber_status, "start fails in this test");
  FiberRecord fiber;
  fiber.handle = caller.engine.next_number();
  fiber.id = durable_id(fiber.handle);
  fiber.name = view(name);
  fiber.created_at_ms = caller.engine.wall_ms;
  fiber.running = true;
  if (replaces.len != 0) {
    const FiberRecord* const old = Engine::find_row(*caller.agent, view(replaces));
    if (old && old->managed) return caller.fail(HEARTH_E_INVALID, "a managed fiber is resumed");
    if (!old || old->running)
      return caller.fail(HEARTH_E_NOT_FOUND, "no interrupted fiber has this id");
    fiber.snapshot = old->snapshot;
    fiber.attempts = old->attempts;
    fiber.recoveries = old->recoveries;
    fiber.due_ns = old->due_ns;
    Engine::erase_fiber(*caller.agent, std::string(view(replaces)));
  }
  Engine::write_row(*caller.agent, fiber);
  *handle = fiber.handle;
  caller.agent->fibers.push_back(fiber);
  return caller.lend(fiber.id, id);
}

// Finds the fiber that runs, then does `use` with it.
template <class Use>
hearth_status with_fiber(const hearth_host* host, hearth_agent agent, hearth_fiber handle,
                         Use use) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (caller.in_transaction()) return caller.fail_in_transaction();
  for (FiberRecord& fiber : caller.agent->fibers) {
    if (fiber.running && fiber.handle == handle) return use(caller, fiber);
  }
  return caller.fail(HEARTH_E_GONE, "the fiber has ended");
}
inline hearth_status stash(const hearth_host* host, hearth_agent agent, hearth_fiber handle,
                           hearth_bytes json) {
  return with_fiber(host, agent, handle, [&](const Caller& caller, FiberRecord& fiber) {
    if (!is_json(view(json))) return caller.fail(HEARTH_E_INVALID, "a checkpoint must be JSON");
    if (json.len > 2 * 1024 * 1024)
      return caller.fail(HEARTH_E_LIMIT, "the checkpoint is larger than 2097152 bytes");
    if (fiber.attempts > 0 && fiber.snapshot == view(json)) return hearth_status{HEARTH_OK};
    fiber.snapshot = std::string(view(json));
    fiber.attempts = 0;
    fiber.due_ns = 0;
    Engine::write_row(*caller.agent, fiber);
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status finish_fiber(const hearth_host* host, hearth_agent agent,
                                  hearth_fiber handle) {
  return with_fiber(host, agent, handle, [&](const Caller& caller, const FiberRecord& fiber) {
    if (fiber.managed) return caller.fail(HEARTH_E_INVALID, "a managed fiber is settled");
    Engine::erase_fiber(*caller.agent, std::string(fiber.id));
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status fail_fiber(const hearth_host* host, hearth_agent agent, hearth_fiber handle,
                                hearth_bytes why) {
  return with_fiber(host, agent, handle, [&](const Caller& caller, const FiberRecord& fiber) {
    if (fiber.managed) return caller.fail(HEARTH_E_INVALID, "a managed fiber is settled");
    caller.agent->fiber_failures.push_back(fiber.name + ": " + std::string(view(why)));
    Engine::erase_fiber(*caller.agent, std::string(fiber.id));
    return hearth_status{HEARTH_OK};
  });
}
inline hearth_status retry_fiber(const hearth_host* host, hearth_agent agent, hearth_bytes id) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (caller.in_transaction()) return caller.fail_in_transaction();
  FiberRecord* const fiber = Engine::find_row(*caller.agent, view(id));
  if (!fiber || !fiber->dead) return caller.fail(HEARTH_E_NOT_FOUND, "no dead fiber has this id");
  fiber->dead = false;
  fiber->attempts = fiber->recoveries = 0;
  fiber->due_ns = 0;
  Engine::write_row(*caller.agent, *fiber);
  return HEARTH_OK;
}

inline constexpr hearth_keep_alive_v1 kKeepAlive = {&acquire_keep_alive, &release_keep_alive};
inline hearth_status list_dead(const hearth_host* host, hearth_agent agent, hearth_bytes after,
                               std::uint32_t limit, hearth_bytes* records) {
  const Caller caller(host, agent);
  if (caller.bad()) return caller.status;
  if (limit > 100) return caller.fail(HEARTH_E_INVALID, "a page has at most 100 records");
  std::size_t left = limit == 0 ? 50 : limit;
  bool begun = after.len == 0;
  Json page = Json::array();
  for (const FiberRecord& fiber : caller.agent->fibers) {
    if (!fiber.dead || fiber.managed) continue;
    if (begun && left > 0) {
      page.push_back({{"id", fiber.id},
                      {"name", fiber.name},
                      {"snapshot", fiber.snapshot ? Json::parse(*fiber.snapshot) : Json()},
                      {"created_at", fiber.created_at_ms},
                      {"attempts", fiber.attempts},
                      {"last_error", fiber.last_error}});
      --left;
    }
    begun = begun || fiber.id == view(after);
  }
  if (!begun) return caller.fail(HEARTH_E_NOT_FOUND, "no dead fiber has the id `after`");
  return caller.lend(page.dump(), records);
}

inline constexpr hearth_fibers_v1 kFibers = {&start_fiber, &stash,      &finish_fiber,
                                             &retry_fiber, &fail_fiber, &list_dead};

}  // namespace hearth::testing::detail
