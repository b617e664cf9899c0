// An agent may pass bytes that the host has lent back to the host, whole or in part, in the call
// that replaces these bytes. The outcome of each row shows whether the host read the right bytes;
// AddressSanitizer shows whether they were still there.
#include "fakes.hpp"
#include "storage/plugin_sql.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

using testing::ShardFixture;

// Longer than what a string keeps inside itself.
const std::string kInner = R"({"inner":"a text of some length"})";
const std::string kOuter = R"([)" + kInner + R"(,")" + std::string(200, 'x') + R"("])";

std::string_view part_of(std::string_view lent) {
  return lent.substr(lent.find(kInner), kInner.size());
}

struct Lent {
  const char* name;
  // In a client's call: passes lent bytes back, and returns the host's result if there is one.
  std::function<std::string(HostCalls&, const AgentEvent&)> hand_back;
  // That result, or what the caller or another client got.
  std::string outcome;
  EventKind kind = EventKind::kCall;
};

void PrintTo(const Lent& loan, std::ostream* out) {
  *out << loan.name;
}

// A row that a statement which writes has given, and more are to come.
std::string_view returned_row(HostCalls& host) {
  const auto make = host.sql().prepare("CREATE TABLE IF NOT EXISTS t (x TEXT)");
  EXPECT_TRUE(host.sql().step(make.value()));
  const auto insert = host.sql().prepare("INSERT INTO t VALUES (?1), (?1) RETURNING x");
  EXPECT_TRUE(host.sql().bind_text(insert.value(), 1, kOuter));
  EXPECT_TRUE(host.sql().step(insert.value()));
  return host.sql().column_text(insert.value(), 0).value();
}

durable::FiberRequest request_for(std::string_view text) {
  durable::FiberRequest request;
  request.name = request.id = request.key = request.input = request.metadata = text;
  return request;
}

class LentBytesTest : public ::testing::TestWithParam<Lent> {
 protected:
  // An agent with a long text wherever the host keeps one.
  LentBytesTest() {
    shard_.script.on_create = [](HostCalls& host) { return host.set_default_state(kOuter); };
    shard_.script.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kConnecting) EXPECT_TRUE(host.add_tag(event.connection, kOuter));
      if (event.kind == EventKind::kConnect)
        EXPECT_TRUE(host.set_attachment(event.connection, kOuter));
      if (event.kind == GetParam().kind && !std::exchange(was_run_, true)) {
        seen_.push_back(GetParam().hand_back(host, event));
        (void)host.complete(event.call, std::string_view("0"));  // unless it is answered already
        return {};
      }
      return complete(host, event);
    };
  }

  bool was_run_ = false;
  std::vector<std::string> seen_;
  ShardFixture shard_;
};

TEST_P(LentBytesTest, MayBeHandedBack) {
  const auto watcher = shard_.connect("a", "watcher");
  const auto caller = shard_.join("a", "caller");
  const auto answer = GetParam().kind == EventKind::kRequest
                          ? shard_.request("POST", kOuter)
                          : shard_.call(caller, "method", kOuter);
  shard_.settle();
  EXPECT_TRUE(was_run_);
  seen_.insert(seen_.end(), answer->parts.begin(), answer->parts.end());
  seen_.push_back(answer->end.value_or("unanswered"));
  seen_.insert(seen_.end(), watcher.sight->begin(), watcher.sight->end());
  seen_.insert(seen_.end(), caller.sight->begin(), caller.sight->end());
  EXPECT_NE(std::ranges::find(seen_, GetParam().outcome), seen_.end())
      << GetParam().outcome << "\nis not among\n"
      << ::testing::PrintToString(seen_);
}

