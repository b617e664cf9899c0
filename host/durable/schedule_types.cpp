#include "durable/schedule_types.hpp"

namespace hearth::durable {

std::string_view to_string(ScheduleType type) noexcept {
  switch (type) {
    case ScheduleType::kDelay: return "delay";
    case ScheduleType::kAt: return "at";
    case ScheduleType::kCron: return "cron";
    case ScheduleType::kInterval: return "interval";
  }
  return "";
}

std::optional<ScheduleType> schedule_type(std::string_view word) noexcept {
  for (const ScheduleType type :
       {ScheduleType::kDelay, ScheduleType::kAt, ScheduleType::kCron, ScheduleType::kInterval}) {
    if (word == to_string(type)) return type;
  }
  return std::nullopt;
}

std::string_view to_string(Misfire misfire) noexcept {
  switch (misfire) {
    case Misfire::kOnce: return "once";
    case Misfire::kSkip: return "skip";
    case Misfire::kAll: return "all";
  }
  return "";
}

std::string_view to_string(Overlap overlap) noexcept {
  switch (overlap) {
    case Overlap::kSkip: return "skip";
    case Overlap::kQueue: return "queue";
    case Overlap::kAllow: return "allow";
  }
  return "";
}

}  // namespace hearth::durable
