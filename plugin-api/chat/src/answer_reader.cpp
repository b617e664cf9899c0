#include <hearth/chat/answer_reader.hpp>
#include <hearth/chat/chunk.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace hearth::chat {

namespace {

std::string in_lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// What a chunk adds to the text of its message, at most.
std::size_t bytes_in_message(const Json& chunk) {
  for (const char* const delta : {"delta", "inputTextDelta"})
    if (const auto found = chunk.find(delta); found != chunk.end() && found->is_string())
      return to_text(*found).size() - 2;  // the quotes
  return to_text(chunk).size();
}

}  // namespace

bool is_one_body(std::string_view content_type) {
  return in_lower_case(content_type).starts_with("application/json");
}

Failure CallOutcome::as_failure() const {
  Failure result{FailureKind::kTransient, text};
  for (const FailureKind kind :
       {FailureKind::kCut, FailureKind::kTransient, FailureKind::kRateLimit,
        FailureKind::kContextOverflow, FailureKind::kRefused, FailureKind::kAuth,
        FailureKind::kBilling, FailureKind::kInvalid})
    if (failure_name(kind) == failure) result.kind = kind;
  if (retry_after_ms) result.retry_after = std::chrono::milliseconds(*retry_after_ms);
  return result;
}

AnswerReader::AnswerReader(const Provider& provider, ModelAnswer answer, std::uint64_t used_events,
                           TakeChunks take, std::size_t room)
    : provider_(provider),
      take_(std::move(take)),
      answer_(std::move(answer)),
      used_(used_events),
      room_(room) {}

bool AnswerReader::feed(std::string_view bytes) {
  try {
    parser_.feed(bytes);
  } catch (const Error& error) {  // an event over the limit would come again
    answer_.fail({FailureKind::kInvalid, error.what()});
  }
  bool has_chunks = false;
  while (const auto event = parser_.take()) {
    provider_.read(*event, answer_);
    has_chunks = count() || has_chunks;
  }
  hand_on();
  return has_chunks;
}

void AnswerReader::feed_whole(std::string_view body) {
  Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded())
    answer_.fail({FailureKind::kTransient, "the answer is no JSON"});
  else
    provider_.read_whole(json, answer_);
  count();
  // After a crash an unfinished one is asked for anew, under the same number.
  if (is_over()) hand_on();
}

void AnswerReader::feed_stored(const PartialAnswer& stored) {
  const bool is_json = std::ranges::any_of(stored.headers, [](const auto& header) {
    return in_lower_case(header.first) == "content-type" && is_one_body(header.second);
  });
  if (!is_json)
    feed(stored.body);
  else if (Json::accept(stored.body))
    feed_whole(stored.body);
}

void AnswerReader::end(std::string_view how) {
  answer_.end(how);
  count();
  hand_on();
}

void AnswerReader::fail(Failure failure) {
  if (!failure_) failure_ = std::move(failure);
}

CallOutcome AnswerReader::outcome(bool is_stalled) const {
  CallOutcome outcome;
  std::optional<Failure> failure = failure_;
  if (!failure && !answer_.is_whole()) failure = answer_.failure();
  if (failure) {
    outcome.failure = failure_name(failure->kind);
    outcome.text = one_line(failure->text);
    if (failure->retry_after) outcome.retry_after_ms = failure->retry_after->count();
  }
  outcome.is_stalled = is_stalled;
  outcome.has_content = answer_.has_content();
  outcome.is_too_large = is_too_large_;
  outcome.is_paused = answer_.is_paused();
  outcome.finish_reason = answer_.finish_reason();
  outcome.usage = answer_.usage();
  return outcome;
}

bool AnswerReader::count() {
  ++events_;
  std::vector<Json> chunks = answer_.take();
  for (Json& chunk : chunks) {
    if (events_ <= used_) continue;
    const std::size_t bytes = bytes_in_message(chunk);
    if (bytes > room_) {
      is_too_large_ = true;
      fail({FailureKind::kInvalid, "the answer is too large to be stored"});
    }
    if (failure_) break;
    room_ -= bytes;
    append_chunk(chunks_, std::move(chunk));
  }
  return !chunks.empty();
}

void AnswerReader::hand_on() {
  if (!chunks_.empty() && take_) take_(std::exchange(chunks_, {}), events_);
}

}  // namespace hearth::chat
