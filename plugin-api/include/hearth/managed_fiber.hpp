#pragma once
// Managed fibers: fibers with a record that outlives them. Who asked for the work, how far it is,
// what came out.
//
//     auto work = [this, order](hearth::FiberContext& fiber) { return charge(fiber, order); };
//     const auto started = start_fiber("charge", work, {.idempotency_key = order.id, .input =
//     order}); if (started.accepted) log.info("order ", order.id, " is being charged");   // else
//     somebody has asked before const hearth::FiberRecord record = co_await
//     wait_fiber(started.record.id);
//     co_return record.result_as<Receipt>();
//
// Promises  All that fiber.hpp promises of a fiber. The record is there before the work begins; its
//           end is written in the transaction of the work's last writes, and nothing undoes it:
//           finished work is never offered again, a late end does not undo a cancel. The same key
//           is accepted once; with another name or input it is a CONFLICT.
// Value     What the function gives is stored as JSON. What it throws is the error; with
//           max_retries its function is called again after a wait, in this instance or (as
//           on_fiber_recovered, reason "retry") in a later one.
// Recovery  on_fiber_recovered gets the record in `fiber.managed`, and goes on with
//           continue_fiber(), under the same id; or says with settle_fiber() what came of it. If it
//           does neither the record is "interrupted", until resolve_fiber() or retry_fiber().
// Bounded   The class's YAML: fibers.max_records; they go after fibers.keep_completed and
//           fibers.keep_failed. Input, metadata and result: limits.max_value each.

#include <hearth/detail/activation.hpp>
#include <hearth/ext/managed_fibers.h>
#include <hearth/fiber.hpp>
#include <hearth/fiber_record.hpp>
#include <hearth/retry.hpp>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

// The id or key names a record that is settled.
enum class FiberPolicy : std::uint32_t {
  kJoin = HEARTH_FIBER_JOIN,        // that record is the answer
  kReject = HEARTH_FIBER_REJECT,    // HostError(CONFLICT)
  kReplace = HEARTH_FIBER_REPLACE,  // it goes, and a new one begins
};

