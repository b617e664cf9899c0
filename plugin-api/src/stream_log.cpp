#include <hearth/agent_base.hpp>
#include <hearth/stream_log.hpp>

#include <tuple>

namespace hearth {

StreamLog::StreamLog(Agent& agent, std::string table)
    : activation_(agent.activation()), table_(std::move(table)) {
  const Query made(activation_,
                   on_table("CREATE TABLE IF NOT EXISTS ",
                            "(stream TEXT NOT NULL, seq INTEGER NOT NULL, ended INTEGER NOT NULL,"
                            " text TEXT NOT NULL, PRIMARY KEY(stream, seq)) WITHOUT ROWID"));
}

std::uint64_t StreamLog::append(std::string_view stream, const detail::Outgoing& row) {
  const Last before = last_of(stream).value_or(Last());
  if (before.ended) throw Error(HEARTH_E_CONFLICT, "the stream has ended");
  return write(stream, row, before, false);
}

bool StreamLog::end(std::string_view stream, const detail::Outgoing& last) {
  const Last before = last_of(stream).value_or(Last());
  if (!before.ended) write(stream, last, before, true);
  return !before.ended;
}

bool StreamLog::drop(std::string_view stream) {
  const Query removed(activation_, on_table("DELETE FROM ", " WHERE stream = ?"), stream);
  detail::ToldWait::tell(waits_, stream, true);
  return removed.changes() != 0;
}

StreamPage StreamLog::read(std::string_view stream, std::uint64_t after,
                           std::size_t page_bytes) const {
  StreamPage page;
  page.cursor = after;
  std::size_t bytes = 0;
  Query rows(
      activation_,
      on_table("SELECT seq, ended, text FROM ", " WHERE stream = ? AND seq > ? ORDER BY seq"),
      stream, after);
  while (auto row = rows.optional<std::tuple<std::uint64_t, bool, std::string>>()) {
    auto& [seq, ended, text] = *row;
    if (ended) {
      page.end = std::move(text);
      return page;
    }
    bytes += text.size();
    if (bytes > page_bytes && !page.rows.empty()) return page;
    page.cursor = seq;
    page.rows.push_back({seq, std::move(text)});
  }
  if (!page.rows.empty()) return page;
  auto last = last_of(stream);  // the cursor may be of a stream that was dropped
  if (last && last->ended)
    page.end = std::move(last->text);
  else
    page.dropped = last.value_or(Last()).seq < after;
  return page;
}

StreamReader StreamLog::reader(std::string stream, std::uint64_t after, std::stop_token stop) {
  return {*this, std::move(stream), after, std::move(stop)};
}

std::optional<StreamLog::Last> StreamLog::last_of(std::string_view stream) const {
  const auto row = Query(activation_,
                         on_table("SELECT seq, ended, text FROM ",
                                  " WHERE stream = ? ORDER BY seq DESC LIMIT 1"),
                         stream)
                       .optional<std::tuple<std::uint64_t, bool, std::string>>();
  if (!row) return std::nullopt;
  const auto& [seq, ended, text] = *row;
  return Last{seq, ended, ended ? text : std::string()};
}

std::uint64_t StreamLog::write(std::string_view stream, const detail::Outgoing& row,
                               const Last& before, bool ended) {
  constexpr std::size_t kLongestName = 256;
  if (stream.empty() || stream.size() > kLongestName)
    throw Error(HEARTH_E_INVALID, "the name of a stream has 1 to 256 bytes");
  if (row.kind != HEARTH_SEND_TEXT) throw Error(HEARTH_E_INVALID, "a row of a stream is text");
  const std::uint64_t seq = before.seq + 1;
  const Query added(activation_, on_table("INSERT INTO ", " VALUES (?, ?, ?, ?)"), stream, seq,
                    ended, detail::view(row.payload));
  detail::ToldWait::tell(waits_, stream, false);
  return seq;
}

std::string StreamLog::on_table(std::string_view before, std::string_view after) const {
  return std::string(before).append(table_).append(after);
}

Task<std::optional<StreamPage>> StreamReader::next() {
  for (bool dropped = false; !over_;) {
    StreamPage page = log_->read(stream_, cursor_);
    // (Of a cursor 0 the table cannot tell.)
    over_ = page.end || page.dropped || (dropped && cursor_ == 0 && page.rows.empty());
    cursor_ = page.cursor;
    end_ = page.end;
    if (!page.rows.empty()) co_return page;
    if (over_) break;
    detail::ToldWait wait(log_->activation_, log_->waits_, stream_, stop_);
    dropped = co_await wait;
    co_await detail::DrainAwaiter(log_->activation_, 0, false);  // the turn is committed
  }
  co_return std::nullopt;
}

}  // namespace hearth
