#include "extensions/keep_alive.hpp"

#include "extensions/abi_call.hpp"

namespace hearth::extensions {
namespace {

constexpr std::size_t kMostReferences = 1'000'000;  // past it: a leak in a plugin, not a use

}  // namespace

Result<void> KeepAliveExtension::acquire() {
  if (agent_.phase() == AgentPhase::kClosing) {
    return Error{Errc::kClosing, "the agent is being evicted"};
  }
  if (held_ >= kMostReferences) {
    return Error{Errc::kLimitExceeded, "too many keep-alive references"};
  }
  ++held_;
  return {};
}

Result<void> KeepAliveExtension::release() {
  if (held_ == 0) return Error{Errc::kInvalidArgument, "no keep-alive reference is held"};
  --held_;
  return {};
}

constexpr hearth_keep_alive_v1 kKeepAliveTable{kDoor<&KeepAliveExtension::acquire>,
                                               kDoor<&KeepAliveExtension::release>};

}  // namespace hearth::extensions
