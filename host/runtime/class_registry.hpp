#pragma once
// Which classes are served now, under which segments and with which settings; and which are not,
// but are expected back.

#include "base/client_rules.hpp"
#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "extensions/call_order.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/class_settings.hpp"
#include "runtime/version_news.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {

// Agents of one version of a class: how they have started, and how many are in memory.
//
// Threads  Any.
struct StartCounts {
  // Rings with each change that may bring a rollout further. The registry that serves this version
  // sets it before any agent starts; null: nothing rings.
  std::shared_ptr<VersionNews> news;
  std::atomic<std::uint32_t> started{0};
  std::atomic<std::uint32_t> failed{0};  // agents: one that tries again and again counts once
  std::atomic<std::uint32_t> agents{0};  // not cold
  // Until then, at the latest, somebody decides whether this version stays: agents that cannot
  // start on it wait for that. The beginning of time: it has been decided.
  std::atomic<SteadyTime> undecided_until{SteadyTime{}};

  void count_start();
  // An agent is not in memory any more.
  void count_leave();
  // The agent of this name could not start. Beyond kMaxNames each time counts.
  void count_failure(const std::string& agent);
  static constexpr std::size_t kMaxNames = 100;

 private:
  Mutex mutex_;
  std::set<std::string> names_ GUARDED_BY(mutex_);
};

// One class that is served: its code and its settings. Each change of one of them is another
// version of it, and agents know theirs by this object's address. Immutable but for the counts;
// whoever uses it holds it.
struct ServedClass {
  std::string segment;  // "chat-room": how clients name it
  std::shared_ptr<const AgentClass> agent_class;
  ClassSettings settings;
  std::string refusal = {};  // not empty: no agent of it is woken, and this is why, for clients
  std::shared_ptr<StartCounts> starts = std::make_shared<StartCounts>();

  // As long as the class lives.
  [[nodiscard]] extensions::CallOrder call_order() const {
    return {.serial = settings.serial_calls, .exclusive = agent_class->exclusive_methods()};
  }
};

// A segment is *expected* once a class has been served under it, or expect() was told of it: it
// stays so as long as the registry lives, served or not, but for expect_no_more(). Whoever asks for
// an expected class that is not served is to come back; for any other name, never.
//
// Threads   All members from any thread. Asked once for each connection and each wake, never for a
//           message.
// Bounded   One segment for each class that was ever served or configured, or has agents: clients
//           cannot add any.
class ClassRegistry {
 public:
  // False if the segment is taken.
  bool add(ServedClass served);

  // From now on the segment is served by `next`, whatever served it before: that is returned, or
  // null.
  std::shared_ptr<const ServedClass> put(std::shared_ptr<const ServedClass> next);

  // The segment is served no more. It is *awaited* until put() brings it back or give_up() is
  // called: the clients of its agents stay connected meanwhile. What served it, or null.
  std::shared_ptr<const ServedClass> remove(std::string_view segment);
  [[nodiscard]] bool is_awaited(std::string_view segment) const;
  void give_up(std::string_view segment);

  // Further segments by which clients name a class, each with the class's own one: `aliases` takes
  // the place of all that were set before. Whether the class is served makes no difference.
  using Aliases = std::map<std::string, std::string, std::less<>>;
  void set_aliases(Aliases aliases);
  // The segment that an alias leads to; empty for what is none.
  [[nodiscard]] std::string aliased(std::string_view alias) const;
  // In their order.
  [[nodiscard]] std::vector<std::string> aliases_of(std::string_view segment) const;

  // What classes ask of clients, by segment: `rules` takes the place of all that were set before,
  // and a class that is not in it has the defaults. A class that is added has those of its settings
  // unless its segment is in the table already.
  using EntryTable = std::map<std::string, std::shared_ptr<const EntryRules>, std::less<>>;
  // Gives the table before. If any `auth` is another one in it, access has changed.
  EntryTable set_entry_rules(EntryTable rules);
  // Never null.
  [[nodiscard]] std::shared_ptr<const EntryRules> entry_rules(std::string_view segment) const;

