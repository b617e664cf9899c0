#pragma once
// What the hooks of a recovery get and decide.

#include <hearth/json.hpp>
#include <hearth/time.hpp>

#include <cstdint>
#include <string>

namespace hearth::chat {

struct RecoveryContext {
  std::string incident_id;
  int attempt = 0;
  int max_attempts = 0;
  std::string recovery_kind;  // retry: no content had come; continue
  std::string recovery_root_request_id;
  std::string request_id;
  std::string stream_id;  // empty before the first chunk
  std::string partial_text;
  Json partial_parts;
  Json recovery_data;  // Turn::stash()
  Json messages;       // the transcript as the model gets it
  Json last_body;
  Json last_client_tools;
  Time created_at;
  std::int64_t work = 0;  // rows of the log since the incident began
  std::string reason;     // for on_exhausted: no_progress_timeout and so on
};

struct RecoveryChoice {
  bool persist = true;  // false: the text of a call that was cut is dropped; tools are kept
  bool proceed = true;  // false: the turn ends with what there is
};

}  // namespace hearth::chat
