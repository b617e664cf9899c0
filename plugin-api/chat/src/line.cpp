#include <hearth/chat/line.hpp>

#include <algorithm>
#include <unordered_set>

namespace hearth::chat {

namespace {

bool waits_submitted(const TurnInLine& turn) {
  return turn.kind == TurnKind::kSubmit && !turn.is_running;
}

Placement place_continuation(std::span<const TurnInLine> line, const TurnInLine& turn, Time now) {
  Placement placement;
  placement.not_before = now + kCoalesce;
  const auto waiting = std::ranges::find_if(line, [&](const TurnInLine& each) {
    return each.kind == TurnKind::kContinuation && !each.is_running &&
           each.message_id == turn.message_id;
  });
  if (waiting != line.end()) {
    placement.place = Place::kJoins;
    placement.continuation = waiting->id;
  }
  return placement;
}

// Those that the new one takes the place of.
std::vector<TurnInLine> superseded(std::span<const TurnInLine> line, LinePolicy policy) {
  std::vector<TurnInLine> turns;
  if (policy == LinePolicy::kMerge) {
    auto first = line.end();
    while (first != line.begin() && waits_submitted(*(first - 1))) --first;
    turns.assign(first, line.end());
  } else if (policy == LinePolicy::kLatest || policy == LinePolicy::kDebounce) {
    std::ranges::copy_if(line, std::back_inserter(turns), waits_submitted);
  }
  return turns;
}

// The messages of the turns that go and of the new one, without those of the turns that stay: a
// request repeats the unanswered messages before it.
std::vector<std::string> messages_to_join(std::span<const TurnInLine> line,
                                          std::span<const TurnInLine> gone,
                                          const TurnInLine& turn) {
  std::unordered_set<std::string> taken;
  for (const TurnInLine& each : line.first(line.size() - gone.size()))
    taken.insert(each.origin_ids.begin(), each.origin_ids.end());
  std::vector<std::string> messages;
  const auto add = [&](const TurnInLine& each) {
    std::ranges::copy_if(each.origin_ids, std::back_inserter(messages),
                         [&](const std::string& id) { return taken.insert(id).second; });
  };
  std::ranges::for_each(gone, add);
  add(turn);
  return messages;
}

}  // namespace

Placement place_turn(std::span<const TurnInLine> line, const TurnInLine& turn,
                     const LineConfig& config, Time now) {
  if (turn.kind == TurnKind::kContinuation) return place_continuation(line, turn, now);
  Placement placement;
  placement.not_before = now;
  std::vector<TurnInLine> gone;
  if (turn.kind == TurnKind::kSubmit && !line.empty()) {
    if (config.policy == LinePolicy::kDrop) {
      placement.place = Place::kDropped;
      return placement;
    }
    gone = superseded(line, config.policy);
    if (config.policy == LinePolicy::kDebounce) {
      placement.not_before += config.debounce.count() > 0 ? config.debounce : LineConfig().debounce;
    }
  }
  const auto waiting =
      std::ranges::count_if(line, [](const auto& each) { return !each.is_running; });
  if (static_cast<std::size_t>(waiting) - gone.size() >= kMaxQueuedTurns) {
    placement.place = Place::kFull;
    return placement;
  }
  for (const TurnInLine& each : gone) placement.skipped.push_back(each.id);
  if (config.policy == LinePolicy::kMerge && !gone.empty())
    placement.joined = messages_to_join(line, gone, turn);
  return placement;
}

}  // namespace hearth::chat
