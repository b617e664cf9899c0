#include "plugins/generation/abi_class.hpp"

#include "extensions/abi_call.hpp"
#include "extensions/abi_host.hpp"
#include "extensions/abi_status.hpp"
#include "plugins/generation/plugin_generation.hpp"

#include <hearth/ext/schema.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace hearth::plugins {
namespace {

using extensions::slice_of;
using extensions::status_name;
using extensions::to_errc;
using extensions::to_status;
using runtime::AgentEvent;
using runtime::AgentInstance;
using runtime::OperationResult;

// Exceptions end here: see AbiClass.
template <class Call>
hearth_status catch_all(const AbiClass& agent_class, std::string_view function,
                        const Call& call) noexcept {
  try {
    return call();
  } catch (...) {
    agent_class.report_exception(function);
    return HEARTH_E_PLUGIN;
  }
}

diagnosis::CallEvent event_of(const extensions::CallPort& calls) {
  const extensions::Span span = calls.span();
  return {
      .number = calls.current().call, .trace = span.trace, .span = span.id, .flags = span.flags};
}

// Calls into the library, and records which agent the call is for.
template <class Call>
hearth_status call_plugin(const AbiClass& agent_class, std::string_view function,
                          const diagnosis::AgentLabel& agent, const Call& call,
                          const diagnosis::CallEvent& event = {}) noexcept {
  const diagnosis::CallScope published(agent_class.call_owner(), function, agent, {}, {}, event);
  return catch_all(agent_class, function, call);
}

// The name of a method or a callback, GET or POST: for authors and operators. Names of other events
// are addresses and ids, which may be secret.
diagnosis::AgentLabel method_of(const AgentEvent& event) {
  switch (event.kind) {
    case runtime::EventKind::kCall:
    case runtime::EventKind::kRequest:
    case runtime::EventKind::kSchedule:
    case runtime::EventKind::kQueueItem: return diagnosis::AgentLabel(event.name);
    default: return {};
  }
}

// Any status but HEARTH_OK is a failure: the contract of these functions has no positive ones.
Result<void> result_of(hearth_status status, std::string_view what) {
  if (status == HEARTH_OK) return {};
  return Error{to_errc(status), std::string(what) + " (" + status_name(status) + ")"};
}

class AbiInstance final : public AgentInstance {
 public:
  AbiInstance(const AbiClass& agent_class, const hearth_class& table,
              const diagnosis::AgentLabel& label, const extensions::CallPort& calls, void* instance)
      : class_(agent_class), table_(table), label_(label), calls_(calls), instance_(instance) {}

  ~AbiInstance() override {
    enter("destroy", [this] {
      table_.destroy(instance_);
      return hearth_status{HEARTH_OK};
    });
  }

  Result<void> on_event(const AgentEvent& event) override {
    const hearth_event passed = {.struct_size = sizeof(hearth_event),
                                 .kind = static_cast<std::uint32_t>(event.kind),
                                 .call = event.call,
                                 .connection = event.connection,
                                 .name = slice_of(event.name),
                                 .body = slice_of(event.body),
                                 .deadline_ms = event.deadline_ms,
                                 .flags = event.flags,
                                 .reserved = 0};
    const hearth_status status = enter(
        "on_event", [&] { return table_.on_event(instance_, &passed); }, to_string(event.kind),
        method_of(event));
    return result_of(status, "the agent refused it");
  }

  void on_cancel(runtime::CallId call) override {
    enter("on_cancel", [&] {
      table_.on_cancel(instance_, call);
      return hearth_status{HEARTH_OK};
    });
  }

  void on_result(const OperationResult& result) override {
    const bool ok = result.outcome.has_value();
    // A copy that lives as long as the call: error() returns a temporary.
    const std::string why = ok ? std::string() : result.outcome.error().message;
    const hearth_result passed = {
        .struct_size = sizeof(hearth_result),
        .flags = result.flags | (result.is_final ? HEARTH_RESULT_FINAL : 0U),
        .status =
            ok ? hearth_status{HEARTH_OK}
               : to_status(result.outcome.error().code, extensions::missing_of(result.operation)),
        .operation = result.operation,
        .token = result.token,
        .body = slice_of(ok ? *result.outcome : std::string_view(why))};
    enter("on_result", [&] {
      table_.on_result(instance_, &passed);
      return hearth_status{HEARTH_OK};
    });
  }

  void works_for(std::optional<WorkMark> work) override {
    work_ = work;
    if (entered_ != nullptr) entered_->works_for(work);
  }

 private:
  // As call_plugin(). Records `event` where that says more than the function.
  template <class Call>
  hearth_status enter(std::string_view function, const Call& call, std::string_view event = {},
                      const diagnosis::AgentLabel& method = {}) noexcept {
    diagnosis::CallScope published(class_.call_owner(), event.empty() ? function : event, label_,
                                   method, work_, event_of(calls_));
    entered_ = &published;
    const hearth_status status = catch_all(class_, function, call);
    entered_ = nullptr;
    return status;
  }

