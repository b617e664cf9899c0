#pragma once
// What is known about versions of libraries, and how each event changes it. No files, clock or
// threads.

#include "diagnosis/crash_record.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hearth::plugins {

// About the content of a library, wherever its file lies.
struct ContentFacts {
  std::string sha256;
  std::string rule;           // that refuses it ("P1", "L4"); empty: none does
  std::string reason;         // a sentence's end, for an operator
  std::string host;           // the version of Hearth that refused it: another one tries again
  std::uint64_t crashes = 0;  // processes that it has ended

  friend bool operator==(const ContentFacts&, const ContentFacts&) = default;
};

// About one class of one content.
struct ClassFacts {
  std::string agent_class;
  std::string sha256;
  std::vector<std::int64_t> crashes_ms;  // Unix; those within kCrashWindowMs of the last one
  bool is_quarantined = false;
  // Of the crash that led to quarantine.
  std::string library;
  std::string reason;         // "SIGSEGV", "hung"
  std::string call;           // "request"
  std::int64_t since_ms = 0;  // Unix
  bool is_barred = false;     // a library of this content is not even loaded
  std::string released_by;    // the last time; empty: never released

  friend bool operator==(const ClassFacts&, const ClassFacts&) = default;
};

// About a file of which more than one version counts. Other files need no entry: what they hold is
// served, and there is no version to go back to.
struct Place {
  // What the file holds, while something else is served.
  struct NotServed {
    std::string sha256;      // empty: the file is gone, or cannot be read
    std::string reason;      // a sentence's end, for an operator
    bool may_retry = false;  // at the next start: it never ran

    friend bool operator==(const NotServed&, const NotServed&) = default;
  };
  std::string file;      // with the links in its directory resolved
  std::string proven;    // the content to go back to, whose bytes are kept
  std::string on_trial;  // the content that runs and is not proven; empty: the proven one runs
  std::optional<NotServed> not_served;  // absent: what the file holds is what runs
  std::vector<NotServed> condemned;     // content that is not tried again; the last kMaxCondemned

  friend bool operator==(const Place&, const Place&) = default;
};

// About the settings of one class whose last change is on trial, or was taken back. Other classes
// need no entry: what their files say holds.
struct SettingsFacts {
  // Settings to go back to.
  struct Proven {
    std::string hash;
    std::string file;  // that they are from; empty: the defaults
    std::string text;  // config::settings_text(); empty: they could not be kept

    friend bool operator==(const Proven&, const Proven&) = default;
  };
  struct TakenBack {
    std::string hash;
    std::string reason;  // a sentence's end, for an operator

    friend bool operator==(const TakenBack&, const TakenBack&) = default;
  };
  std::string agent_class;  // as URLs spell it
  Proven proven;
  std::string on_trial;                 // a hash; empty: the proven settings hold
  std::optional<TakenBack> taken_back;  // what the class file says and does not hold

  friend bool operator==(const SettingsFacts&, const SettingsFacts&) = default;
};

// Oldest first, each list.
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
  // Why the content is not tried in this place. What is condemned in one place is condemned in all
  // of them, except where it is the proven version.
  [[nodiscard]] const Place::NotServed* find_condemned(std::string_view file,
                                                       std::string_view sha256) const;
  // A class because of which a library of this content is not loaded.
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
// The process before was ended by this call.
struct ProcessCrashed {
  diagnosis::CrashRecord crash;
};
// A person lets the class go: every version of it, and all that the quarantine holds with it.
struct ClassReleased {
  std::string agent_class;
  std::string by;
};
// A person wants the content to be tried again, or what it failed on has changed.
struct ContentAllowed {
  std::string sha256;
};
// The content `next` of the file is about to run beside `served`, which it is to replace.
struct TrialBegun {
  std::string file;
  std::string next;
  std::string served;
};
// What TrialBegun or FileMet has put on trial is not served: `goes_on` is.
struct TrialLost {
  std::string file;
  std::string goes_on;
  Place::NotServed what;
};
// The content ran long enough.
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
// The file holds what runs.
struct FileSettled {
  std::string file;
};
// The file holds this content, and serves nothing yet: at a start, or when it is back.
struct FileMet {
  std::string file;
  std::string sha256;
};
// The settings `next` are about to hold for the class in place of `served`.
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
// The settings held long enough.
struct SettingsPassed {
  std::string agent_class;
  SettingsFacts::Proven settings;
};
// The class file says what holds.
struct SettingsSettled {
  std::string agent_class;
};
// The class file says something else now, or a person or new code tries what was taken back.
struct SettingsAllowed {
  std::string agent_class;
};
// The class file says this at the start of a server.
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
// With kMaxSettingsText: 4 MiB, half of what the file of the facts may hold.
inline constexpr std::size_t kMaxSettings = 64;
inline constexpr std::size_t kMaxSettingsText = std::size_t{64} << 10U;

// The one transition function.
//
// content    ContentRefused: refused. ContentAllowed: not refused. HostStarted: not refused if
//            another version of Hearth did it, or if only time had run out (P2). ProcessCrashed:
//            counts.
// class      ProcessCrashed: counts for each class that it names, unless it takes settings back.
//            More than kMaxCrashes within kCrashWindowMs, or one call that did not return:
//            quarantined. If that happened while the library was loaded or unloaded, or on a thread
//            of its own although the class is in quarantine: barred. ClassReleased: neither, its
//            crashes are forgotten, and its content may be tried again; classes that are barred
//            with it go with it.
// place      event         on_trial                     not_served        proven
//            TrialBegun    next                         none              what was served; as
//                                                                         before, if that is on
//                                                                         trial itself
//            TrialLost     what goes on, unless proven  what was tried    as before
//            TrialPassed   none                         as before         it
//            FileLost      as before                    unless known      as TrialBegun
//            FileSettled   as before                    none              as before
//            FileMet       what the file holds          none              as before
//            ProcessCrashed  none, if that crashed      it, unless known  as before
//            ContentAllowed  as before                  may be retried    as before
//            A place goes once it runs its proven content and its file holds just that. Nothing
//            happens to a place that is not there, but for TrialBegun and FileLost, which make it;
//            nor by FileMet to condemned content.
// Content that is lost in a place that is not there is refused by rule R1.
//
// settings   event            on_trial                   taken_back       proven
//            SettingsBegun    next                       none             what was served; as
//                                                                         before, if that is on
//                                                                         trial itself
//            SettingsLost     goes_on, unless proven     what was tried   as before
//            SettingsPassed   none                       as before        it
//            SettingsSettled  as before                  none             as before
//            SettingsAllowed  as before                  none             as before
//            SettingsMet      what the file says         none             as before
//            ProcessCrashed   none, if it was a call of  what was on      as before
//                             the class                  trial
//            An entry goes once the proven settings hold and the file says just that. Only
//            SettingsBegun and SettingsLost make an entry. SettingsMet does nothing with settings
//            that were taken back. A crash is not the settings' fault if the content is on trial,
//            nor while a library is loaded or unloaded: settings play no part in that.
//
// Bounded    kMaxContents, kMaxQuarantined and as many that were released, kMaxCondemned of a
//            place, kMaxSettings. Whoever makes events bounds their texts by kMaxSettingsText.
[[nodiscard]] VersionFacts after(VersionFacts facts, const VersionEvent& event);

}  // namespace hearth::plugins
