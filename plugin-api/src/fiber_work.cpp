#include <hearth/call.hpp>
#include <hearth/detail/fiber_start.hpp>
#include <hearth/detail/stop.hpp>
#include <hearth/hash.hpp>

namespace hearth::detail {

Recovery read_recovery(std::string_view name, std::string_view body) {
  const Json event = parse_record(body);
  Recovery recovery;
  RecoveredFiber& fiber = recovery.fiber;
  fiber.id = event.at("id").get<std::string>();
  fiber.name = name;
  fiber.snapshot = event.at("snapshot");
  fiber.created_at = read_time(event.at("created_at"));
  fiber.attempt = event.at("attempt").get<int>();
  if (auto reason = find_text(event, "reason")) fiber.reason = std::move(*reason);
  if (const auto record = event.find("record"); record != event.end()) {
    fiber.record = read_fiber(*record);
    fiber.input = fiber.record->input;
    fiber.metadata = fiber.record->metadata;
    fiber.key = fiber.record->key;
  }
  return recovery;
}

namespace {

// A callee that had begun was evicted.
bool has_lost_callee(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const CallError& call) {
    return call.code() == HEARTH_E_CLOSING && call.began();
  } catch (...) {
    return false;
  }
}

}  // namespace

bool is_closing(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const HostError& host) {
    return host.code() == HEARTH_E_CLOSING && !has_lost_callee(error);
  } catch (...) {
    return false;
  }
}

void FiberRoot::report() noexcept {
  if (!error_ || settled_before_) return;
  if (record_ && record_->waits_for_code) return;  // the host's log says so
  try {
    std::rethrow_exception(error_);
  } catch (...) {
    const Failure failure = current_failure();
    activation().tell_error(fiber_.name());
    activation().log(HEARTH_LOG_ERROR,
                     "fiber " + fiber_.name() + " failed: " + failure.text +
                         (failure.sql.empty() ? std::string() : " in SQL: " + failure.sql));
  }
}

void FiberRoot::end() noexcept {
  ended_ = true;
  collect();
  if (error_ && (is_closing(error_) || (has_lost_callee(error_) && goes_on_in_the_next_instance())))
    return;
  settle();
}

// With its callee it is as with the agent itself: an eviction ends no fiber. The next instance,
// which may be of a newer version, goes on from the last checkpoint.
bool FiberRoot::goes_on_in_the_next_instance() noexcept {
  Activation& live = activation();
  const hearth_agent_v1* const agent = live.tables().agent;
  const bool is_found = is_listed_fiber(live, fiber_.name()) || has_recovery_hook(live);
  if (!is_found || agent == nullptr || agent->evict(live.host(), live.id()) != HEARTH_OK)
    return false;
  settled_before_ = true;  // there is nothing to report
  return true;
}

std::string FiberRoot::why() const noexcept {
  try {
    std::rethrow_exception(error_);
  } catch (...) {
    return current_failure().text;
  }
}

void Activation::tell_work(const Work& work) noexcept {
  told_ = work;
  const hearth_fibers_v1* const table = tables().fibers;
  if (table == nullptr) return;
  const FiberRoot* const fiber = find_fiber(*this, work.fiber);
  static_cast<void>(
      table->works_for(host(), id_, fiber == nullptr ? 0 : fiber->handle(), work.call));
}

FiberRoot* find_fiber(Activation& activation, std::uint64_t number) noexcept {
  const auto found = activation.fibers().find(number);
  return found == activation.fibers().end() ? nullptr
                                            : static_cast<FiberRoot*>(found->second.get());
}

Context fiber_context(const Activation& activation) noexcept {
  Context context = activation.context();
  context.call = 0;
  context.unheard = false;
  context.recovery = nullptr;
  context.plans = false;
  return context;
}

void leave_alone(Activation& activation, FiberRoot& fiber) {
  if (!fiber.ended()) return;
  fiber.report();
  activation.fibers().erase(fiber.context().fiber);
}

std::stop_token cancel_token(Activation& activation) noexcept {
  FiberRoot* const fiber = find_fiber(activation, activation.context().fiber);
  return fiber == nullptr ? std::stop_token() : fiber->fiber().stop_token();
}

FiberContext& running_fiber(Activation& activation) {
  FiberRoot* const fiber = find_fiber(activation, activation.context().fiber);
  if (!fiber) throw Error(HEARTH_E_PLUGIN, "stash() was called outside a fiber");
  return fiber->fiber();
}

namespace {

// The one that runs in this instance; null: none does.
FiberRoot* find_running(Activation& activation, const std::string& id) {
  for (const auto& [number, root] : activation.fibers()) {
    auto& fiber = static_cast<FiberRoot&>(*root);
    if (fiber.fiber().id() == id && !fiber.ended()) return &fiber;
  }
  return nullptr;
}

}  // namespace

void stop_cancelled(Activation& activation, const FiberRecord& record) {
  FiberRoot* const fiber = find_running(activation, record.id);
  if (fiber == nullptr) return;
  fiber->cancelled(record);
  fiber->request_stop();
}

void stop_inner(Activation& activation, const FiberRecord& outer, const Json& inner) {
  for (const Json& id : inner) {
    FiberRecord ended = outer;
    ended.id = id.get<std::string>();
    FiberRoot* const fiber = find_running(activation, ended.id);
    if (fiber != nullptr) ended.name = fiber->fiber().name();
    if (auto kept = find_record(activation, ended.id, {})) ended = *std::move(kept);
    stop_cancelled(activation, ended);
    if (fiber != nullptr) activation.drop_fiber(fiber->context().fiber);
    fiber_settled(activation, ended);
  }
}

std::string FiberRoot::next_child_key(const std::string& name) {
  constexpr std::size_t kRoomForTheRest = 40;
  constexpr std::size_t kLongest = kLongestKey - kRoomForTheRest;
  std::string whose = fiber_.id() + "/" + name;  // the host relies on this form: ext/fibers.h
  if (whose.size() > kLongest) whose = fiber_.id() + "/" + std::to_string(stable_hash(name));
  if (whose.size() > kLongest) whose = std::to_string(stable_hash(whose));
  return whose + "/" + std::to_string(fiber_.checkpoint_) + "/" +
         std::to_string(++fiber_.children_[name]);
}

void FiberRoot::answer() noexcept {
  end();
  if (waiter_)
    waiter_->resume();
  else
    report();
}

}  // namespace hearth::detail
