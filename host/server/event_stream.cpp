#include "server/event_stream.hpp"

#include "api/admin_api.hpp"
#include "api/admin_requests.hpp"
#include "api/query_words.hpp"
#include "protocol/class_segment.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace hearth::server {
namespace {

// Between two parts of a reader, so that many events come in one.
constexpr std::chrono::milliseconds kTogether{20};
constexpr std::chrono::seconds kLook{1};

Result<LogLevel> level_of(std::string_view word) {
  if (word.empty()) return LogLevel::kInfo;
  for (const LogLevel each :
       {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    if (word == to_string(each)) return each;
  }
  return Error{Errc::kInvalidArgument, "level is trace, debug, info, warn or error"};
}

Result<EventFilter> read_filter(std::string_view query) {
  api::QueryReader in(query);
  EventFilter filter;
  const std::string agent_class = in.word("class");
  filter.agent = api::name_of_key(in.word("agent"));
  filter.trace = in.word("trace");
  const auto level = level_of(in.word("level"));
  if (!in.wrong() && !level) return level.error();
  if (level) filter.level = *level;
  if (!agent_class.empty()) filter.segment = protocol::kebab_case(agent_class);
  filter.since_ms = in.number("since_ms");
  return in.result(std::move(filter));
}

net::HttpResponse stream_head() {
  net::HttpResponse head;
  head.headers.push_back({"Content-Type", "text/event-stream"});
  return api::admin_sealed(std::move(head));
}

}  // namespace

EventStream::EventStream(Logger& next, const Clock& clock, std::chrono::milliseconds patience)
    : next_(next),
      clock_(clock),
      patience_(patience),
      process_(::getpid()),
      ring_(std::to_string(unix_millis(clock.wall_now()))) {}

EventStream::~EventStream() {
  stop();
}

void EventStream::add_routes(std::vector<api::Route>& rows) {
  rows.push_back({"GET",
                  "/admin/events",
                  api::Access::kAdministrator,
                  "The events of the log as they happen, as server-sent events.",
                  [this](const api::RouteCall& call) { answer(call); },
                  {.query = "class agent trace level since_ms after", .answer = "EventStream"}});
}

void EventStream::write(LogLevel level, std::string_view event, std::span<const LogField> fields) {
  if (next_.enabled(level)) next_.write(level, event, fields);
  if (!enabled(level) || ::getpid() != process_) return;
  {
    const MutexLock lock(mutex_);
    ring_.put({.time = clock_.wall_now(), .level = level, .name = event, .fields = fields});
    if (readers_.empty()) return;
  }
  news_.notify_one();
}

// What is called here may write lines, so the mutex is not held.
void EventStream::answer(const api::RouteCall& call) {
  const auto filter = read_filter(call.query);
  if (!filter) return call.exchange->respond(api::admin_refusal(filter.error()));
  if (call.exchange->request().method == "HEAD") return call.exchange->respond(stream_head());
  auto cursor = begin(call, *filter);
  if (!cursor) return call.exchange->respond(api::admin_refusal(cursor.error()));
  const auto reader = std::make_shared<Reader>();
  reader->exchange = call.exchange;
  reader->filter = *filter;
  reader->needs_session = in_session_ && call.actor == "console";
  reader->at = *std::move(cursor);
  net::HttpResponse head = stream_head();
  head.body = "retry: 1000\n\n";
  call.exchange->start(std::move(head));
  call.exchange->on_abort([this, weak = std::weak_ptr(reader)] {
    const auto left = weak.lock();
    if (left == nullptr) return;
    const MutexLock lock(mutex_);
    left->has_left = true;
    news_.notify_one();
  });
  add(reader);
}

Result<EventRing::Cursor> EventStream::begin(const api::RouteCall& call,
                                             const EventFilter& filter) {
  auto after = api::value_in(call.query, "after", 64);
  if (!after) return after.error();
  if (const auto last = net::find_header(call.exchange->request().headers, "Last-Event-ID"))
    *after = std::string(*last);
  const MutexLock lock(mutex_);
  if (stopping_) return Error{Errc::kClosing, "the server is shutting down"};
  if (readers_.size() >= kMaxReaders)
    return Error{Errc::kUnavailable, "too many read the events: end another reader, or wait"};
  const std::optional<std::string>& from = *after;
  return from ? ring_.behind(*from) : ring_.begin(filter);
}

void EventStream::add(const std::shared_ptr<Reader>& reader) {
  {
    const MutexLock lock(mutex_);
    if (!stopping_ && readers_.size() < kMaxReaders) {
      readers_.push_back(reader);
      find_finest();
      if (!sender_.joinable()) sender_ = std::thread([this] { send(); });
      news_.notify_one();
      return;
    }
  }
  reader->exchange->finish();
}

void EventStream::find_finest() {
  LogLevel finest = LogLevel::kInfo;
  for (const auto& each : readers_) finest = std::min(finest, each->filter.level);
  asked_ = finest;
}

void EventStream::stop() {
  std::thread sender;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    sender = std::move(sender_);
  }
  news_.notify_one();
  if (sender.joinable()) sender.join();
  std::vector<std::shared_ptr<Reader>> readers;
  {
    const MutexLock lock(mutex_);
    readers.swap(readers_);
  }
  for (const auto& each : readers) each->exchange->finish();
}

// ---- on the sender's thread ---------------------------------------------------------------------

void EventStream::send() {
  for (;;) {
    std::vector<std::shared_ptr<Reader>> gone;
    std::vector<Part> parts;
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
      parts = take_parts(gone);
      if (parts.empty() && gone.empty()) {
        if (readers_.empty()) {
          news_.wait(mutex_);
        } else {
          (void)news_.wait_for(mutex_, kLook);
        }
        continue;
      }
    }
    for (Part& part : parts) {
      part.to->exchange->write(std::move(part.text));
      part.to->exchange->when_drained([this, weak = std::weak_ptr(part.to)] {
        const auto drained = weak.lock();
        if (drained == nullptr) return;
        const MutexLock lock(mutex_);
        drained->may_write = true;
        news_.notify_one();
      });
    }
    gone.clear();  // cuts their connections
    std::this_thread::sleep_for(kTogether);
  }
}

std::vector<EventStream::Part> EventStream::take_parts(std::vector<std::shared_ptr<Reader>>& gone) {
  const auto now = std::chrono::steady_clock::now();
  std::vector<Part> parts;
  const bool looks = now - looked_at_ >= kLook;
  if (looks) looked_at_ = now;
  std::erase_if(readers_, [&](const std::shared_ptr<Reader>& reader) {
    const bool goes = reader->has_left ||
                      (!reader->may_write && now - reader->wrote_at > patience_) ||
                      (looks && reader->needs_session && !in_session_(reader->exchange->request()));
    if (goes) gone.push_back(reader);
    return goes;
  });
  if (!gone.empty()) find_finest();
  for (const auto& reader : readers_) {
    if (!reader->may_write) continue;
    std::string text = ring_.read(reader->at, reader->filter, kPart);
    // An id without data, also at once: a reader that leaves now comes back to this place.
    if (text.empty() && now - reader->wrote_at > kHeartbeat)
      text = "id: " + ring_.id_of(reader->at.number) + "\n\n";
    if (text.empty()) continue;
    reader->may_write = false;
    reader->wrote_at = now;
    parts.push_back({reader, std::move(text)});
  }
  return parts;
}

}  // namespace hearth::server
