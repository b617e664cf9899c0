#pragma once
// What an agent does or waits for (server/why.hpp): a live one, a cold one without its code, and
// one whose event loop does not answer.

#include "diagnosis/watchdog.hpp"
#include "extensions/wait.hpp"
#include "json/json.hpp"
#include "plugins/versions/version_ledger.hpp"
#include "runtime/runtime.hpp"
#include "storage/agent_key.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::server {

// As the answers of /admin say it: "cold", "waking", "live", "evicting".
[[nodiscard]] std::string_view state_word(runtime::AgentState state);

// Threads    One that may wait.  Lifetime  The parts outlive it.
class AgentWaits {
 public:
  // A loop that answers later is held up by code of some agent, which is named with its stack.
  static constexpr std::chrono::milliseconds kLoopPatience{250};

  struct Parts {
    runtime::Runtime& runtime;
    const plugins::VersionLedger& ledger;
    // Empty: no stacks are shown.
    std::function<std::string(const diagnosis::RunningCall&)> stack_of;
    std::int64_t started_ms;  // when this server began, Unix milliseconds
  };
  struct Seen {
    storage::AgentKey key;
    std::string_view state;  // "unknown": its event loop does not answer
    bool is_known = true;    // it is in memory or waits, though it may have stored nothing yet
    std::vector<extensions::Wait> waits{};
    std::string not_seen{};  // why its durable work is missing in `waits`; empty: it is not
  };

  explicit AgentWaits(Parts parts) : parts_(std::move(parts)) {}

  // Bounded by kLoopPatience and then, for the durable work, by `until`.
  [[nodiscard]] Seen look(const storage::AgentKey& key,
                          std::chrono::steady_clock::time_point until) const;

 private:
  [[nodiscard]] extensions::Wait who_holds_up(const storage::AgentKey& key) const;
  void add_class(Seen& seen) const;
  void add_trial(Seen& seen, const runtime::ShardAdmin::Standing& standing) const;
  void add_work(Seen& seen, bool is_live, std::chrono::steady_clock::time_point until) const;

  const Parts parts_;
};

// {"class","agent","state","waits":[...],"not_seen"}: the most urgent wait first, each as
// {"kind","urgency","what","since_ms","until_ms","ends_by","do"}
[[nodiscard]] Json why_json(AgentWaits::Seen seen, std::int64_t now_ms);

}  // namespace hearth::server
