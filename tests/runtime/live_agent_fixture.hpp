#pragma once
// One live agent whose calls and messages a test scripts.

#include "fakes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace hearth::runtime::testing {

class LiveAgentTest : public ::testing::Test {
 protected:
  using Handler = std::function<Result<void>(HostCalls&, const AgentEvent&)>;

  // `handler` gets calls and messages; everything else is completed at once.
  void on_call(Handler handler) {
    shard_.script.on_event = [handler = std::move(handler)](
                                 HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kCall || event.kind == EventKind::kMessage ||
          event.kind == EventKind::kRequest || event.kind == EventKind::kStateCheck) {
        return handler(host, event);
      }
      return complete(host, event);
    };
  }

  // The bytes of the parameter of an operation.
  static std::string_view bytes_of(const std::uint64_t& number) {
    return {reinterpret_cast<const char*>(&number), sizeof(number)};
  }

  ShardFixture shard_;
};

}  // namespace hearth::runtime::testing
