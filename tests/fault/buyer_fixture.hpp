#pragma once
// Agents that pay (tests/agents/buyer_agent.cpp), a provider that counts its effects, and the
// places where a server is killed meanwhile.

#include "fault/fault_fixture.hpp"
#include "json/json.hpp"
#include "support/provider.hpp"

#include <array>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace hearth::testing {

// Where a server is killed: at a stop point, or by the provider while the server waits.
struct KillPlace {
  const char* name;
  const char* stop_at;  // empty: the provider kills
  const char* provider_at;
  friend std::ostream& operator<<(std::ostream& out, const KillPlace& place) {
    return out << place.name;
  }
};
inline constexpr std::array kKillPlaces = {
    KillPlace{"BeforeStartedIsDurable", "operation.started.written", ""},
    KillPlace{"AfterStartedAndBeforeSending", "operation.started.committed", ""},
    KillPlace{"AfterSendingAndBeforeTheEffect", "", "received"},
    KillPlace{"AfterTheEffectAndBeforeTheAnswer", "", "acted"},
    KillPlace{"AfterSendingAndBeforeALateEffect", "", "late"},
    KillPlace{"AfterTheAnswerAndBeforeTheCommit", "operation.settled.written", ""},
    KillPlace{"AfterTheCommit", "operation.settled.committed", ""},
};
inline constexpr std::array kBuyerKinds = {"read",  "idempotent", "keyed",
                                           "probe", "unsafe",     "request"};

class BuyerTest : public FaultTest {
 protected:
  BuyerTest() {
    std::filesystem::copy_file(built::agent("buyer-agent"), root_ / "plugins/buyer-agent.so");
    put("classes/buyer.yaml",
        "class: Buyer\nidle_timeout: 100ms\nfibers:\n  retry_base: 10ms\n"
        "  max_crashes: 0\negress:\n  allow: [127.0.0.1]\noptions:\n  provider: http://127.0.0.1:" +
            std::to_string(provider_.http()) + "\n");
  }

  // An order whose answer may never come: the server may be killed in the middle of it.
  static std::unique_ptr<RawClient> order(const ServerProcess& server, const std::string& agent,
                                          const std::string& kind) {
    auto client = std::make_unique<RawClient>(server.port());
    client->send("POST /agents/buyer/" + agent + "?kind=" + kind +
                 " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    return client;
  }
  Json ask_provider(const std::string& path) const { return get_json(provider_.http(), path); }
  [[nodiscard]] std::vector<std::string> buyer_rows(const std::string& agent,
                                                    const std::string& query) const {
    return rows_of(database_of(agent, "Buyer"), query);
  }

  Provider provider_;
};

}  // namespace hearth::testing
