#include "scenarios/runtime_world.hpp"

#include "plugins/admission/file_rules.hpp"

#include <array>
#include <fstream>
#include <utility>

namespace hearth::scenarios {

namespace fs = std::filesystem;
using runtime::testing::Answer;
using runtime::testing::FakePort;
using runtime::testing::FakeSink;
using runtime::testing::Sight;
using std::chrono::milliseconds;

namespace {

const storage::AgentKey kDiary{"Diary", "a"};

}  // namespace

RuntimeWorld::PresentProcess::Found RuntimeWorld::PresentProcess::find(
    runtime::AgentHandle handle) {
  return runtime == nullptr ? Found{} : runtime->find(handle);
}

bool RuntimeWorld::PresentProcess::post(runtime::AgentHandle handle, std::uint64_t token) {
  return runtime != nullptr && runtime->post(handle, token);
}

RuntimeWorld::RuntimeWorld(Beginning beginning) : at_(std::move(beginning)) {
  loop_.advance(at_.passed);
  start_process();
  if (at_.life == 0) connect(watched_);
}

RuntimeWorld::~RuntimeWorld() {
  stop_process();
}

// ---- the process --------------------------------------------------------------------------------

fs::path RuntimeWorld::data() const {
  return at_.directory / (at_.keeps_directory ? "data" : "data" + std::to_string(at_.life));
}

void RuntimeWorld::start_process() {
  random_ = std::make_unique<testing::SeededRandom>(7 + at_.life);
  metrics_ = std::make_unique<Metrics>();
  auto opened = storage::DataDirectory::open(data());
  HEARTH_ASSERT(opened, "the data directory cannot be opened");
  data_.emplace(std::move(opened.value()));
  runtime::RuntimeOptions options;
  options.state_frame = [](std::string_view json) { return std::string(json); };
  options.random = random_.get();
  std::array<runtime::ShardLoop*, 1> loops{&loop_};
  runtime_ =
      std::make_unique<runtime::Runtime>(loops, *data_, logger_, *metrics_, std::move(options));
  present_.runtime = runtime_.get();
  load_class();
  serve();
  runtime_->start_alarms();
  loop_.settle();
}

void RuntimeWorld::stop_process() {
  bool is_over = false;
  runtime_->stop(milliseconds(0), [&] { is_over = true; });
  loop_.settle();
  HEARTH_ASSERT(is_over, "the shard did not stop");
  present_.runtime = nullptr;
  runtime_.reset();
  loop_.settle();
}

void RuntimeWorld::load_class() {
  const fs::path library(at_.is_upgraded ? SCENARIO_NEXT_LIBRARY : SCENARIO_LIBRARY);
  const fs::path copy = at_.directory / (std::to_string(generations_.size()) + "-" +
                                         std::to_string(at_.life) + ".so");
  fs::copy_file(library, copy);
  std::string text(fs::file_size(copy), '\0');
  std::ifstream(copy, std::ios::binary)
      .read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto inspection = plugins::inspect_library(std::as_bytes(std::span(text)));
  HEARTH_ASSERT(inspection.note, "the library breaks a rule");
  const extensions::AbiServices services{
      .agents = present_, .clock = clock_, .random = *random_, .logger = logger_};
  auto loaded =
      plugins::PluginGeneration::load(copy, library.filename(), *inspection.note, services);
  HEARTH_ASSERT(loaded, "the library cannot be loaded");
  generations_.push_back(*loaded);
  class_ = (*loaded)->make_classes().front();
}

void RuntimeWorld::serve() {
  runtime::ClassSettings settings;
  settings.idle_timeout = std::chrono::hours(24 * 365);  // a scenario says when the agent leaves
  const auto before = runtime_->classes().put(
      std::make_shared<runtime::ServedClass>(runtime::ServedClass{"diary", class_, settings}));
  if (before) shard().versions().leave(before, runtime::EvictReason::kCodeUpdate, false);
  loop_.settle();
}

runtime::ConnectionId RuntimeWorld::connect(const std::shared_ptr<Sight>& sight) {
  runtime::ConnectRequest request;
  request.id = "me";
  request.target = "/agents/diary/a";
  const runtime::ConnectionId client =
      shard().connect(kDiary, "diary", std::move(request), std::make_unique<FakePort>(sight));
  loop_.settle();
  return client;
}

// ---- steps --------------------------------------------------------------------------------------

// Each call has a client of its own.
std::size_t RuntimeWorld::start(const std::string& method, const Value& args) {
  answers_.push_back(std::make_shared<Answer>());
  shard().call(connect(std::make_shared<Sight>()), method, args.dump(),
               std::make_unique<FakeSink>(answers_.back()));
  loop_.settle();
  return answers_.size() - 1;
}

Value RuntimeWorld::answer(std::size_t call) {
  const std::optional<std::string>& end = answers_.at(call)->end;
  if (!end) return "open";
  if (end->starts_with("ok ")) {
    const std::string body = end->substr(3);
    return {{"ok", body.empty() ? Value() : Value::parse(body)}};
  }
  return {{"error", end->substr(end->find(": ") + 2)}};
}

Value RuntimeWorld::shown() {
  const std::string& last = watched_->back();
  return Value::parse(
      last.substr(std::string(last.starts_with("text ") ? "text " : "handshake diary/a ").size()));
}

void RuntimeWorld::advance(int ms) {
  loop_.advance(milliseconds(ms));
}

void RuntimeWorld::kill() {
  const fs::path before = data();
  ++at_.life;
  fs::copy(before, data(), fs::copy_options::recursive);
  for (auto& answer : answers_) {
    if (!answer->end) answer = std::make_shared<Answer>();
  }
  const auto sight = std::exchange(*watched_, {});
  stop_process();
  *watched_ = sight;
  start_process();
}

void RuntimeWorld::evict() {
  shard().admin().evict(kDiary);
  loop_.settle();
}

void RuntimeWorld::upgrade() {
  at_.is_upgraded = true;
  load_class();
  serve();
}

}  // namespace hearth::scenarios