  // Which clients may be let in has changed: rules, or proofs that were good. Whoever changes it
  // closes the clients that are there afterwards. Those that are on their way in at that time see
  // to themselves: the generation is taken before a client is judged, and compared where its socket
  // is opened, on the loop that closes it from then on. If it differs, the client must come again.
  [[nodiscard]] std::uint64_t access_generation() const { return access_generation_.load(); }
  void access_changed() { access_generation_.fetch_add(1); }

  // Where the agents of classes may send requests to, by segment. As with the entry rules, it
  // holds whichever version of the class is served, and a class that is not in it has the defaults.
  using EgressTable = std::map<std::string, extensions::EgressPtr, std::less<>>;
  void set_egress(EgressTable table);
  // Never null.
  [[nodiscard]] extensions::EgressPtr egress(std::string_view segment) const;

  // There is reason to think that the segment will be served: the class has settings.
  void expect(std::string segment, ClassSettings settings = {});
  // The same for a class that a library has had, since it has agents.
  void expect_again(std::string segment);
  // It has its settings no more: what expect() said is forgotten, unless a library has had the
  // class.
  void expect_no_more(std::string_view segment);
  // Segments of classes that a library has had in an earlier life of the server. They are no more
  // expected for that. `note` is called once for each other segment, before it is served for the
  // first time and on the thread that serves it.
  using Segments = std::set<std::string, std::less<>>;
  void remember(Segments known, std::function<void(const std::string& segment)> note);
  // Whether a library has had the class, as far as is known: it was served by this registry,
  // expected again, or is remembered. `name`: a segment, an alias, or a class's own name.
  [[nodiscard]] bool had_library(std::string_view name) const;
  // What the agents of a class are opened with while it is not served: the settings with which it
  // was served last, or those of expect() if they came later; else the defaults.
  [[nodiscard]] ClassSettings last_settings(std::string_view segment) const;
  // For what find_for_client() does not find; served segments are expected as well, and aliases of
  // expected ones.
  [[nodiscard]] bool is_expected(std::string_view segment) const;

  // Whether an expected class that is not served now has this segment or name ("ChatRoom"). Without
  // the aliases; case, `-` and `_` count for nothing.
  [[nodiscard]] bool is_expected_name(std::string_view name) const;

  // Null if there is no such class.
  [[nodiscard]] std::shared_ptr<const ServedClass> find(std::string_view segment) const;

  // The same for a segment as it stands in a URL, which may be an alias. A class that is served
  // under its own segment comes before an alias.
  [[nodiscard]] std::shared_ptr<const ServedClass> find_for_client(std::string_view segment) const;

  // By the class's own name ("ChatRoom"). Null if there is no such class.
  [[nodiscard]] std::shared_ptr<const ServedClass> find_by_name(std::string_view name) const;

  // As find_for_client(), and by the class's own name where there is no such segment.
  [[nodiscard]] std::shared_ptr<const ServedClass> find_by_any_name(std::string_view name) const;

  // In the order of the segments.
  [[nodiscard]] std::vector<std::shared_ptr<const ServedClass>> all() const;

  void clear();

  // Rings when an agent has started, or could not, and when the last agent of a version has left.
  [[nodiscard]] const std::shared_ptr<VersionNews>& news() const { return news_; }

 private:
  void note_served(const std::string& segment);

  const std::shared_ptr<VersionNews> news_ = std::make_shared<VersionNews>();
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const ServedClass>, std::less<>> classes_
      GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> awaited_ GUARDED_BY(mutex_);  // segments
  // Segments, and whether a library has had the class.
  std::map<std::string, bool, std::less<>> expected_ GUARDED_BY(mutex_);
  std::map<std::string, ClassSettings, std::less<>> last_settings_ GUARDED_BY(mutex_);
  Segments remembered_ GUARDED_BY(mutex_);
  std::function<void(const std::string& segment)> note_ GUARDED_BY(mutex_);
  Aliases aliases_ GUARDED_BY(mutex_);
  EntryTable entry_rules_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> access_generation_ = 0;
  EgressTable egress_ GUARDED_BY(mutex_);
};

}  // namespace hearth::runtime
