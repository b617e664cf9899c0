#pragma once
// The parsers of bytes that come from outside, each as a function that may be given any bytes.

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hearth::fuzz {

// Throws for no bytes, unless a promise of the parser is broken.
using Run = void (*)(std::string_view bytes);

// `name`: also the folder of its seeds.
struct Target {
  std::string_view name;
  Run run;
};

// A promise of a parser, checked on any bytes.
inline void require(bool holds, const char* promise) {
  if (!holds) throw std::logic_error(promise);
}

// All of them, by name.
[[nodiscard]] std::span<const Target> targets();

// frame_targets.cpp
void client_frame(std::string_view bytes);
void deflate_message(std::string_view bytes);
void deflate_offer(std::string_view bytes);
void json_text(std::string_view bytes);
void packed_frames(std::string_view bytes);
// socket_targets.cpp
void web_socket(std::string_view bytes);
// edge_targets.cpp
void client_proof(std::string_view bytes);
void route(std::string_view bytes);
// object_targets.cpp
void definition(std::string_view bytes);
void object_call(std::string_view bytes);
void object_name(std::string_view bytes);
// auth_targets.cpp
void jwt(std::string_view bytes);
void signing_keys(std::string_view bytes);
// admin_targets.cpp
void admin_request(std::string_view bytes);
// chat_targets.cpp
void chat_chunks(std::string_view bytes);
void chat_frame(std::string_view bytes);
void chat_long_frame(std::string_view bytes);
void chat_reconcile(std::string_view bytes);
// provider_targets.cpp
void chat_anthropic(std::string_view bytes);
void chat_completions(std::string_view bytes);
void chat_responses(std::string_view bytes);
// sdk_targets.cpp
void sse(std::string_view bytes);
// http_targets.cpp
void agent_target(std::string_view bytes);
void authority(std::string_view bytes);
void http_request(std::string_view bytes);
void outbound_request(std::string_view bytes);
void outbound_url(std::string_view bytes);
void traceparent(std::string_view bytes);
// file_targets.cpp
void class_file(std::string_view bytes);
void credential(std::string_view bytes);
void egress_rules(std::string_view bytes);
void elf_image(std::string_view bytes);
void plugin_note(std::string_view bytes);
void server_file(std::string_view bytes);
void settings_text(std::string_view bytes);
// agent_targets.cpp
void agent_key(std::string_view bytes);
void cron(std::string_view bytes);
void plugin_sql(std::string_view bytes);

}  // namespace hearth::fuzz
