#pragma once
// The settings of all classes, as the class files say while the server runs.

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

// What holds for each class, and what is different when the files are read anew. It serves nobody:
// what it holds is brought to the agents by others, who tell it when that has failed. What is known
// about settings, it asks the ledger and tells the ledger.
//
// Promises
//  P1 All or none  A mistake in any class file, or a directory that is gone, leaves what holds as
//                  it is, for every class. So does one that has no class file any more (a volume
//                  that is not mounted), unless a person asks.
//  P2 Only changes A class gets another Settings object only when a value or the file of it has
//                  changed.
//  P3 Not twice    Settings that were taken back do not hold again because something else has
//                  changed, or because the server starts again: only when they are other ones, when
//                  try_again() is called, or when read_again() is told to.
//  P4 In and out   Aliases, entry rules and egress are those that were read last, whatever is taken
//                  back: no agent fails to start because of them, and a crash neither lets in
//                  clients that they lock out, nor lets agents go where they may not.
//
// Threads    One at a time. What it gives may be used on any.
// Lifetime   The ledger outlives it.
class ClassConfiguration {
 public:
  // Immutable; whoever uses it holds it.
  using Settings = std::shared_ptr<const config::ClassConfig>;

  // `directory`: of class files. `read`: what they have said already. Of settings that the ledger
  // knows as taken back those before hold. `definitions`: of class files that came over HTTP; P1
  // counts them as none. `all_are_objects`: ObjectsConfig::all_classes.
  ClassConfiguration(std::filesystem::path directory, const config::ClassConfigs& read,
                     VersionLedger& ledger, std::filesystem::path definitions = {},
                     bool all_are_objects = false);

  // The server's routes, and what it asks of the clients of classes that say nothing. From now on
  // files that take away the claims that a route's name is made of are a mistake.
  void keep_claims_for(std::vector<RouteRule> routes, AuthRules servers);

  // What holds for a class: its file's values, or the defaults. Never null. A file may name its
  // class as it is or as URLs spell it: `ChatRoom` and `chat-room` are one class here.
  [[nodiscard]] Settings of(std::string_view class_name) const;

  // A class for which something else holds from now on.
  struct Change {
    std::string agent_class;  // as its file names it
    std::string file;         // the one that says it, or that said what held before
    std::vector<std::string> keys;
  };
  // What came of reading: if there are mistakes, nothing has changed.
  struct Reading {
    std::vector<Change> changes;
    // Of those classes, and of those whose file has gone back to what holds from something that was
    // taken back.
    std::set<std::string> segments;
    config::Diagnostics mistakes;
  };
  // The names of classes that are served, by segment: no alias can be one of those.
  using ServedSegments = std::map<std::string, std::string, std::less<>>;
  // Reads all class files. With a segment what they say of other classes is left alone, but for
  // mistakes. `by_person`: what was taken back is tried again, and there may be no class file any
  // more.
  //   Threads   Blocks on the disk.
  Reading read_again(std::string_view segment, bool by_person, const ServedSegments& served = {});

  // The segment of its class by alias.
  using Aliases = std::map<std::string, std::string, std::less<>>;
  [[nodiscard]] const Aliases& aliases() const { return aliases_; }
  // By segment, of the classes that have a file.
  [[nodiscard]] runtime::ClassRegistry::EntryTable entry_rules() const;
  [[nodiscard]] runtime::ClassRegistry::EgressTable egress() const;
  // Where clients find a class, for people: "/agents/chat-room, /agents/my-chat".
  [[nodiscard]] std::string paths(std::string_view segment) const;

  // `next` is about to hold for agents in place of `before`: a process that `next` ends is followed
  // by one that knows it.
  //   Failure   The ledger could not write it down. It knows for as long as this process runs.
  Result<void> begin_trial(std::string_view class_name, const Settings& next,
                           const Settings& before);
  [[nodiscard]] bool is_on_trial(std::string_view class_name) const;
  // These have held long enough. Only if they are on trial.
  Result<void> prove(std::string_view class_name, const Settings& settings);

  // Agents of the class failed with `failed`: `before` holds again, unless something else does
  // already.
  void take_back(std::string_view class_name, const Settings& failed, const Settings& before,
                 std::string reason);
  // There is new code that may understand what was taken back: that holds again. False: nothing
  // was.
  bool try_again(std::string_view class_name);

  // What the files say and does not hold.
  struct TakenBack {
    std::string agent_class;
    std::string file;  // as a Change has it
    std::string reason;
  };
  [[nodiscard]] std::vector<TakenBack> taken_back() const;

  // Why settings that were taken back hold since the start all the same, a sentence for each class.
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
  [[nodiscard]] config::Diagnostics none_is_left() const;
  [[nodiscard]] config::Diagnostics lost_claims(const config::ClassConfigs& files) const;
  void use_aliases(const std::string& segment, const std::vector<std::string>& aliases);
  void go_back(const std::string& segment, const SettingsFacts::Proven& proven);
  // The name of a class as a file has it, or had it.
  [[nodiscard]] std::string name_of(const std::string& segment) const;
  void consider(const std::string& segment, Held next, bool by_person, Reading& reading);

  const std::filesystem::path directory_;
  const std::filesystem::path definitions_;
  const bool all_are_objects_;
  std::vector<RouteRule> routes_;
  AuthRules servers_auth_;
  const Settings defaults_;
  bool must_exist_;  // the directory was there once
  bool had_files_;   // when it was read last
  // By segment: however files spell a class, it is one.
  std::map<std::string, Held> held_;
  std::map<std::string, Held> said_;  // by the files, when they were read last
  VersionLedger& ledger_;
  std::vector<std::string> without_way_back_;
  Aliases aliases_;
};

}  // namespace hearth::plugins
