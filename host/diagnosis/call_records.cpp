#include "diagnosis/call_records.hpp"

#include "base/forgive_leak.hpp"
#include "base/mutex.hpp"
#include "base/sha256.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include <signal.h>

namespace hearth::diagnosis {
namespace {

// The largest number of shards, and the same number of threads for jobs.
constexpr std::size_t kMaxThreads = 512;

// WorkMark::row: it is unknown which work runs. Rows count from 1.
constexpr std::int64_t kUntold = -1;

// Enough for the crash handler, also after a stack overflow.
constexpr std::size_t kSignalStackBytes = std::size_t{64} << 10;

}  // namespace

// Its thread writes it. A signal handler on that thread and all other threads read it. `number` is
// odd while a call runs. A reader that finds the same odd number before and after reading has read
// the fields of one call. Release stores keep the fields between the two changes of `number`;
// acquire loads keep the reads between the two looks at it.
struct alignas(64) CallSlot {
  std::atomic<std::uint64_t> number{0};
  std::atomic<pid_t> system_thread{0};
  std::atomic<bool> taken{false};
  std::atomic<const CallOwner*> owner{nullptr};
  std::atomic<const char*> call{nullptr};
  std::atomic<std::size_t> call_bytes{0};
  std::atomic<std::int64_t> since_ns{0};
  using Label = std::array<std::atomic<std::uint64_t>, std::tuple_size_v<AgentLabel::Words>>;
  std::atomic<std::int64_t> work_row{kUntold};
  std::atomic<std::uint64_t> work_sender{0};
  std::atomic<std::uint64_t> agent_digest{0};
  Label agent{};
  Label method{};
  std::atomic<std::uint64_t> event_number{0};
  std::array<std::atomic<std::uint64_t>, 2> trace{};
  std::atomic<std::uint64_t> span{0};
  std::atomic<std::uint8_t> trace_flags{0};
};

namespace {

constinit std::array<CallSlot, kMaxThreads> slots;
constinit thread_local CallSlot* slot_of_thread = nullptr;  // no wrapper: a handler reads it

// Held while a thread reads owners that another thread may destroy.
Mutex& owners_mutex() {
  static Mutex mutex;
  return mutex;
}

// A thread's slot and its signal stack, made at its first call. A handler runs on the signal stack
// when the thread's own stack is used up.
class ThreadRecord {
 public:
  ThreadRecord() : stack_(std::make_unique<std::byte[]>(kSignalStackBytes)) {
    stack_t fresh{};
    fresh.ss_sp = stack_.get();
    fresh.ss_size = kSignalStackBytes;
    ::sigaltstack(&fresh, &before_);
    for (CallSlot& slot : slots) {
      if (slot.taken.exchange(true, std::memory_order_acquire)) continue;
      slot.system_thread.store(::gettid(), std::memory_order_relaxed);
      slot_of_thread = &slot;
      return;
    }
  }
  ~ThreadRecord() {
    if (slot_of_thread != nullptr && slot_of_thread->number.load() % 2 != 0) {
      // The call itself ends its thread: exit() runs this destructor first. Leave the slot as it
      // is, so that later exit handlers still find the call.
      const std::byte* const kept = stack_.release();
      HEARTH_FORGIVE_LEAK(kept);
      return;
    }
    ::sigaltstack(&before_, nullptr);
    if (CallSlot* const slot = std::exchange(slot_of_thread, nullptr))
      slot->taken.store(false, std::memory_order_release);
  }
  ThreadRecord(const ThreadRecord&) = delete;
  ThreadRecord& operator=(const ThreadRecord&) = delete;

