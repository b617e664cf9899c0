#pragma once
// The queue: calls that an agent gives itself, one after the other, stored like the agent's data.
//
//     queue("send_mail", {{"to", "ada@example.org"}});     // see callback() in Methods
//
// Promises  Written with the running turn. Items are delivered in the order in which they were
//           pushed, one at a time, after a restart too. At least once: an item whose work was
//           interrupted is delivered again. An item that throws is retried as its retry options
//           say, while the items behind it wait. After that it is a dead letter: kept and listed,
//           and the others go on. An item that throws Final is one at once. An item whose callback
//           the class does not have, or whose payload it cannot read, waits for another version,
//           and the others go on.
// Bounded   The class's YAML: queue.max_items, queue.timeout. A payload: limits.max_value.
// Failure   Error(INVALID): the class lists no such callback. HostError: INVALID (also while a
//           transaction() is open), LIMIT.

#include <hearth/callback.hpp>
#include <hearth/ext/queue.h>
#include <hearth/retry.hpp>
#include <hearth/time.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

enum class QueueState : std::uint8_t { kWaiting, kRunning, kDead };

// An item as it is stored. A callback may take it as its last parameter: `void send_mail(Mail mail,
// const QueueItem& item)`; it is valid until the callback has ended, waits included.
struct QueueItem {
  std::string id;
  std::string callback;
  Json payload;
  QueueState state = QueueState::kWaiting;
  Time created_at;
  int attempts = 0;  // begun so far; in a callback 1 or more
  std::optional<Time> next_at;
  RetryOptions retry;  // not in a callback
  std::optional<std::string> last_error;
};

// The filter of list_queue(). A field with its default does not restrict.
struct QueueFilter {
  std::string callback = {};
  std::optional<QueueState> state = std::nullopt;
  std::string member = {};    // the payload is an object with this member ...
  Json value = nullptr;       // ... of this value
  std::string after = {};     // an id: only items after it
  std::uint32_t limit = 100;  // 1 to 1000
};

namespace detail {

inline constexpr std::array<std::pair<QueueState, std::string_view>, 3> kQueueStates = {
    {{QueueState::kWaiting, "waiting"},
     {QueueState::kRunning, "running"},
     {QueueState::kDead, "dead"}}};

QueueItem read_queue_item(const Json& record);

QueueItem read_queue_run(std::string_view callback, const Json& event);

inline const hearth_queue_v1& queue_table(const Activation& activation) {
  return need(activation.tables().queue, HEARTH_EXT_QUEUE);
}
std::optional<QueueItem> find_queue_item(const Activation& activation, std::string_view id);
// Items of `callback`, or all if that is empty.
std::uint64_t remove_queue_items(const Activation& activation, std::string_view callback);

// The part of Agent for the queue. Its private names are ones that no agent class is likely to use.
template <class Self>
class QueueCalls {
 public:
  // Appends an item. `retry` without a value: the class's, Agent::retry_defaults(). A stored item
  // cannot have should_retry.
  QueueItem queue(std::string_view callback, const Json& payload = nullptr,
                  const std::optional<RetryOptions>& retry = std::nullopt);
  // Lets a call use braces: queue("send_mail", mail, {.max_attempts = 5}).
  QueueItem queue(std::string_view callback, const Json& payload, const RetryOptions& retry) {
    return queue(callback, payload, std::optional<RetryOptions>(retry));
  }
  template <MakesNoJson Payload, class... Rest>
  void queue(std::string_view /*callback*/, const Payload& /*payload*/, const Rest&... /*rest*/) {
    need_json<Payload>();
  }

  [[nodiscard]] std::optional<QueueItem> get_queue(std::string_view id) {
    return find_queue_item(activation_of_self(), id);
  }
  // In the order of delivery.
  [[nodiscard]] std::vector<QueueItem> list_queue(const QueueFilter& filter = {});
  // Items whose payload is an object in which `member` is `value`; at most 1000.
  [[nodiscard]] std::vector<QueueItem> get_queues(std::string member, Json value) {
    QueueFilter filter;
    filter.member = std::move(member);
    filter.value = std::move(value);
    filter.limit = 1'000;
    return list_queue(filter);
  }

  // Removes it. If it runs now, that run goes on to its end and is not repeated. False: no item has
  // this id.
  bool dequeue(std::string_view id) {
    Activation& live = activation_of_self();
    return found(live, queue_table(live).remove(live.host(), live.id(), slice(id)), "dequeue");
  }
  // Returns how many were removed.
  std::uint64_t dequeue_all() { return remove_queue_items(activation_of_self(), {}); }
  std::uint64_t dequeue_all_by_callback(std::string_view callback) {
    return remove_queue_items(activation_of_self(), callback);
  }
  // Puts a dead letter at the end, with its attempts counted from 0. False: no dead letter has this
  // id.
  bool revive_queue_item(std::string_view id) {
    Activation& live = activation_of_self();
    return found(live, queue_table(live).retry(live.host(), live.id(), slice(id)),
                 "retry queue item");
  }

 private:
  friend Self;
  QueueCalls() = default;
  [[nodiscard]] Activation& activation_of_self() { return static_cast<Self*>(this)->activation(); }
};

template <class Self>
QueueItem QueueCalls<Self>::queue(std::string_view callback, const Json& payload,
                                  const std::optional<RetryOptions>& retry) {
  Activation& live = activation_of_self();
  need_callback(live, callback, false);
  const StoredRetry stored =
      stored_retry(retry, [this] { return static_cast<Self*>(this)->retry_defaults(); });
  const std::string text = to_text(payload);
  hearth_queue_request request = {};
  request.struct_size = sizeof request;
  request.max_attempts = stored.max_attempts;
  request.callback = slice(callback);
  request.payload = slice(std::string_view(text));
  request.retry_base_ms = stored.base_ms;
  request.retry_max_ms = stored.max_ms;
  hearth_bytes record = {nullptr, 0};
  live.check(queue_table(live).push(live.host(), live.id(), &request, &record), "queue");
  return read_queue_item(parse_record(view(record)));
}

template <class Self>
std::vector<QueueItem> QueueCalls<Self>::list_queue(const QueueFilter& filter) {
  const std::string value = to_text(filter.value);
  hearth_queue_filter wanted = {};
  wanted.struct_size = sizeof wanted;
  wanted.limit = filter.limit;
  wanted.callback = slice(std::string_view(filter.callback));
  if (filter.state) wanted.state = slice(word_of(kQueueStates, *filter.state));
  wanted.member = slice(std::string_view(filter.member));
  if (!filter.member.empty()) wanted.value = slice(std::string_view(value));
  wanted.after = slice(std::string_view(filter.after));
  hearth_bytes records = {nullptr, 0};
  Activation& live = activation_of_self();
  live.check(queue_table(live).list(live.host(), live.id(), &wanted, &records), "list queue");
  std::vector<QueueItem> all;
  for (const Json& record : parse_record(view(records))) all.push_back(read_queue_item(record));
  return all;
}

}  // namespace detail

// So that a method may return them: as the host's records, with times in Unix milliseconds.
void to_json(Json& json, const QueueItem& item);

}  // namespace hearth
