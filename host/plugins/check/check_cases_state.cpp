// T2: what agents have stored: later versions of the class and later lives must be able to use it.

#include "extensions/abi_status.hpp"
#include "json/json.hpp"
#include "plugins/check/check_cases.hpp"
#include "plugins/check/check_script.hpp"

#include <hearth/ext/schema.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::plugins {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxShown = 60;

// ---- versions of the data ----

// 0: the class has none.
std::uint32_t schema_of(CheckSubject& subject, const hearth_class& table) {
  std::uint32_t version = 0;
  if (!HEARTH_HAS(&table, hearth_class, get_extension)) return version;
  subject.enter("in get_extension()", nullptr, [&] {
    const auto* const schema =
        static_cast<const hearth_schema_v1*>(table.get_extension(&table, HEARTH_EXT_SCHEMA));
    if (schema != nullptr && schema->struct_size >= sizeof *schema) version = schema->version;
    return hearth_status{HEARTH_OK};
  });
  return version;
}

// Copies of the databases of this case's agents, to be put back later.
// Failure  std::filesystem::filesystem_error.
class StoredAgents {
 public:
  explicit StoredAgents(const CheckRun& run) : directory_(run.setting.directory) {}

  void keep() const { copy_all(directory_, directory_ / "kept"); }
  void put_back() const {
    remove_all();
    copy_all(directory_ / "kept", directory_);
  }
  void remove_all() const {
    for (const fs::path& file : files(directory_)) fs::remove(file);
  }

 private:
  static std::vector<fs::path> files(const fs::path& directory) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.path().filename().native().starts_with("agent-")) found.push_back(entry.path());
    }
    return found;
  }
  static void copy_all(const fs::path& from, const fs::path& to) {
    fs::create_directory(to);
    for (const fs::path& file : files(from))
      fs::copy_file(file, to / file.filename(), fs::copy_options::overwrite_existing);
  }

  const fs::path directory_;
};

// How one migration has ended.
struct Migrated {
  bool is_ignored = false;  // UNSUPPORTED at once: the library says that there is nothing to do
  bool is_open = false;     // accepted, and not completed
  std::string fault;        // why it failed; empty: it did not
  bool operator==(const Migrated&) const = default;
};

std::string how_it_failed(const CheckCall& call, hearth_status status, bool is_pending) {
  if (is_pending) return "it accepts it and does not complete it";
  if (status != HEARTH_OK) return extensions::status_name(status);
  return call.ok ? std::string()
                 : "it completes it with the error " + std::string(to_string(call.code));
}

Migrated migrate(CheckSubject& subject, const hearth_class& table, std::uint32_t from,
                 std::uint32_t to) {
  CheckInstance instance(subject, table, "grown");
  Migrated migrated;
  instance.agent().migrating = true;  // the writes of create() are a part of the migration
  if (const hearth_status made = instance.create(); made != HEARTH_OK) {
    migrated.fault = "its create() answers " + extensions::status_name(made);
    return migrated;
  }
  const auto run = [&instance](std::uint32_t kind, std::string body) {
    const Delivered delivered = instance.go_through({.kind = kind, .body = std::move(body)});
    return std::pair(delivered.status,
                     how_it_failed(instance.agent().open_calls()[delivered.call], delivered.status,
                                   instance.is_pending(delivered.call)));
  };
  const auto [status, fault] = run(HEARTH_EVENT_MIGRATE, "{\"from\":" + std::to_string(from) +
                                                             ",\"to\":" + std::to_string(to) + "}");
  instance.agent().migrating = false;
  migrated.is_ignored = status == HEARTH_E_UNSUPPORTED;
  migrated.is_open = !instance.pending().empty();
  if (!fault.empty() && !migrated.is_ignored) migrated.fault = fault;
  if (!migrated.fault.empty()) return migrated;
  instance.agent().end_turn();
  if (const std::string start = run(HEARTH_EVENT_START, "").second; !start.empty())
    migrated.fault = "START fails afterwards: " + start;
  return migrated;
}

CaseOutcome judge_migration(CheckRun& run, CheckSubject& subject, const hearth_class& table,
                            std::uint32_t from, std::uint32_t to) {
  const bool is_real = !run.setting.older.empty();  // the version before has written the data
  const StoredAgents stored(run);
  stored.keep();
  const Migrated first = migrate(subject, table, from, to);
  // As after a crash in the middle: it undoes all writes of the migration.
  stored.put_back();
  const Migrated second = migrate(subject, table, from, to);
  const std::string what = std::string(table.name) + ", MIGRATE from " + std::to_string(from) +
                           " to " + std::to_string(to) + ": ";
  if (first != second) {
    return CaseOutcome::failed(
        what + "it ends differently when it is tried again on the same data, as after a crash (" +
        (first.fault.empty() ? "it works" : first.fault) + ", and then " +
        (second.fault.empty() ? "it works" : second.fault) + ")");
  }
  if (first.is_ignored && from != 0)
    return CaseOutcome::failed(what + "it answers UNSUPPORTED, so that no agent of before starts");
  if (first.fault.empty()) return CaseOutcome::passed();
  if (is_real || first.is_open) return CaseOutcome::failed(what + first.fault);
  return CaseOutcome::warned(what + first.fault +
                             ", on data that it has written itself: give the version before with "
                             "--older");
}

