#include "extensions/abi_host.hpp"

#include "base/escape.hpp"
#include "extensions/abi_call.hpp"
#include "extensions/call_rules.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/registry.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>

namespace hearth::extensions {
namespace {

const void* get_extension(const hearth_host* /*host*/, const char* id) noexcept {
  const Registered* const found = find_extension(name_of_extension(id));
  return found == nullptr ? nullptr : found->table;
}

// The error that the caller of a failed event gets. The text is the plugin's own and may be any
// bytes. It is made valid and not refused, so that the failure always reaches the caller.
Error plugin_error(hearth_status status, std::string_view text) {
  Error error{.code = to_errc(status), .message = {}};
  const std::string_view cut = cut_text(text, kMaxErrorBytes);
  if (cut.empty()) {
    error.message = "the agent failed with " + status_name(status);
  } else if (is_valid_utf8(cut)) {
    error.message = cut;
  } else {
    append_escaped(error.message, cut, EscapeStyle::kHuman);
  }
  return error;
}

Result<void> complete(AgentContext& it, std::uint64_t call, hearth_status status, AnyBytes body) {
  if (status > HEARTH_OK)
    return Error{Errc::kInvalidArgument, "complete() takes HEARTH_OK or an error"};
  if (status < HEARTH_OK) return it.calls().complete(call, plugin_error(status, body.bytes));
  return it.calls().complete(call, body.bytes);
}

Result<void> emit(AgentContext& it, std::uint64_t call, AnyBytes part) {
  return it.calls().emit(call, part.bytes);
}

Result<OperationId> submit(AgentContext& it, std::uint32_t operation, AnyBytes request,
                           std::uint64_t token) {
  return it.calls().submit(operation, request.bytes, token);
}

Result<void> cancel(AgentContext& it, std::uint64_t id) {
  const auto done = it.calls().cancel(id);
  auto* const operations = it.work().find_operations();
  if (done && operations != nullptr) operations->running().cancelled(id);
  return done;
}

hearth_status last_error(AgentContext& it, hearth_bytes* text) {
  if (text == nullptr) return HEARTH_E_INVALID;
  *text = slice_of(it.last_error);
  return HEARTH_OK;
}

hearth_status post(const hearth_host* host, hearth_agent agent, std::uint64_t token) noexcept {
  if (host == nullptr) return HEARTH_E_INVALID;
  try {
    return AbiHost::of(host).services().agents.post(agent, token) ? HEARTH_OK : HEARTH_E_GONE;
  } catch (const std::bad_alloc&) {
    return HEARTH_E_NOMEM;
  }
}

}  // namespace

AbiHost::AbiHost(const AbiServices& services, std::string origin)
    : services_(services),
      origin_(std::move(origin)),
      table_{.host = {.struct_size = sizeof(hearth_host),
                      .abi_major = HEARTH_ABI_MAJOR,
                      .abi_minor = HEARTH_ABI_MINOR,
                      .flags = 0,
                      .reserved = 0,
                      .get_extension = get_extension,
                      .complete = kGoneDoor<complete>,
                      .emit = kGoneDoor<emit>,
                      .submit = kGoneDoor<submit>,
                      .cancel = kGoneDoor<cancel, DoorKind::kWhileClosing>,
                      .last_error = kDoor<last_error, DoorKind::kWhileClosing>,
                      .post = post,
                      .credit = kGoneDoor<&CallPort::credit>},
             .owner = this} {}

const AbiHost& AbiHost::of(const hearth_host* table) {
  static_assert(std::is_standard_layout_v<Table> && offsetof(Table, host) == 0);
  return *reinterpret_cast<const Table*>(table)->owner;
}

}  // namespace hearth::extensions
