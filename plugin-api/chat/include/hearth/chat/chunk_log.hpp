#pragma once
// The chunks of turns that stream, or that have failed last, in the agent's database. They are the
// truth that clients read: live, or again after a cut.
//
// Stored    in the table `chat_log` of a hearth::StreamLog, a stream for each turn. A row is a line
//           "first next call events", then the texts of its chunks, each with a newline behind it.
//           What is over kPieceBytes goes on in the next row, in the same commit.
// Promises  As a StreamLog: what a reader sends survives a crash. Chunks have numbers (seq) from 0
//           in each turn, without a gap.
// Threads, lifetime  A member of the agent, whose constructor makes the table.
// Failure   As StreamLog

#include <hearth/stream_log.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::chat {

struct LoggedChunk {
  std::uint64_t seq = 0;
  std::string text;  // JSON
};

struct LogPage {
  std::vector<LoggedChunk> chunks;  // none: there are no more by now
  std::uint64_t cursor = 0;         // where the next page begins
};

// Where chunks come from: a call of the model, by any number that grows in its turn, and how many
// of the events of its answer are used. A re-run of the call decodes these without output.
struct ChunkSource {
  std::uint64_t call = 0;
  std::uint64_t events = 0;
};

struct LogTally {
  std::uint64_t chunks = 0;  // the next one has this seq
  ChunkSource source;        // of the last row
  std::uint64_t cursor = 0;  // behind the last row
};

class ChunkLog {
 public:
  explicit ChunkLog(Agent& agent);

  // Adds chunks, as to_text() has them; none adds no row. Gives the first seq. Without `source`,
  // as for the result of a tool, that of the row before stays.
  std::uint64_t append(std::string_view turn, std::span<const std::string> chunks,
                       std::optional<ChunkSource> source = std::nullopt);
  [[nodiscard]] LogTally tally(std::string_view turn) const;
  // Whole chunks behind the cursor, which is 0 or that of a page: about as many as fit, and at
  // least one.
  [[nodiscard]] LogPage page(std::string_view turn, std::uint64_t after,
                             std::size_t page_bytes = StreamLog::kPageBytes) const;
  // False: there is none.
  bool drop(std::string_view turn);
  // The log of a turn is kept until the next one begins, for clients that come late. A slow reader
  // keeps it longer: `kept` are turns whose logs stay.
  void drop_others(std::string_view turn, const std::multiset<std::string>& kept);
  // For readers that wait.
  [[nodiscard]] StreamLog& rows() noexcept { return log_; }

 private:
  Agent& agent_;
  StreamLog log_;
};

}  // namespace hearth::chat
