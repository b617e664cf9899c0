#pragma once
// Calls between the agents of one mock host.

#include "base/clock.hpp"
#include "extensions/agent_router.hpp"
#include "mock/world.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::mock {

struct MockCallState;
class StoredAgent;

// A call becomes an event of the callee in one of the next steps. Its time and its depth are
// limited as in the server. As there, a call that its callee waits for, and so cannot begin, is
// refused.
//
// Threads   The test's.
// Lifetime  The world outlives it.
class MockRouter final : public extensions::AgentRouter {
 public:
  // The callee of a call; made if it does not exist. Null: there is none.
  using Find = std::function<StoredAgent*(const extensions::AgentCall& call)>;

  // AgentRouter::class_name(), for the classes that have agents on the host.
  using ClassName = std::function<Result<std::string>(std::string_view named)>;

  MockRouter(World& world, Find find, ClassName class_name)
      : world_(world), find_(std::move(find)), class_name_(std::move(class_name)) {}

  [[nodiscard]] Result<std::string> class_name(std::string_view named) const override {
    return class_name_(named);
  }

  [[nodiscard]] std::unique_ptr<extensions::RemoteOperation> call(
      extensions::AgentCall call) override;

  // Ends one call whose time is over; false: there is none.
  bool step();
  [[nodiscard]] std::optional<SteadyTime> next_due() const;

 private:
  World& world_;
  const Find find_;
  const ClassName class_name_;
  std::vector<std::weak_ptr<MockCallState>> calls_;  // the started ones; some have ended
};

}  // namespace hearth::mock
