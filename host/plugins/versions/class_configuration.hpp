#pragma once
// The settings of all classes, from the class files, while the server runs.

#include "base/client_rules.hpp"
#include "config/config.hpp"
#include "config/diagnostic.hpp"
#include "plugins/versions/version_ledger.hpp"
#include "runtime/class_registry.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// Knows which settings hold for each class, and what changes when the files are read again.
// Rollouts brings the settings to the agents and calls take_back() when agents fail on them. The
// ledger keeps what is known about settings.
//
// Promises
//  P1 All or none  With a mistake in a class file, or without the directory, no class changes.
//  P2 Only changes A class gets another Settings object only when one of its values or its file
//                  changes.
//  P3 Not twice    Settings that were taken back hold again only after their values change, after
//                  try_again(), or after read_again() with `by_person`.
//  P4 In and out   Aliases, codes, entry rules and egress are always those that were read last,
//                  whatever is taken back.
//
// P1: the same goes for a directory that has no class file any more (a volume that is not mounted),
// unless `by_person`. P3: a restart or another change does not bring them back. P4: no agent fails
// to start because of them. So a crash neither lets in clients that they lock out, nor lets agents
// send requests that they forbid.
//
// Threads    One at a time. What it returns may be used on any.
// Lifetime   The ledger outlives it.
class ClassConfiguration {
 public:
  // Immutable. Its users share it.
  using Settings = std::shared_ptr<const config::ClassConfig>;

  // `directory`: of the class files. `read`: what was read from them. If the ledger knows settings
  // as taken back, the settings before hold. `definitions`: the directory of class files that came
  // over HTTP; for P1 they do not count as class files. `server`: of the server file.
  ClassConfiguration(std::filesystem::path directory, const config::ClassConfigs& read,
                     VersionLedger& ledger, std::filesystem::path definitions = {},
                     config::ForClasses server = {});

  // `routes`: of the server. `servers`: its rules for clients of classes that have none. From now
  // on a class file has a mistake if it removes the claims that make up a route's name.
  void keep_claims_for(std::vector<RouteRule> routes, AuthRules servers);

  // The settings that hold for a class: its file's values, or the defaults. Never null. A file may
  // use the class name or its URL segment: `ChatRoom` and `chat-room` are one class here.
  [[nodiscard]] Settings of(std::string_view class_name) const;

  // The classes that run the code of a library's class: that class, unless its file has `code`, and
  // all whose files name it there. Their names as the files spell them, each is_class_name().
  [[nodiscard]] std::vector<std::string> classes_of(std::string_view library_class) const;

  // A class whose settings have changed.
  struct Change {
    std::string agent_class;  // as its file names it
    std::string file;         // has the new settings; if that is gone, had the settings before
    std::vector<std::string> keys;
  };
  // The result of reading. With mistakes nothing has changed.
  struct Reading {
    std::vector<Change> changes;
    // Of these classes, and of classes whose settings that were taken back are not in the file any
    // more or may be tried again.
    std::set<std::string> segments;
    bool other_codes = false;  // classes_of() may have changed
    config::Diagnostics mistakes;
  };
  // The names of served classes, by segment. An alias must not be one of these segments.
  using ServedSegments = std::map<std::string, std::string, std::less<>>;
  // Reads all class files. With a segment only that class changes, but mistakes in any file count.
  // `by_person`: an operator asks. Then settings that were taken back are tried again, and all
  // class files may be gone.
  //   Threads   Blocks on the disk.
  Reading read_again(std::string_view segment, bool by_person, const ServedSegments& served = {});

  // Alias to the segment of its class.
  using Aliases = std::map<std::string, std::string, std::less<>>;
  [[nodiscard]] const Aliases& aliases() const { return aliases_; }
  // By segment, of the classes that have a file. entry_rules() has those of other classes too, at
  // "".
  [[nodiscard]] runtime::ClassRegistry::EntryTable entry_rules() const;
  [[nodiscard]] runtime::ClassRegistry::EgressTable egress() const;
  // The paths at which clients find a class, for the log: "/agents/chat-room, /agents/my-chat".
  [[nodiscard]] std::string paths(std::string_view segment) const;

  // `next` is about to replace `before` for agents. If `next` crashes the process, the next process
  // knows it from the ledger.
  //   Failure   The ledger could not write it. It holds as long as this process runs.
  Result<void> begin_trial(std::string_view class_name, const Settings& next,
                           const Settings& before);
  [[nodiscard]] bool is_on_trial(std::string_view class_name) const;
  // These settings have held long enough. Does nothing if they are not on trial.
  Result<void> prove(std::string_view class_name, const Settings& settings);

  // Agents of the class failed with `failed`: `before` holds again. Does nothing if other settings
  // hold already.
  void take_back(std::string_view class_name, const Settings& failed, const Settings& before,
                 std::string reason);
  // There is new code, which may accept the settings that were taken back: they hold again. False:
  // none were taken back.
  bool try_again(std::string_view class_name);

  // Settings that are in a class file and do not hold.
  struct TakenBack {
    std::string agent_class;
    std::string file;  // as in Change
    std::string reason;
  };
  [[nodiscard]] std::vector<TakenBack> taken_back() const;

  // Classes whose settings were taken back and hold all the same since the start, because the
  // settings before could not be read. A sentence for each.
  [[nodiscard]] const std::vector<std::string>& without_way_back() const {
    return without_way_back_;
  }

 private:
  struct Held {
    std::string name;  // of the class, as the file has it
    Settings settings;
  };
  [[nodiscard]] Settings held(const std::string& segment) const;
  [[nodiscard]] bool has_class_file(const config::ClassConfigs& read) const;
  void use_aliases(const std::string& segment, const std::vector<std::string>& aliases);
  void go_back(const std::string& segment, const Kept& proven);
  // The name of a class as its file spells it, or did before.
  [[nodiscard]] std::string name_of(const std::string& segment) const;
  // The class's name and its `code` in its file; empty: it has none.
  [[nodiscard]] std::string said_code(const std::string& segment) const;
  void consider(const std::string& segment, Held next, bool by_person, Reading& reading);

  const std::filesystem::path directory_;
  const std::filesystem::path definitions_;
  const config::ForClasses server_;
  std::vector<RouteRule> routes_;
  AuthRules servers_auth_;
  const Settings defaults_;
  bool must_exist_;  // the directory has existed
  bool had_files_;   // at the last reading
  // By segment.
  std::map<std::string, Held> held_;
  std::map<std::string, Held> said_;  // as the files said at the last reading
  VersionLedger& ledger_;
  std::vector<std::string> without_way_back_;
  Aliases aliases_;
};

}  // namespace hearth::plugins