struct FiberOptions {
  std::optional<std::string> id = std::nullopt;               // nullopt: the host makes one
  std::optional<std::string> idempotency_key = std::nullopt;  // both: 1 to 256 bytes
  Json input = nullptr;     // kept for recovery: what the work needs to begin anew
  Json metadata = nullptr;  // for people and lists
  FiberPolicy policy = FiberPolicy::kJoin;
  int max_retries = 0;  // how often the work begins again after it has failed
  // The wait before that doubles with each failure, plus up to a quarter at random.
  std::chrono::milliseconds retry_delay{1'000};
  std::chrono::milliseconds max_retry_delay{300'000};
};

struct StartedFiber {
  bool accepted = false;  // false: `record` was there before
  FiberRecord record;     // of a new one: pending, as it was accepted
};

// What list_fibers() and delete_fibers() look for. A field left alone does not restrict.
struct FiberFilter {
  std::vector<FiberStatus> statuses = {};  // any of these
  std::string name = {};
  std::optional<Time> before = std::nullopt;  // created before
  std::string after = {};                     // list: an id: those that come after it
  std::uint32_t limit = 0;                    // list: 1 to 100, 0: 50; delete: 1 to 500, 0: 100
  bool dead = false;                          // only those whose recovery was given up
};

// A fiber whose recovery was given up, managed or not. retry_fiber() has it recovered once more.
struct DeadFiber {
  std::string id;
  std::string name;
  Json snapshot;
  Time created_at;
  int attempts = 0;
  std::string last_error;
  bool managed = false;
};

namespace detail {

// Waits for the record of a fiber to be settled.
class [[nodiscard]] SettledAwaiter final : public Waiter {
 public:
  SettledAwaiter(Activation& activation, std::string id)
      : activation_(activation), id_(std::move(id)) {}
  ~SettledAwaiter() {
    std::erase_if(activation_.settled_waiters(),
                  [this](const auto& each) { return each.second == this; });
    activation_.withdraw(*this);
  }
  SettledAwaiter(const SettledAwaiter&) = delete;
  SettledAwaiter& operator=(const SettledAwaiter&) = delete;

  [[nodiscard]] bool await_ready();
  void await_suspend(std::coroutine_handle<> waiting) {
    context_ = activation_.context();
    waiting_ = waiting;
    activation_.settled_waiters().emplace(id_, this);
  }
  FiberRecord await_resume() {
    if (gone_) throw Error(HEARTH_E_GONE, "the record of this managed fiber was removed");
    return std::move(record_);
  }

  void settled(const FiberRecord& record) {
    record_ = record;
    activation_.release(*this);
  }
  void gone() {
    gone_ = true;
    activation_.release(*this);
  }
  void resume() override {
    const Activation::Scope scope(activation_, context_);
    waiting_.resume();  // may destroy this awaiter
  }

 private:
  Activation& activation_;
  std::string id_;
  Context context_;
  std::coroutine_handle<> waiting_;
  FiberRecord record_;
  bool gone_ = false;
};

// Nothing changes `record` any more: whoever waits for it goes on, and its function is not needed.
inline void fiber_settled(Activation& activation, const FiberRecord& record) {
  activation.kept_work().erase(record.id);
  auto& waiters = activation.settled_waiters();
  const auto [first, last] = waiters.equal_range(record.id);
  for (auto each = first; each != last; ++each) each->second->settled(record);
  waiters.erase(first, last);
}

inline const hearth_managed_fibers_v1& managed_table(const Activation& activation) {
  return need(activation.tables().managed_fibers, HEARTH_EXT_MANAGED_FIBERS);
}

// By id or by key; the other is empty.
inline std::optional<FiberRecord> find_managed(const Activation& activation, std::string_view id,
                                               std::string_view key) {
  hearth_bytes record = {nullptr, 0};
  const hearth_status status =
      managed_table(activation)
          .inspect(activation.host(), activation.id(), slice(id), slice(key), &record);
  if (!found(activation, status, "inspect fiber")) return std::nullopt;
  return read_fiber(parse_record(view(record)));
}

// Records are about to be removed, and the host tells nobody of those any more: whoever waits for
// one that is settled gets it now, as the host still knows it. One look a fiber that is waited for.
inline void tell_waiters(Activation& activation) {
  auto& waiters = activation.settled_waiters();
  for (auto each = waiters.begin(); each != waiters.end();) {
    const std::string id = each->first;
    const auto next = waiters.upper_bound(id);
    if (const auto record = find_managed(activation, id, {}); !record) {
      for (auto waiter = each; waiter != next; ++waiter) waiter->second->gone();
      waiters.erase(each, next);
    } else if (record->settled()) {
      fiber_settled(activation, *record);
    }
    each = next;
  }
}

inline bool SettledAwaiter::await_ready() {
  auto record = find_managed(activation_, id_, {});
  if (!record) throw Error(HEARTH_E_NOT_FOUND, "no managed fiber has this id");
  record_ = std::move(*record);
  return record_.settled();
}

inline FiberRow resume_managed(Activation& activation, const RecoveredFiber& fiber) {
  FiberRow row;
  activation.check(managed_table(activation)
                       .resume(activation.host(), activation.id(),
                               slice(std::string_view(fiber.id)), &row.handle),
                   "resume fiber");
  row.id = fiber.id;
  row.name = fiber.name;
  row.snapshot = fiber.snapshot;
  row.managed = true;
  return row;
}

// With the turn of the work's last writes. A result that is no JSON, or too large for the host, is
// a failure of the work.
inline void FiberRoot::settle() noexcept {
  Activation& live = activation();
  const auto settle_as = [&](std::uint32_t status, const std::string& body, hearth_bytes& record) {
    return live.tables().managed_fibers->settle(live.host(), live.id(), fiber_.row_.handle, status,
                                                slice(std::string_view(body)), &record);
  };
  hearth_bytes record = {nullptr, 0};
  hearth_status status = HEARTH_OK;
  if (!error_) {
    try {
      status = settle_as(HEARTH_FIBER_COMPLETED, result(), record);
      if (status == HEARTH_E_INVALID || status == HEARTH_E_LIMIT)
        throw Error(status, live.last_error(status, "store the result"));
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  if (error_) status = settle_as(HEARTH_FIBER_ERROR, why(), record);
  settled_before_ = status == HEARTH_E_GONE;
  if (settled_before_) return;
  if (status < 0)
    return live.log(HEARTH_LOG_ERROR, live.last_error(status, "settle fiber " + fiber_.name()));
  const FiberRecord settled = read_fiber(parse_record(view(record)));
  if (settled.settled())
    fiber_settled(live, settled);
  else
    live.kept_work()[settled.id] = keep();
}

// Completes the event, and keeps what the hook refers to.
class DeliverSettled {
 public:
  explicit DeliverSettled(std::unique_ptr<const FiberRecord> fiber) : fiber_(std::move(fiber)) {}
  void operator()(Activation& activation, const Context& context) const {
    activation.complete(context.call, HEARTH_OK, {});
  }

 private:
  std::unique_ptr<const FiberRecord> fiber_;
};

// The same for on_fibers_recovered.
class DeliverPlan {
 public:
  explicit DeliverPlan(std::unique_ptr<const std::vector<InterruptedFiber>> fibers)
      : fibers_(std::move(fibers)) {}
  void operator()(Activation& activation, const Context& context, const RecoveryPlan& plan) const {
    const Json body = {{"order", plan.order}, {"parallel", plan.parallel}};
    activation.complete(context.call, HEARTH_OK, to_text(body));
  }

 private:
  std::unique_ptr<const std::vector<InterruptedFiber>> fibers_;
};

inline hearth_fiber_filter to_fiber_filter(const FiberFilter& filter) {
  hearth_fiber_filter wanted = {};
  wanted.struct_size = sizeof wanted;
  for (const FiberStatus status : filter.statuses)
    wanted.statuses |= static_cast<std::uint32_t>(status);
  wanted.name = slice(std::string_view(filter.name));
  if (filter.before) wanted.before_ms = filter.before->time_since_epoch().count();
  wanted.after = slice(std::string_view(filter.after));
  wanted.limit = filter.limit;
  wanted.dead = filter.dead ? 1 : 0;
  return wanted;
}

// The part of Agent that is about managed fibers. Its private names are ones that no agent class
// will use for itself.
template <class Self>
class ManagedFiberCalls {
 public:
  // Accepts `function(FiberContext&)` as work to be done, and runs it up to its first wait; or
  // finds the record of the id or key. What the function gives, as JSON, is the result. Let it own
  // what it uses, and do the same when it is called again, if there are retries: its captures are
  // as it left them.
  // Failure   HostError: INVALID, CONFLICT (same key or id, but another name or input; same id, but
  //           another key; or policy kReject), LIMIT.
  template <class Function>
  StartedFiber start_fiber(std::string_view name, Function function,
                           const FiberOptions& options = {});

  // co_await it: the record, once it is settled; at once if it is. Also released by cancel_fiber(),
  // at the end of the event that cancels, whatever the work does; and with the settled record by
  // delete_fibers() and by start_fiber() with policy kReplace, which may remove it.
  // Failure   Error(NOT_FOUND). Error(GONE): the record went meanwhile by another hand.
  [[nodiscard]] SettledAwaiter wait_fiber(std::string id) {
    return SettledAwaiter(activation_of_self(), std::move(id));
  }

  [[nodiscard]] std::optional<FiberRecord> inspect_fiber(std::string_view id) {
    return find_managed(activation_of_self(), id, {});
  }
  [[nodiscard]] std::optional<FiberRecord> inspect_fiber_by_key(std::string_view key) {
    return find_managed(activation_of_self(), {}, key);
  }
  // Newest first.
  [[nodiscard]] std::vector<FiberRecord> list_fibers(const FiberFilter& filter = {});

  // A managed one is aborted, for good, and its work asked to stop; one that is not managed is
  // asked to stop, and decides when: see FiberContext::stop_token(). False: none has this id, or it
  // has ended or was asked before.
  bool cancel_fiber(std::string_view id, std::string_view reason = {});
  bool cancel_fiber_by_key(std::string_view key, std::string_view reason = {}) {
    const auto record = inspect_fiber_by_key(key);
    return record && cancel_fiber(record->id, reason);
  }

  // In on_fiber_recovered, for a managed fiber that is not continued: what came of it. Applied when
  // the hook has ended.
  void settle_fiber(const RecoveredFiber& fiber, FiberOutcome outcome);
  // The same later, for one that is interrupted or dead. False: no such fiber.
  bool resolve_fiber(std::string_view id, const FiberOutcome& outcome) {
    const std::string text = outcome_text(outcome);
    Activation& live = activation_of_self();
    const hearth_status status = managed_table(live).resolve(live.host(), live.id(), slice(id),
                                                             slice(std::string_view(text)));
    return found(live, status, "resolve fiber");
  }
  // Has a fiber recovered once more that is dead, or managed and interrupted. False: no such fiber.
  bool retry_fiber(std::string_view id);
  // Those whose recovery was given up, managed or not, the former after the latter.
  [[nodiscard]] std::vector<DeadFiber> list_dead_fibers();
  // Removes settled records, those settled longest ago first; the interrupted ones only if
  // `statuses` says so. How many.
  std::uint64_t delete_fibers(const FiberFilter& filter = {});

 private:
  friend Self;
  ManagedFiberCalls() = default;
  [[nodiscard]] Activation& activation_of_self() { return static_cast<Self*>(this)->activation(); }
};

inline void check_fiber_options(const FiberOptions& options) {
  const auto refuse = [](const char* text) { throw Error(HEARTH_E_INVALID, text); };
  // For the host an empty one means that there is none.
  if (options.id && options.id->empty()) refuse("a fiber's id must not be empty");
  if (options.idempotency_key && options.idempotency_key->empty())
    refuse("an idempotency key must not be empty");
  if (options.max_retries < 0) refuse("max_retries must be >= 0");
  if (options.retry_delay.count() <= 0) refuse("retry_delay must be > 0");
  if (options.retry_delay > options.max_retry_delay)
    refuse("retry_delay must be <= max_retry_delay");
}

template <class Self>
template <class Function>
StartedFiber ManagedFiberCalls<Self>::start_fiber(std::string_view name, Function function,
                                                  const FiberOptions& options) {
  static_assert(kIsResult<FiberValue<Function>>,
                "the function of a managed fiber gives nothing, or what Json can be made from");
  check_fiber_options(options);
  const std::string input = to_text(options.input);
  const std::string metadata = to_text(options.metadata);
  hearth_fiber_request request = {};
  request.struct_size = sizeof request;
  request.policy = static_cast<std::uint32_t>(options.policy);
  request.name = slice(name);
  if (options.id) request.id = slice(std::string_view(*options.id));
  if (options.idempotency_key) request.key = slice(std::string_view(*options.idempotency_key));
  request.input = slice(std::string_view(input));
  request.metadata = slice(std::string_view(metadata));
  request.max_retries = static_cast<std::uint32_t>(options.max_retries);
  request.retry_base_ms = static_cast<std::uint64_t>(options.retry_delay.count());
  request.retry_max_ms = static_cast<std::uint64_t>(options.max_retry_delay.count());
  FiberRow row;
  hearth_bytes record = {nullptr, 0};
  Activation& live = activation_of_self();
  if (options.policy == FiberPolicy::kReplace) tell_waiters(live);
  live.check(managed_table(live).start(live.host(), live.id(), &request, &row.handle, &record),
             "start fiber");
  StartedFiber started = {row.handle != 0, read_fiber(parse_record(view(record)))};
  if (!started.accepted) return started;
  row.id = started.record.id;
  row.name = name;
  row.managed = true;
  begin_detached(live, fiber_context(live), std::move(row), std::move(function));
  return started;
}

template <class Self>
std::vector<FiberRecord> ManagedFiberCalls<Self>::list_fibers(const FiberFilter& filter) {
  const hearth_fiber_filter wanted = to_fiber_filter(filter);
  hearth_bytes records = {nullptr, 0};
  Activation& live = activation_of_self();
  live.check(managed_table(live).list(live.host(), live.id(), &wanted, &records), "list fibers");
  std::vector<FiberRecord> all;
  for (const Json& record : parse_record(view(records))) all.push_back(read_fiber(record));
  return all;
}

template <class Self>
bool ManagedFiberCalls<Self>::cancel_fiber(std::string_view id, std::string_view reason) {
  Activation& live = activation_of_self();
  if (!live.tables().managed_fibers) return request_stop(live, id);
  const hearth_status status =
      managed_table(live).cancel(live.host(), live.id(), slice(id), {nullptr, 0}, slice(reason));
  const bool managed = found(live, status, "cancel fiber");
  const bool stopped = request_stop(live, id);
  if (!managed) return stopped;
  if (const auto record = inspect_fiber(id)) fiber_settled(live, *record);
  return true;
}

template <class Self>
void ManagedFiberCalls<Self>::settle_fiber(const RecoveredFiber& fiber, FiberOutcome outcome) {
  Recovery* const recovery = activation_of_self().context().recovery;
  if (!recovery || recovery->fiber.id != fiber.id)
    throw Error(HEARTH_E_INVALID, "settle_fiber() is for the fiber of on_fiber_recovered");
  if (!recovery->fiber.managed)
    throw Error(HEARTH_E_INVALID, "this fiber is not managed: it has no outcome");
  recovery->outcome = std::move(outcome);
}

template <class Self>
bool ManagedFiberCalls<Self>::retry_fiber(std::string_view id) {
  Activation& live = activation_of_self();
  if (live.tables().managed_fibers) {
    const hearth_status status = managed_table(live).retry(live.host(), live.id(), slice(id));
    if (found(live, status, "retry fiber")) return true;
  }
  const auto& fibers = need(live.tables().fibers, HEARTH_EXT_FIBERS);
  return found(live, fibers.retry(live.host(), live.id(), slice(id)), "retry fiber");
}

inline DeadFiber read_dead_fiber(const Json& record, const char* error) {
  DeadFiber fiber;
  fiber.id = record.at("id").get<std::string>();
  fiber.name = record.at("name").get<std::string>();
  fiber.snapshot = find_json(record, "snapshot");
  fiber.created_at = read_time(record.at("created_at"));
  fiber.attempts = find_number(record, "attempts", 0);
  fiber.last_error = find_text(record, error).value_or("");
  return fiber;
}

// Calls `list(after, &records)` for one page after the other; an empty one is the last.
template <class List>
void append_dead_fibers(const Activation& activation, std::vector<DeadFiber>& all,
                        const char* error, List list) {
  for (std::string after;;) {
    hearth_bytes records = {nullptr, 0};
    activation.check(list(slice(std::string_view(after)), &records), "list dead fibers");
    const Json page = parse_record(view(records));
    if (page.empty()) return;
    for (const Json& record : page) all.push_back(read_dead_fiber(record, error));
    after = all.back().id;
  }
}

template <class Self>
std::vector<DeadFiber> ManagedFiberCalls<Self>::list_dead_fibers() {
  const Activation& live = activation_of_self();
  std::vector<DeadFiber> all;
  const auto& fibers = need(live.tables().fibers, HEARTH_EXT_FIBERS);
  append_dead_fibers(live, all, "last_error", [&](hearth_bytes after, hearth_bytes* records) {
    return fibers.list_dead(live.host(), live.id(), after, 100, records);
  });
  const std::size_t unmanaged = all.size();
  hearth_fiber_filter dead = to_fiber_filter(FiberFilter{.limit = 100, .dead = true});
  append_dead_fibers(live, all, "error", [&](hearth_bytes after, hearth_bytes* records) {
    dead.after = after;
    return managed_table(live).list(live.host(), live.id(), &dead, records);
  });
  for (std::size_t i = unmanaged; i < all.size(); ++i) all[i].managed = true;
  return all;
}

template <class Self>
std::uint64_t ManagedFiberCalls<Self>::delete_fibers(const FiberFilter& filter) {
  const hearth_fiber_filter wanted = to_fiber_filter(filter);
  std::uint64_t removed = 0;
  Activation& live = activation_of_self();
  tell_waiters(live);
  live.check(managed_table(live).remove(live.host(), live.id(), &wanted, &removed),
             "delete fibers");
  return removed;
}

}  // namespace detail

}  // namespace hearth
