#include "parts.hpp"

#include <hearth/agent_base.hpp>
#include <hearth/chat/chunk_log.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

namespace hearth::chat {

namespace {

// The first line of a row.
struct RowHead {
  std::uint64_t first = 0;  // seq of the chunk at its begin, which may have begun before
  std::uint64_t next = 0;   // of the first chunk that does not end in it
  ChunkSource source;
};

// "first next call events". `text` may be cut behind the line.
RowHead read_head(std::string_view text) {
  std::array<std::uint64_t, 4> numbers{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::uint64_t& number : numbers) {
    at = std::from_chars(at, end, number).ptr;
    if (at != end) ++at;
  }
  return {numbers[0], numbers[1], {numbers[2], numbers[3]}};
}

std::string written_head(const RowHead& head) {
  std::string text;
  for (const std::uint64_t number : {head.first, head.next, head.source.call, head.source.events}) {
    if (!text.empty()) text += ' ';
    text += std::to_string(number);
  }
  return text += '\n';
}

}  // namespace

ChunkLog::ChunkLog(Agent& agent) : agent_(agent), log_(agent, "chat_log") {}

std::uint64_t ChunkLog::append(std::string_view turn, std::span<const std::string> chunks,
                               std::optional<ChunkSource> source) {
  const LogTally before = tally(turn);
  std::string text;
  for (const std::string& chunk : chunks) text.append(chunk) += '\n';
  RowHead head{before.chunks, before.chunks, source.value_or(before.source)};
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = parts::piece_end(text, begin);
    const std::string_view piece = std::string_view(text).substr(begin, end - begin);
    head.first = head.next;
    head.next += static_cast<std::uint64_t>(std::ranges::count(piece, '\n'));
    log_.append(turn, written_head(head).append(piece));
    begin = end;
  }
  return before.chunks;
}

LogTally ChunkLog::tally(std::string_view turn) const {
  constexpr int kHeadBytes = 4 * 21;  // digits of 64 bits, and a mark
  const auto row = agent_
                       .sql(
                           "SELECT seq, substr(text, 1, ?) FROM chat_log WHERE stream = ? "
                           "ORDER BY seq DESC LIMIT 1",
                           kHeadBytes, turn)
                       .optional<std::tuple<std::uint64_t, std::string>>();
  if (!row) return {};
  const RowHead head = read_head(std::get<1>(*row));
  return {head.next, head.source, std::get<0>(*row)};
}

LogPage ChunkLog::page(std::string_view turn, std::uint64_t after, std::size_t page_bytes) const {
  LogPage page{.chunks = {}, .cursor = after};
  std::string open;  // the begin of a chunk that goes on in the next row
  do {
    StreamPage rows = log_.read(turn, page.cursor, page_bytes);
    if (rows.rows.empty()) break;
    for (const StreamRow& row : rows.rows) {
      const std::string_view text = row.text;
      std::uint64_t seq = read_head(text).first;
      std::size_t begin = text.find('\n') + 1;
      for (std::size_t end = text.find('\n', begin); end != std::string_view::npos;
           end = text.find('\n', begin)) {
        open += text.substr(begin, end - begin);
        page.chunks.push_back({seq++, std::exchange(open, {})});
        begin = end + 1;
      }
      open += text.substr(begin);
    }
    page.cursor = rows.cursor;
  } while (!open.empty());
  return page;
}

bool ChunkLog::drop(std::string_view turn) {
  return log_.drop(turn);
}

void ChunkLog::drop_others(std::string_view turn, const std::multiset<std::string>& kept) {
  std::vector<std::string> old;
  Query rows = agent_.sql("SELECT DISTINCT stream FROM chat_log WHERE stream <> ?", turn);
  while (auto stream = rows.optional<std::string>())
    if (!kept.contains(*stream)) old.push_back(std::move(*stream));
  for (const std::string& stream : old) drop(stream);
}

}  // namespace hearth::chat
