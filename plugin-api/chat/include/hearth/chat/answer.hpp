#pragma once
// The answer of a model to one call, as the events of its stream make it: a provider puts in what
// an event says, and chunks of the AI SDK (UIMessageChunk) come out.

#include <hearth/chat/failure.hpp>
#include <hearth/chat/message.hpp>
#include <hearth/chat/usage.hpp>
#include <hearth/json.hpp>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::chat {

// A call of a tool that the model has asked for.
struct AskedCall {
  std::string id;
  std::string tool;
  Json input;         // an object
  std::string error;  // not empty: the input cannot be used; `input` has its text
};

// Promises  The chunks can be read by a strict client: deltas come only for open parts, at most one
//           part of text or reasoning is open, and the first chunk is `start-step`. The same input
//           gives the same chunks, so that events read a second time rebuild the answer.
// Bounded   kMaxParts parts, after which the answer fails; ids and names by kMaxIdBytes; a tool's
//           input by the size of the answer.
//
// A provider names parts by `key`, any text that is unique among parts of one kind in the answer.
class ModelAnswer {
 public:
  static constexpr std::size_t kMaxParts = 1000;

  // `ids` begins the ids of calls for which the provider has none, or one of `taken`: unique among
  // the agent's answers. `open_text`: this call goes on in that part of text, which the last answer
  // has left open.
  explicit ModelAnswer(std::string ids = {}, std::string open_text = {},
                       std::set<std::string, std::less<>> taken = {});

  // ---- for a provider. After the end of the answer they do nothing.

  void text(std::string_view key, std::string_view delta);
  // Also for a part without text. `metadata` (providerMetadata) is merged and sent with the end.
  void reasoning(std::string_view key, std::string_view delta, const Json& metadata = nullptr);
  void end_text(std::string_view key);
  void end_reasoning(std::string_view key);

  // Begins a call, or adds the id or name that a provider sends later. The client sees it as soon
  // as its name is known.
  void call(std::string_view key, std::string_view id, std::string_view tool,
            bool is_executed_by_provider = false);
  void input(std::string_view key, std::string_view delta);
  void end_call(std::string_view key);
  // The result of a call that the provider has executed.
  void result(std::string_view key, const Json& output);

  // What a provider repeats as a whole: adds what is missing.
  void whole_text(std::string_view key, std::string_view text);
  void whole_reasoning(std::string_view key, std::string_view text);
  void whole_input(std::string_view key, std::string_view text);

  // Any other chunk, such as a source.
  void chunk(Json chunk);
  void usage(const Usage& usage) { usage_ = usage; }
  // stop, length, content-filter, tool-calls, error or other. `may_end_here`: the answer is whole
  // although the provider's last event may not come.
  void finish(std::string_view reason, bool may_end_here = false);
  // The model has only paused: the next call, with this answer in the prompt, goes on.
  void pause() { is_paused_ = true; }
  // The last event has come: ends all parts and the step.
  void complete();
  // The first failure counts.
  void fail(Failure failure);

  // What a provider has to remember between events. An object.
  [[nodiscard]] Json& notes() { return notes_; }
  [[nodiscard]] const Json& notes() const { return notes_; }

  // ---- for the caller

  // The chunks since the last time; adjacent deltas of one part are one chunk.
  [[nodiscard]] std::vector<Json> take();
  // The stream has ended, or was cut: an answer that is not whole fails with kCut.
  void end(std::string_view how = "the stream ended without its last event");
  [[nodiscard]] bool is_whole() const { return is_whole_; }
  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }
  // There is text or a whole call: a cut answer is continued. Without either it is retried: a chunk
  // `reset-step` drops it.
  [[nodiscard]] bool has_content() const;

  [[nodiscard]] const std::string& finish_reason() const { return reason_; }
  [[nodiscard]] bool is_paused() const { return is_paused_; }
  [[nodiscard]] const Usage& usage() const { return usage_; }
  // The calls that the caller has to execute, in order.
  [[nodiscard]] const std::vector<AskedCall>& calls() const { return calls_; }

 private:
  enum class Kind : std::uint8_t { kText, kReasoning, kCall };
  struct Part {
    Kind kind;
    std::string key;
    std::string id = {};  // a call has none until it is shown
    bool is_open = true;
    std::size_t bytes = 0;  // of its text
    Json metadata = nullptr;
    std::string given_id = {};  // of a call, by the provider
    std::string tool = {};
    std::string input = {};
    bool is_executed_by_provider = false;
    bool has_result = false;
  };

  [[nodiscard]] bool has_ended() const { return is_whole_ || failure_.has_value(); }
  Part* find(Kind kind, std::string_view key);
  // The open part, which is made if there is none. Null after the end.
  Part* opened(Kind kind, std::string_view key);
  [[nodiscard]] std::size_t bytes(Kind kind, std::string_view key) const;
  void begin_step();
  void add(Json chunk);
  void add_delta(const char* type, const char* id_name, const std::string& id,
                 const char* delta_name, std::string_view delta);
  void grow(Part& part, std::string_view delta);
  void close(Part& part);
  void close_call(Part& part);
  void close_text_and_reasoning();
  void show_call(Part& part);
  [[nodiscard]] std::string call_id(std::string_view given) const;

  std::string ids_;
  std::set<std::string, std::less<>> taken_;
  std::string adopted_;  // the open text of the last answer, until it is used or ended
  std::vector<Part> parts_;
  std::vector<Json> chunks_;
  std::vector<AskedCall> calls_;
  std::string reason_;
  Usage usage_;
  Json notes_ = Json::object();
  std::optional<Failure> failure_;
  bool in_step_ = false;
  bool may_end_here_ = false;
  bool is_whole_ = false;
  bool is_paused_ = false;
};

}  // namespace hearth::chat