  const AbiClass& class_;  // the live agent keeps it as long as its instance
  const hearth_class& table_;
  const diagnosis::AgentLabel label_;
  const extensions::CallPort& calls_;  // the live agent's
  void* const instance_;
  std::optional<WorkMark> work_;
  diagnosis::CallScope* entered_ = nullptr;  // the call that has not returned
};

// The class's table for the extension `id`, or null.
const void* find_table(const AbiClass& agent_class, const hearth_class& table, const char* id) {
  if (!HEARTH_HAS(&table, hearth_class, get_extension)) return nullptr;
  const void* found = nullptr;
  call_plugin(agent_class, "get_extension", diagnosis::AgentLabel(), [&] {
    found = table.get_extension(&table, id);
    return hearth_status{HEARTH_OK};
  });
  return found;
}

const hearth_offload_v1* find_offload(const AbiClass& agent_class, const hearth_class& table) {
  const auto* const offload =
      static_cast<const hearth_offload_v1*>(find_table(agent_class, table, HEARTH_EXT_OFFLOAD));
  return offload != nullptr && offload->run != nullptr ? offload : nullptr;
}

std::uint32_t find_schema_version(const AbiClass& agent_class, const hearth_class& table) {
  const auto* const schema =
      static_cast<const hearth_schema_v1*>(find_table(agent_class, table, HEARTH_EXT_SCHEMA));
  return schema != nullptr && HEARTH_HAS(schema, hearth_schema_v1, version) ? schema->version : 0;
}

// Of a table from a newer header only the part that this host knows.
hearth_class with_name(const hearth_class& table, const std::string& name) {
  hearth_class copy{};
  const auto size = std::min<std::size_t>(table.struct_size, sizeof copy);
  std::memcpy(&copy, &table, size);
  copy.struct_size = static_cast<std::uint32_t>(size);
  copy.name = name.c_str();
  return copy;
}

}  // namespace

AbiClass::AbiClass(std::shared_ptr<PluginGeneration> generation, const EntryClass& entry,
                   std::string name, std::string sha256, std::uint64_t number)
    : generation_(std::move(generation)),
      entry_(entry),
      name_(std::move(name)),
      own_table_(with_name(*entry.table, name_)),
      table_(name_ == entry.name ? entry.table : &own_table_),
      owner_(generation_->origin(), std::move(sha256), number, name_),
      offload_(find_offload(*this, *table_)),
      schema_version_(find_schema_version(*this, *table_)) {
  generation_->add_user();
}

AbiClass::~AbiClass() {
  generation_->remove_user();
}

std::string_view AbiClass::version() const {
  return entry_.version;
}
std::string_view AbiClass::origin() const {
  return generation_->origin();
}

std::optional<durable::Effect> AbiClass::listed_effect(std::string_view kind) const {
  return extensions::effect_in(entry_.operations, kind);
}

bool AbiClass::is_idempotent(std::string_view method) const {
  return std::ranges::binary_search(entry_.methods.idempotent, method);
}

bool AbiClass::is_read_only(std::string_view method) const {
  return std::ranges::binary_search(entry_.methods.read_only, method);
}

std::span<const std::string> AbiClass::exclusive_methods() const {
  return entry_.methods.exclusive;
}

std::string_view AbiClass::methods() const {
  return entry_.methods.listed;
}

bool AbiClass::checks_state() const {
  return (table_->flags & HEARTH_CLASS_CHECKS_STATE) != 0;
}

bool AbiClass::watches_state() const {
  return (table_->flags & HEARTH_CLASS_WATCHES_STATE) != 0;
}

bool AbiClass::reads_bodies() const {
  return (table_->flags & HEARTH_CLASS_READS_BODIES) != 0;
}

Result<std::unique_ptr<AgentInstance>> AbiClass::create(extensions::AgentContext& host,
                                                        std::string_view name,
                                                        std::string_view options) const {
  const hearth_class& table = *table_;
  // The host's name of the agent: for a sub-agent it has the agents above.
  const auto label = diagnosis::AgentLabel::with_digest(host.key().name);
  void* instance = nullptr;
  const hearth_status status = call_plugin(
      *this, "create", label,
      [&] {
        return table.create(&table, generation_->host().table(), host.handle(), slice_of(name),
                            slice_of(options), &instance);
      },
      event_of(host.calls()));
  if (auto made = result_of(status, "the agent could not be made"); !made) return made.error();
  return std::make_unique<AbiInstance>(*this, table, label, host.calls(), instance);
}

Result<void> AbiClass::run_offloaded(std::uint64_t job, bool cancelled,
                                     const runtime::OffloadOrigin& origin) const {
  if (offload_ == nullptr) return Error{Errc::kUnsupported, "the class has no hearth.offload/1"};
  const auto label = diagnosis::AgentLabel::with_digest(origin.agent);
  const diagnosis::CallScope published(owner_, "offload", label, {}, origin.work);
  const hearth_status status =
      catch_all(*this, "offload", [&] { return offload_->run(job, cancelled ? 1U : 0U); });
  return result_of(status, "the job failed");
}

void AbiClass::report_exception(std::string_view function) const noexcept {
  generation_->host().services().logger.write_limited(
      LogLevel::kError, "plugin.exception", {name_, function},
      {{"library", generation_->origin()}, {"class", name_}, {"function", function}});
}

}  // namespace hearth::plugins
