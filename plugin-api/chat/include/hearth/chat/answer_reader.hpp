#pragma once
// From the bytes of a model's answer to the chunks that the log does not have yet, and to what the
// call has come to.

#include <hearth/chat/answer.hpp>
#include <hearth/chat/failure.hpp>
#include <hearth/chat/message.hpp>
#include <hearth/chat/provider.hpp>
#include <hearth/chat/usage.hpp>
#include <hearth/fetch.hpp>
#include <hearth/fields.hpp>
#include <hearth/json.hpp>
#include <hearth/sse.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::chat {

// How a call was, as the ledger keeps it. It has been paid for, in part or whole, unless it has not
// left (NotCalled).
struct CallOutcome {
  std::string failure;  // failure_name(); empty: the answer is whole
  std::string text;     // of the failure, for the log
  std::optional<std::int64_t> retry_after_ms;
  bool is_stalled = false;
  bool has_content = false;   // ModelAnswer::has_content()
  bool is_too_large = false;  // for its message
  bool is_paused = false;
  std::string finish_reason;
  Usage usage;
  HEARTH_FIELDS(failure, text, retry_after_ms, is_stalled, has_content, is_too_large, is_paused,
                finish_reason, usage)

  [[nodiscard]] Failure as_failure() const;
};

// Some servers do not stream, whatever they are asked for.
[[nodiscard]] bool is_one_body(std::string_view content_type);

// Takes the chunks of one read of the answer, and how many of its events are used then.
using TakeChunks = std::function<void(std::vector<Json> chunks, std::uint64_t events)>;

// After a crash it is given all that is stored of the answer, and makes the same chunks with the
// same ids again. It hands on those of events behind the first `used_events`.
//
// Bounded   `room`: what is handed on, as text of a message. An answer that has more fails.
// Lifetime  `provider` outlives it.
class AnswerReader {
 public:
  // `take`: null if nothing wants the chunks
  explicit AnswerReader(const Provider& provider, ModelAnswer answer = ModelAnswer(),
                        std::uint64_t used_events = 0, TakeChunks take = nullptr,
                        std::size_t room = kMaxMessageBytes);

  // Whether there were chunks, also if the log has them.
  bool feed(std::string_view bytes);
  // An answer, or the state of one, that is one JSON body.
  void feed_whole(std::string_view body);
  // What the ledger has of an answer: the events of a stream, or one JSON body if it is all there.
  void feed_stored(const PartialAnswer& stored);
  // No more bytes come.
  void end(std::string_view how);
  // Whatever the answer says.
  void fail(Failure failure);

  [[nodiscard]] bool is_over() const { return failure_ || answer_.is_whole() || answer_.failure(); }
  [[nodiscard]] const ModelAnswer& answer() const { return answer_; }
  [[nodiscard]] CallOutcome outcome(bool is_stalled = false) const;

 private:
  bool count();
  void hand_on();

  const Provider& provider_;
  TakeChunks take_;
  SseParser parser_;
  ModelAnswer answer_;
  std::uint64_t used_;
  std::uint64_t events_ = 0;
  std::size_t room_;
  bool is_too_large_ = false;
  std::optional<Failure> failure_;
  std::vector<Json> chunks_;
};

}  // namespace hearth::chat