// The class of the same name in the version before; null if there is none.
const hearth_class* same_class(const CheckSubject& subject, std::string_view name) {
  for (const hearth_class* const each : subject.classes()) {
    if (each->name == name) return each;
  }
  return nullptr;
}

// ---- later lives ----

struct Answers {
  std::map<std::string, std::string> by_call;  // from the second time each call was made
  std::string state;
};

void call_all(CheckInstance& instance, const std::vector<std::string>& methods, Answers& answers) {
  for (const std::string& method : methods) {
    for (const char* const arguments : {"[]", R"(["a"])", "[1,2]"}) {
      const Delivered called =
          instance.go_through({.kind = HEARTH_EVENT_CALL, .name = method, .body = arguments});
      const CheckCall& call = instance.agent().open_calls()[called.call];
      answers.by_call[method + "(" + std::string(arguments) + ")"] =
          call.ok ? call.body : "error " + std::string(to_string(call.code));
    }
  }
}

// Calls all methods twice on a new agent. Evicts the agent in between, or not.
Answers live(CheckSubject& subject, const hearth_class& table,
             const std::vector<std::string>& methods, bool is_evicted) {
  const StoredAgents stored(subject.run());
  stored.remove_all();
  Answers answers;
  const CheckEvent start{.kind = HEARTH_EVENT_START};
  auto instance = std::make_unique<CheckInstance>(subject, table, "kept");
  if (instance->create() != HEARTH_OK) return answers;
  instance->go_through(start);
  call_all(*instance, methods, answers);
  if (is_evicted) {
    instance->go_through(
        {.kind = HEARTH_EVENT_EVICT, .flags = HEARTH_EVICT_IDLE, .deadline_ms = 1000});
    instance.reset();
    instance = std::make_unique<CheckInstance>(subject, table, "kept");
    if (instance->create() != HEARTH_OK) return answers;
    instance->go_through(start);
  }
  call_all(*instance, methods, answers);
  answers.state = instance->agent().shown_state();
  return answers;
}

std::string shown(std::string text) {
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text.empty() ? "nothing" : text;
}

// What an eviction has changed. Only answers count that are equal in two lives without eviction:
// other answers depend on time or chance.
std::string forgotten(const Answers& one, const Answers& another, const Answers& evicted) {
  for (const auto& [call, answer] : one.by_call) {
    const auto same = another.by_call.find(call);
    const auto after = evicted.by_call.find(call);
    if (same == another.by_call.end() || same->second != answer) continue;
    if (after == evicted.by_call.end() || after->second == answer) continue;
    return call + " answers " + shown(after->second) + " instead of " + shown(answer);
  }
  if (one.state == another.state && one.state != evicted.state)
    return "its state is " + shown(evicted.state) + " instead of " + shown(one.state);
  return {};
}

}  // namespace

CaseOutcome check_schema_migration(CheckRun& run) {
  CheckSubject subject(run);
  if (!subject.start()) return not_started();
  const bool is_real = !run.setting.older.empty();
  CheckSubject older(run, {.library = run.setting.older});
  if (is_real && !older.start()) return CaseOutcome::error("the version before cannot be loaded");
  CheckSubject& writer = is_real ? older : subject;
  std::size_t judged = 0;
  CaseOutcome outcome = CaseOutcome::passed();
  for (const hearth_class* const table : subject.classes()) {
    const std::uint32_t to = schema_of(subject, *table);
    const hearth_class* const before = same_class(writer, table->name);
    if (to == 0 || before == nullptr) continue;
    const std::uint32_t from = is_real ? schema_of(writer, *before) : to - 1;
    if (from >= to) continue;
    ++judged;
    const StoredAgents stored(run);
    stored.remove_all();
    play(writer, *before, "grown", {.methods = find_methods(writer, *before)});
    CaseOutcome of_class = judge_migration(run, subject, *table, from, to);
    if (of_class.verdict == CheckVerdict::kFailed) return of_class;
    if (of_class.verdict != CheckVerdict::kPassed) outcome = std::move(of_class);
  }
  if (judged == 0) {
    return CaseOutcome::skipped(is_real ? "no class has a higher schema version than before"
                                        : "no class has a schema version");
  }
  return outcome;
}

CaseOutcome check_memory_of_lives(CheckRun& run) {
  CheckSubject subject(run);
  if (!subject.start()) return not_started();
  for (const hearth_class* const table : subject.classes()) {
    const std::vector<std::string> methods = find_methods(subject, *table);
    const Answers one = live(subject, *table, methods, false);
    const Answers another = live(subject, *table, methods, false);
    if (run.is_late()) return out_of_time();
    const Answers evicted = live(subject, *table, methods, true);
    if (const std::string what = forgotten(one, another, evicted); !what.empty()) {
      return CaseOutcome::warned("once an agent of " + std::string(table->name) +
                                 " was evicted and made again, " + what);
    }
  }
  return outcome_of(subject);
}

}  // namespace hearth::plugins
