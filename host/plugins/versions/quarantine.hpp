#pragma once
// Classes that are not served because their code has ended the server too often, or did not return.

#include "base/error.hpp"
#include "diagnosis/crash_record.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// One class of one version of a library, told by the hash of its file, that is in quarantine.
struct QuarantinedClass {
  std::string agent_class;
  std::string sha256;
  std::string library;        // the file, when it happened
  std::string reason;         // of the last crash: "SIGSEGV", "hung"
  std::string call;           // in which that was
  bool is_barred = false;     // a library of this content is not even loaded
  std::int64_t since_ms = 0;  // Unix
};

// <data>/quarantine.json: who is in quarantine, and who has crashed lately. Only changed while nobody else has the data directory.
//
// Promises
//  P1 Rule      A (class, hash) is in quarantine once its calls have ended the server more than kMaxCrashes times within kWindowMs, or once
//               with a call that did not return (kHung).
//  P2 Library   What happens while a library is loaded or unloaded counts for each of its classes, and in the end it is not even loaded
//               any more; nor is one whose own thread crashes although its classes are in quarantine.
//  P3 Version   A file with another hash is not in quarantine; the old one stays, should it come back.
//  P4 Whole     save() replaces the file: a reader sees the old list or the new one.
//  P5 Bounded   The last kMaxEntries classes in quarantine; crashes older than kWindowMs are forgotten.
//
// Threads      One; the const members any, while nothing changes.
class Quarantine {
 public:
  static constexpr std::size_t kMaxCrashes = 3;
  static constexpr std::int64_t kWindowMs = 5 * 60'000;
  static constexpr std::size_t kMaxEntries = 100;

  // Reads the file of the data directory; without one nobody is in quarantine.
  //   Failure  It cannot be read, or is not what save() writes. The message is for the operator.
  [[nodiscard]] static Result<Quarantine> load(const std::filesystem::path& data);
  // As if there was no file.
  [[nodiscard]] static Quarantine none(const std::filesystem::path& data) {
    return Quarantine(data / "quarantine.json");
  }

  // Counts a crash. True: its class is in quarantine from now on, and was not before. One that names no class or no hash is nobody's;
  // one that names several, with commas between them, is each one's.
  bool count(const diagnosis::CrashRecord& crash);

  [[nodiscard]] bool holds(std::string_view agent_class, std::string_view sha256) const;

  // A class of a library of this content that must not even be loaded. Null: it may be. Valid until the next change.
  [[nodiscard]] const QuarantinedClass* find_barred(std::string_view sha256) const;

  [[nodiscard]] const std::vector<QuarantinedClass>& all() const { return held_; }

  // Lets every version of the class go, and forgets its crashes. Where its library is not even loaded, the others of that go with it. False:
  // none was in quarantine.
  bool release(std::string_view agent_class);

  [[nodiscard]] Result<void> save() const;

 private:
  struct Crash {
    std::string agent_class;
    std::string sha256;
    std::int64_t time_ms = 0;
  };

  bool count(const diagnosis::CrashRecord& crash, const std::string& agent_class);

  explicit Quarantine(std::filesystem::path file) : file_(std::move(file)) {}

  std::filesystem::path file_;
  std::vector<Crash> crashes_;
  std::vector<QuarantinedClass> held_;  // oldest first
};

// Releases the class that a person names, as it is or as URLs spell it (`ChatRoom` and `chat-room` are one), and gives what was held.
//   Failure  kNotFound: it is not in quarantine. A sentence for a person.
[[nodiscard]] Result<std::vector<QuarantinedClass>> release_class(Quarantine& quarantine,
                                                                  const std::string& given);

}  // namespace hearth::plugins
