#include "durable/queue.hpp"

#include "base/assert.hpp"
#include "base/utf8.hpp"
#include "durable/back_off.hpp"
#include "durable/fiber_record.hpp"
#include "json/json_scanner.hpp"
#include "json/json_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::durable {
namespace {

constexpr std::size_t kMaxItemCallbackBytes = 256;
constexpr std::size_t kMaxItemErrorBytes = 4096;
constexpr std::size_t kMostItemsListed = 1'000;
constexpr std::size_t kItemsListedByDefault = 100;
constexpr std::size_t kMaxItemPageBytes = std::size_t{4} << 20;
constexpr std::size_t kRemovedAtOnce = 1'000;

// After the second interruption in a row and each further one. The first may be anybody's fault: it is delivered again at once.
constexpr std::chrono::milliseconds kInterruptedBase{1'000};
constexpr std::chrono::milliseconds kInterruptedCap{300'000};

Error refused(const char* why) {
  return Error{Errc::kInvalidArgument, why};
}

Error not_found(const char* what) {
  return Error{Errc::kNotFound, what};
}

// Whether the payload is an object with this member of this value.
bool has_member(const std::optional<std::string>& payload, const QueueFilter& filter) {
  if (!payload) return false;
  std::array<WantedMember, 1> wanted{{{filter.member, {}}}};
  if (!scan_json_object(*payload, wanted) || wanted[0].json.empty()) return false;
  return same_json(wanted[0].json, filter.value);
}

}  // namespace

Queue::Queue(storage::AgentDatabase& database, const Clock& clock, Random& random,
             QueueSettings settings)
    : table_(database), clock_(clock), random_(random), settings_(settings) {}

void Queue::load() {
  find_head();
}

void Queue::find_head() {
  head_.reset();
  if (running_) return;
  const auto row = table_.head();
  if (!row) return;
  // No wait that we would set is longer: one that is was written by a clock that has been set back since.
  const std::int64_t longest =
      std::max<std::int64_t>(row->longest_wait_ms, (kInterruptedCap + kInterruptedCap / 4).count());
  head_ = Head{*row, DueTime(clock_, std::min(row->next_at_ms, now_ms() + longest))};
}

bool Queue::runs(const QueueRow& row) const {
  return running_ && !running_->removed && running_->seq == row.seq;
}

// ---- for the agent's code ---------------------------------------------------------------------------------

Result<void> Queue::make_room() {
  if (!size_) size_ = table_.size_bound();
  if (*size_ >= settings_.max_items && !size_is_exact_) {
    size_ = table_.size();
    size_is_exact_ = true;
  }
  if (*size_ < settings_.max_items) return {};
  return Error{Errc::kLimitExceeded, "this agent's queue is full"};
}

void Queue::forget_rows(std::size_t count) {
  if (size_) *size_ -= std::min(*size_, count);
}

Result<Queue::Pushed> Queue::push(const QueueRequest& request) {
  if (request.callback.empty() || request.callback.size() > kMaxItemCallbackBytes ||
      !is_valid_utf8(request.callback)) {
    return refused("an item's callback is 1 to 256 bytes of UTF-8");
  }
  if (request.payload.size() > settings_.max_payload_bytes) {
    return Error{Errc::kLimitExceeded, "the item's payload is larger than " +
                                           std::to_string(settings_.max_payload_bytes) + " bytes"};
  }
  if (!request.payload.empty() && !is_json(request.payload)) {
    return refused("an item's payload must be JSON");
  }
  auto retry = checked_retry(request.max_attempts, request.retry_base_ms, request.retry_max_ms);
  if (retry.has_error()) return retry.error();
  if (auto room = make_room(); room.has_error()) return room.error();

  QueueRow row;
  row.id = make_uuid(random_);
  row.callback = request.callback;
  row.created_at_ms = now_ms();
  row.retry = *retry;
  if (!request.payload.empty()) row.payload = request.payload;
  row.seq = table_.append(row);
  if (size_) ++*size_;
  if (!running_ && !head_) {
    head_ = Head{QueueHead{row.seq, 0, 0, row.retry.cap.count()}, DueTime()};
  }
  std::string record = record_json(row);
  return Pushed{std::move(record), std::move(row.id)};
}

Result<std::string> Queue::get(std::string_view id) {
  const auto row = table_.find(id);
  if (!row) return not_found("no item has this id");
  return record_json(*row);
}

std::string Queue::record_json(const QueueRow& row) const {
  const bool running = runs(row);
  const bool waits = !running && !row.dead && row.next_at_ms > 0;
  std::string json = R"({"id":)";
  append_json_string(json, row.id);
  json += R"(,"callback":)";
  append_json_string(json, row.callback);
  json += R"(,"payload":)" + row.payload.value_or("null");
  json += R"(,"state":")";
  json += row.dead ? "dead" : running ? "running" : "waiting";
  json += R"(","created_at":)" + std::to_string(row.created_at_ms);
  json += R"(,"attempts":)" + std::to_string(row.deliveries);
  json += R"(,"next_at":)" + (waits ? std::to_string(row.next_at_ms) : "null");
  json += R"(,"retry":{"max_attempts":)" + std::to_string(row.retry.max_attempts);
  json += R"(,"base_delay_ms":)" + std::to_string(row.retry.base.count());
  json += R"(,"max_delay_ms":)" + std::to_string(row.retry.cap.count());
  json += R"(},"last_error":)";
  if (row.last_error) {
    append_json_string(json, *row.last_error);
  } else {
    json += "null";
  }
  return json + "}";
}

