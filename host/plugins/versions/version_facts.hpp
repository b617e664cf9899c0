#pragma once
// What is known about versions of libraries and settings of classes, and how each event changes it.
// No files, clock or threads.

#include "diagnosis/crash_record.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hearth::plugins {

// About the content of a library, in any file.
struct ContentFacts {
  std::string sha256;
  std::string rule;           // the rule that refuses it ("P1", "L4"); empty: it is not refused
  std::string reason;         // the end of a sentence, for an operator
  std::string host;           // the version of Hearth that refused it: another version tries again
  std::uint64_t crashes = 0;  // how many processes it has crashed

  friend bool operator==(const ContentFacts&, const ContentFacts&) = default;
};

// About one class of one content.
struct ClassFacts {
  std::string agent_class;
  std::string sha256;
  std::vector<std::int64_t> crashes_ms;  // Unix; within kCrashWindowMs before the last one
  bool is_quarantined = false;
  // About the crash that led to quarantine.
  std::string library;
  std::string reason;         // "SIGSEGV", "hung"
  std::string call;           // "request"
  std::int64_t since_ms = 0;  // Unix
  bool is_barred = false;     // this content is not loaded at all
  std::string released_by;    // the last time; empty: never released

  friend bool operator==(const ClassFacts&, const ClassFacts&) = default;
};

// What is tried: the content of a library's file, or the settings of a class.
struct Subject {
  enum class Kind { kCode, kSettings };
  Kind kind = Kind::kCode;
  // The file's path, with links in the directory resolved; the class as URLs spell it.
  std::string name;

  friend bool operator==(const Subject&, const Subject&) = default;
};

// Code or settings to go back to.
struct Kept {
  std::string hash;       // of the library's content, or of the settings; empty: none
  std::string file = {};  // of settings: their class file; empty: the defaults
  std::string text = {};  // of settings: config::settings_text(); empty: they could not be kept

  friend bool operator==(const Kept&, const Kept&) = default;
};

// About a subject whose last change is on trial or is not served. Others need no entry: what their
// files hold is served, and there is nothing to go back to.
struct Trial {
  // What the file holds, while something else is served.
  struct NotServed {
    std::string hash;        // empty: the file is gone, or cannot be read
    std::string reason;      // the end of a sentence, for an operator
    bool may_retry = false;  // it never ran, or may be tried again

    friend bool operator==(const NotServed&, const NotServed&) = default;
  };
  Subject of;
  Kept proven;  // the last that has run long enough; the bytes of content are kept
  // Also kept: the last that was replaced while it was on trial, without a failure.
  Kept superseded = {};
  std::string on_trial = {};  // a hash: what runs and is not proven; empty: the proven one runs
  std::optional<NotServed> not_served = {};  // absent: what the file holds runs
  std::vector<NotServed> condemned = {};     // content that is not tried again: kMaxCondemned

  // What to go back to.
  [[nodiscard]] const Kept& way_back() const {
    return superseded.hash.empty() ? proven : superseded;
  }
  // What the file holds and does not run because it failed; null: nothing.
  [[nodiscard]] const NotServed* taken_back() const {
    return not_served && !not_served->may_retry ? &*not_served : nullptr;
  }

  friend bool operator==(const Trial&, const Trial&) = default;
};

// Each list has the oldest entry first.
struct VersionFacts {
  std::vector<ContentFacts> contents;
  std::vector<ClassFacts> classes;
  std::vector<Trial> trials;

  [[nodiscard]] const ContentFacts* find_content(std::string_view sha256) const;
  [[nodiscard]] const ClassFacts* find_class(std::string_view agent_class,
                                             std::string_view sha256) const;
  [[nodiscard]] const Trial* find_trial(const Subject& of) const;
  // Why it is not tried. Content that one file's trial condemns is condemned in all files, except
  // where it is the proven version.
  [[nodiscard]] const Trial::NotServed* find_condemned(const Subject& of,
                                                       std::string_view hash) const;
  // A barred class of this content; null: the content may be loaded.
  [[nodiscard]] const ClassFacts* find_barred(std::string_view sha256) const;

  friend bool operator==(const VersionFacts&, const VersionFacts&) = default;
};

// ---- events -------------------------------------------------------------------------------------

