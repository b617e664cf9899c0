#include "extensions/abi_call.hpp"
#include "extensions/basics.hpp"
#include "json/json.hpp"

#include <algorithm>

namespace hearth::extensions {
namespace {

static_assert(kAuditLimit.burst == double{HEARTH_AUDIT_BURST} &&
              kAuditLimit.per_second == double{HEARTH_AUDIT_PER_SECOND});

bool is_audit_word(std::string_view what) {
  return !what.empty() && what.size() <= HEARTH_AUDIT_WHAT_MAX &&
         std::ranges::all_of(what, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '.' || c == '-';
         });
}

Result<void> add_audit_entry(AgentContext& it, std::string_view what, std::string_view detail) {
  if (!is_audit_word(what))
    return Error{Errc::kInvalidArgument,
                 "the name of an entry is 1 to 64 letters, digits, '_', '.' and '-'"};
  Error too_long{Errc::kLimitExceeded, "the detail of an entry is at most 2048 bytes of JSON"};
  if (detail.size() > HEARTH_AUDIT_DETAIL_MAX) return too_long;
  if (!detail.empty()) {
    const auto json = parse_json(detail);
    if (!json || !json->is_object())
      return Error{Errc::kInvalidArgument, "the detail of an entry is a JSON object"};
    // The host stores its own text of the JSON, which may be longer: 1e14 has more digits there.
    if (dump_json(*json).size() > HEARTH_AUDIT_DETAIL_MAX) return too_long;
  }
  return it.audit(what, detail);
}

}  // namespace

constexpr hearth_audit_v1 kAuditTable = {.record = kDoor<add_audit_entry>};

}  // namespace hearth::extensions
