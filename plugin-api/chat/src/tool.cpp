#include <hearth/chat/tool.hpp>

namespace hearth::chat {

const char* tool_kind_name(Effect effect) noexcept {
  switch (effect) {
    case Effect::kRead: return "chat.tool.read";
    case Effect::kIdempotent: return "chat.tool.idempotent";
    case Effect::kKeyed: return "chat.tool.keyed";
    case Effect::kProbe:
    case Effect::kUnsafe: break;
  }
  return "chat.tool.unsafe";
}

OperationKind tool_kind(Effect effect) {
  return {
      .effect = effect,
      .same = "the turn, and the id of the call in it",
      .interrupted = "what its effect allows: it runs again, or the model and the user are told",
      .upstream = "what its effect says",
      .unknown = "the model and the user are told that it may have been executed"};
}

}  // namespace hearth::chat