Result<QueueQuery> Queue::query_of(const QueueFilter& filter) const {
  if (filter.member.empty() != filter.value.empty()) {
    return refused("a member of the payload is looked for together with its value");
  }
  if (!filter.value.empty() && !is_json(filter.value)) {
    return refused("the value that is looked for must be JSON");
  }
  const std::int64_t running = running_ && !running_->removed ? running_->seq : -1;
  QueueQuery query;
  query.callback = filter.callback;
  if (filter.state == "dead") {
    query.dead = true;
  } else if (filter.state == "waiting") {
    query.dead = false;
    query.except = running;
  } else if (filter.state == "running") {
    query.only = running;
  } else if (!filter.state.empty()) {
    return refused("an item's state is waiting, running or dead");
  }
  return query;
}

Result<std::string> Queue::list(const QueueFilter& filter) {
  auto query = query_of(filter);
  if (query.has_error()) return query.error();
  if (filter.limit > kMostItemsListed) return refused("a page has at most 1,000 items");
  const std::size_t limit = filter.limit == 0 ? kItemsListedByDefault : filter.limit;
  if (!filter.after.empty()) {
    const auto seq = table_.seq_of(filter.after);
    if (!seq) return not_found("no item has the id `after`");
    query->after = *seq;
  }
  std::string page = "[";
  std::size_t count = 0;
  table_.walk(*query, [&](const QueueRow& row) {
    if (!filter.member.empty() && !has_member(row.payload, filter)) return true;
    if (count++ > 0) page += ',';
    page += record_json(row);
    return count < limit && page.size() < kMaxItemPageBytes;
  });
  return page + "]";
}

Result<void> Queue::remove(std::string_view id) {
  const auto seq = table_.seq_of(id);
  if (!seq) return not_found("no item has this id");
  table_.erase(*seq);
  forget_rows(1);
  if (running_ && running_->seq == *seq) running_->removed = true;
  if (head_ && head_->row.seq == *seq) find_head();
  return {};
}

Result<std::uint64_t> Queue::remove_all(const QueueFilter& filter) {
  const auto query = query_of(filter);
  if (query.has_error()) return query.error();
  const std::uint64_t removed =
      filter.member.empty() ? table_.erase(*query) : remove_matching(*query, filter);
  forget_rows(removed);
  if (running_ && !running_->removed) running_->removed = !table_.find(running_->seq);
  find_head();
  return removed;
}

