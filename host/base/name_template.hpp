#pragma once
// Texts with placeholders: "{sub}", "{org_id}-{sub}", "{header:x-user}".

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

inline constexpr std::size_t kMaxTemplateBytes = 256;

// Whether the text is a template: braces in pairs, with a name of printable ASCII between them.
[[nodiscard]] bool is_name_template(std::string_view text);

// The text with each placeholder replaced; nothing if `value` has none for one of them, or an empty
// one. `text`: is_name_template().
[[nodiscard]] std::optional<std::string> expand_template(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view)>& value);

}  // namespace hearth
