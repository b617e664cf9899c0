#pragma once
// What requests below /objects say, except calls: values from queries and bodies.
// Failure of each: kInvalidArgument, with a sentence for the client.

#include "base/clock.hpp"
#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::api {

struct ObjectPageRequest {
  std::string agent_class;        // empty: all
  std::optional<bool> is_active;  // none: both
  std::string after;              // the cursor of the page before; empty: the first
  std::size_t limit = 0;
};

// A page of what one object has.
struct PageRequest {
  std::string after;  // empty: the first
  std::size_t limit = 0;
};

struct NewObject {
  std::string agent_class;  // its spelling in URLs, an alias, or its name in the code ("ChatRoom")
  std::string name;         // of the agent
  std::string patch;        // of its storage; empty: nothing
};

// The method and its arguments are not checked yet.
struct AlarmRequest {
  std::string method;
  std::string arguments;   // JSON array
  std::int64_t at_ms = 0;  // Unix time
};

// Limits are 1 to 1000, by default 100.
[[nodiscard]] Result<ObjectPageRequest> read_object_page(std::string_view query);
// `cursor`: the parameter with the cursor.
[[nodiscard]] Result<PageRequest> read_page(std::string_view query, std::string_view cursor);

// {"class","object_id","storage"?}
[[nodiscard]] Result<NewObject> read_new_object(std::string_view body, std::size_t max_name_bytes);
// {"storage": a JSON merge patch}: the patch.
[[nodiscard]] Result<std::string> read_storage_member(std::string_view body);
// {"method","args"?,"fire_at" (RFC 3339) or "delay_seconds"}
[[nodiscard]] Result<AlarmRequest> read_alarm(std::string_view body, const Clock& clock);

}  // namespace hearth::api
