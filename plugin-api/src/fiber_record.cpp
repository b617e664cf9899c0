#include <hearth/fiber_record.hpp>

namespace hearth::detail {

FiberRecord read_fiber(const Json& record) {
  FiberRecord fiber;
  fiber.id = record.at("id").get<std::string>();
  fiber.name = record.at("name").get<std::string>();
  fiber.status =
      find_word<FiberStatus>(kFiberStatuses, record.at("status").get_ref<const std::string&>());
  fiber.key = find_text(record, "key");
  fiber.input = find_json(record, "input");
  fiber.metadata = find_json(record, "metadata");
  fiber.snapshot = find_json(record, "snapshot");
  fiber.result = find_json(record, "result");
  fiber.error = find_text(record, "error");
  fiber.reason = find_text(record, "reason");
  fiber.dead = find_number(record, "dead", false);
  fiber.created_at = read_time(record.at("created_at"));
  fiber.started_at = find_time(record, "started_at");
  fiber.completed_at = find_time(record, "completed_at");
  fiber.attempts = find_number(record, "attempts", 0);
  fiber.failures = find_number(record, "failures", 0);
  fiber.max_retries = find_number(record, "max_retries", 0);
  fiber.next_at = find_time(record, "next_at");
  fiber.waits_for_code = find_number(record, "waits_for_code", false);
  fiber.brief = find_number(record, "brief", false);
  fiber.lane = find_text(record, "lane");
  return fiber;
}

std::string outcome_text(const FiberOutcome& outcome) {
  Json json = {{"status", std::string(word_of(kFiberStatuses, outcome.status))}};
  if (outcome.status == FiberStatus::kCompleted) json["result"] = outcome.result;
  if (!outcome.error.empty()) json["error"] = outcome.error;
  if (!outcome.reason.empty()) json["reason"] = outcome.reason;
  if (outcome.snapshot) json["snapshot"] = *outcome.snapshot;
  if (outcome.metadata) json["metadata"] = *outcome.metadata;
  return to_text(json);
}

std::vector<InterruptedFiber> read_interrupted(std::string_view body) {
  std::vector<InterruptedFiber> all;
  for (const Json& each : parse_record(body)) {
    all.push_back({each.at("id").get<std::string>(), each.at("name").get<std::string>(),
                   read_time(each.at("created_at")), find_number(each, "attempt", 1)});
  }
  return all;
}

}  // namespace hearth::detail

namespace hearth {

void to_json(Json& json, const FiberRecord& fiber) {
  json = {{"id", fiber.id},
          {"name", fiber.name},
          {"status", std::string(word_of(detail::kFiberStatuses, fiber.status))},
          {"key", detail::to_json_text(fiber.key)},
          {"input", fiber.input},
          {"metadata", fiber.metadata},
          {"snapshot", fiber.snapshot},
          {"result", fiber.result},
          {"error", detail::to_json_text(fiber.error)},
          {"dead", fiber.dead},
          {"created_at", fiber.created_at.time_since_epoch().count()},
          {"started_at", detail::to_json_time(fiber.started_at)},
          {"completed_at", detail::to_json_time(fiber.completed_at)},
          {"attempts", fiber.attempts},
          {"failures", fiber.failures},
          {"max_retries", fiber.max_retries},
          {"next_at", detail::to_json_time(fiber.next_at)}};
  if (fiber.waits_for_code) json["waits_for_code"] = true;
  if (fiber.reason) json["reason"] = *fiber.reason;
  if (fiber.brief) json["brief"] = true;
  if (fiber.lane) json["lane"] = *fiber.lane;
}

}  // namespace hearth
