#include "testhost/test_host.hpp"

#include "extensions/durable_events.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <stdlib.h>

namespace hearth::testhost {
namespace {

namespace fs = std::filesystem;

// A directory in memory if the machine has one: its files need not survive.
fs::path make_directory() {
  std::error_code ignored;
  const char* const wanted = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): read only
  fs::path parent = wanted != nullptr ? fs::path(wanted) : fs::path("/dev/shm");
  if (!fs::is_directory(parent, ignored)) parent = fs::temp_directory_path();
  std::string path = (parent / "hearth-test-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr)
    throw std::runtime_error("the test host cannot make a directory in " + parent.string());
  return path;
}

}  // namespace

TestHost::TestHost()
    : directory_(make_directory()),
      abi_(
          extensions::AbiServices{
              .agents = *this, .clock = loop_.time, .random = random_, .logger = log_},
          "test"),
      table_(extensions::watched_table(*this)) {
  log_.on_line([this](std::string_view event, std::span<const LogField> fields) {
    note_line(event, fields);
  });
}

TestHost::~TestHost() {
  if (runtime_) stop_process();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
  if (misuse_.empty()) return;
  // A destructor must not throw, but a test that has ended well must fail here.
  std::fputs((misuse_ + "\n").c_str(), stderr);
  std::abort();
}

// ---- the process --------------------------------------------------------------------------------

void TestHost::start_process() {
  auto opened = storage::DataDirectory::open(directory_ / std::to_string(process_));
  if (opened.has_error()) throw std::runtime_error(opened.error().message);
  data_.emplace(std::move(opened.value()));
  runtime::RuntimeOptions options;
  options.limits.show_failures = true;
  options.blocking_threads = 0;
  options.state_frame = [](std::string_view json) {
    return std::string(kStateFrame) + std::string(json);
  };
  options.random = &random_;
  options.http_port = [this](unsigned /*shard*/) { return &http_; };
  runtime::ShardLoop* loops[] = {&loop_};
  runtime_ = std::make_unique<runtime::Runtime>(loops, *data_, log_, metrics_, std::move(options));
  for (const auto& [name, served] : classes_) put(name);
  alive_ = std::make_shared<bool>(true);
  has_alarms_ = false;
}

void TestHost::stop_process() {
  alive_.reset();
  bool is_over = false;
  runtime_->stop(std::chrono::milliseconds(0), [&] { is_over = true; });
  while (!is_over) {
    // Both: tasks of an agent that never rests do not hold up the end.
    const bool ran_task = loop_.run_task();
    if (loop_.run_timers() || ran_task) continue;
    std::fputs("the test host's runtime does not stop\n", stderr);
    std::abort();
  }
  runtime_->stop_offloaded();
  runtime_.reset();
  while (loop_.run_task()) {
  }
  data_.reset();
}

// What is on the disk now is all that the next process has.
void TestHost::kill() {
  settle();
  if (!runtime_) return;
  for (const auto& agent : agents_) agent->lose_clients();
  const fs::path now = directory_ / std::to_string(process_);
  fs::copy(now, directory_ / std::to_string(process_ + 1), fs::copy_options::recursive);
  ++process_;
  stop_process();
  fs::remove_all(now);
}

// ---- classes and agents -------------------------------------------------------------------------

void TestHost::put(const std::string& agent_class) {
  if (!runtime_) return;  // start_process() does it
  const Served& served = classes_.at(agent_class);
  runtime::ClassSettings settings;
  settings.serial_calls = served.serial;
  settings.idle_timeout = std::chrono::hours(24 * 365 * 10);  // a test decides when agents leave
  const auto before = runtime_->classes().put(std::make_shared<runtime::ServedClass>(
      runtime::ServedClass{segment_of(agent_class), served.code, std::move(settings)}));
  if (before) shard().versions().leave(before, runtime::EvictReason::kCodeUpdate, false);
}

void TestHost::serve(const std::string& agent_class, const hearth_class& definition) {
  const auto found = classes_.find(agent_class);
  if (found != classes_.end() && &found->second.code->definition() == &definition) return;
  Instances& instances = *this;
  classes_[agent_class].code = std::make_shared<TestClass>(definition, agent_class, instances);
  put(agent_class);
  settle();
}

void TestHost::set_serial(const std::string& agent_class, bool serial) {
  if (std::exchange(classes_.at(agent_class).serial, serial) == serial) return;
  put(agent_class);
  settle();
}

TestAgent& TestHost::agent_at(const storage::AgentKey& key) {
  const auto same = [&](const auto& agent) { return agent->key() == key; };
  const auto found = std::ranges::find_if(agents_, same);
  if (found != agents_.end()) return **found;
  agents_.push_back(std::make_unique<TestAgent>(*this, key));
  return *agents_.back();
}

TestAgent& TestHost::agent_of(const hearth_class& definition, const storage::AgentKey& key,
                              std::string options) {
  serve(key.agent_class, definition);
  TestAgent& agent = agent_at(key);
  agent.set_options(std::move(options));
  return agent;
}

testing::detail::MockAgent& TestHost::add(const hearth_class& definition, std::string agent_class,
                                          std::string name, std::string options) {
  return agent_of(definition, {std::move(agent_class), std::move(name)}, std::move(options));
}

// ---- time ---------------------------------------------------------------------------------------

bool TestHost::step() {
  return loop_.run_task() || http_.step() ||
         (!hold_offload_ && runtime_ && runtime_->run_offloaded());
}

void TestHost::settle() {
  constexpr int kMostSteps = 100'000;
  for (const auto& agent : agents_) agent->end_turn();
  for (int steps = 0; step(); ++steps) {
    if (steps > kMostSteps)
      throw std::runtime_error("the agents do not come to rest: something repeats without waiting");
  }
  for (const auto& agent : agents_) agent->show_clients();
  if (!misuse_.empty()) throw std::logic_error(std::exchange(misuse_, {}));
  if (!failure_.empty()) throw std::runtime_error(std::exchange(failure_, {}));
}

void TestHost::advance_by(std::chrono::nanoseconds time) {
  // From the first moment that passes: a test may look at what a kill has left.
  runtime::Shard& shard = this->shard();
  if (!std::exchange(has_alarms_, true)) shard.start_alarms();
  const SteadyTime target = loop_.time.steady_now() + time;
  const auto run_due = [this] {
    do settle();
    while (loop_.run_timers());
  };
  run_due();
  for (;;) {
    SteadyTime next = target;
    for (const auto& due : {loop_.next_due(), http_.next_due()}) {
      if (due) next = std::min(next, *due);
    }
    loop_.time.advance_to(next);
    run_due();
    if (next >= target) return;
  }
}

void TestHost::fire(std::string_view schedule) {
  for (std::size_t each = 0; each < agents_.size(); ++each) {
    const auto due_ms = agents_[each]->due_of(schedule);
    if (!due_ms) continue;
    const std::int64_t wait_ms = *due_ms - unix_millis(loop_.time.wall_now());
    return advance_by(std::chrono::milliseconds(std::max<std::int64_t>(wait_ms, 0)));
  }
  throw std::runtime_error("no agent has a schedule with the id " + std::string(schedule));
}

void TestHost::hold_offload(bool hold) {
  hold_offload_ = hold;
  if (!hold) settle();
}

void TestHost::note_line(std::string_view event, std::span<const LogField> fields) {
  const std::string agent_class(field(fields, "class"));
  const std::string name(field(fields, "agent"));
  if (name.empty()) return;
  TestAgent& agent = agent_at({agent_class, name});
  const std::string error(field(fields, "error"));
  if (event == "agent.log") {
    const std::string_view text = field(fields, "text");
    if (text.starts_with("misuse: ")) misused(std::string(text));
  } else if (event == "agent.storage_failed") {
    failure_ = "the agent's storage has failed: " + error;
  } else if (event == "agent.start_failed") {
    agent.note_failed_start(error);
  } else if (event == "agent.destroyed") {
    agent.note_destroyed();
  } else if (std::ranges::find(extensions::kDurableEvents, event,
                               &extensions::DurableEventTraits::name) !=
             extensions::kDurableEvents.end()) {
    const std::string_view detail = field(fields, "detail");
    agent.note_step(std::string(event) + (detail.empty() ? "" : " " + std::string(detail)));
  }
}

// ---- instances ----------------------------------------------------------------------------------

std::string TestHost::came(TestInstance& instance) {
  instances_[instance.host().handle()] = &instance;
  TestAgent& agent = agent_at(instance.host().key());
  agent.came(instance);
  return agent.options();
}

void TestHost::left(TestInstance& instance) {
  instances_.erase(instance.host().handle());
  agent_at(instance.host().key()).left(instance);
}

void TestHost::misused(std::string what) {
  if (misuse_.empty()) misuse_ = std::move(what);
}

// Unlike in a server, also from outside of a call into the instance: the test may use the object.
extensions::AgentDirectory::Found TestHost::find(extensions::AgentHandle handle) {
  if (!loop_.on_this_thread()) return {.lookup = Lookup::kWrongThread, .agent = nullptr};
  const auto found = instances_.find(handle);
  if (found == instances_.end()) return {};
  const TestInstance& instance = *found->second;
  return {.lookup = instance.is_going() ? Lookup::kClosing : Lookup::kFound,
          .agent = &instance.host()};
}

bool TestHost::post(extensions::AgentHandle handle, std::uint64_t token) {
  return runtime_ != nullptr && runtime_->post(handle, token);
}

// ---- what is watched ----------------------------------------------------------------------------

TestInstance* TestHost::instance_of(const extensions::AbiCall& call) {
  if (call.function.any_thread || !loop_.on_this_thread()) return nullptr;
  const auto found = instances_.find(call.agent);
  return found == instances_.end() ? nullptr : found->second;
}

std::optional<hearth_status> TestHost::enter(const extensions::AbiCall& call) {
  TestInstance* const instance = instance_of(call);
  if (instance == nullptr) return std::nullopt;
  instance->function_begins(call.statement);
  const std::string_view name = call.function.name;
  const auto fail = [&](hearth_status status, std::string_view what) {
    if (status == HEARTH_OK || instance->is_going()) return std::optional<hearth_status>();
    instance->host().last_error = std::string(what) + " fails in this test";
    return std::optional(status);
  };
  if (name == "submit") return fail(submit_status_, "submit");
  if (name == "hearth.fibers/1 start") return fail(start_fiber_status_, "start");
  if (name == "hearth.fibers/1 resume") return fail(start_fiber_status_, "resume");
  return std::nullopt;
}

void TestHost::lent(const extensions::AbiCall& call, hearth_bytes* bytes) {
  TestInstance* const instance = instance_of(call);
  if (instance == nullptr || bytes == nullptr) return;
  *bytes = instance->lend({static_cast<const char*>(bytes->ptr), bytes->len}, call.statement);
}

void TestHost::left(const extensions::AbiCall& call) {
  if (TestInstance* const instance = instance_of(call)) instance->function_ends(call.statement);
}

}  // namespace hearth::testhost

namespace hearth::testing::detail {

std::unique_ptr<MockHost> MockHost::make() {
  return std::make_unique<testhost::TestHost>();
}

}  // namespace hearth::testing::detail
