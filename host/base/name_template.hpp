#pragma once
// Texts with placeholders: "{sub}", "{org_id}:{sub}", "{header:x-user}".

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

inline constexpr std::size_t kMaxTemplateBytes = 256;

// Whether the text is a template: its braces come in pairs around a name of printable ASCII, and
// there is text between two placeholders.
[[nodiscard]] bool is_name_template(std::string_view text);

// The text with each placeholder replaced. `text`: is_name_template(). Nothing
//   if `value` returns nothing or an empty text for a placeholder;
//   if a value contains the text between its placeholder and the next one: in "{org}:{sub}" the
//   value of `org` must have no colon.
// So different values never give the same text.
[[nodiscard]] std::optional<std::string> expand_template(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view)>& value);

}  // namespace hearth
