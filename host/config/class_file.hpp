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

// The values of a tree, with the default for each key that is missing or wrong; what is wrong goes
// to `report`, whose file is that of the tree: relative paths are taken from its directory.
// `all_are_objects`: ObjectsConfig::all_classes.
[[nodiscard]] ClassFile read_class_file(const YamlNode& root, Report& report,
                                        bool all_are_objects = false);

// How many crashes within five minutes a class may have; one more, and it is in quarantine.
inline constexpr int kMaxClassCrashes = 3;

// What is no mistake and hardly meant, with what to do; empty: nothing. A fiber that ends the
// server each time brings its class into quarantine before it is dead itself.
[[nodiscard]] std::string doubts(const ClassConfig& config);

// What holds for a class without a file.
[[nodiscard]] ClassConfig class_without_file(bool all_are_objects);

// The rows of a class file, but for `class`. Immutable, made at the first call.
[[nodiscard]] const Settings<runtime::ClassSettings>& class_settings();

// Their reference, for config/README.md.
[[nodiscard]] std::string class_reference();

// The keys whose values are different, as files spell them: "limits.max_sql", "options.start". Of
// options the topmost ones. Which file the values are from is no difference.
[[nodiscard]] std::vector<std::string> changed_keys(const ClassConfig& before,
                                                    const ClassConfig& after);

// Whether a key of changed_keys() is no part of what a version is tried with: the rules of access
// (aliases, and what EntryRules has) and of requests to other servers (egress). A change holds at
// once, and agents go on.
[[nodiscard]] bool is_untried(std::string_view key);

// The values that differ from the defaults, without those of is_untried(), on one line: settings
// with equal texts are the same to an agent. Options stand there as they are, and may be secret.
[[nodiscard]] std::string settings_text(const runtime::ClassSettings& settings);

// The settings of such a text.
//   Failure   kInvalidArgument: it is no such text, or one of a version with other settings.
[[nodiscard]] Result<runtime::ClassSettings> read_settings_text(std::string_view text);

// Where an alias of the class stands in its file, and what is wrong with one that leads to a class
// already.
[[nodiscard]] Position alias_at(const ClassConfig& config, std::string_view alias);
[[nodiscard]] std::string alias_is_taken(std::string_view alias, std::string_view class_name);

// What class files cannot know of each other: an alias is the segment of a class without a file.
// `served`: the names of classes by segment.
[[nodiscard]] Diagnostics taken_aliases(
    const ClassConfigs& files, const std::map<std::string, std::string, std::less<>>& served);

}  // namespace hearth::config
