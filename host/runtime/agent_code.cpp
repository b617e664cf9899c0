#include "runtime/agent_code.hpp"

#include "base/assert.hpp"
#include "runtime/agent_operations.hpp"

namespace hearth::runtime {

CodeOnStack::Entry AgentCode::enter(CallId call, const extensions::Span& span,
                                    std::string_view method) {
  HEARTH_ASSERT(!parts_.loan.is_out(), "instance entered while another thread has the database");
  mark(on_stack_.work_at_entry());
  return {on_stack_, call, span.is_none() ? parts_.spans.root() : span, method};
}

void AgentCode::mark(std::optional<WorkMark> work) {
  if (on_stack_.begin_work(work) && instance_) instance_->works_for(work);
}

Result<void> AgentCode::make(extensions::AgentContext& host, std::string_view name,
                             std::string_view options, const extensions::Span& span) {
  const auto entry = enter(0, span);
  auto made = parts_.agent_class->create(host, name, options);
  if (made.has_error()) return made.error();
  instance_ = std::move(made.value());
  return {};
}

void AgentCode::destroy() {
  const auto entry = enter();
  instance_.reset();
}

Result<void> AgentCode::handle(const AgentEvent& event, const extensions::Span& span) {
  const CallInProgress* const call = parts_.calls.find(event.call);
  const auto entry =
      call == nullptr ? enter(event.call, span) : enter(event.call, call->span, call->method);
  if (const WorkMark work = work_of(event.call); work != WorkMark()) mark(work);
  return instance_->on_event(event);
}

void AgentCode::cancel(CallId id, const extensions::Span& span, std::string_view method) {
  const auto entry = enter(id, span, method);
  instance_->on_cancel(id);
}

void AgentCode::hear(const OperationNews& news) {
  const OperationResult result{.outcome = news.outcome,
                               .operation = news.of.operation,
                               .token = news.of.token,
                               .is_final = news.is_final,
                               .flags = news.flags};
  const auto entry = enter(news.of.call, news.of.span, news.of.method);
  if (news.of.work) mark(news.of.work);
  on_stack_.begin_cause(news.of.state_cause);
  instance_->on_result(result);
}

void AgentCode::hear_post(std::uint64_t token) {
  const auto entry = enter();
  instance_->on_result(OperationResult{std::string_view(), 0, token});
}

void AgentCode::works_for(WorkMark work) {
  on_stack_.tells_work();
  mark(work);
}

WorkMark AgentCode::work_of(CallId id) const {
  const CallInProgress* const call = parts_.calls.find(id);
  if (call == nullptr) return {};
  if (call->work) return {call->work->row};
  return call->origin ? call->origin->work : WorkMark();
}

}  // namespace hearth::runtime
