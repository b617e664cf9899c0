#include "lenient.hpp"

#include <hearth/chat/provider.hpp>

namespace hearth::chat {

void Provider::read_whole(const Json&, ModelAnswer& answer) const {
  answer.fail({FailureKind::kInvalid, "the answer is not a stream of events"});
}

std::optional<HttpCall> Provider::follow_up(FollowUp, const ModelAnswer&) const {
  return std::nullopt;
}

std::optional<Json> event_object(const ServerSentEvent& event, ModelAnswer& answer) {
  if (event.data.empty()) return std::nullopt;
  auto json = parse_any(event.data);
  // Some servers send one half of a character in an event, and the other in the next.
  if (!json) json = parse_any(as_utf8(event.data));
  if (json && json->is_object()) return json;
  std::string text = joined("an event that is no JSON object: ", first_bytes(event.data, 200));
  answer.fail({FailureKind::kTransient, as_utf8(text)});
  return std::nullopt;
}

}  // namespace hearth::chat