 private:
  std::unique_ptr<std::byte[]> stack_;
  stack_t before_{};
};

// Null: all slots are in use.
CallSlot* claim_slot() {
  static thread_local const ThreadRecord record;
  return slot_of_thread;
}

// Words after the end of the text are not written.
void publish(const AgentLabel& label, CallSlot::Label& into) noexcept {
  for (std::size_t i = 0; i < into.size(); ++i) {
    const std::uint64_t word = label.words()[i];
    into[i].store(word, std::memory_order_release);
    if (word == 0) return;
  }
}

void publish(const CallEvent& event, CallSlot& into) noexcept {
  into.event_number.store(event.number, std::memory_order_release);
  into.trace[0].store(event.trace[0], std::memory_order_release);
  into.trace[1].store(event.trace[1], std::memory_order_release);
  into.span.store(event.span, std::memory_order_release);
  into.trace_flags.store(event.flags, std::memory_order_release);
}

CallEvent read_event(const CallSlot& slot) noexcept {
  return {.number = slot.event_number.load(std::memory_order_acquire),
          .trace = {slot.trace[0].load(std::memory_order_acquire),
                    slot.trace[1].load(std::memory_order_acquire)},
          .span = slot.span.load(std::memory_order_acquire),
          .flags = slot.trace_flags.load(std::memory_order_acquire)};
}

void read_label(const CallSlot::Label& label, std::array<char, AgentLabel::kBytes>& into) noexcept {
  AgentLabel::Words words{};
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = label[i].load(std::memory_order_acquire);
  std::memcpy(into.data(), words.data(), into.size());
}

std::string_view text_until_zero(const std::array<char, AgentLabel::kBytes>& bytes) {
  const std::string_view all(bytes.data(), bytes.size());
  return all.substr(0, all.find('\0'));
}

// False: no call runs there, or the call ended during the read.
bool read(const CallSlot& slot, RunningCall& into) noexcept {
  const std::uint64_t number = slot.number.load(std::memory_order_acquire);
  if (number % 2 == 0) return false;
  into.owner = slot.owner.load(std::memory_order_acquire);
  const char* const call = slot.call.load(std::memory_order_acquire);
  const std::size_t call_bytes = slot.call_bytes.load(std::memory_order_acquire);
  into.since = std::chrono::nanoseconds(slot.since_ns.load(std::memory_order_acquire));
  read_label(slot.agent, into.agent_bytes);
  read_label(slot.method, into.method_bytes);
  into.agent_digest = slot.agent_digest.load(std::memory_order_acquire);
  const WorkMark work = {slot.work_row.load(std::memory_order_acquire),
                         slot.work_sender.load(std::memory_order_acquire)};
  into.work = work.row == kUntold ? std::nullopt : std::optional(work);
  into.event = read_event(slot);
  into.system_thread = slot.system_thread.load(std::memory_order_relaxed);
  into.thread = static_cast<std::uint64_t>(&slot - slots.data());
  into.number = number;
  if (slot.number.load(std::memory_order_relaxed) != number) return false;
  into.call =
      std::string_view(call, call_bytes);  // not before it is known that the two belong together
  return true;
}

}  // namespace

std::string_view write_trace(const CallEvent& event, TraceText& into) noexcept {
  if (event.span == 0) return {};
  std::size_t at = 0;
  const auto put = [&into, &at](std::uint64_t value, unsigned digits) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (unsigned left = digits; left > 0; --left)
      into[at++] = kDigits[(value >> (4 * (left - 1))) & 15U];
  };
  put(0, 2);
  into[at++] = '-';
  put(event.trace[0], 16);
  put(event.trace[1], 16);
  into[at++] = '-';
  put(event.span, 16);
  into[at++] = '-';
  put(event.flags, 2);
  return {into.data(), at};
}

CallOwner::CallOwner(std::string library_file, std::string hash, std::uint64_t version,
                     std::string class_name)
    : library(std::move(library_file)),
      sha256(std::move(hash)),
      generation(version),
      agent_class(std::move(class_name)) {}

CallOwner::~CallOwner() {
  const MutexLock wait(owners_mutex());
}

AgentLabel::AgentLabel(std::string_view name) {
  std::size_t size = std::min(name.size(), kBytes);
  const auto continues = [name](std::size_t at) {
    return at < name.size() && (static_cast<unsigned char>(name[at]) & 0xC0U) == 0x80U;
  };
  while (size > 0 && continues(size)) --size;
  std::memcpy(words_.data(), name.data(), size);
}

AgentLabel AgentLabel::with_digest(std::string_view name) {
  AgentLabel label(name);
  label.digest_ = sha256_prefix(name);
  return label;
}

CallScope::CallScope(const CallOwner& owner, std::string_view call, const AgentLabel& agent,
                     const AgentLabel& method, std::optional<WorkMark> work,
                     const CallEvent& event) noexcept
    : slot_(slot_of_thread != nullptr ? slot_of_thread : claim_slot()) {
  if (slot_ == nullptr) return;
  const std::uint64_t number = slot_->number.load(std::memory_order_relaxed);
  if (number % 2 != 0) {  // a call inside a call
    slot_ = nullptr;
    return;
  }
  slot_->owner.store(&owner, std::memory_order_release);
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): its size is stored beside it
  slot_->call.store(call.data(), std::memory_order_release);
  slot_->call_bytes.store(call.size(), std::memory_order_release);
  slot_->since_ns.store(call_clock().count(), std::memory_order_release);
  publish(agent, slot_->agent);
  publish(method, slot_->method);
  slot_->agent_digest.store(agent.digest(), std::memory_order_release);
  publish(event, *slot_);
  works_for(work);
  slot_->number.store(number + 1, std::memory_order_release);
}

void CallScope::works_for(std::optional<WorkMark> work) noexcept {
  if (slot_ == nullptr) return;
  const WorkMark mark = work.value_or(WorkMark{kUntold, 0});
  slot_->work_row.store(mark.row, std::memory_order_release);
  slot_->work_sender.store(mark.sender, std::memory_order_release);
}

CallScope::~CallScope() {
  if (slot_ == nullptr) return;
  const std::uint64_t number = slot_->number.load(std::memory_order_relaxed);
  slot_->number.store(number + 1, std::memory_order_release);
}

std::string_view RunningCall::agent() const {
  return text_until_zero(agent_bytes);
}

std::string_view RunningCall::method() const {
  return text_until_zero(method_bytes);
}

bool find_running_call(RunningCall& into) noexcept {
  return slot_of_thread != nullptr && read(*slot_of_thread, into);
}

bool has_call_record() noexcept {
  return slot_of_thread != nullptr;
}

void for_each_call(const std::function<void(const RunningCall&)>& look) {
  // An owner outlives its calls, and its destructor takes this mutex: an owner that a slot names
  // stays valid here.
  const MutexLock keep(owners_mutex());
  for (const CallSlot& slot : slots) {
    if (!slot.taken.load(std::memory_order_acquire)) continue;
    RunningCall call;
    if (read(slot, call)) look(call);
  }
}

std::chrono::nanoseconds call_clock() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace hearth::diagnosis
