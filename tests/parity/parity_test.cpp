// The authors' mock host and the server's runtime behave alike. Each scenario of scenarios.json
// runs on both, and this test compares what the agent and its callers see. The runtime is real,
// with the library loaded through the real ABI, on a real directory. Only its loop is driven by
// hand, so the test sets the time.
#include "plugins/admission/file_rules.hpp"
#include "plugins/generation/plugin_generation.hpp"
#include "runtime/fakes.hpp"
#include "scenario.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth {
namespace {

namespace fs = std::filesystem;
using parity::Value;
using runtime::testing::Answer;
using runtime::testing::FakePort;
using runtime::testing::FakeSink;
using runtime::testing::ManualLoop;
using runtime::testing::Sight;
using std::chrono::milliseconds;

// Finds agents in the runtime of the moment: a library outlives the process that is "killed" here.
class PresentRuntime final : public extensions::AgentDirectory {
 public:
  Found find(runtime::AgentHandle handle) override {
    return runtime == nullptr ? Found{} : runtime->find(handle);
  }
  bool post(runtime::AgentHandle handle, std::uint64_t token) override {
    return runtime != nullptr && runtime->post(handle, token);
  }
  runtime::Runtime* runtime = nullptr;
};

// One process: what it has in memory, over a directory.
class Process {
 public:
  Process(const fs::path& directory, std::shared_ptr<const runtime::AgentClass> agent_class,
          ManualLoop& loop, Logger& logger, Random& random, PresentRuntime& present)
      : loop_(loop), present_(present) {
    auto opened = storage::DataDirectory::open(directory);
    data_.emplace(std::move(opened.value()));
    runtime::RuntimeOptions options;
    options.state_frame = [](std::string_view json) { return std::string(json); };
    options.random = &random;
    std::array<runtime::ShardLoop*, 1> loops{&loop};
    runtime_ =
        std::make_unique<runtime::Runtime>(loops, *data_, logger, metrics_, std::move(options));
    present_.runtime = runtime_.get();
    serve(std::move(agent_class));
    runtime_->start_alarms();
    loop_.settle();
  }
  ~Process() {
    bool stopped = false;
    runtime_->stop(milliseconds(0), [&] { stopped = true; });
    loop_.advance(milliseconds(1));
    HEARTH_ASSERT(stopped, "the shard did not stop");
    present_.runtime = nullptr;
    runtime_.reset();
    loop_.settle();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void serve(std::shared_ptr<const runtime::AgentClass> agent_class) {
    runtime::ClassSettings settings;
    settings.idle_timeout =
        std::chrono::hours(24);  // as on the mock host, no agent is evicted for idleness
    const auto before = runtime_->classes().put(std::make_shared<runtime::ServedClass>(
        runtime::ServedClass{"parity-agent", std::move(agent_class), settings}));
    if (before) shard().migration().leave_version(before, runtime::EvictReason::kCodeUpdate, false);
    loop_.settle();
  }
  [[nodiscard]] runtime::Shard& shard() { return runtime_->shard(0); }

 private:
  ManualLoop& loop_;
  PresentRuntime& present_;
  Metrics metrics_;
  std::optional<storage::DataDirectory> data_;
  std::unique_ptr<runtime::Runtime> runtime_;
};

class RealWorld final : public parity::World {
 public:
  RealWorld() {
    process_.emplace(directory(), load(PARITY_LIBRARY), loop_, logger_, random_, present_);
    wake(watched_);
  }
  ~RealWorld() override { process_.reset(); }

  std::size_t start(const std::string& method, const Value& args) override {
    answers_.push_back(std::make_shared<Answer>());
    process_->shard().call(wake(std::make_shared<Sight>()), method, args.dump(),
                           std::make_unique<FakeSink>(answers_.back()));
    loop_.settle();
    return answers_.size() - 1;
  }
  Value answer(std::size_t call) override {
    const std::optional<std::string>& end = answers_.at(call)->end;
    if (!end) return "open";
    if (end->starts_with("ok ")) {
      const std::string body = end->substr(3);
      return {{"ok", body.empty() ? Value() : Value::parse(body)}};
    }
    return {{"error", end->substr(end->find(": ") + 2)}};
  }
  Value shown() override {
    const std::string& last = watched_->back();
    return Value::parse(last.substr(
        std::string(last.starts_with("text ") ? "text " : "handshake parity-agent/a ").size()));
  }
  void advance(int ms) override { loop_.advance(milliseconds(ms)); }
  void kill() override {
    // What is on the disk at this moment is all that the next process has.
    const fs::path before = directory();
    ++lives_;
    fs::copy(before, directory(), fs::copy_options::recursive);
    process_.reset();
    process_.emplace(directory(), class_, loop_, logger_, random_, present_);
  }
  void evict() override {
    process_->shard().evict({"ParityAgent", "a"});
    loop_.settle();
  }
  void upgrade() override { process_->serve(load(PARITY_NEXT_LIBRARY)); }
  void fire(const std::string&) override { loop_.advance(std::chrono::minutes(1)); }

