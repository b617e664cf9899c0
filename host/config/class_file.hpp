#pragma once
// config/classes/*.yaml: which keys they have and what their values may be.

#include "base/error.hpp"
#include "config/config.hpp"
#include "config/diagnostic.hpp"
#include "config/setting.hpp"
#include "config/yaml.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::config {

// What one class file says.
struct ClassFile {
  std::string name;  // empty when the file does not give a right one, which is reported
  Position name_at;
  ClassConfig config;
};

// The values of a tree, with the default for each key that is missing or wrong. Mistakes go to
// `report`. Relative paths start at the directory of report.file(), the file of the tree.
// `is_definition`: the tree came over HTTP; it may use only the credentials of the server file.
[[nodiscard]] ClassFile read_class_file(const YamlNode& root, Report& report,
                                        const ForClasses& server = {}, bool is_definition = false);

// The most crashes within five minutes that a class may have. One more puts it in quarantine.
inline constexpr int kMaxClassCrashes = 3;

// A warning about values that are allowed but hardly meant, with what to do; empty: none. With such
// a fibers.max_crashes, a fiber that crashes the server each time may bring its class into
// quarantine before the fiber is dead.
[[nodiscard]] std::string doubts(const ClassConfig& config);

// The settings of a class without a file.
[[nodiscard]] ClassConfig class_without_file(const ForClasses& server);

// The rows of a class file, without `class`. Immutable, made at the first call.
[[nodiscard]] const Settings<runtime::ClassSettings>& class_settings();

// The reference of these rows, for config/README.md.
[[nodiscard]] std::string class_reference();

// The keys whose values differ, as files spell them: "limits.max_sql", "options.start". Only the
// topmost keys of options. The files that the values come from do not matter.
[[nodiscard]] std::vector<std::string> changed_keys(const ClassConfig& before,
                                                    const ClassConfig& after);

// Whether a key of changed_keys() needs no trial: the rules of access (aliases, and the fields of
// EntryRules) and of requests to other servers (egress), with which agents continue, and `code`,
// with which they leave memory. A change takes effect at once.
[[nodiscard]] bool is_untried(std::string_view key);

// The values that differ from the defaults, without those of is_untried(), on one line. Settings
// with equal texts are the same for an agent. The text has the options, which may be secret.
[[nodiscard]] std::string settings_text(const runtime::ClassSettings& settings);

// The settings of a text of settings_text().
//   Failure   kInvalidArgument: it is no such text, or it comes from a version with other settings.
[[nodiscard]] Result<runtime::ClassSettings> read_settings_text(std::string_view text);

// Mistakes of `code` over all files: it names its own class, or a class that has `code` too.
// `segment` as in parse.hpp.
[[nodiscard]] Diagnostics wrong_codes(const ClassConfigs& files,
                                      const std::function<std::string(std::string_view)>& segment);

// Where an alias of the class stands in its file. And the message about an alias that already leads
// to a class.
[[nodiscard]] Position alias_at(const ClassConfig& config, std::string_view alias);
[[nodiscard]] std::string alias_is_taken(std::string_view alias, std::string_view class_name);

// Mistakes that need the served classes: an alias is the segment of a class without a file.
// `served`: the names of classes by segment.
[[nodiscard]] Diagnostics taken_aliases(
    const ClassConfigs& files, const std::map<std::string, std::string, std::less<>>& served);

}  // namespace hearth::config
