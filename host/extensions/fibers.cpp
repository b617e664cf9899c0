#include "extensions/fibers.hpp"

#include "base/stop_point.hpp"
#include "extensions/abi_call.hpp"
#include "json/json_scanner.hpp"

#include <utility>

namespace hearth::extensions {

// ---- what it does -------------------------------------------------------------------------------

Result<durable::Fibers::Started> FiberExtension::start(std::string_view name,
                                                       std::string_view replaces) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  auto started = agent_.work().fibers().start(name, replaces);
  if (started.has_error()) return started;
  agent_.work().keep_trace(durable::JobKind::kFiber, started->id, agent_.calls().trace());
  // The names may lie in a row of a statement that writes, and a commit ends the statement.
  const std::string its_name(name);
  const std::string old_id(replaces);
  stop_point(old_id.empty() ? StopPoint("fiber.start.written") : "fiber.continue.written");
  agent_.commit_now();  // the row is on disk before the work's first instruction
  stop_point(old_id.empty() ? StopPoint("fiber.start.committed") : "fiber.continue.committed");
  agent_.work().report(DurableEvent::kFiberRunStarted, started->id, its_name);
  if (!old_id.empty()) agent_.fiber_continued(old_id);
  return started;
}

Result<void> FiberExtension::stash(std::uint64_t fiber, std::string_view json) {
  if (!is_json(json)) return Error{Errc::kInvalidArgument, "a checkpoint must be JSON"};
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  const auto id = agent_.work().fibers().stash(fiber, json);
  if (id.has_error()) return id.error();
  agent_.work().checkpointed(*id);
  stop_point("fiber.stash.written");
  agent_.commit_now();  // a stash that has returned is never lost
  stop_point("fiber.stash.committed");
  agent_.work().report(DurableEvent::kFiberStash, *id);
  return {};
}

Result<void> FiberExtension::finish(std::uint64_t fiber) {
  return end(fiber, DurableEvent::kFiberRunCompleted, "");
}

Result<void> FiberExtension::fail(std::uint64_t fiber, std::string_view why) {
  return end(fiber, DurableEvent::kFiberRunFailed, why);
}

Result<void> FiberExtension::end(std::uint64_t fiber, DurableEvent how, std::string_view why) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  const auto id = agent_.work().fibers().finish(fiber);
  if (id.has_error()) return id.error();
  stop_point("fiber.finish.written");
  agent_.work().stop_at_commit("fiber.finish.committed");
  agent_.work().report(how, *id, why);
  return {};
}

Result<void> FiberExtension::retry(std::string_view id) {
  if (auto refusal = agent_.work_refusal()) return *std::move(refusal);
  return agent_.work().fibers().retry(id);
}

Result<std::string> FiberExtension::list_dead(std::string_view after, std::size_t limit) {
  return agent_.work().fibers().list_dead(after, limit);
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

hearth_status start_fiber(const hearth_host* host, hearth_agent agent, hearth_bytes name,
                          hearth_bytes replaces, hearth_fiber* fiber, hearth_bytes* id) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto fiber_name = text_of(name);
    const auto old = text_of(replaces);
    if (!fiber_name || !old) return bad_slice(it);
    if (fiber == nullptr) return fail(it, HEARTH_E_INVALID, "start() needs a place for the fiber");
    auto started = FiberExtension(it).start(*fiber_name, *old);
    if (!started) return fail(it, started.error());
    *fiber = started->handle;
    it.lent_text = std::move(started->id);
    if (id != nullptr) *id = slice_of(it.lent_text);
    return hearth_status{HEARTH_OK};
  });
}

hearth_status stash(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                    hearth_bytes json) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto text = text_of(json);
    if (!text) return bad_slice(it);
    return status_of(it, FiberExtension(it).stash(fiber, *text), HEARTH_E_GONE);
  });
}

hearth_status finish_fiber(const hearth_host* host, hearth_agent agent,
                           hearth_fiber fiber) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    return status_of(it, FiberExtension(it).finish(fiber), HEARTH_E_GONE);
  });
}

hearth_status retry_fiber(const hearth_host* host, hearth_agent agent, hearth_bytes id) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto text = text_of(id);
    if (!text) return bad_slice(it);
    return status_of(it, FiberExtension(it).retry(*text));
  });
}

hearth_status fail_fiber(const hearth_host* host, hearth_agent agent, hearth_fiber fiber,
                         hearth_bytes why) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    // Any bytes are accepted: the work must be able to end, whatever text its exception has. The
    // log makes the text valid.
    const auto bytes = bytes_of(why);
    if (!bytes) return bad_slice(it);
    return status_of(it, FiberExtension(it).fail(fiber, *bytes), HEARTH_E_GONE);
  });
}

hearth_status list_dead_fibers(const hearth_host* host, hearth_agent agent, hearth_bytes after,
                               std::uint32_t limit, hearth_bytes* records) noexcept {
  return for_agent(host, agent, [&](AgentContext& it) {
    const auto last = text_of(after);
    if (!last) return bad_slice(it);
    if (records == nullptr)
      return fail(it, HEARTH_E_INVALID, "list_dead() needs a place for the records");
    auto page = FiberExtension(it).list_dead(*last, limit);
    if (!page) return fail(it, page.error());
    it.lent_text = std::move(*page);
    *records = slice_of(it.lent_text);
    return hearth_status{HEARTH_OK};
  });
}

constexpr hearth_fibers_v1 kFibers{start_fiber, stash,      finish_fiber,
                                   retry_fiber, fail_fiber, list_dead_fibers};

}  // namespace

const hearth_fibers_v1& fibers_extension() noexcept {
  return kFibers;
}

}  // namespace hearth::extensions
