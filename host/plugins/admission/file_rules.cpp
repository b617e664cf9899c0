#include "plugins/admission/file_rules.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "extensions/abi_call.hpp"
#include "extensions/registry.hpp"
#include "plugins/admission/elf_image.hpp"
#include "plugins/admission/elf_surroundings.hpp"
#include "plugins/admission/plugin_note.hpp"

#include <hearth/abi.h>
#include <hearth/ext/methods.h>
#include <hearth/ext/offload.h>
#include <hearth/ext/operations.h>
#include <hearth/ext/schema.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace hearth::plugins {
namespace {

constexpr auto kWarning = Severity::kWarning;
constexpr auto kRefusal = Severity::kRefusal;
constexpr bool kFailsCheck = true;

constexpr std::array kRules = {
    Rule{"F1", kRefusal, "The file is a regular file, not a symbolic link."},
    Rule{"F2", kRefusal, "The file belongs to root or to the server's user."},
    Rule{"F3", kRefusal, "Only its owner may write the file."},
    Rule{"F4", kRefusal, "Only root and the server's user can replace files in the directory."},
    Rule{"F5", kRefusal, "The file is not empty and not larger than 512 MiB."},
    Rule{"F6", kRefusal, "The file is not being written."},
    Rule{"F7", kRefusal, "The file can be read."},
    Rule{"E1", kRefusal, "The file is a 64-bit ELF shared library for this machine."},
    Rule{"E2", kRefusal, "The file is complete and its tables are sound."},
    Rule{"E3", kRefusal, "The file is a library, not a program."},
    Rule{"E4", kRefusal,
         "No segment is both writable and executable, and the stack is not executable."},
    Rule{"E5", kRefusal, "The code is position-independent (no text relocations)."},
    Rule{"E6", kRefusal, "The library has no run path (RPATH, RUNPATH)."},
    Rule{"E7", kRefusal, "The library exports the data symbol hearth_plugin_v1."},
    Rule{"E8", kWarning, "The library exports nothing else.", kFailsCheck},
    Rule{"E9", kWarning, "The library can be unloaded.", kFailsCheck},
    Rule{"E10", kWarning, "The library needs no libraries but those that every server has."},
    Rule{"E11", kWarning, "The library calls nothing that acts on the whole process.", kFailsCheck},
    Rule{"E12", kRefusal, "This system's libraries are new enough for the library."},
    Rule{"E13", kWarning, "The library has a build id, so that a crash can be traced to it."},
    Rule{"E14", kWarning, "The library uses no static thread-local storage, which is scarce."},
    Rule{"E15", kWarning, "The library's tables are read-only once it is loaded."},
    Rule{"E16", kRefusal, "The library has no sanitizer that the server does not have."},
    Rule{"E17", kWarning,
         "The library starts no threads and registers nothing to run at their end."},
    Rule{"N1", kRefusal, "The library carries one Hearth note."},
    Rule{"N2", kRefusal, "The library is built for this major version of the ABI."},
    Rule{"N3", kRefusal, "This server is new enough for the library."},
    Rule{"N4", kRefusal, "The manifest in the note is valid."},
    Rule{"N5", kRefusal, "Class names are valid, and each appears once."},
    Rule{"N6", kRefusal, "This server has the extensions that the library needs."},
    Rule{"S1", kRefusal, "A private copy of the file can be made."},
    Rule{"S2", kRefusal,
         "The way back to the version before can be recorded before the new version runs."},
    Rule{"P1", kRefusal, "The trial process loads the library and reports a verdict."},
    Rule{"P2", kRefusal, "The trial ends in time."},
    Rule{"L1", kRefusal, "The dynamic loader accepts the library."},
    Rule{"L2", kRefusal, "The entry symbol is the library's own and well-formed."},
    Rule{"L3", kRefusal, "The entry symbol agrees with the note."},
    Rule{"L4", kRefusal, "init() succeeds."},
    Rule{"L5", kRefusal, "Loading and init() leave the process as it was."},
    Rule{"C1", kRefusal, "No other library has the same class."},
    Rule{"R1", kRefusal, "This version was not taken back before."},
    Rule{"R2", kRefusal,
         "No class of a version that replaces another one, nor the library itself, is in "
         "quarantine."},
    Rule{"R3", kRefusal, "Not too many versions that could not be unloaded stay in memory."},
    Rule{"K1", kRefusal, "The library has passed `hearth check`, where the server asks for that."},
};

bool is_trusted(uid_t owner, uid_t user) {
  return owner == 0 || owner == user;
}

void check_image(const ElfImage& image, std::vector<Finding>& findings) {
  const auto add = [&findings](std::string_view id, std::string reason) {
    findings.push_back(finding(id, std::move(reason)));
  };
  if (image.is_program) add("E3", "it is a program, not a shared library: link it with -shared");
  if (image.has_executable_stack) {
    add("E4", "it asks for an executable stack: link it with -Wl,-z,noexecstack");
  }
  if (image.has_writable_code) {
    add("E4",
        "it has a segment that is both writable and executable: link it without -N or --omagic");
  }
  if (image.has_text_relocations) {
    add("E5", "it has text relocations: compile every source of it with -fPIC");
  }
  if (image.run_path) {
    add("E6", "it has a run path (" + show_name(*image.run_path) +
                  "): link it without -rpath (in CMake: BUILD_WITH_INSTALL_RPATH ON)");
  }
}

void check_exports(const ElfImage& image, std::vector<Finding>& findings) {
  const auto entry = std::ranges::find(image.exports, kEntrySymbol, &ElfExport::name);
  if (entry == image.exports.end()) {
    findings.push_back(finding("E7",
                               "it does not export the symbol hearth_plugin_v1: define it with "
                               "HEARTH_EXPORT, and name it in the version script"));
  } else if (!entry->is_object || entry->size < extensions::kPluginSize10) {
    findings.push_back(finding("E7",
                               "its symbol hearth_plugin_v1 is not a hearth_plugin: define it as "
                               "HEARTH_EXPORT const hearth_plugin hearth_plugin_v1 = {...}"));
  }
  const auto others = image.exports.size() - (entry == image.exports.end() ? 0 : 1);
  if (others > 0) {
    const auto first = std::ranges::find_if(
        image.exports, [](const ElfExport& symbol) { return symbol.name != kEntrySymbol; });
    findings.push_back(
        finding("E8", "it exports " + std::to_string(others) + " other symbols, the first being " +
                          show_name(first->name) + ": link it with the version script plugin.map"));
  }
  const auto unique = std::ranges::find(image.exports, ElfBinding::kUnique, &ElfExport::binding);
  if (unique != image.exports.end()) {
    findings.push_back(
        finding("E9", "it will not unload, because it exports the unique symbol " +
                          show_name(unique->name) +
                          ": compile it with -fno-gnu-unique and link it with plugin.map"));
  } else if (image.never_unloads) {
    findings.push_back(finding("E9", "it will not unload, because it was linked with -z nodelete"));
  }
}

std::string version(unsigned major, unsigned minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

std::optional<Finding> check_note_header(const NoteHeader& header) {
  constexpr std::string_view kRebuild = "rebuild it with this server's hearth/abi.h";
  const std::string host = version(HEARTH_ABI_MAJOR, HEARTH_ABI_MINOR);
  if (header.abi_major != HEARTH_ABI_MAJOR) {
    const bool is_newer = header.abi_major > HEARTH_ABI_MAJOR;
    return finding("N2", "it is built for version " + version(header.abi_major, header.abi_minor) +
                             " of the ABI, and this server has " + host + ": " +
                             (is_newer ? "update the server, or " : "") + std::string(kRebuild));
  }
  if (header.plugin_struct_size < extensions::kPluginSize10) {
    return finding(
        "N2", "its note announces a hearth_plugin of " + std::to_string(header.plugin_struct_size) +
                  " bytes, fewer than version 1.0 of the ABI has: " + std::string(kRebuild));
  }
  if (header.min_host_minor > HEARTH_ABI_MINOR) {
    return finding("N3", "it needs a server with version " +
                             version(header.abi_major, header.min_host_minor) +
                             " of the ABI, and this one has " + host + ": update the server");
  }
  return std::nullopt;
}

// An extension that the host provides, or one that only plugins provide.
bool knows_extension(std::string_view id) {
  return extensions::find_extension(id) != nullptr || id == HEARTH_EXT_METHODS ||
         id == HEARTH_EXT_OFFLOAD || id == HEARTH_EXT_OPERATION_KINDS || id == HEARTH_EXT_SCHEMA;
}

std::optional<Finding> check_manifest(const PluginManifest& manifest) {
  std::vector<std::string_view> seen;
  for (const std::string& name : manifest.classes) {
    if (!is_valid_class_name(name)) {
      return finding("N5",
                     "its manifest names the class " + show_name(name) +
                         ": a class name is a letter or _ and then letters, digits, _ and -, at "
                         "most 64 in all");
    }
    if (std::ranges::find(seen, name) != seen.end()) {
      return finding("N5", "its manifest names the class " + show_name(name) + " twice");
    }
    seen.push_back(name);
  }
  for (const std::string& id : manifest.extensions) {
    if (!knows_extension(id)) {
      return finding("N6", "it needs the extension " + show_name(id) +
                               ", which this server does not have: update the server");
    }
  }
  return std::nullopt;
}

Checked<PluginNote> read_note(const ElfImage& image) {
  const auto notes = find_plugin_notes(image);
  if (notes.empty()) {
    return finding("N1",
                   "it has no Hearth note, so it is no plugin: add HEARTH_PLUGIN_NOTE or "
                   "HEARTH_PLUGIN to one source");
  }
  if (notes.size() > 1) {
    return finding(
        "N1", "it has " + std::to_string(notes.size()) +
                  " Hearth notes: keep HEARTH_PLUGIN_NOTE or HEARTH_PLUGIN in one source only");
  }
  const auto header = decode_note_header(notes.front());
  if (!header) return finding("N1", header.error().message);
  if (auto broken = check_note_header(*header)) return *std::move(broken);
  auto manifest = decode_manifest(notes.front());
  if (!manifest) return finding("N4", manifest.error().message);
  if (auto broken = check_manifest(*manifest)) return *std::move(broken);
  return PluginNote{.header = *header, .manifest = *std::move(manifest)};
}

// Empty if the directory meets the rule. Otherwise the end of a sentence that begins with it.
// `is_above`: a user that may write there can replace the checked directory. In a sticky directory
// only the owner of an entry can.
std::string fault_of(const struct stat& status, uid_t user, bool is_above) {
  const std::string what =
      is_above ? " could replace what lies in it" : " could replace libraries in it";
  if (!is_trusted(status.st_uid, user)) {
    return "belongs to user " + std::to_string(status.st_uid) + ", and that user" + what +
           " (F4): chown it to root or to the server's user" +
           (is_above ? ", or keep libraries elsewhere" : "");
  }
  if (is_above && (status.st_mode & S_ISVTX) != 0) return {};
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return "can be written by users other than its owner, and they" + what + " (F4): chmod go-w" +
         (is_above ? " or +t it" : " it");
}

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

const Rule& rule(std::string_view id) {
  const auto found = std::ranges::find(kRules, id, &Rule::id);
  HEARTH_ASSERT(found != kRules.end(), "every finding names a rule that exists");
  return *found;
}

Finding finding(std::string_view rule_id, std::string reason) {
  const Rule& broken = rule(rule_id);
  return Finding{
      .rule = std::string(broken.id), .severity = broken.severity, .reason = std::move(reason)};
}

Result<void> check_directory(const std::filesystem::path& directory, uid_t user) {
  const auto fail = [](Errc code, const std::filesystem::path& path,
                       std::string what) -> Result<void> {
    return Error{code, show_name(path.native()) + " " + std::move(what)};
  };
  std::error_code failure;
  const std::filesystem::path real = std::filesystem::canonical(directory, failure);
  if (failure == std::errc::no_such_file_or_directory) {
    return fail(Errc::kNotFound, directory, "does not exist");
  }
  struct stat status{};
  if (failure || ::stat(real.c_str(), &status) != 0) {
    const std::error_code why = failure ? failure : std::error_code(errno, std::generic_category());
    return fail(Errc::kForbidden, directory, "cannot be examined: " + why.message());
  }
  if (!S_ISDIR(status.st_mode)) return fail(Errc::kInvalidArgument, directory, "is no directory");
  if (std::string fault = fault_of(status, user, false); !fault.empty()) {
    return fail(Errc::kForbidden, real, std::move(fault));
  }
  for (std::filesystem::path above = real; above.has_relative_path();) {
    above = above.parent_path();
    if (::stat(above.c_str(), &status) != 0) {
      return fail(Errc::kForbidden, above, "cannot be examined");
    }
    if (std::string fault = fault_of(status, user, true); !fault.empty()) {
      return fail(Errc::kForbidden, above, std::move(fault));
    }
  }
  return {};
}

std::optional<Finding> check_status(const struct stat& status, uid_t user) {
  if (!S_ISREG(status.st_mode)) {
    return finding("F1", "it is not a regular file: put the library itself there");
  }
  if (!is_trusted(status.st_uid, user)) {
    return finding("F2", "it belongs to user " + std::to_string(status.st_uid) +
                             ": chown it to root or to the server's user");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return finding("F3", "it can be written by others than its owner: chmod go-w it");
  }
  if (status.st_size <= 0) return finding("F5", "it is empty");
  if (std::cmp_greater(status.st_size, kMaxLibraryBytes)) {
    return finding("F5", "it is larger than 512 MiB: strip it");
  }
  return std::nullopt;
}

const Finding* Inspection::refusal() const {
  const auto found = std::ranges::find(findings, Severity::kRefusal, &Finding::severity);
  return found == findings.end() ? nullptr : &*found;
}

Inspection inspect_library(std::span<const std::byte> file) {
  Inspection inspection;
  const auto image = parse_elf_image(file);
  if (!image) {
    const bool is_foreign = image.error().code == Errc::kUnsupported;
    inspection.findings.push_back(
        finding(is_foreign ? "E1" : "E2",
                "it " + image.error().message +
                    (is_foreign ? ": only shared libraries for this machine may end in .so here"
                                : ": copy it again")));
    return inspection;
  }
  check_image(*image, inspection.findings);
  check_exports(*image, inspection.findings);
  check_surroundings(*image, inspection.findings);
  auto note = read_note(*image);
  if (note) {
    if (inspection.refusal() == nullptr) inspection.note = *std::move(note);
  } else {
    inspection.findings.push_back(note.error());
  }
  return inspection;
}

}  // namespace hearth::plugins
