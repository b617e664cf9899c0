#include "mock/mock_host.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <stdlib.h>

namespace hearth::mock {
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
    throw std::runtime_error("the mock host cannot make a directory in " + parent.string());
  return path;
}

// "ChatRoom" and "chat-room" are the same class.
std::string letters_of(std::string_view agent_class) {
  std::string letters;
  for (const char c : agent_class) {
    if (c == '-' || c == '_') continue;
    letters += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return letters;
}

}  // namespace

MockHost::MockHost()
    : directory_(make_directory()),
      abi_(extensions::AbiServices{.agents = *this,
                                   .clock = world_.clock,
                                   .random = world_.random,
                                   .logger = world_.log},
           "test"),
      table_(extensions::watched_table(*this)) {
  world_.table = &table_.host;
  world_.agents = &router_;
  world_.sub_agents = &sub_agents_;
  world_.agent_of = [this](const hearth_class& definition, storage::AgentKey key,
                           std::string options) -> StoredAgent& {
    return agent_of(definition, std::move(key), std::move(options));
  };
  world_.settle = [this] { settle(); };
  world_.advance = [this](std::chrono::nanoseconds time) { advance_by(time); };
}

MockHost::~MockHost() {
  agents_.clear();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
  if (world_.misuse.empty()) return;
  // A destructor must not throw, but a test that has ended well must fail here.
  std::fputs((world_.misuse + "\n").c_str(), stderr);
  std::abort();
}

testing::detail::MockAgent& MockHost::add(const hearth_class& definition, std::string agent_class,
                                          std::string name, std::string options) {
  return agent_of(definition, {std::move(agent_class), std::move(name)}, std::move(options));
}

StoredAgent& MockHost::agent_of(const hearth_class& definition, storage::AgentKey key,
                                std::string options) {
  const auto called = std::ranges::find(called_, key, &StoredAgent::key);
  if (called != called_.end()) {
    StoredAgent& agent = **called;
    called_.erase(called);
    return agent;
  }
  agents_.push_back(std::make_unique<StoredAgent>(
      world_, definition, directory_ / (std::to_string(agents_.size()) + ".db"), std::move(key),
      std::move(options)));
  return *agents_.back();
}

StoredAgent* MockHost::find_callee(const extensions::AgentCall& call) {
  const std::string wanted = letters_of(call.agent_class);
  StoredAgent* sibling = nullptr;
  for (const auto& agent : agents_) {
    if (letters_of(agent->key().agent_class) != wanted) continue;
    if (agent->key().name == call.name) return agent.get();
    sibling = agent.get();
  }
  if (sibling == nullptr || call.must_exist) return nullptr;
  agents_.push_back(std::make_unique<StoredAgent>(
      world_, sibling->definition(), directory_ / (std::to_string(agents_.size()) + ".db"),
      storage::AgentKey{sibling->key().agent_class, call.name}, "{}"));
  called_.push_back(agents_.back().get());
  return agents_.back().get();
}

Result<std::string> MockHost::class_name(std::string_view named) const {
  const std::string wanted = letters_of(named);
  for (const auto& agent : agents_) {
    if (letters_of(agent->key().agent_class) == wanted) return agent->key().agent_class;
  }
  return Error{Errc::kNotFound, "this test has no agent of class " + std::string(named)};
}

// ---- time ---------------------------------------------------------------------------------------

void MockHost::settle() {
  constexpr int kMostRounds = 100'000;
  for (const auto& agent : agents_) agent->end_turn();
  for (int round = 0; round < kMostRounds; ++round) {
    if (!world_.misuse.empty()) throw std::logic_error(std::exchange(world_.misuse, {}));
    if (!step()) return;
  }
  throw std::runtime_error("the agents do not come to rest: something repeats without waiting");
}

bool MockHost::step() {
  if (!world_.soon.empty()) {
    const auto next = std::move(world_.soon.front());
    world_.soon.pop_front();
    next();
    return true;
  }
  if (deliver_post() || world_.http.step() || router_.step()) return true;
  // In turn: an agent that always has a step to take does not delay the others.
  for (std::size_t each = 0; each < agents_.size(); ++each) {
    turn_ = (turn_ + 1) % agents_.size();
    if (agents_[turn_]->step()) return true;
  }
  return false;
}

bool MockHost::deliver_post() {
  std::pair<extensions::AgentHandle, std::uint64_t> post;
  {
    const MutexLock lock(mutex_);
    if (posts_.empty()) return false;
    post = posts_.front();
    posts_.pop_front();
  }
  if (LiveInstance* const instance = find_instance(post.first)) instance->deliver_post(post.second);
  return true;
}

