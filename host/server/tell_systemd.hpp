#pragma once
// Tells systemd, or another manager with its protocol (sd_notify), how far the server is.

#include <chrono>
#include <string>
#include <string_view>

namespace hearth::server {

// Sends `state`, such as "READY=1", to a datagram socket: a path, or an abstract name after '@'.
// Null: no manager wants to know (the environment has no NOTIFY_SOCKET). Never waits.
// Returns false if nothing was sent.
bool tell_systemd(const char* socket, std::string_view state);

// The state of a server that stops, and asks the manager to wait so long for its end, whatever the
// unit's TimeoutStopSec is.
[[nodiscard]] std::string stopping_state(std::chrono::microseconds most);

}  // namespace hearth::server
