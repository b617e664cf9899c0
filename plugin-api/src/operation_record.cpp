#include <hearth/operation_record.hpp>

namespace hearth::detail {

OperationRecord read_operation(const Json& json) {
  constexpr std::array<std::string_view, 5> kEffects = {"read", "idempotent", "keyed", "probe",
                                                        "unsafe"};
  constexpr std::array<std::string_view, 5> kStates = {"running", "interrupted", "completed",
                                                       "not_executed", "unknown"};
  OperationRecord record;
  record.id = json.at("id").get<std::string>();
  record.kind = json.at("kind").get<std::string>();
  record.effect = static_cast<Effect>(
      1 + place_of(kEffects, json.at("effect").get<std::string>(), kEffects.size() - 1));
  record.state = static_cast<OperationState>(
      1U << place_of(kStates, json.at("state").get<std::string>(), kStates.size() - 1));
  record.key = find_text(json, "key");
  record.scope = find_text(json, "scope");
  record.args = json.at("args");
  record.result = json.at("result");
  record.cost = json.at("cost").get<std::uint64_t>();
  record.attempts = json.at("attempts").get<int>();
  record.started_at = read_time(json.at("started_at"));
  record.horizon_at = find_time(json, "horizon_at");
  record.settled_at = find_time(json, "settled_at");
  record.settled_by = find_text(json, "settled_by");
  record.note = find_text(json, "note");
  const Json& request = json.at("request");
  if (request.is_null()) return record;
  OperationRequestRecord& sent = record.request.emplace();
  sent.fingerprint = request.at("fingerprint").get<std::string>();
  sent.dispatched_at = read_time(request.at("dispatched_at"));
  if (const Json& status = request.at("status"); !status.is_null())
    sent.status = status.get<unsigned>();
  sent.upstream_id = find_text(request, "request_id");
  sent.stored_bytes = request.at("stored_bytes").get<std::uint64_t>();
  sent.whole = request.at("whole").get<bool>();
  return record;
}

}  // namespace hearth::detail
