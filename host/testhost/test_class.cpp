#include "testhost/test_class.hpp"

#include "extensions/abi_call.hpp"
#include "extensions/abi_status.hpp"
#include "extensions/operations.hpp"

#include <hearth/ext/methods.h>
#include <hearth/ext/operations.h>
#include <hearth/ext/schema.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace hearth::testhost {
namespace {

template <class Table>
const Table* table_of(const hearth_class& definition, const char* id) {
  if (!HEARTH_HAS(&definition, hearth_class, get_extension)) return nullptr;
  return static_cast<const Table*>(definition.get_extension(&definition, id));
}

std::uint32_t schema_in(const hearth_class& definition) {
  const auto* const schema = table_of<hearth_schema_v1>(definition, HEARTH_EXT_SCHEMA);
  return schema == nullptr ? 0 : schema->version;
}

std::vector<std::string> methods_with(const hearth_class& definition, std::uint32_t flags) {
  std::vector<std::string> names;
  const auto* const table = table_of<hearth_methods_v1>(definition, HEARTH_EXT_METHODS);
  if (table == nullptr) return names;
  for (const hearth_method& method : std::span(table->methods, table->count)) {
    const auto name = extensions::text_of(method.name);
    if (name && (method.flags & flags) != 0) names.emplace_back(*name);
  }
  std::ranges::sort(names);
  return names;
}

Result<void> result_of(hearth_status status) {
  if (status == HEARTH_OK) return {};
  return Error{extensions::to_errc(status), extensions::status_name(status)};
}

}  // namespace

// ---- instance -----------------------------------------------------------------------------------

TestInstance::~TestInstance() {
  is_going_ = true;
  if (object_ != nullptr) definition_.destroy(std::exchange(object_, nullptr));
  instances_.left(*this);
}

Result<void> TestInstance::make(std::string_view name) {
  const std::string options = instances_.came(*this);
  LentBytes lent;
  const hearth_status status = definition_.create(&definition_, instances_.table(), host_.handle(),
                                                  lent.lend(name), lent.lend(options), &object_);
  if (status != HEARTH_OK) object_ = nullptr;
  lent_.recall();
  return result_of(status);
}

Result<void> TestInstance::on_event(const runtime::AgentEvent& event) {
  LentBytes lent;
  const hearth_event passed = {.struct_size = sizeof(hearth_event),
                               .kind = static_cast<std::uint32_t>(event.kind),
                               .call = event.call,
                               .connection = event.connection,
                               .name = lent.lend(event.name),
                               .body = lent.lend(event.body),
                               .deadline_ms = event.deadline_ms,
                               .flags = event.flags,
                               .reserved = 0};
  const hearth_status status = definition_.on_event(object_, &passed);
  lent_.recall();
  const bool is_refused = status != HEARTH_OK && event.call != 0;
  if (is_refused && !host_.calls().origin(event.call).is_in_progress)
    instances_.misused("the plugin completed an event that it refused");
  return result_of(status);
}

void TestInstance::on_cancel(runtime::CallId call) {
  definition_.on_cancel(object_, call);
  lent_.recall();
}

void TestInstance::on_result(const runtime::OperationResult& result) {
  const bool ok = result.outcome.has_value();
  const std::string why = ok ? std::string() : result.outcome.error().message;
  LentBytes lent;
  const hearth_result passed = {
      .struct_size = sizeof(hearth_result),
      .flags = result.flags | (result.is_final ? HEARTH_RESULT_FINAL : 0U),
      .status = ok ? hearth_status{HEARTH_OK}
                   : extensions::to_status(result.outcome.error().code,
                                           extensions::missing_of(result.operation)),
      .operation = result.operation,
      .token = result.token,
      .body = lent.lend(ok ? *result.outcome : std::string_view(why))};
  definition_.on_result(object_, &passed);
  lent_.recall();
}

void TestInstance::function_begins(hearth_statement statement) {
  lent_before_ = lent_.count();
  if (statement == 0) return;
  StatementBytes& its = statements_[statement];
  its.before = its.bytes.count();
}

hearth_bytes TestInstance::lend(std::string_view bytes, hearth_statement statement) {
  return statement == 0 ? lent_.lend(bytes) : statements_[statement].bytes.lend(bytes);
}

void TestInstance::function_ends(hearth_statement statement) {
  lent_.recall_first(lent_before_);
  const auto its = statements_.find(statement);
  if (its == statements_.end()) return;
  its->second.bytes.recall_first(its->second.before);
  if (its->second.bytes.count() == 0) statements_.erase(its);
}

// ---- class --------------------------------------------------------------------------------------

TestClass::TestClass(const hearth_class& definition, std::string name, Instances& instances)
    : definition_(definition),
      name_(std::move(name)),
      instances_(instances),
      schema_(schema_in(definition)),
      idempotent_(methods_with(definition, HEARTH_METHOD_IDEMPOTENT | HEARTH_METHOD_READ_ONLY)),
      read_only_(methods_with(definition, HEARTH_METHOD_READ_ONLY)),
      exclusive_(methods_with(definition, HEARTH_METHOD_EXCLUSIVE)),
      offload_(table_of<hearth_offload_v1>(definition, HEARTH_EXT_OFFLOAD)) {}

std::optional<durable::Effect> TestClass::listed_effect(std::string_view kind) const {
  const auto* const kinds =
      table_of<hearth_operation_kinds_v1>(definition_, HEARTH_EXT_OPERATION_KINDS);
  return extensions::effect_in(extensions::operation_kinds(kinds), kind);
}

bool TestClass::is_idempotent(std::string_view method) const {
  return std::ranges::binary_search(idempotent_, method);
}

bool TestClass::is_read_only(std::string_view method) const {
  return std::ranges::binary_search(read_only_, method);
}

Result<std::unique_ptr<runtime::AgentInstance>> TestClass::create(
    extensions::AgentContext& host, std::string_view name, std::string_view /*options*/) const {
  auto instance = std::make_unique<TestInstance>(definition_, instances_, host);
  if (const Result<void> made = instance->make(name); made.has_error()) return made.error();
  return std::unique_ptr<runtime::AgentInstance>(std::move(instance));
}

// On a thread that is not the agent's, as in a server.
Result<void> TestClass::run_offloaded(std::uint64_t job, bool cancelled,
                                      const runtime::OffloadOrigin& /*origin*/) const {
  if (offload_ == nullptr) return Error{Errc::kUnsupported, "the class has no hearth.offload/1"};
  hearth_status status = HEARTH_OK;
  std::thread([&] { status = offload_->run(job, cancelled ? 1U : 0U); }).join();
  if (status == HEARTH_OK) return {};
  return Error{extensions::to_errc(status), "the job failed"};
}

}  // namespace hearth::testhost
