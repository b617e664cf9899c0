#pragma once
// The host's side of the plugin ABI: the table of functions that one library gets.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"
#include "extensions/agent_context.hpp"

#include <hearth/abi.h>

#include <string>
#include <string_view>

namespace hearth::extensions {

// What the functions of the table use. All of it outlives every AbiHost.
struct AbiServices {
  AgentDirectory& agents;
  Clock& clock;
  Random& random;
  Logger& logger;
};

// One per loaded library.
//
// Promises  No C function of the table throws. None follows a pointer that the contract does not
//           cover: it checks slices (a null pointer with a length, text that is not UTF-8), and
//           looks up agents by number. A call for an agent of another thread is
//           HEARTH_E_WRONG_THREAD. A StorageError marks the agent broken and becomes HEARTH_E_IO.
// Threads   As each function's tag in hearth/abi.h says.
// Lifetime  Outlives the library's last call: it lives until after deinit and the last instance.
class AbiHost {
 public:
  // `origin` names the library in the log.
  AbiHost(const AbiServices& services, std::string origin);
  AbiHost(const AbiHost&) = delete;
  AbiHost& operator=(const AbiHost&) = delete;

  // The table that the library gets. Valid as long as *this.
  [[nodiscard]] const hearth_host* table() const { return &table_.host; }

  // The object behind a table that this program gave out.
  [[nodiscard]] static const AbiHost& of(const hearth_host* table);

  [[nodiscard]] const AbiServices& services() const { return services_; }
  [[nodiscard]] std::string_view origin() const { return origin_; }

 private:
  // The table, and the object that it belongs to. C code passes &host, which is the address of this
  // struct.
  struct Table {
    hearth_host host;
    const AbiHost* owner;
  };

  AbiServices services_;
  std::string origin_;
  Table table_;
};

}  // namespace hearth::extensions
