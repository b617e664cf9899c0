#include "durable/operation_records.hpp"

#include "durable/record_page.hpp"
#include "json/json_object_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace hearth::durable {

namespace {

constexpr std::array<std::string_view, 5> kEffectWords = {"read", "idempotent", "keyed", "probe",
                                                          "unsafe"};

// ?1: behind this one; ?2: the scope of the filter's fiber.
std::string_view listing_text(const OperationFilter& filter, bool is_of_fiber) {
  constexpr auto kSettled = static_cast<std::uint32_t>(OperationState::kCompleted) |
                            static_cast<std::uint32_t>(OperationState::kNotExecuted);
  if (is_of_fiber && filter.keyed_too)
    return "FROM cf_agents_operations WHERE seq > ?1 AND (scope = ?2 OR root = ?2) ORDER BY seq";
  if (is_of_fiber) return "FROM cf_agents_operations WHERE seq > ?1 AND scope = ?2 ORDER BY seq";
  if (filter.states != 0 && (filter.states & kSettled) == 0)
    return "FROM cf_agents_operations WHERE state IN ('started', 'unknown') AND seq > ?1 AND ?2 = "
           "'' ORDER BY seq";
  return "FROM cf_agents_operations WHERE seq > ?1 AND ?2 = '' ORDER BY seq";
}

}  // namespace

std::string_view to_string(OperationState state) {
  switch (state) {
    case OperationState::kRunning: return "running";
    case OperationState::kInterrupted: return "interrupted";
    case OperationState::kCompleted: return "completed";
    case OperationState::kNotExecuted: return "not_executed";
    case OperationState::kUnknown: return "unknown";
  }
  return "unknown";
}

std::string OperationRecords::record(const OperationRow& row, bool without_documents) {
  const auto effect = static_cast<std::size_t>(row.effect) - 1;
  JsonObjectText json;
  json.text("id", row.id)
      .text("kind", row.kind)
      .text("effect", kEffectWords[std::min(effect, kEffectWords.size() - 1)])
      .text("state", to_string(running_.state_of(row)))
      .text_or_null("key", row.key)
      .text_or_null("scope", row.scope);
  if (!without_documents) {
    json.json_or_null("args", table_.document(row.seq, OperationPart::kArguments))
        .json_or_null("result", table_.document(row.seq, OperationPart::kResult));
  }
  json.number("cost", row.cost)
      .number("attempts", row.attempts)
      .number("started_at", row.started_at_ms)
      .number_or_null("horizon_at", row.horizon_at_ms)
      .number_or_null("settled_at", row.settled_at_ms)
      .text_or_null("settled_by", row.settled_by)
      .text_or_null("note", row.note);
  const auto request = answers_.find(row.seq);
  if (!request) return json.json("request", "null").take();
  JsonObjectText sent;
  sent.text("fingerprint", request->fingerprint)
      .number("dispatched_at", request->dispatched_at_ms)
      .number_or_null("status", request->status)
      .text_or_null("request_id", request->upstream_id)
      .number("stored_bytes", static_cast<std::int64_t>(request->bytes))
      .flag("whole", request->whole);
  return json.json("request", sent.take()).take();
}

Result<std::string> OperationRecords::inspect(std::string_view id) {
  const auto row = table_.find(id);
  if (!row) return Error{Errc::kNotFound, "no operation has this id"};
  return record(*row);
}

Result<std::string> OperationRecords::list(const OperationFilter& filter) {
  std::int64_t behind = 0;
  if (!filter.after.empty()) {
    const auto last = table_.find(filter.after);
    if (!last) return Error{Errc::kNotFound, "no operation has the id `after`"};
    behind = last->seq;
  }
  const std::string scope =
      filter.fiber.empty() ? std::string() : fibers_.scope_of(std::string(filter.fiber)).path;
  const auto fits = [&](const OperationRow& row) {
    const auto state = static_cast<std::uint32_t>(running_.state_of(row));
    return (filter.kind.empty() || row.kind == filter.kind) &&
           (filter.states == 0 || (filter.states & state) != 0) &&
           !(filter.begun_before_ms && row.started_at_ms >= *filter.begun_before_ms);
  };
  RecordPage page(filter.limit, kMaxPageBytes);
  table_.each(listing_text(filter, !scope.empty()), storage::params_of(behind, scope),
              [&](OperationRow& row) {
                if (page.full()) return false;
                return !fits(row) || page.add(record(row, filter.without_documents));
              });
  return page.take();
}

}  // namespace hearth::durable