void MockHost::set_wall(std::int64_t unix_ms) {
  const bool is_back = unix_ms < unix_millis(world_.clock.wall_now());
  world_.clock.set_wall(unix_ms);
  if (!is_back) return;
  for (const auto& agent : agents_) agent->clock_was_set_back(unix_ms);
}

void MockHost::advance(std::uint64_t nanoseconds) {
  advance_by(std::chrono::nanoseconds(nanoseconds));
}

void MockHost::advance_by(std::chrono::nanoseconds time) {
  const auto wake_those_due = [this] {
    for (const auto& agent : agents_) agent->wake_if_due();
    settle();
  };
  const SteadyTime target = world_.clock.steady_now() + time;
  wake_those_due();
  for (;;) {
    SteadyTime next = target;
    for (const auto& due : {world_.http.next_due(), router_.next_due()}) {
      if (due && *due > world_.clock.steady_now()) next = std::min(next, *due);
    }
    for (const auto& agent : agents_) {
      const auto due = agent->next_due();
      if (due && *due > world_.clock.steady_now()) next = std::min(next, *due);
    }
    world_.clock.advance_to(next);
    wake_those_due();
    if (next >= target) return;
  }
}

void MockHost::fire(std::string_view schedule) {
  for (const auto& agent : agents_) {
    const auto due_ms = agent->due_of(schedule);
    if (!due_ms) continue;
    const std::int64_t wait_ms = *due_ms - unix_millis(world_.clock.wall_now());
    return advance_by(std::chrono::milliseconds(std::max<std::int64_t>(wait_ms, 0)));
  }
  throw std::runtime_error("no agent has a schedule with the id " + std::string(schedule));
}

void MockHost::hold_offload(bool hold) {
  world_.hold_offload = hold;
  if (!hold) settle();
}

// ---- instances ----------------------------------------------------------------------------------

void MockHost::add(LiveInstance& instance) {
  instances_.emplace(instance.handle(), &instance);
}

void MockHost::remove(const LiveInstance& instance) {
  instances_.erase(instance.handle());
}

LiveInstance* MockHost::find_instance(extensions::AgentHandle handle) {
  const auto found = instances_.find(handle);
  return found == instances_.end() ? nullptr : found->second;
}

extensions::AgentDirectory::Found MockHost::find(extensions::AgentHandle handle) {
  if (!on_its_thread()) return {.lookup = Lookup::kWrongThread, .agent = nullptr};
  LiveInstance* const instance = find_instance(handle);
  if (instance == nullptr) return {};
  return {.lookup = instance->closing() ? Lookup::kClosing : Lookup::kFound, .agent = instance};
}

bool MockHost::post(extensions::AgentHandle handle, std::uint64_t token) {
  const MutexLock lock(mutex_);
  posts_.emplace_back(handle, token);
  return true;
}

// ---- what is watched ----------------------------------------------------------------------------

LiveInstance* MockHost::instance_of(const extensions::AbiCall& call) {
  if (call.function.any_thread || !on_its_thread()) return nullptr;
  return find_instance(call.agent);
}

std::optional<hearth_status> MockHost::enter(const extensions::AbiCall& call) {
  LiveInstance* const instance = instance_of(call);
  if (instance == nullptr) return std::nullopt;
  instance->function_begins(call.statement);
  const std::string_view name = call.function.name;
  const auto fail = [&](hearth_status status, std::string_view what) {
    if (status == HEARTH_OK || instance->closing()) return std::optional<hearth_status>();
    instance->last_error = std::string(what) + " fails in this test";
    return std::optional(status);
  };
  if (name == "submit") return fail(submit_status_, "submit");
  if (name == "hearth.fibers/1 start") return fail(start_fiber_status_, "start");
  if (name == "hearth.fibers/1 resume") return fail(start_fiber_status_, "resume");
  return std::nullopt;
}

void MockHost::lent(const extensions::AbiCall& call, hearth_bytes* bytes) {
  LiveInstance* const instance = instance_of(call);
  if (instance == nullptr || bytes == nullptr) return;
  *bytes = instance->lend({static_cast<const char*>(bytes->ptr), bytes->len}, call.statement);
}

void MockHost::left(const extensions::AbiCall& call) {
  if (LiveInstance* const instance = instance_of(call)) instance->function_ends(call.statement);
}

}  // namespace hearth::mock

namespace hearth::testing::detail {

std::unique_ptr<MockHost> MockHost::make() {
  return std::make_unique<mock::MockHost>();
}

}  // namespace hearth::testing::detail
