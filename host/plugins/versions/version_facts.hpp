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

// About a file with a version on trial, or a version to go back to. Other files need no entry: the
// content that they hold is served, and there is no other version.
struct Place {
  // What the file holds, while another version is served.
  struct NotServed {
    std::string sha256;      // empty: the file is gone, or cannot be read
    std::string reason;      // the end of a sentence, for an operator
    bool may_retry = false;  // at the next start: the content never ran

    friend bool operator==(const NotServed&, const NotServed&) = default;
  };
  std::string file;        // its path, with links in the directory resolved
  std::string proven;      // the last content that has run long enough; its bytes are kept
  std::string superseded;  // the last content that was replaced while it was on trial, without a
                           // failure; its bytes are kept; empty: none since `proven`
  std::string on_trial;    // the content that runs and is not proven; empty: the proven one runs
  std::optional<NotServed> not_served;  // absent: the content of the file runs
  std::vector<NotServed> condemned;     // content that is not tried again; the last kMaxCondemned

  // The content to go back to.
  [[nodiscard]] const std::string& way_back() const {
    return superseded.empty() ? proven : superseded;
  }

  friend bool operator==(const Place&, const Place&) = default;
};

// About the settings of a class whose last change is on trial or was taken back. Other classes need
// no entry: the settings in their files hold.
struct SettingsFacts {
  // Settings to go back to.
  struct Proven {
    std::string hash;
    std::string file;  // their class file; empty: the defaults
    std::string text;  // config::settings_text(); empty: they could not be kept

    friend bool operator==(const Proven&, const Proven&) = default;
  };
  struct TakenBack {
    std::string hash;
    std::string reason;  // the end of a sentence, for an operator

    friend bool operator==(const TakenBack&, const TakenBack&) = default;
  };
  std::string agent_class;  // as URLs spell it
  Proven proven;
  std::optional<Proven> superseded;     // as Place::superseded
  std::string on_trial;                 // a hash; empty: the proven settings hold
  std::optional<TakenBack> taken_back;  // in the class file, but they do not hold

  // The settings to go back to.
  [[nodiscard]] const Proven& way_back() const { return superseded ? *superseded : proven; }

  friend bool operator==(const SettingsFacts&, const SettingsFacts&) = default;
};

// Each list has the oldest entry first.
struct VersionFacts {
  std::vector<ContentFacts> contents;
  std::vector<ClassFacts> classes;
  std::vector<Place> places;
  std::vector<SettingsFacts> settings;

  [[nodiscard]] const ContentFacts* find_content(std::string_view sha256) const;
  [[nodiscard]] const ClassFacts* find_class(std::string_view agent_class,
                                             std::string_view sha256) const;
  [[nodiscard]] const Place* find_place(std::string_view file) const;
  [[nodiscard]] const SettingsFacts* find_settings(std::string_view agent_class) const;
  // Why the content is not tried in this place. Content that one place condemns is condemned in all
  // places, except where it is the proven version.
  [[nodiscard]] const Place::NotServed* find_condemned(std::string_view file,
                                                       std::string_view sha256) const;
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
// The content `next` of the file is about to run beside `served`, to replace it.
struct TrialBegun {
  std::string file;
  std::string next;
  std::string served;
};
// The content that TrialBegun or FileMet put on trial is not served: `goes_on` is.
struct TrialLost {
  std::string file;
  std::string goes_on;
  Place::NotServed what;
};
// The content has run long enough.
struct TrialPassed {
  std::string file;
  std::string sha256;
};
// The file is gone or cannot be read, while `served` runs.
struct FileLost {
  std::string file;
  std::string served;
  std::string reason;
};
// The file holds the content that runs.
struct FileSettled {
  std::string file;
};
// The file holds this content, and no version of it is served: at a start, or when it is back.
struct FileMet {
  std::string file;
  std::string sha256;
};
// The settings `next` are about to replace `served` for the class.
struct SettingsBegun {
  std::string agent_class;
  std::string next;  // hash
  SettingsFacts::Proven served;
};
// Agents failed on the settings `what`: `goes_on` holds again.
struct SettingsLost {
  std::string agent_class;
  SettingsFacts::Proven goes_on;
  SettingsFacts::TakenBack what;
};
// The settings have held long enough.
struct SettingsPassed {
  std::string agent_class;
  SettingsFacts::Proven settings;
};
// The class file has the settings that hold.
struct SettingsSettled {
  std::string agent_class;
};
// The class file has changed, or an operator or new code tries what was taken back.
struct SettingsAllowed {
  std::string agent_class;
};
// The class file has these settings at the start of a server.
struct SettingsMet {
  std::string agent_class;
  std::string hash;
};
using SettingsEvent = std::variant<SettingsBegun, SettingsLost, SettingsPassed, SettingsSettled,
                                   SettingsAllowed, SettingsMet>;

using VersionEvent =
    std::variant<HostStarted, ContentRefused, ProcessCrashed, ClassReleased, ContentAllowed,
                 TrialBegun, TrialLost, TrialPassed, FileLost, FileSettled, FileMet, SettingsBegun,
                 SettingsLost, SettingsPassed, SettingsSettled, SettingsAllowed, SettingsMet>;

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
// place      event         on_trial                     not_served        proven
//            TrialBegun    next                         none              served; as before if
//                                                                         `served` is on trial
//            TrialLost     goes_on; none if proven      what was tried    as before
//            TrialPassed   none                         as before         the content
//            FileLost      as before                    the reason,       as TrialBegun
//                                                       unless it is set
//            FileSettled   as before                    none              as before
//            FileMet       what the file holds          none              as before
//            ProcessCrashed  superseded, if another     what crashed,     as before
//                          crashed on trial             unless it is set
//            ContentAllowed  as before                  may be retried    as before
//            superseded: TrialBegun and FileLost set it to `served`, if that is on trial; it ends
//            when it crashes or fails, when the proven content goes on, and with TrialPassed. So
//            the way back leads to the last content that nothing is known against, which is on
//            trial again, and from there to the proven one.
//            A place is removed once its proven content runs and its file holds that content. Only
//            TrialBegun and FileLost make a place. If there is none, TrialLost has the content
//            refused by rule R1, and other events do nothing. FileMet does nothing with condemned
//            content.
//
// settings   event            on_trial                   taken_back       proven
//            SettingsBegun    next                       none             served; as before if
//                                                                         `served` is on trial
//            SettingsLost     goes_on; none if proven    what was tried   as before
//            SettingsPassed   none                       as before        the settings
//            SettingsSettled  as before                  none             as before
//            SettingsAllowed  as before                  none             as before
//            SettingsMet      what the file says         none             as before
//            ProcessCrashed   superseded, if it was a    what was on      as before
//                             call of the class          trial
//            superseded: as for a place.
//            An entry is removed once the proven settings hold and the file has them. Only
//            SettingsBegun and SettingsLost make an entry. SettingsMet does nothing with settings
//            that were taken back. A crash does not count against settings if the content is on
//            trial, or if it was while a library was loaded or unloaded.
//
// Bounded    kMaxContents; kMaxQuarantined classes, and as many that were released; kMaxCondemned
//            of a place; kMaxSettings. The caller bounds the settings' texts by kMaxSettingsText.
[[nodiscard]] VersionFacts after(VersionFacts facts, const VersionEvent& event);

}  // namespace hearth::plugins