std::string set_part_of_state(HostCalls& host, const AgentEvent&) {
  EXPECT_TRUE(host.set_state(0, kOuter));
  EXPECT_TRUE(host.set_state(0, part_of(*host.state())));
  return std::string(*host.state());
}
std::string set_part_of_default(HostCalls& host, const AgentEvent&) {
  EXPECT_TRUE(host.set_state(0, part_of(*host.state())));
  return std::string(*host.state());
}
std::string default_part_of_default(HostCalls& host, const AgentEvent&) {
  EXPECT_TRUE(host.set_default_state(part_of(*host.state())));
  return std::string(*host.state());
}
std::string answer_part_of_state(HostCalls& host, const AgentEvent& event) {
  EXPECT_TRUE(host.set_state(0, kOuter));
  EXPECT_TRUE(host.complete(event.call, part_of(*host.state())));
  return {};
}
std::string emit_part_of_state(HostCalls& host, const AgentEvent& event) {
  EXPECT_TRUE(host.emit(event.call, part_of(*host.state())));
  return {};
}
std::string send_part_of_state(HostCalls& host, const AgentEvent&) {
  EXPECT_TRUE(host.broadcast(FrameKind::kText, part_of(*host.state()), "", {}));
  return {};
}
std::string attach_part_of_attachment(HostCalls& host, const AgentEvent& event) {
  const extensions::Client* client = host.find_connection(event.connection);
  EXPECT_TRUE(host.set_attachment(event.connection, part_of(client->attachment)));
  return client->attachment;
}
std::string add_parts_of_tag(HostCalls& host, const AgentEvent& event) {
  const extensions::Client* client = host.find_connection(event.connection);
  for (std::size_t size = 1; client->tags.size() + 1 < Connection::kMaxTags; ++size) {
    const std::string_view tag = client->tags.front();
    EXPECT_TRUE(host.add_tag(event.connection, tag.substr(1, size)));
  }
  return client->tags.back();
}
std::string send_to_tag(HostCalls& host, const AgentEvent& event) {
  const std::string_view tag = host.find_connection(event.connection)->tags.front();
  EXPECT_TRUE(host.broadcast(FrameKind::kText, part_of(tag), tag, {}));
  return {};
}
std::string close_with_target(HostCalls& host, const AgentEvent& event) {
  const extensions::Client* client = host.find_connection(event.connection);
  EXPECT_TRUE(host.close(event.connection, 4000, client->target));
  return {};
}
std::string set_part_of_body(HostCalls& host, const AgentEvent& event) {
  EXPECT_TRUE(host.set_state(0, part_of(event.body)));
  return std::string(*host.state());
}
std::string answer_part_of_body(HostCalls& host, const AgentEvent& event) {
  EXPECT_TRUE(host.complete(event.call, part_of(event.body)));
  return std::string(part_of(event.body));  // lent until the event is over
}
std::string answer_target(HostCalls& host, const AgentEvent& event) {
  EXPECT_TRUE(host.complete(event.call, host.request(event.call)->target));
  return {};
}
// What starts durable work commits, and a commit ends a statement that is in the middle of writing.
std::string set_part_of_row(HostCalls& host, const AgentEvent&) {
  EXPECT_TRUE(host.set_state(0, part_of(returned_row(host))));
  return std::string(*host.state());
}
std::string start_fiber_of_row(HostCalls& host, const AgentEvent&) {
  EXPECT_TRUE(host.start_fiber(part_of(returned_row(host))));
  return {};
}
std::string stash_row(HostCalls& host, const AgentEvent&) {
  const auto fiber = host.start_fiber("work");
  EXPECT_TRUE(host.stash(fiber->handle, part_of(returned_row(host))));
  return {};
}
std::string start_managed_of_row(HostCalls& host, const AgentEvent&) {
  EXPECT_TRUE(host.start_managed(request_for(part_of(returned_row(host)))));
  return {};
}

INSTANTIATE_TEST_SUITE_P(
    Each, LentBytesTest,
    ::testing::Values(
        Lent{"StateAsState", set_part_of_state, kInner},
        Lent{"StateAsStateIsShown", set_part_of_state, "text state " + kInner},
        Lent{"DefaultStateAsState", set_part_of_default, kInner},
        Lent{"DefaultStateAsDefaultState", default_part_of_default, kInner},
        Lent{"StateAsAnswer", answer_part_of_state, "ok " + kInner},
        Lent{"StateAsPart", emit_part_of_state, kInner},
        Lent{"StateAsFrame", send_part_of_state, "text " + kInner},
        Lent{"AttachmentAsAttachment", attach_part_of_attachment, kInner},
        Lent{"TagAsTag", add_parts_of_tag, kOuter.substr(1, Connection::kMaxTags - 2),
             EventKind::kConnecting},
        Lent{"TagAsTagOfABroadcast", send_to_tag, "text " + kInner},
        Lent{"TargetAsReason", close_with_target, "close 4000 /agents/counter/a"},
        Lent{"ArgumentsAsState", set_part_of_body, kInner},
        Lent{"ArgumentsAsAnswer", answer_part_of_body, kInner},
        Lent{"BodyOfARequestAsAnswer", answer_part_of_body, kInner, EventKind::kRequest},
        Lent{"HeadOfARequestAsAnswer", answer_target, "ok /agents/counter/a", EventKind::kRequest},
        Lent{"RowAsState", set_part_of_row, kInner},
        Lent{"RowAsNameOfAFiber", start_fiber_of_row, "ok 0"},
        Lent{"RowAsCheckpoint", stash_row, "ok 0"},
        Lent{"RowAsManagedFiber", start_managed_of_row, "ok 0"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hearth::runtime
