#include "fuzz/targets.hpp"

#include <array>

namespace hearth::fuzz {

std::span<const Target> targets() {
  static constexpr std::array kTargets = {
      Target{"admin_request", admin_request},
      Target{"agent_key", agent_key},
      Target{"agent_target", agent_target},
      Target{"authority", authority},
      Target{"chat_anthropic", chat_anthropic},
      Target{"chat_chunks", chat_chunks},
      Target{"chat_completions", chat_completions},
      Target{"chat_frame", chat_frame},
      Target{"chat_long_frame", chat_long_frame},
      Target{"chat_reconcile", chat_reconcile},
      Target{"chat_responses", chat_responses},
      Target{"class_file", class_file},
      Target{"client_frame", client_frame},
      Target{"client_proof", client_proof},
      Target{"credential", credential},
      Target{"cron", cron},
      Target{"definition", definition},
      Target{"deflate_message", deflate_message},
      Target{"deflate_offer", deflate_offer},
      Target{"egress_rules", egress_rules},
      Target{"elf_image", elf_image},
      Target{"http_request", http_request},
      Target{"json_text", json_text},
      Target{"jwt", jwt},
      Target{"object_call", object_call},
      Target{"object_name", object_name},
      Target{"outbound_request", outbound_request},
      Target{"outbound_url", outbound_url},
      Target{"packed_frames", packed_frames},
      Target{"plugin_note", plugin_note},
      Target{"plugin_sql", plugin_sql},
      Target{"route", route},
      Target{"server_file", server_file},
      Target{"settings_text", settings_text},
      Target{"signing_keys", signing_keys},
      Target{"sse", sse},
      Target{"traceparent", traceparent},
      Target{"web_socket", web_socket},
  };
  return kTargets;
}

}  // namespace hearth::fuzz
