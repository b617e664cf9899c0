#include <hearth/operations.hpp>

namespace hearth {

namespace {

detail::Activation& activation_of(const OperationAttempt& attempt) {
  if (attempt.activation == nullptr) throw Error(HEARTH_E_INVALID, "no operation runs");
  return *attempt.activation;
}

}  // namespace

void OperationAttempt::drop_answer() const {
  const detail::Activation& live = activation_of(*this);
  live.check(detail::operation_table(live).drop_answer(live.host(), live.id(),
                                                       detail::slice(std::string_view(id))),
             "drop an answer");
}

void OperationAttempt::set_cost(std::uint64_t cost) const {
  const detail::Activation& live = activation_of(*this);
  live.check(detail::operation_table(live).set_cost(live.host(), live.id(),
                                                    detail::slice(std::string_view(id)), cost),
             "set a cost");
}

void OperationAttempt::describe(std::string_view name, const Json& attributes) const {
  const detail::Activation& live = activation_of(*this);
  const std::string json = attributes.dump(-1, ' ', false, Json::error_handler_t::replace);
  live.check(detail::operation_table(live).describe(
                 live.host(), live.id(), detail::slice(std::string_view(id)), detail::slice(name),
                 detail::slice(std::string_view(json))),
             "describe an operation");
}

std::string OperationAttempt::path() const {
  const detail::Activation& live = activation_of(*this);
  hearth_bytes path = {nullptr, 0};
  live.check(detail::operation_table(live).path(live.host(), live.id(),
                                                detail::slice(std::string_view(id)), &path),
             "the path of an operation");
  return std::string(detail::view(path));
}

}  // namespace hearth

namespace hearth::detail {

std::vector<OperationRecord> list_ledger(const Activation& activation,
                                         const OperationFilter& filter) {
  hearth_operation_filter wanted = {};
  wanted.struct_size = sizeof wanted;
  for (const OperationState state : filter.states)
    wanted.states |= static_cast<std::uint32_t>(state);
  wanted.limit = filter.limit;
  wanted.kind = slice(std::string_view(filter.kind));
  wanted.fiber = slice(std::string_view(filter.fiber));
  wanted.after = slice(std::string_view(filter.after));
  hearth_bytes records = {nullptr, 0};
  activation.check(
      operation_table(activation).list(activation.host(), activation.id(), &wanted, &records),
      "list operations");
  std::vector<OperationRecord> all;
  for (const Json& each : parse_record(view(records))) all.push_back(read_operation(each));
  return all;
}

RecoveredOperations find_recovered_operations(const Activation& activation,
                                              std::string_view fiber) {
  constexpr int kMostPages = 10;
  RecoveredOperations all;
  OperationFilter filter;
  filter.fiber = fiber;
  filter.limit = 100;
  for (int page = 0; page < kMostPages; ++page) {
    std::vector<OperationRecord> records = list_ledger(activation, filter);
    if (records.empty()) break;
    filter.after = records.back().id;
    for (OperationRecord& each : records) {
      std::vector<OperationRecord>& group =
          each.state == OperationState::kCompleted     ? all.completed
          : each.state == OperationState::kNotExecuted ? all.not_executed
          : each.state == OperationState::kUnknown     ? all.unknown
                                                       : all.interrupted;
      group.push_back(std::move(each));
    }
  }
  return all;
}

}  // namespace hearth::detail
