#pragma once
// Which classes are served, under which segments and with which settings. And which classes are not
// served now, but are expected back.

#include "base/client_rules.hpp"
#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "extensions/call_order.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/class_settings.hpp"
#include "runtime/version_news.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {

// Agents of one version of a class: how many have started and tried to go on with their interrupted
// fibers, how many have failed, and how many are in memory.
//
// Threads  Any.
struct StartCounts {
  // Rings with each change that may advance a rollout. The registry that serves this version sets
  // it before any agent starts; null: nothing rings.
  std::shared_ptr<VersionNews> news;
  std::atomic<std::uint32_t> started{0};
  std::atomic<std::uint32_t> failed{0};  // agents, each counted once however often it retries
  std::atomic<bool> unreadable{false};   // some have failed by count_unreadable()
  std::atomic<std::uint32_t> agents{0};  // not cold
  // Agents that cannot start on this version wait until the trial is decided, at most until then.
  // The beginning of time: it is decided.
  std::atomic<SteadyTime> undecided_until{SteadyTime{}};

  void count_start();
  // An agent has left memory.
  void count_leave();
  // The agent of this name could not start. After kMaxNames names each failure counts.
  void count_failure(const std::string& agent);
  // The same for one that has started, and could not read the durable work of earlier versions.
  void count_unreadable(const std::string& agent);
  static constexpr std::size_t kMaxNames = 100;

 private:
  Mutex mutex_;
  std::set<std::string> names_ GUARDED_BY(mutex_);
};

// One served class: its code and its settings. A change of either is another version, and agents
// know their version by this object's address. Immutable except for the counts. Its users share
// ownership.
struct ServedClass {
  std::string segment;  // "chat-room": how clients name it
  std::shared_ptr<const AgentClass> agent_class;
  ClassSettings settings;
  std::string refusal = {};  // not empty: no agent of it is woken; the reason, for clients
  std::shared_ptr<StartCounts> starts = std::make_shared<StartCounts>();

  // Valid as long as the class lives.
  [[nodiscard]] extensions::CallOrder call_order() const {
    return {.serial = settings.serial_calls, .exclusive = agent_class->exclusive_methods()};
  }
};

// A segment is *expected* once a class was served under it, or after expect(). It stays expected,
// served or not, until expect_no_more() or the end of the registry. A client that asks for an
// expected class that is not served is told to try again. A client that asks for any other name is
// not.
//
// Threads   All members from any thread. Called once for each connection and each wake, never for
//           a message.
// Bounded   One segment for each class that was ever served or configured, or has agents: clients
//           cannot add any.
class ClassRegistry {
 public:
  // False if the segment is taken.
  bool add(ServedClass served);

  // From now on `next` serves the segment. Returns the version that served it before, or null.
  std::shared_ptr<const ServedClass> put(std::shared_ptr<const ServedClass> next);

  // The segment is not served any more. It is *awaited* until put() brings it back or give_up() is
  // called: meanwhile the clients of its agents stay connected. Returns the version that served it,
  // or null.
  std::shared_ptr<const ServedClass> remove(std::string_view segment);
  [[nodiscard]] bool is_awaited(std::string_view segment) const;
  void give_up(std::string_view segment);
  // Of a segment under which no agent is woken: since remove(), or since put() of a class that
  // refuses. None: this registry has never served it.
  [[nodiscard]] std::optional<WallTime> missing_since(std::string_view segment) const;

  // Further segments by which clients name a class, each with the class's own segment. `aliases`
  // replaces all earlier ones. The class need not be served.
  using Aliases = std::map<std::string, std::string, std::less<>>;
  void set_aliases(Aliases aliases);
  // The segment that an alias leads to; empty: it is no alias.
  [[nodiscard]] std::string aliased(std::string_view alias) const;
  // In their order.
  [[nodiscard]] std::vector<std::string> aliases_of(std::string_view segment) const;

  // What classes require of clients, by segment. `rules` replaces the whole table, and a class that
  // is not in it has those of the segment "", or the defaults. add() enters the rules of the
  // class's settings if its segment is not in the table.
  using EntryTable = std::map<std::string, std::shared_ptr<const EntryRules>, std::less<>>;
  // Returns the old table. If the `auth` of any class differs in it, this calls access_changed().
  EntryTable set_entry_rules(EntryTable rules);
  // Never null.
  [[nodiscard]] std::shared_ptr<const EntryRules> entry_rules(std::string_view segment) const;