// A server of this version of Hearth starts.
struct HostStarted {
  std::string host;
};
// The content has failed its trial process.
struct ContentRefused {
  std::string sha256;
  std::string rule;
  std::string reason;
  std::string host;
};
// This call crashed the process before.
struct ProcessCrashed {
  diagnosis::CrashRecord crash;
};
// An operator releases the class from quarantine: all its versions, and classes barred with it.
struct ClassReleased {
  std::string agent_class;
  std::string by;
};
// An operator wants the content to be tried again, or the settings that it failed on have changed.
struct ContentAllowed {
  std::string sha256;
};
// `next` is about to replace `served`.
struct TrialBegun {
  Subject of;
  std::string next;  // hash
  Kept served;
};
// What TrialBegun or TrialMet put on trial is not served: `goes_on` is.
struct TrialLost {
  Subject of;
  Kept goes_on;
  Trial::NotServed what;
};
// The version has run long enough.
struct TrialPassed {
  Subject of;
  Kept version;
};
// The file holds what runs.
struct TrialSettled {
  Subject of;
};
// The file holds this at a start, or when it is back, and nothing of the subject is served.
struct TrialMet {
  Subject of;
  std::string hash;
};
// The file has changed, or an operator or new code tries what was taken back.
struct TrialAllowed {
  Subject of;
};
// The library's file is gone or cannot be read, and `served` runs.
struct FileLost {
  Subject of;
  Kept served;
  std::string reason;
};

using VersionEvent = std::variant<HostStarted, ContentRefused, ProcessCrashed, ClassReleased,
                                  ContentAllowed, TrialBegun, TrialLost, TrialPassed, TrialSettled,
                                  TrialMet, TrialAllowed, FileLost>;

inline constexpr std::size_t kMaxCrashes = 3;
inline constexpr std::int64_t kCrashWindowMs = 5 * 60'000;
inline constexpr std::size_t kMaxQuarantined = 100;
inline constexpr std::size_t kMaxContents = 256;
inline constexpr std::size_t kMaxCondemned = 8;
// With two texts of kMaxSettingsText each: 4 MiB, half of what the file of the facts may hold.
inline constexpr std::size_t kMaxSettings = 32;
inline constexpr std::size_t kMaxSettingsText = std::size_t{64} << 10U;

// The one transition function.
//
// content    event           effect
//            ContentRefused  It is refused.
//            ContentAllowed  It is not refused any more.
//            HostStarted     It is not refused any more if another version of Hearth refused it, or
//                            if the reason was a timeout (P2).
//            ProcessCrashed  The crash counts.
//
// class      event           effect
//            ProcessCrashed  The crash counts for each class that the record names, except if it
//                            takes settings back. More than kMaxCrashes within kCrashWindowMs, or
//                            one call that did not return: the class is quarantined. If that was
//                            while the library was loaded or unloaded, the class is barred. It also
//                            is if the library's own thread crashes again during the quarantine.
//            ClassReleased   The class is neither, its crashes are forgotten, and its content may
//                            be tried again. Classes that are barred with it are released too.
//
// trial      event           on_trial                   not_served        proven
//            TrialBegun      next                       none              served; as before if
//                                                                         `served` is in it
//            TrialLost       goes_on; none if proven    what was tried;   as before
//                                                       none if the file
//                                                       holds goes_on
//            TrialPassed     none                       as before         the version
//            TrialSettled    as before                  none              as before
//            TrialMet        what the file holds        none              as before
//            TrialAllowed    as before                  may be retried    as before
//            FileLost        as before                  the reason,       as TrialBegun
//                                                       unless it is set
//            ProcessCrashed  superseded, if another     what crashed,     as before
//                            crashed on trial           unless it is set
//            ContentAllowed  as before                  may be retried    as before
//            TrialLost ends the condemnation of goes_on.
//            superseded: TrialBegun and FileLost set it to `served`, if that is not proven; it ends
//            when it crashes or fails, when what is proven goes on, and with TrialPassed. So the
//            way back leads to the last version that nothing is known against, which is on trial
//            again, and from there to the proven one.
//            An entry is removed once its proven version runs and its file holds that. Only
//            TrialBegun, FileLost and, for settings, TrialLost make an entry. If content has none,
//            TrialLost has it refused by rule R1. TrialMet does nothing with what was taken back.
//            A crash counts against content that is on trial by its hash; against settings that
//            are, if it was a call of their class, except if the content is on trial, or if it was
//            while a library was loaded or unloaded. Only content is condemned: settings may be
//            tried again once their file has said others.
//
// Bounded    kMaxContents; kMaxQuarantined classes, and as many that were released; kMaxCondemned
//            of a trial; kMaxSettings trials of settings. The caller bounds the settings' texts by
//            kMaxSettingsText.
[[nodiscard]] VersionFacts after(VersionFacts facts, const VersionEvent& event);

}  // namespace hearth::plugins
