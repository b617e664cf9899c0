#include "runtime/delivery.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

// A waiting event in a row of the table: its kind, its method, and its client, the first or the
// second one; 0: another agent calls.
struct Waiting {
  EventKind kind;
  std::string name;
  unsigned client = 0;
};

// What is true meanwhile.
enum When : unsigned {
  kFull = 1,
  kRuns = 2,      // a call is in progress
  kAlone = 4,     // ... one that runs alone
  kSerial = 8,    // calls: serial
  kConnects = 16  // the first client's CONNECT is in progress
};

struct Row {
  const char* what;
  std::vector<Waiting> waiting;
  int next;  // the place of the event that is taken; -1: none
  unsigned when = 0;
};

class DeliveryTest : public ::testing::Test {
 protected:
  ConnectionId connect() {
    auto port = std::make_unique<testing::FakePort>(std::make_shared<testing::Sight>());
    return clients_.add(nullptr, {}, std::move(port)).id;
  }
  // The place of the event that is taken.
  int next_of(const Row& row) {
    EventQueue queue(clients_, memory_, limits_);
    for (std::size_t place = 0; place < row.waiting.size(); ++place) {
      const Waiting& each = row.waiting[place];
      Event event;
      event.kind = each.kind;
      event.name = each.name;
      event.connection = each.client == 0 ? 0 : ids_.at(each.client - 1);
      event.flags = static_cast<std::uint32_t>(place);
      if (each.client == 0) {
        extensions::Origin caller;
        caller.agent = testing::kUsualAgent;
        event.origin = std::make_shared<extensions::Origin>(std::move(caller));
      }
      queue.push(std::move(event));
    }
    clients_.find(ids_[0])->connect_in_progress = (row.when & kConnects) != 0;
    const Delivery delivery{.clients = clients_,
                            .order = {.serial = (row.when & kSerial) != 0, .exclusive = exclusive_},
                            .is_full = (row.when & kFull) != 0,
                            .runs_method = (row.when & (kRuns | kAlone)) != 0,
                            .runs_alone = (row.when & kAlone) != 0};
    const auto taken = delivery.take_next(queue);
    EXPECT_EQ(queue.size(), row.waiting.size() - (taken ? 1U : 0U)) << row.what;
    return taken ? static_cast<int>(taken->flags) : -1;
  }

  RuntimeLimits limits_;
  ClientMemory memory_{std::size_t{1} << 20};
  Metrics metrics_;
  hearth::testing::RecordingLogger logger_;
  Counter& dropped_ = metrics_.counter("dropped_total", "Clients.", {});
  Connections clients_{{metrics_.gauge("connections", "Clients.", {}), dropped_, logger_, memory_}};
  const std::vector<std::string> exclusive_{"alone"};
  std::array<ConnectionId, 2> ids_{connect(), connect()};
};

TEST_F(DeliveryTest, TheNextEventIsTheFirstThatWaitsForNoOther) {
  using enum EventKind;
  for (const Row& row : std::vector<Row>{
           {"nothing waits", {}, -1},
           {"the first of all", {{kCall, "a", 1}, {kCall, "b", 2}}, 0},
           {"a full agent takes none", {{kCall, "a", 1}}, -1, kFull},
           {"a client's CONNECT comes first", {{kMessage, "", 1}}, -1, kConnects},
           {"other clients do not wait for it", {{kMessage, "", 1}, {kCall, "b", 2}}, 1, kConnects},
           {"calls run beside calls", {{kCall, "a", 1}}, 0, kRuns},
           {"but not beside one that runs alone", {{kCall, "a", 1}}, -1, kAlone},
           {"which other events do not wait for", {{kCall, "a", 1}, {kMessage, "", 2}}, 1, kAlone},
           {"one that runs alone waits for others", {{kCall, "alone", 1}}, -1, kRuns},
           {"its client's events wait behind it",
            {{kCall, "alone", 1}, {kMessage, "", 1}, {kMessage, "", 2}},
            2,
            kRuns},
           {"so do other clients' calls", {{kCall, "alone", 1}, {kCall, "a", 2}}, -1, kRuns},
           {"but not agents' calls", {{kCall, "alone", 1}, {kCall, "a", 0}}, 1, kRuns},
           {"a request has no method", {{kRequest, "alone", 1}}, 0, kRuns},
           {"serial: each runs alone",
            {{kCall, "a", 1}, {kRequest, "b", 2}, {kMessage, "", 2}},
            -1,
            kRuns | kSerial},
           {"serial: none is in progress", {{kCall, "a", 1}}, 0, kSerial},
           {"one whose client still connects blocks no other's call",
            {{kCall, "alone", 1}, {kCall, "a", 2}},
            1,
            kRuns | kConnects},
       })
    EXPECT_EQ(next_of(row), row.next) << row.what;
}

}  // namespace
}  // namespace hearth::runtime
