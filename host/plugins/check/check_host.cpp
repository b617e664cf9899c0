#include "plugins/check/check_host.hpp"

#include "plugins/check/check_agent.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace hearth::plugins {
namespace {

// In front of the table that the library sees, out of its reach.
struct Owner {
  CheckHost* host;
};

constexpr std::size_t kMaxBlamed = 32;

}  // namespace

CheckHost::CheckHost(std::string origin, HostVariant variant, GuardedMemory& table_memory,
                     GuardedMemory* memory)
    : variant_(std::move(variant)),
      logger_(make_stderr_logger(LogLevel::kError, LogFormat::kHuman)),
      events_(*logger_, metrics_),
      abi_(
          extensions::AbiServices{
              .agents = *this, .clock = clock_, .random = random_, .logger = *logger_},
          std::move(origin)),
      memory_(memory) {
  // A longer table is a later host's: what is behind the members that are known is none of the
  // library's business.
  std::array<std::byte, sizeof(Owner) + 4 * sizeof(hearth_host)> bytes{};
  const Owner owner{this};
  hearth_host host = watched_host();
  host.struct_size = variant_.struct_size;
  host.abi_minor = variant_.abi_minor;
  std::memcpy(bytes.data(), &owner, sizeof owner);
  std::memcpy(bytes.data() + sizeof owner, &host, sizeof host);
  const std::size_t size =
      sizeof owner + std::min<std::size_t>(variant_.struct_size, bytes.size() - sizeof owner);
  void* const copy = table_memory.keep({reinterpret_cast<const char*>(bytes.data()), size},
                                       "the host's table behind its struct_size");
  table_ = reinterpret_cast<const hearth_host*>(static_cast<std::byte*>(copy) + sizeof owner);
}

CheckHost::~CheckHost() = default;

CheckHost& CheckHost::of(const hearth_host* table) {
  Owner owner{};
  std::memcpy(&owner, reinterpret_cast<const std::byte*>(table) - sizeof owner, sizeof owner);
  return *owner.host;
}

void CheckHost::add(CheckAgent& agent) {
  agents_.emplace(agent.handle(), &agent);
}

void CheckHost::remove(CheckAgent& agent) {
  agents_.erase(agent.handle());
  if (running_ == &agent) running_ = nullptr;
}

extensions::AgentDirectory::Found CheckHost::find(extensions::AgentHandle handle) {
  // Nothing below may be looked at from elsewhere.
  if (std::this_thread::get_id() != thread_)
    return {.lookup = Lookup::kWrongThread, .agent = nullptr};
  const auto found = agents_.find(handle);
  if (found == agents_.end()) return {};
  if (running_ != found->second) return {.lookup = Lookup::kWrongThread, .agent = nullptr};
  return {.lookup = found->second->destroying ? Lookup::kClosing : Lookup::kFound,
          .agent = found->second};
}

bool CheckHost::post(extensions::AgentHandle handle, std::uint64_t token) {
  const MutexLock lock(mutex_);
  posts_.emplace_back(handle, token);
  return true;
}

std::deque<std::pair<extensions::AgentHandle, std::uint64_t>> CheckHost::take_posts() {
  const MutexLock lock(mutex_);
  return std::exchange(posts_, {});
}

void CheckHost::inject(HostFault fault) {
  fault_ = fault;
  calls_ = 0;
  fault_came_ = false;
  faulted_.clear();
}

void CheckHost::blame(std::string what) {
  const MutexLock lock(mutex_);
  if (blamed_.size() < kMaxBlamed && std::ranges::find(blamed_, what) == blamed_.end())
    blamed_.push_back(std::move(what));
}

void CheckHost::note_failure(const std::string& what) {
  if (failure_.empty()) failure_ = what;
}

std::vector<std::string> CheckHost::blamed() const {
  const MutexLock lock(mutex_);
  return blamed_;
}

void CheckHost::check_caller(const HostFunction& function, hearth_agent agent) {
  const std::string name(function.name);
  if (closed_) return blame("it calls " + name + " after deinit()");
  if (function.any_thread) return;
  if (std::this_thread::get_id() != thread_)
    return blame("it calls " + name +
                 " from a thread of its own: only post(), log and the clock may be");
  const bool existed = agent > 1000 && agent <= last_handle_;
  if (!existed) return;  // a number that was never given out: GONE says it
  const auto found = agents_.find(agent);
  if (found == agents_.end()) {
    if (!function.while_closing) blame("it calls " + name + " for an agent that is destroyed");
    return;
  }
  if (found->second != running_)
    blame("it calls " + name + " for an agent whose code is not running");
}

std::optional<hearth_status> CheckHost::enter(const HostFunction& function, hearth_agent agent) {
  check_caller(function, agent);
  if (function.any_thread || std::this_thread::get_id() != thread_) return std::nullopt;
  if (fault_.submit_only && function.name != "submit") return std::nullopt;
  ++calls_;
  if (fault_.at == 0 || calls_ != fault_.at) return std::nullopt;
  fault_came_ = true;
  faulted_ = function.name;
  return fault_.status;
}

void CheckHost::guard(const HostFunction& function, hearth_bytes* out) {
  if (memory_ == nullptr || out == nullptr || std::this_thread::get_id() != thread_) return;
  const std::string_view bytes(static_cast<const char*>(out->ptr), out->len);
  try {
    out->ptr = memory_->lend(bytes, "what " + std::string(function.name) + " gave");
  } catch (const StorageError& failure) {  // must not go through the library's code
    note_failure(failure.what());
  }
}

}  // namespace hearth::plugins
