#include <hearth/call.hpp>
#include <hearth/callback.hpp>

namespace hearth::detail {

hearth_call_request call_request(const Activation& activation, const Callee& callee,
                                 std::string_view method, std::string_view arguments) {
  const Context& context = activation.context();
  hearth_call_request request = {};
  request.struct_size = sizeof request;
  request.flags = callee.flags;
  request.agent_class = slice(std::string_view(callee.agent_class));
  request.name = slice(std::string_view(callee.name));
  request.method = slice(method);
  request.arguments = slice(arguments);
  request.call = context.fiber == 0 ? context.call : 0;
  return request;
}

hearth_status start_call(const Activation& activation, const Callee& callee,
                         std::string_view method, std::string_view arguments, std::uint64_t token,
                         std::uint64_t* id) {
  hearth_call_request request = call_request(activation, callee, method, arguments);
  if (callee.options.must_exist) request.flags |= HEARTH_CALL_NO_CREATE;
  const auto timeout = callee.options.timeout.count();
  request.timeout_ms = timeout > 0 ? static_cast<std::uint64_t>(timeout) : 0;
  return call_table(activation).start(activation.host(), activation.id(), &request, token, id);
}

std::optional<AgentCaller> find_caller(const Activation& activation) {
  const Context& context = activation.context();
  if (context.call == 0 || context.fiber != 0 || activation.tables().call == nullptr)
    return std::nullopt;
  hearth_bytes bytes = {nullptr, 0};
  const hearth_status status =
      activation.tables().call->caller(activation.host(), activation.id(), context.call, &bytes);
  if (!found(activation, status, "caller")) return std::nullopt;
  const Json record = parse_record(view(bytes));
  return AgentCaller{record.at("class").get<std::string>(), record.at("name").get<std::string>(),
                     find_text(record, "notification")};
}

std::vector<Notification> list_notifications(const Activation& activation, std::string_view after) {
  hearth_bytes bytes = {nullptr, 0};
  activation.check(
      call_table(activation).list(activation.host(), activation.id(), slice(after), 0, &bytes),
      "list notifications");
  std::vector<Notification> all;
  for (const Json& record : parse_record(view(bytes))) {
    Notification each;
    each.id = record.at("id").get<std::string>();
    each.class_name = record.at("class").get<std::string>();
    each.name = record.at("name").get<std::string>();
    each.method = record.at("method").get<std::string>();
    each.arguments = record.at("arguments");
    each.dead = record.at("state").get_ref<const std::string&>() == "dead";
    each.attempts = record.at("attempts").get<int>();
    each.last_error = find_text(record, "last_error");
    all.push_back(std::move(each));
  }
  return all;
}

CallOperation::CallOperation(Activation& activation, Callee callee, std::string_view method,
                             std::string arguments)
    : activation_(activation),
      callee_(std::move(callee)),
      method_(method),
      text_(std::move(arguments)) {}

bool CallOperation::await_suspend(std::coroutine_handle<> waiting) {
  context_ = activation_.context();
  status_ = activation_.submit_with(*this, token_, [&](std::uint64_t token) {
    return start_call(activation_, callee_, method_, text_, token, &host_id_);
  });
  if (status_ < 0) {
    text_ = activation_.last_error(status_, "call");
    return false;
  }
  waiting_ = waiting;
  return true;
}

void CallOperation::on_result(const hearth_result& result) {
  status_ = result.status;
  began_ = (result.flags & HEARTH_CALL_BEGAN) != 0;
  text_ = view(result.body);
  waiting_.resume();
}

const std::string& CallOperation::finish() {
  waiting_ = nullptr;
  if (status_ < 0) throw CallError(status_, text_, began_);
  return text_;
}

}  // namespace hearth::detail

namespace hearth {

std::string AgentRef::notify_with(std::string_view method, const std::string& arguments) {
  const bool is_own_class = (callee_.flags & HEARTH_CALL_ABOVE) == 0 &&
                            callee_.agent_class == activation_.definition().name;
  if (is_own_class) detail::need_method(activation_, method);
  const hearth_call_request request = detail::call_request(activation_, callee_, method, arguments);
  hearth_bytes id = {nullptr, 0};
  const hearth_call_v1& table = detail::call_table(activation_);
  activation_.check(table.notify(activation_.host(), activation_.id(), &request, &id), "notify");
  return std::string(detail::view(id));
}

}  // namespace hearth
