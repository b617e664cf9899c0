#include "extensions/state.hpp"

#include "extensions/abi_call.hpp"
#include "json/json_scanner.hpp"
#include "storage/agent_database.hpp"

namespace hearth::extensions {

// ---- what it does -------------------------------------------------------------------------------

std::optional<std::string_view> StateExtension::get() {
  if (!loaded_) {
    stored_ = agent_.database().load_state();
    loaded_ = true;
  }
  if (stored_) return *stored_;
  if (default_) return *default_;
  return std::nullopt;
}

Result<void> StateExtension::may_change(ConnectionId on_behalf) {
  const Client* const client = on_behalf == 0 ? nullptr : agent_.clients().find(on_behalf);
  const bool is_readonly =
      client != nullptr ? client->readonly() : agent_.calls().left_readonly(on_behalf);
  if (is_readonly) return Error{Errc::kForbidden, "Connection is readonly"};
  return agent_.watchers().may_change();
}

Result<void> StateExtension::set(ConnectionId on_behalf, std::string_view json) {
  const std::size_t most = agent_.settings().max_state_bytes;
  if (json.size() > most) {
    return Error{Errc::kLimitExceeded,
                 "the state is larger than " + std::to_string(most) + " bytes"};
  }
  if (!is_json(json)) return Error{Errc::kInvalidArgument, "the state must be JSON"};
  if (Result<void> allowed = may_change(on_behalf); allowed.has_error()) return allowed;
  store(0, json);
  return {};
}

Result<void> StateExtension::unset(ConnectionId on_behalf) {
  if (Result<void> allowed = may_change(on_behalf); allowed.has_error()) return allowed;
  agent_.database().remove_state();
  stored_.reset();
  loaded_ = true;
  agent_.watchers().changed(0, get().value_or(std::string_view()),
                            agent_.database().state_writes());
  return {};
}

Result<void> StateExtension::set_default(std::string_view json) {
  if (json.size() > agent_.settings().max_state_bytes || !is_json(json)) {
    return Error{Errc::kInvalidArgument, "the default state must be JSON of bounded size"};
  }
  default_ = json;
  return {};
}

void StateExtension::store(ConnectionId source, std::string_view json) {
  agent_.database().store_state(json);
  // A copy first: `json` may be a part of the text that it replaces (hearth/abi.h, "Memory").
  stored_ = std::string(json);
  loaded_ = true;
  agent_.watchers().changed(source, *stored_, agent_.database().state_writes());
}

void StateExtension::undone(std::uint64_t last_write) {
  loaded_ = false;
  stored_.reset();
  agent_.watchers().undone(last_write);
}

// ---- its C functions ----------------------------------------------------------------------------

namespace {

hearth_status get_state(AgentContext& it, hearth_bytes& json) {
  const auto state = it.of<StateExtension>().get();
  if (!state) return fail(it, HEARTH_E_NOT_FOUND, "there is no state yet");
  json = slice_of(*state);
  return HEARTH_OK;
}

// The JSON check covers UTF-8.
Result<void> set_state(AgentContext& it, std::uint64_t on_behalf, AnyBytes json) {
  return it.of<StateExtension>().set(on_behalf, json.bytes);
}

Result<void> set_default_state(AgentContext& it, AnyBytes json) {
  return it.of<StateExtension>().set_default(json.bytes);
}

}  // namespace

constexpr hearth_state_v1 kStateTable = {.get = kDoor<get_state>,
                                         .set = kGoneDoor<set_state>,
                                         .set_default = kDoor<set_default_state>,
                                         .unset = kDoor<&StateExtension::unset>};

}  // namespace hearth::extensions
