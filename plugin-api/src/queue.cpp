#include <hearth/queue.hpp>

namespace hearth::detail {

QueueItem read_queue_item(const Json& record) {
  QueueItem item;
  item.id = record.at("id").get<std::string>();
  item.callback = record.at("callback").get<std::string>();
  item.payload = find_json(record, "payload");
  item.state =
      find_word<QueueState>(kQueueStates, record.at("state").get_ref<const std::string&>());
  item.created_at = read_time(record.at("created_at"));
  item.attempts = find_number(record, "attempts", 0);
  item.next_at = find_time(record, "next_at");
  item.retry = read_retry(find_json(record, "retry"));
  item.last_error = find_text(record, "last_error");
  return item;
}

QueueItem read_queue_run(std::string_view callback, const Json& event) {
  QueueItem item;
  item.id = event.at("id").get<std::string>();
  item.callback = callback;
  item.payload = find_json(event, "payload");
  item.state = QueueState::kRunning;
  item.created_at = read_time(event.at("created_at"));
  item.attempts = find_number(event, "attempt", 1);
  return item;
}

std::optional<QueueItem> find_queue_item(const Activation& activation, std::string_view id) {
  hearth_bytes record = {nullptr, 0};
  const hearth_status status =
      queue_table(activation).get(activation.host(), activation.id(), slice(id), &record);
  if (!found(activation, status, "get queue item")) return std::nullopt;
  return read_queue_item(parse_record(view(record)));
}

std::uint64_t remove_queue_items(const Activation& activation, std::string_view callback) {
  hearth_queue_filter filter = {};
  filter.struct_size = sizeof filter;
  filter.callback = slice(callback);
  std::uint64_t removed = 0;
  activation.check(
      queue_table(activation).remove_all(activation.host(), activation.id(), &filter, &removed),
      "dequeue all");
  return removed;
}

}  // namespace hearth::detail

namespace hearth {

void to_json(Json& json, const QueueItem& item) {
  json = {{"id", item.id},
          {"callback", item.callback},
          {"payload", item.payload},
          {"state", std::string(word_of(detail::kQueueStates, item.state))},
          {"created_at", item.created_at.time_since_epoch().count()},
          {"attempts", item.attempts},
          {"next_at", detail::to_json_time(item.next_at)},
          {"retry", detail::to_json_retry(item.retry)},
          {"last_error", detail::to_json_text(item.last_error)}};
}

}  // namespace hearth
