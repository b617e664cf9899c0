#pragma once
// Tables of functions that report each call to an AbiWatcher, and then call the host's own
// function. `hearth check` and the mock host give these tables to libraries: both are stricter than
// a server.

#include "base/interface.hpp"
#include "extensions/abi_host.hpp"

#include <hearth/abi.h>
#include <hearth/ext/sql.h>

#include <optional>
#include <string_view>

namespace hearth::extensions {

// One function that a library may call.
struct AbiFunction {
  std::string_view name;       // "hearth.sql/1 step"
  bool any_thread = false;     // its tag is [any]
  bool while_closing = false;  // it works for an agent that is being destroyed
};

// One call of such a function.
struct AbiCall {
  const AbiFunction& function;
  hearth_agent agent = 0;  // 0: the call is for no agent
  // Of hearth.sql/1; 0: none. Its bytes are valid until the statement moves.
  hearth_statement statement = 0;
};

// Threads  As each function's tag says: [any] functions come from all.
class AbiWatcher : public Interface {
 public:
  // Called before the function. Returns the status to fail with, if the function must fail.
  virtual std::optional<hearth_status> enter(const AbiCall& call) = 0;
  // The function has succeeded and lends `bytes`, which the watcher may replace. May be null.
  virtual void lent(const AbiCall& call, hearth_bytes* bytes) = 0;
  // The function returns now.
  virtual void left(const AbiCall& /*call*/) {}
  // Whether the library may have this extension.
  [[nodiscard]] virtual bool has_extension(std::string_view /*id*/) const { return true; }
  // The host whose functions are called.
  [[nodiscard]] virtual const AbiHost& abi() const = 0;
};

// A watched library gets the address of `host`. `watcher` stands in front of it, where the library
// cannot reach it. A bytewise copy works as well.
struct WatchedTable {
  AbiWatcher* watcher = nullptr;
  hearth_host host{};  // struct_size and versions are this server's
};
[[nodiscard]] WatchedTable watched_table(AbiWatcher& watcher) noexcept;
// The watcher in front of such a table's host.
[[nodiscard]] AbiWatcher& watcher_of(const hearth_host* table) noexcept;

}  // namespace hearth::extensions
