#include "parts.hpp"

#include <hearth/agent_base.hpp>
#include <hearth/chat/chunk.hpp>
#include <hearth/chat/running_turn.hpp>

#include <tuple>
#include <utility>

namespace hearth::chat {

namespace {

// A client's answers to calls of this turn are in the stored message, not in the log.
void take_answers(Json& message, const Json& stored) {
  Json answered = stored;
  for (Json& part : parts::of(message)) {
    if (!is_tool_part(part)) continue;
    Json* const other = parts::find_call(answered, parts::text(part, "toolCallId"));
    if (other != nullptr && parts::progress(*other) > parts::progress(part)) part = *other;
  }
}

}  // namespace

RunningTurn::RunningTurn(Agent& agent, Transcript& transcript, Turns& turns, ChunkLog& log,
                         Streams& streams, TurnRecord record)
    : agent_(agent),
      transcript_(transcript),
      turns_(turns),
      log_(log),
      streams_(streams),
      record_(std::move(record)) {
  rebuild();
}

void RunningTurn::rebuild() {
  std::optional<Json> stored;
  if (!record_.message_id.empty()) stored = transcript_.find(record_.message_id);
  if (record_.message_id.empty()) record_.message_id = agent_.uuid();
  const bool has_begun = this->has_begun();
  message_ = {{"id", record_.message_id}, {"role", "assistant"}, {"parts", Json::array()}};
  if (stored && (is_continuation() || !has_begun)) message_ = *stored;
  if (!has_begun) {
    record_.plan.base_parts = parts::of(message_).size();
    return;
  }
  Json& all = parts::of(message_);
  while (all.size() > record_.plan.base_parts) all.erase(all.size() - 1);
  for (LogPage page;;) {
    page = log_.page(record_.id, page.cursor);
    if (page.chunks.empty()) break;
    for (const LoggedChunk& chunk : page.chunks)
      std::ignore = apply_chunk(message_, parts::read(chunk.text));
  }
  if (stored) take_answers(message_, *stored);
}

std::string RunningTurn::text() const {
  std::string text;
  const Json& all = parts::of(message_);
  for (std::size_t i = record_.plan.base_parts; i < all.size(); ++i)
    if (parts::text(all[i], "type") == "text") text += parts::text(all[i], "text");
  return text;
}

std::uint64_t RunningTurn::used_events(int call) const {
  const ChunkSource source = log_.tally(record_.id).source;
  // The log counts calls from 1: a row that is of no call has 0.
  return source.call == static_cast<std::uint64_t>(call) + 1 ? source.events : 0;
}

void RunningTurn::take(Json chunk, std::vector<Json>& out) {
  prepare_chunk(chunk, is_continuation() ? std::string_view() : record_.message_id);
  Applied applied = apply_chunk(message_, chunk);
  switch (applied.use) {
    case Use::kStored:
    case Use::kPassed: append_chunk(out, std::move(chunk)); break;
    case Use::kElsewhere: apply_elsewhere(chunk); break;
    case Use::kReplayed: break;
    case Use::kBad:
      agent_.log.warn("chat: a chunk of type ", parts::text(chunk, "type"),
                      " is not one that clients can read; it was left out");
  }
  if (!applied.follow_up.is_null()) append_chunk(out, std::move(applied.follow_up));
}

// The result of a call in an earlier message.
void RunningTurn::apply_elsewhere(const Json& chunk) {
  std::optional<Json> message = transcript_.find_call(parts::text(chunk, "toolCallId"));
  if (!message || apply_chunk(*message, chunk).use != Use::kStored) return;
  transcript_.put(*message);
  streams_.show_update(*message);
}

void RunningTurn::write(std::vector<Json> chunks, std::optional<ChunkSource> source) {
  std::vector<Json> sent;
  if (!has_begun()) take(Json{{"type", "start"}}, sent);
  for (Json& chunk : chunks) take(std::move(chunk), sent);
  if (sent.empty()) return;
  bool is_progress = false;
  std::vector<std::string> texts;
  texts.reserve(sent.size());
  for (const Json& chunk : sent) {
    is_progress = is_progress || chat::is_progress(chunk, keeps_all);
    texts.push_back(to_text(chunk));
  }
  if (!turns_.count(record_.id, 1, is_progress ? 1 : 0)) throw TurnGone();
  ++record_.work;
  if (is_progress) ++record_.progress;
  if (source) ++source->call;
  streams_.write(record_, texts, source);
}

void RunningTurn::save() {
  if (!turns_.save(record_)) throw TurnGone();
}

void RunningTurn::store_message(const std::function<void(Json&)>& sanitize) {
  Json stored = message_;
  for (const Json& chunk : closing_chunks(stored, Closing::kTurn))
    std::ignore = apply_chunk(stored, chunk);
  chat::sanitize(stored);
  if (sanitize) sanitize(stored);
  if (!parts::of(stored).empty()) transcript_.put(stored);
}

}  // namespace hearth::chat
