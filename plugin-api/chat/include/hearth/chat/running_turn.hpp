#pragma once
// The turn that runs: its row, and its answer as the log makes it. It is rebuilt from the database
// after an interruption.
//
// Promises  The answer is what clients have seen: each chunk is applied, logged, counted and sent
//           in one commit.
// Lifetime  As long as the fiber of the turn runs, in one instance of the agent.

#include <hearth/chat/chunk_log.hpp>
#include <hearth/chat/streams.hpp>
#include <hearth/chat/tool.hpp>
#include <hearth/chat/transcript.hpp>
#include <hearth/chat/turns.hpp>
#include <hearth/json.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hearth::chat {

// The turn's row has ended or is gone, such as by a clear: its work ends without a trace.
class TurnGone : public Error {
 public:
  TurnGone() : Error(HEARTH_E_GONE, "the turn has ended") {}
};

class RunningTurn {
 public:
  RunningTurn(Agent& agent, Transcript& transcript, Turns& turns, ChunkLog& log, Streams& streams,
              TurnRecord record);
  RunningTurn(const RunningTurn&) = delete;
  RunningTurn& operator=(const RunningTurn&) = delete;

  [[nodiscard]] TurnRecord& record() noexcept { return record_; }
  [[nodiscard]] const TurnRecord& record() const noexcept { return record_; }
  // The answer so far, with `id`, `role` and `parts`.
  [[nodiscard]] Json& message() noexcept { return message_; }
  [[nodiscard]] const Json& message() const noexcept { return message_; }
  [[nodiscard]] bool is_continuation() const { return record_.kind == TurnKind::kContinuation; }
  [[nodiscard]] std::string text() const;  // of the answer
  // Whether the log has a chunk.
  [[nodiscard]] bool has_begun() const { return log_.tally(record_.id).chunks > 0; }
  // The events of this call's answer whose chunks are in the log.
  [[nodiscard]] std::uint64_t used_events(int call) const;
  [[nodiscard]] std::stop_source& stop() noexcept { return stop_; }

  // Applies, logs and sends. Chunks that a strict client would refuse are left out. The first one
  // of a turn is preceded by `start`.
  // Failure   TurnGone
  void write(std::vector<Json> chunks, std::optional<ChunkSource> source = std::nullopt);
  // Writes the row. Failure: TurnGone
  void save();
  // Stores the answer as it is, so that clients that load the transcript see it.
  void store_message(const std::function<void(Json&)>& sanitize);

  // Whether answers of a cut call can be fetched on: then thoughts count as progress.
  bool keeps_all = false;
  // Shared with the calls of its tools.
  const std::shared_ptr<AskedChats> asks = std::make_shared<AskedChats>();

 private:
  void rebuild();
  // Null: it is not to be sent.
  void take(Json chunk, std::vector<Json>& out);
  void apply_elsewhere(const Json& chunk);

  Agent& agent_;
  Transcript& transcript_;
  Turns& turns_;
  ChunkLog& log_;
  Streams& streams_;
  TurnRecord record_;
  Json message_;
  std::stop_source stop_;
};

}  // namespace hearth::chat
