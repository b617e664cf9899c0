#include "plugins/check/check_host.hpp"

#include "plugins/check/check_agent.hpp"
#include "telemetry/stderr_logger.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace hearth::plugins {
namespace {

constexpr std::size_t kMaxBlamed = 32;

}  // namespace

void CheckRandom::fill(std::span<std::byte> out) {
  const MutexLock lock(mutex_);
  for (std::byte& each : out) each = static_cast<std::byte>(engine_());
}

CheckHost::CheckHost(std::string origin, HostVariant variant, GuardedMemory& table_memory,
                     GuardedMemory* memory, std::uint64_t seed)
    : variant_(std::move(variant)),
      random_(seed),
      logger_(make_stderr_logger(LogLevel::kError, LogFormat::kHuman)),
      events_(*logger_),
      abi_(
          extensions::AbiServices{
              .agents = *this, .clock = clock_, .random = random_, .logger = *logger_},
          std::move(origin)),
      memory_(memory) {
  // A longer table is from a later host: the library must not use what is behind the known members.
  constexpr std::size_t kInFront = offsetof(extensions::WatchedTable, host);
  std::array<std::byte, sizeof(extensions::WatchedTable) + 3 * sizeof(hearth_host)> bytes{};
  extensions::WatchedTable table = extensions::watched_table(*this);
  table.host.struct_size = variant_.struct_size;
  table.host.abi_minor = variant_.abi_minor;
  std::memcpy(bytes.data(), &table, sizeof table);
  const std::size_t size =
      kInFront + std::min<std::size_t>(variant_.struct_size, bytes.size() - kInFront);
  void* const copy = table_memory.keep({reinterpret_cast<const char*>(bytes.data()), size},
                                       "the host's table behind its struct_size");
  table_ = reinterpret_cast<const hearth_host*>(static_cast<std::byte*>(copy) + kInFront);
}

CheckHost::~CheckHost() = default;

void CheckHost::add(CheckAgent& agent) {
  agents_.emplace(agent.handle(), &agent);
}

void CheckHost::remove(CheckAgent& agent) {
  agents_.erase(agent.handle());
  if (running_ == &agent) running_ = nullptr;
}

extensions::AgentDirectory::Found CheckHost::find(extensions::AgentHandle handle) {
  // Other threads must not read the members below.
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

void CheckHost::check_caller(const extensions::AbiCall& call) {
  const extensions::AbiFunction& function = call.function;
  const std::string name(function.name);
  if (closed_) return blame("it calls " + name + " after deinit()");
  if (function.any_thread) return;
  if (std::this_thread::get_id() != thread_)
    return blame("it calls " + name +
                 " from a thread of its own: only post(), log and the clock may be");
  const bool existed = call.agent > 1000 && call.agent <= last_handle_;
  if (!existed) return;  // an unknown handle: the library gets GONE
  const auto found = agents_.find(call.agent);
  if (found == agents_.end()) {
    if (!function.while_closing) blame("it calls " + name + " for an agent that is destroyed");
    return;
  }
  if (found->second != running_)
    blame("it calls " + name + " for an agent whose code is not running");
}

bool CheckHost::has_extension(std::string_view id) const {
  return variant_.has_extensions && !variant_.hidden.contains(id);
}

std::optional<hearth_status> CheckHost::enter(const extensions::AbiCall& call) {
  const extensions::AbiFunction& function = call.function;
  check_caller(call);
  if (function.any_thread || std::this_thread::get_id() != thread_) return std::nullopt;
  if (fault_.submit_only && function.name != "submit") return std::nullopt;
  ++calls_;
  if (fault_.at == 0 || calls_ != fault_.at) return std::nullopt;
  faulted_ = function.name;
  return fault_.status;
}

void CheckHost::lent(const extensions::AbiCall& call, hearth_bytes* out) {
  if (memory_ == nullptr || out == nullptr || std::this_thread::get_id() != thread_) return;
  const std::string_view bytes(static_cast<const char*>(out->ptr), out->len);
  try {
    out->ptr = memory_->lend(bytes, "what " + std::string(call.function.name) + " gave");
  } catch (const StorageError& failure) {  // must not pass through the library's code
    note_failure(failure.what());
  }
}

}  // namespace hearth::plugins
