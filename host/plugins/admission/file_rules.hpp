#pragma once
// The rules that a file must meet before it is loaded, each with an id.
//
// Ids are never reused or renumbered: the log, `hearth check` and the documentation show them.

#include "base/error.hpp"
#include "plugins/admission/plugin_note.hpp"

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// The data symbol of a plugin (hearth/abi.h).
inline constexpr const char* kEntrySymbol = "hearth_plugin_v1";

enum class Severity {
  kWarning,  // served, with a warning
  kRefusal,  // not served
};

struct Rule {
  std::string_view id;        // "E6"
  Severity severity;          // for a library that breaks it, when a server loads the library
  std::string_view sentence;  // the rule
  // For a warning: `hearth check` fails a library that breaks it. A server only warns: otherwise it
  // would stop serving libraries that it has served.
  bool fails_check = false;
};

// Whether `hearth check` fails a library that breaks the rule.
[[nodiscard]] constexpr bool fails_check(const Rule& rule) {
  return rule.severity == Severity::kRefusal || rule.fails_check;
}

// All rules, in the order in which they are checked.
[[nodiscard]] std::span<const Rule> rules();

// The rule called `id`, which must exist.
[[nodiscard]] const Rule& rule(std::string_view id);

// One broken rule, on one file.
struct Finding {
  std::string rule;  // "E6"
  Severity severity = Severity::kRefusal;
  std::string
      reason;  // what is wrong and what to do: "it has a run path ("/tmp"): link it without -rpath"
};

// `rule_id` broken because of `reason`; the severity is the rule's.
[[nodiscard]] Finding finding(std::string_view rule_id, std::string reason);

// The result of a step of loading, or the rule that stops it.
template <class T>
using Checked = boost::system::result<T, Finding>;

[[noreturn]] inline void throw_exception_from_error(const Finding& finding,
                                                    const boost::source_location&) {
  throw std::logic_error("unchecked Finding: " + finding.reason);
}

// The largest library that is read.
inline constexpr std::uint64_t kMaxLibraryBytes = std::uint64_t{512} << 20;

// F4: a user that can change the directory's entries can replace a library. `directory` must belong
// to root or `user`, and only its owner may write it. The same goes for every directory above it,
// but a sticky one may be writable for others (as /tmp is). Symbolic links are resolved first.
//   Failure   kNotFound (there is no such directory), kInvalidArgument (it is no directory),
//             kForbidden (the rule is broken). The message names the directory and what to do.
[[nodiscard]] Result<void> check_directory(const std::filesystem::path& directory, uid_t user);

// F1, F2, F3 and F5 on the fstat result of an open file.
[[nodiscard]] std::optional<Finding> check_status(const struct stat& status, uid_t user);

// The rules that the bytes of a library break, and its note.
struct Inspection {
  std::vector<Finding> findings;   // refusals and warnings, in the order of the rules
  std::optional<PluginNote> note;  // set if no rule refuses the library

  // The first refusal, or null.
  [[nodiscard]] const Finding* refusal() const;
};

// Applies all E and N rules to the bytes of a file. Skips a rule that cannot be judged because an
// earlier one is broken. Never reads outside `file` (elf_image.hpp).
[[nodiscard]] Inspection inspect_library(std::span<const std::byte> file);

}  // namespace hearth::plugins