// A bounded number after the other: neither the rows nor their keys are all in memory.
std::uint64_t Queue::remove_matching(QueueQuery query, const QueueFilter& filter) {
  std::uint64_t removed = 0;
  std::vector<std::int64_t> found;
  do {
    found.clear();
    table_.walk(query, [&](const QueueRow& row) {
      query.after = row.seq;
      if (has_member(row.payload, filter)) found.push_back(row.seq);
      return found.size() < kRemovedAtOnce;
    });
    for (const std::int64_t seq : found) table_.erase(seq);
    removed += found.size();
  } while (found.size() == kRemovedAtOnce);
  return removed;
}

Result<void> Queue::retry(std::string_view id) {
  const auto row = table_.find(id);
  if (!row || !row->dead) return not_found("no dead letter has this id");
  table_.move_to_end(row->seq);
  if (!head_) find_head();
  return {};
}

// ---- delivery ---------------------------------------------------------------------------------------------

std::optional<QueueDelivery> Queue::begin_next() {
  while (due()) {
    HEARTH_ASSERT(head_, "something is due, and the queue has no head");
    std::optional<QueueRow> row = table_.find(head_->row.seq);
    HEARTH_ASSERT(row, "the head of the queue is not in its table");
    if (row->interruptions >= settings_.max_interruptions) {
      row->dead = true;
      row->last_error = "interrupted again and again in the middle of its work";
      table_.update(*row);
      dead_.push_back(std::move(row->id));
      find_head();
      continue;
    }
    ++row->deliveries;
    ++row->interruptions;  // until its end is known
    if (row->interruptions > 1) {
      row->next_at_ms =
          now_ms() +
          back_off(row->interruptions - 1, kInterruptedBase, kInterruptedCap, random_).count();
    }
    table_.update(*row);
    running_ = Running{row->seq};
    head_.reset();
    QueueDelivery delivery;
    delivery.attempt = row->deliveries;
    delivery.body = R"({"id":)";
    append_json_string(delivery.body, row->id);
    delivery.body += R"(,"payload":)" + row->payload.value_or("null");
    delivery.body += R"(,"created_at":)" + std::to_string(row->created_at_ms);
    delivery.body += R"(,"attempt":)" + std::to_string(row->deliveries) + "}";
    delivery.id = std::move(row->id);
    delivery.callback = std::move(row->callback);
    return delivery;
  }
  return std::nullopt;
}

QueueEnd Queue::ended(bool done, bool missing, std::string_view error) {
  HEARTH_ASSERT(running_, "the end of a delivery that was not begun");
  const Running running = *running_;
  running_.reset();
  QueueEnd end;
  if (running.removed) {
    end.next = QueueEnd::Next::kRemoved;
  } else if (done) {
    table_.erase(running.seq);
    forget_rows(1);
    end.next = QueueEnd::Next::kDone;
  } else {
    std::optional<QueueRow> row = table_.find(running.seq);
    HEARTH_ASSERT(row, "the running item is not in its table");
    ++row->failures;
    row->interruptions = 0;
    row->next_at_ms = 0;
    row->last_error = error.substr(0, kMaxItemErrorBytes);
    row->dead = missing || row->failures >= row->retry.max_attempts;
    end.next = QueueEnd::Next::kDead;
    if (!row->dead) {
      end.next = QueueEnd::Next::kRetry;
      end.next_ms = now_ms() + retry_wait(row->retry, row->failures, random_).count();
      row->next_at_ms = end.next_ms;
    }
    table_.update(*row);
  }
  find_head();
  return end;
}

void Queue::interrupt_on_purpose() {
  if (!running_ || running_->removed) return;
  std::optional<QueueRow> row = table_.find(running_->seq);
  HEARTH_ASSERT(row, "the running item is not in its table");
  --row->deliveries;
  --row->interruptions;
  row->next_at_ms = 0;
  table_.update(*row);
}

std::vector<std::string> Queue::take_dead() {
  return std::exchange(dead_, {});
}

bool Queue::due() const {
  return head_ && head_->due.reached(Now(clock_));
}

Wake Queue::wake() const {
  Wake wake;
  // What is due is begun in this turn: from the first item to the last the index is written to once.
  wake.working = running_ || due();
  if (head_ && !wake.working) wake.at_ms = head_->due.wall_ms(Now(clock_));
  return wake;
}

}  // namespace hearth::durable
