#pragma once
// Tables of functions that report each call to an AbiWatcher and then call the host's own function.
// `hearth check` and the mock host give them to libraries: both are stricter than a server.

#include "extensions/abi_host.hpp"

#include <hearth/abi.h>
#include <hearth/ext/sql.h>

#include <optional>
#include <string_view>

namespace hearth::extensions {

// One function that a library can call.
struct AbiFunction {
  std::string_view name;       // "hearth.sql/1 step"
  bool any_thread = false;     // its tag is [any]
  bool while_closing = false;  // it works for an agent that is being destroyed
  bool of_statement = false;   // of hearth.sql/1: what it lends is good until that statement moves
};

// One call of it.
struct AbiCall {
  const AbiFunction& function;
  hearth_agent agent = 0;          // 0: it is about none
  hearth_statement statement = 0;  // 0: it is about none
};

// Threads  As each function's tag says: [any] functions come from all.
class AbiWatcher {
 public:
  AbiWatcher() = default;
  virtual ~AbiWatcher() = default;
  AbiWatcher(const AbiWatcher&) = delete;
  AbiWatcher& operator=(const AbiWatcher&) = delete;

  // Before the function does anything: the status that it is to fail with, if it is to.
  virtual std::optional<hearth_status> enter(const AbiCall& call) = 0;
  // It has succeeded and lends `bytes`, which may be put elsewhere. May be null.
  virtual void lent(const AbiCall& call, hearth_bytes* bytes) = 0;
  // It returns now.
  virtual void left(const AbiCall& /*call*/) {}
  // Whether the library may have this extension.
  [[nodiscard]] virtual bool has_extension(std::string_view /*id*/) const { return true; }
  // The host whose functions are called.
  [[nodiscard]] virtual const AbiHost& abi() const = 0;
};

// What a library that is watched is given: the address of `host`. The way back stands in front of
// it, out of its reach; bytewise copies are as good.
struct WatchedTable {
  AbiWatcher* watcher = nullptr;
  hearth_host host{};  // struct_size and versions are this server's
};
[[nodiscard]] WatchedTable watched_table(AbiWatcher& watcher) noexcept;

}  // namespace hearth::extensions