  // Counts the changes of rules or of valid proofs that decide which clients may connect. The
  // caller of access_changed() closes the connected clients afterwards. A client that is connecting
  // at that time is covered too. The generation is read before the client is checked, and compared
  // when its socket opens, on the loop that also closes clients. If it differs, the client must
  // try again.
  [[nodiscard]] std::uint64_t access_generation() const { return access_generation_.load(); }
  void access_changed() { access_generation_.fetch_add(1); }

  // Where the agents of classes may send requests, by segment. Like the entry rules, the table
  // holds for every version of a class, and a class that is not in it has the defaults.
  using EgressTable = std::map<std::string, extensions::EgressPtr, std::less<>>;
  void set_egress(EgressTable table);
  // Never null.
  [[nodiscard]] extensions::EgressPtr egress(std::string_view segment) const;

  // The segment is expected to be served: the class has settings.
  void expect(std::string segment, ClassSettings settings = {});
  // The same for a class that a library has had, because the class has agents.
  void expect_again(std::string segment);
  // The class has lost its settings: undoes expect(), unless a library has had the class.
  void expect_no_more(std::string_view segment);
  // Segments of classes that a library has had in an earlier process. This alone does not make them
  // expected. `note` is called once for each other segment, before it is served for the first time,
  // on the thread that serves it.
  using Segments = std::set<std::string, std::less<>>;
  void remember(const Segments& known, std::function<void(const std::string& segment)> note);
  // Whether a library is known to have had the class: this registry served it, or expect_again() or
  // remember() named it. `name`: a segment, an alias, or a class's own name.
  [[nodiscard]] bool had_library(std::string_view name) const;
  // The settings with which a class's agents are opened while it is not served: those of its last
  // version, or of a later expect(); else the defaults.
  [[nodiscard]] ClassSettings last_settings(std::string_view segment) const;
  // For segments that find_for_client() does not find. Served segments and aliases of expected
  // segments are expected too.
  [[nodiscard]] bool is_expected(std::string_view segment) const;
  // Whether an expected class that is not served has this segment or name ("ChatRoom"). Ignores
  // aliases, case, `-` and `_`.
  [[nodiscard]] bool is_expected_name(std::string_view name) const;
  // Null if there is no such class.
  [[nodiscard]] std::shared_ptr<const ServedClass> find(std::string_view segment) const;
  // The same for a segment in a URL, which may be an alias. A served segment comes before an alias.
  [[nodiscard]] std::shared_ptr<const ServedClass> find_for_client(std::string_view segment) const;
  // By the class's own name ("ChatRoom"). Null if there is no such class.
  [[nodiscard]] std::shared_ptr<const ServedClass> find_by_name(std::string_view name) const;

  // In the order of the segments.
  [[nodiscard]] std::vector<std::shared_ptr<const ServedClass>> all() const;

  void clear();

  // Rings when an agent has started or failed to start, and when the last agent of a version has
  // left.
  [[nodiscard]] const std::shared_ptr<VersionNews>& news() const { return news_; }

 private:
  void note_served(const std::string& segment);

  const std::shared_ptr<VersionNews> news_ = std::make_shared<VersionNews>();
  // What is known of a segment.
  struct Known {
    std::shared_ptr<const ServedClass> served = nullptr;  // null: it is not served
    ClassSettings settings = {};                          // last_settings()
    std::optional<WallTime> missing_since = {};
    bool is_awaited = false;
    bool is_expected = false;
    bool stays_expected = false;  // it was served here, or has agents
    bool is_remembered = false;   // a library has had it, and note_ knows

    // Returns the version that was served before.
    std::shared_ptr<const ServedClass> serve(std::shared_ptr<const ServedClass> next,
                                             const std::shared_ptr<VersionNews>& news);
    // No agent is woken under it from now on.
    void miss() {
      if (!missing_since) missing_since = std::chrono::system_clock::now();
    }
  };
  [[nodiscard]] const Known& known(std::string_view segment) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Known, std::less<>> segments_ GUARDED_BY(mutex_);
  std::function<void(const std::string& segment)> note_ GUARDED_BY(mutex_);
  Aliases aliases_ GUARDED_BY(mutex_);
  EntryTable entry_rules_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> access_generation_ = 0;
  EgressTable egress_ GUARDED_BY(mutex_);
};

// Like find_for_client(); if that finds nothing, by the class's own name.
[[nodiscard]] std::shared_ptr<const ServedClass> find_by_any_name(const ClassRegistry& classes,
                                                                  std::string_view name);

}  // namespace hearth::runtime