 private:
  // Each call has a client of its own.
  runtime::ConnectionId wake(const std::shared_ptr<Sight>& sight) {
    runtime::ConnectRequest request;
    request.id = "me";
    request.target = "/agents/parity-agent/a";
    const runtime::ConnectionId client =
        process_->shard().connect({"ParityAgent", "a"}, "parity-agent", std::move(request),
                                  std::make_unique<FakePort>(sight));
    loop_.settle();
    return client;
  }
  std::shared_ptr<const runtime::AgentClass> load(const fs::path& library) {
    const fs::path copy = temporary_.path() / (std::to_string(generations_.size()) + ".so");
    fs::copy_file(library, copy);
    std::ifstream file(copy, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto inspection = plugins::inspect_library(std::as_bytes(std::span(text)));
    HEARTH_ASSERT(inspection.note, "the library breaks a rule");
    auto loaded =
        plugins::PluginGeneration::load(copy, library.filename(), *inspection.note, services_);
    HEARTH_ASSERT(loaded, "the library cannot be loaded");
    generations_.push_back(*loaded);
    class_ = (*loaded)->make_classes().front();
    return class_;
  }
  [[nodiscard]] fs::path directory() const {
    return temporary_.path() / ("data" + std::to_string(lives_));
  }

  hearth::testing::TempDirectory temporary_;
  hearth::testing::RecordingLogger logger_;
  hearth::testing::SeededRandom random_{7};
  SystemClock clock_;
  PresentRuntime present_;
  const extensions::AbiServices services_{
      .agents = present_, .clock = clock_, .random = random_, .logger = logger_};
  std::vector<std::shared_ptr<plugins::PluginGeneration>> generations_;
  std::shared_ptr<const runtime::AgentClass> class_;
  ManualLoop loop_;
  int lives_ = 0;
  std::optional<Process> process_;
  std::vector<std::shared_ptr<Answer>> answers_;
  const std::shared_ptr<Sight> watched_ = std::make_shared<Sight>();
};

Value scenarios() {
  return Value::parse(std::ifstream(PARITY_SCENARIOS));
}

// What the mock host shows.
Value on_the_mock_host(const std::string& scenario) {
  const std::string command = std::string(PARITY_MOCK_WORLD) + " " + PARITY_SCENARIOS + " " +
                              PARITY_LIBRARY + " " + PARITY_NEXT_LIBRARY + " " + scenario;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  HEARTH_ASSERT(pipe != nullptr, "no process for the mock host");
  std::string text;
  std::array<char, 4096> piece{};
  while (const std::size_t bytes = std::fread(piece.data(), 1, piece.size(), pipe))
    text.append(piece.data(), bytes);
  ::pclose(pipe);
  return Value::parse(text, nullptr, false);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  const Value list = scenarios();
  for (const auto& each : list.items()) all.push_back(each.key());
  return all;
}

class ParityTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ParityTest, TheMockHostAndTheRuntimeShowTheSame) {
  const Value scenario = scenarios().at(GetParam());
  RealWorld world;
  const Value real = parity::Run(world).all(scenario.at("steps"));
  const Value mock = on_the_mock_host(GetParam());
  ASSERT_TRUE(mock.is_array()) << "the mock host's program failed";
  ASSERT_EQ(real.size(), mock.size());
  for (std::size_t i = 0; i < real.size(); ++i)
    EXPECT_EQ(real[i], mock[i]) << "the runtime: " << real[i].dump()
                                << "\nthe mock host: " << mock[i].dump();
  // That both do nothing would be the same too.
  EXPECT_EQ(real.back(), scenario.at("ends_with")) << real.dump(2);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, ParityTest, ::testing::ValuesIn(names()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace hearth
