// Several shards on real threads.
#include "runtime/runtime.hpp"

#include "fakes.hpp"
#include "runtime/asio_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;

// A class without shared state: answers each request with the agent's own count, which is in its
// database.
class CountingInstance final : public AgentInstance {
 public:
  explicit CountingInstance(extensions::AgentContext& agent) : host_(agent) {}
  Result<void> on_event(const AgentEvent& event) override {
    if (event.kind != EventKind::kRequest) return host_.complete(event.call, std::string_view());
    const int count = std::stoi(std::string(host_.state().value_or("0"))) + 1;
    if (const auto stored = host_.set_state(0, std::to_string(count)); stored.has_error())
      return stored.error();
    return host_.complete(event.call, std::string_view(std::to_string(count)));
  }
  void on_cancel(CallId) override {}
  void on_result(const OperationResult&) override {}

 private:
  HostCalls host_;
};

class CountingClass final : public AgentClass {
 public:
  [[nodiscard]] std::string_view name() const override { return "Counter"; }
  [[nodiscard]] std::string_view version() const override { return "1"; }
  [[nodiscard]] std::string_view origin() const override { return "test"; }
  [[nodiscard]] bool checks_state() const override { return false; }
  [[nodiscard]] bool watches_state() const override { return false; }
  Result<std::unique_ptr<AgentInstance>> create(extensions::AgentContext& host, std::string_view,
                                                std::string_view) const override {
    return std::make_unique<CountingInstance>(host);
  }
  [[nodiscard]] bool runs_jobs() const override { return false; }
  Result<void> run_offloaded(std::uint64_t, bool, const OffloadOrigin&) const override {
    return {};
  }
};

class CountingSink final : public CallSink {
 public:
  CountingSink(std::atomic<int>& answers, std::atomic<int>& largest)
      : answers_(answers), largest_(largest) {}
  void part(const ResponseHead&, std::string_view) override {}
  void finish(const ResponseHead&, const Result<std::string_view>& outcome) override {
    if (outcome) {
      const int count = std::stoi(std::string(outcome.value()));
      int seen = largest_;
      while (seen < count && !largest_.compare_exchange_weak(seen, count)) {
      }
    }
    ++answers_;
  }

 private:
  std::atomic<int>& answers_;
  std::atomic<int>& largest_;
};

// Databases closed by their shards, or by threads beside them.
class RuntimeTest : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(ClosingThreads, RuntimeTest, ::testing::Values(0, 2));

TEST_P(RuntimeTest, AgentsOfAllShardsCountOnAndStopCleanlyUnderLoad) {
  constexpr int kAgents = 20;
  constexpr int kRequests = 50;
  const hearth::testing::TempDirectory directory;
  const auto logger = make_null_logger();
  const SystemClock clock;
  for (int round = 1; round <= 3; ++round) {
    const auto data = storage::DataDirectory::open(directory.path() / "data");
    ASSERT_TRUE(data.has_value());
    AsioLoop first(clock);
    AsioLoop second(clock);
    ShardLoop* loops[] = {&first, &second};
    RuntimeOptions options;
    options.state_frame = [](std::string_view json) { return std::string(json); };
    options.closing_threads = GetParam();
    Metrics metrics;
    Runtime runtime(loops, *data, *logger, metrics, options);
    ClassSettings settings;
    settings.idle_timeout = milliseconds(1);  // agents come and go all the time
    runtime.classes().add({"counter", std::make_shared<CountingClass>(), settings});
    first.start();
    second.start();

    std::atomic<int> answers = 0;
    std::atomic<int> largest = 0;
    std::set<unsigned> used;
    for (int agent = 0; agent < kAgents; ++agent) {
      const storage::AgentKey key{"Counter", "agent " + std::to_string(agent)};
      const unsigned index = runtime.shard_index(key);
      used.insert(index);
      for (int n = 0; n < kRequests; ++n) {
        runtime.loop(index).post([&, key, index] {
          runtime.shard(index).request(key, "counter", "POST", "", std::make_unique<RequestHead>(),
                                       std::make_unique<CountingSink>(answers, largest));
        });
      }
    }
    EXPECT_EQ(used.size(), 2U) << "both shards have agents";
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (answers < kAgents * kRequests && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    std::promise<void> stopped;
    runtime.stop(milliseconds(1000), [&] { stopped.set_value(); });
    ASSERT_EQ(stopped.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
    first.stop();
    second.stop();
    EXPECT_EQ(answers, kAgents * kRequests);
    EXPECT_EQ(largest, round * kRequests) << "each round goes on where the last one ended";
  }
}

}  // namespace
}  // namespace hearth::runtime
