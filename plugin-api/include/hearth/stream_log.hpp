#pragma once
// Streams whose rows are in the agent's database, for readers that come and go:
//
//     hearth::StreamLog answers_{*this};                       // a member of the agent
//
//     answers_.append(id, "Once upon");                        // a row, and later its end
//     answers_.end(id);
//
//     hearth::StreamReader reader = answers_.reader(id, seq);  // a client has the rows up to seq
//     while (auto page = co_await reader.next()) {
//       for (const hearth::StreamRow& row : page->rows) send(row);
//     }
//
// Promises  A row is written with the running turn, as all SQL. A reader that waits is told after
//           its commit. So what a reader sends survives a crash, and any later reader gets the same
//           rows with the same numbers.
// Rows      have numbers (seq): 1, 2, 3 ... in each stream. A cursor is the number of the last row
//           that a reader has; 0: none. A stream exists from its first row, or its end, until it is
//           dropped. Its name is 1 to 256 bytes; a new stream gets a new name, since a reader may
//           still have a cursor of an old one.
// Stored    in the table `hearth_stream_log(stream, seq, ended, text)`, which SQL may read.
// Bounded   A row as a value of SQL; a page by its bytes. Nothing drops a stream by itself.
// Threads, lifetime  A member of the agent, whose constructor makes the table. One object for a
//           table: waiting readers know only the changes that are made through theirs.

#include <hearth/connection.hpp>
#include <hearth/signal.hpp>
#include <hearth/sql.hpp>
#include <hearth/task.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

struct StreamRow {
  std::uint64_t seq = 0;
  std::string text;

  // Failure   Error(INVALID) if it is not JSON.
  [[nodiscard]] Json json() const { return parse_json(text); }
};

struct StreamPage {
  std::vector<StreamRow> rows;
  std::uint64_t cursor = 0;        // where the next page begins
  std::optional<std::string> end;  // the value of end(), if this page reaches the end
  bool dropped = false;            // the stream of this cursor exists no more
};

class StreamReader;

class StreamLog {
 public:
  static constexpr std::size_t kPageBytes = std::size_t{64} << 10;

  // `table`: where the streams are, a name in SQL.
  explicit StreamLog(Agent& agent, std::string table = "hearth_stream_log");
  StreamLog(const StreamLog&) = delete;
  StreamLog& operator=(const StreamLog&) = delete;

  // Adds a row: what Connection::send() takes, except bytes. Gives its number.
  // Failure   Error(CONFLICT): the stream has ended; Error(INVALID): the name, or bytes; SqlError.
  std::uint64_t append(std::string_view stream, const detail::Outgoing& row);
  // No row follows; readers get `last`, such as a result or a reason. False: it had ended before.
  // Failure   as append()
  bool end(std::string_view stream, const detail::Outgoing& last = "");
  // Removes the stream. Readers that wait for it end. False: there was none.
  bool drop(std::string_view stream);

  // The rows behind the cursor, as many as there are, and as fit into a page: at least one. A
  // stream that does not exist yet has none.
  [[nodiscard]] StreamPage read(std::string_view stream, std::uint64_t after = 0,
                                std::size_t page_bytes = kPageBytes) const;
  // `stop` ends a wait of the reader; so does the cancel of the fiber that waits.
  [[nodiscard]] StreamReader reader(std::string stream, std::uint64_t after = 0,
                                    std::stop_token stop = {});

 private:
  friend StreamReader;
  struct Last {
    std::uint64_t seq = 0;  // of its last row, or of its end
    bool ended = false;
    std::string text;
  };
  [[nodiscard]] std::optional<Last> last_of(std::string_view stream) const;
  // Gives the number of the row.
  std::uint64_t write(std::string_view stream, const detail::Outgoing& row, const Last& before,
                      bool ended);
  [[nodiscard]] std::string on_table(std::string_view before, std::string_view after) const;

  detail::Activation& activation_;
  std::string table_;
  detail::ToldWait::List waits_;  // by stream
};

// Lifetime  Not longer than the log's. Copies have cursors of their own.
class StreamReader {
 public:
  StreamReader(StreamLog& log, std::string stream, std::uint64_t after, std::stop_token stop)
      : log_(&log), stream_(std::move(stream)), cursor_(after), stop_(std::move(stop)) {}

  // The next page, which has a row at least; waits for one. Nothing: the stream has ended (end()),
  // or was dropped.
  // Failure   Error(CANCELLED), which is final: the wait was stopped.
  [[nodiscard]] Task<std::optional<StreamPage>> next();

  [[nodiscard]] std::uint64_t cursor() const noexcept { return cursor_; }
  // After the last page: the value of StreamLog::end(); nothing: the stream was dropped.
  [[nodiscard]] const std::optional<std::string>& end() const noexcept { return end_; }

 private:
  StreamLog* log_;
  std::string stream_;
  std::uint64_t cursor_;
  std::stop_token stop_;
  std::optional<std::string> end_;
  bool over_ = false;
};

}  // namespace hearth
