#include "server/admin_desk.hpp"

#include "base/escape.hpp"
#include "protocol/class_segment.hpp"
#include "server/shard_questions.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

namespace hearth::server {
namespace {

// An administrator waits for each: more at once are a script's mistake.
constexpr std::size_t kMaxWaiting = 64;

constexpr std::size_t kMaxShownName = 128;

Error no_answer() {
  return Error{Errc::kUnavailable,
               "an event loop does not answer: the code of some agent holds it up"};
}

std::string word(runtime::AgentState state) {
  switch (state) {
    case runtime::AgentState::kCold:
    case runtime::AgentState::kAwaitingRoom:
    case runtime::AgentState::kAwaitingVersion:
    case runtime::AgentState::kCondemned:
    case runtime::AgentState::kOpened: return "cold";
    case runtime::AgentState::kWaking: return "waking";
    case runtime::AgentState::kLive: return "live";
    case runtime::AgentState::kLeaving:
    case runtime::AgentState::kEnding: return "evicting";
  }
  return "cold";
}

std::string word(plugins::PluginReloader::Outcome::What what) {
  using What = plugins::PluginReloader::Outcome::What;
  switch (what) {
    case What::kUnchanged: return "unchanged";
    case What::kNewVersion: return "new_version";
    case What::kNewSettings: return "new_settings";
    case What::kRefused: return "refused";
    case What::kRemoved: return "removed";
  }
  return "unchanged";
}

std::vector<api::ReloadedFile> told(const plugins::PluginReloader::Outcomes& outcomes) {
  std::vector<api::ReloadedFile> files;
  for (const plugins::PluginReloader::Outcome& each : outcomes) {
    files.push_back({.file = each.file.native(),
                     .outcome = word(each.what),
                     .version = each.version,
                     .generation = each.generation,
                     .reason = each.reason,
                     .agent_class = each.agent_class,
                     .keys = each.keys,
                     .note = each.note});
  }
  return files;
}

// The state of a version; for the current one quarantined, on_trial or current, as the ledger says.
std::string word(const plugins::GenerationInfo& version, const plugins::VersionLedger& ledger) {
  if (version.state != plugins::GenerationInfo::State::kCurrent)
    return std::string(plugins::to_string(version.state));
  const bool is_quarantined = std::ranges::any_of(version.classes, [&](const std::string& name) {
    return ledger.is_quarantined(name, version.sha256);
  });
  if (is_quarantined) return "quarantined";
  const auto place = ledger.find(version.file);
  return place && place->on_trial == version.sha256 ? "on_trial" : "current";
}

// The settings that the ledger knows as on trial or taken back.
std::vector<api::UnprovenSettings> unproven(const std::vector<plugins::SettingsFacts>& facts) {
  std::vector<api::UnprovenSettings> list;
  for (const plugins::SettingsFacts& each : facts) {
    if (!each.on_trial.empty())
      list.push_back({.agent_class = each.agent_class, .state = "on_trial", .reason = {}});
    if (each.taken_back) {
      list.push_back({.agent_class = each.agent_class,
                      .state = "taken_back",
                      .reason = each.taken_back->reason});
    }
  }
  return list;
}

void add_standing(api::AgentView& view, const runtime::Shard::Standing& standing) {
  view.state = word(standing.state);
  view.connections = standing.connections;
  view.version = standing.version;
  view.working = standing.wake.working;
  view.next_wake_ms = standing.wake.at_ms;
}

}  // namespace

AdminDesk::AdminDesk(runtime::Runtime& runtime, plugins::PluginLoader& loader,
                     const storage::DataDirectory& data, plugins::VersionLedger& ledger,
                     AuditLog& audit, Logger& logger, const config::ServerConfig& server,
                     std::chrono::milliseconds shard_patience)
    : runtime_(runtime),
      loader_(loader),
      data_(data),
      ledger_(ledger),
      audit_(audit),
      logger_(logger),
      shard_patience_(shard_patience),
      pool_(1, kMaxWaiting),
      definitions_(
          data.path(), server.classes, server.for_classes(),
          [this] {
            DefinitionDesk::Served served;
            for (const auto& each : runtime_.classes().all())
              served.emplace(each->segment, each->agent_class->name());
            return served;
          },
          [this](std::string agent_class, DefinitionDesk::Reloaded done) {
            reload(std::move(agent_class), std::move(done));
          },
          logger) {}

void AdminDesk::record(std::string_view event, const storage::AgentKey& key) {
  logger_.record(LogLevel::kDebug, event, {{"class", key.agent_class}, {"agent", key.name}});
}

Error AdminDesk::too_much() const {
  return stopping_ ? Error{Errc::kClosing, "the server is shutting down"}
                   : Error{Errc::kUnavailable, "too much is asked at once; try again"};
}

void AdminDesk::stop() {
  stopping_ = true;
  definitions_.stop();
  pool_.stop();
}

void AdminDesk::use(plugins::PluginReloader* reloader) {
  const MutexLock lock(mutex_);
  reloader_ = reloader;
}

storage::Directory& AdminDesk::directory() {
  if (!directory_) directory_.emplace(data_.directory_path(), data_.directory_vfs());
  return *directory_;
}

// ---- libraries ----------------------------------------------------------------------------------

void AdminDesk::plugins(Answer<api::PluginList> answer) {
  ask<api::PluginList>(std::move(answer), [this] { return list_plugins(); });
}

Result<api::PluginList> AdminDesk::list_plugins() {
  api::PluginList list;
  for (const plugins::GenerationInfo& each : loader_.generations()) {
    list.versions.push_back({.file = each.file.native(),
                             .plugin = each.plugin,
                             .version = each.version,
                             .sha256 = each.sha256,
                             .generation = each.generation,
                             .current = each.state == plugins::GenerationInfo::State::kCurrent,
                             .state = word(each, ledger_),
                             .pinned_because = each.pinned_because,
                             .classes = each.classes});
  }
  list.settings = unproven(ledger_.facts().settings);
  const MutexLock lock(mutex_);
  if (reloader_ == nullptr) return list;
  for (const plugins::Refusal& each : reloader_->refusals())
    list.refused.push_back({.file = each.file.native(), .rule = each.rule, .reason = each.reason});
  list.moving = reloader_->moving();
  return list;
}

void AdminDesk::reload(std::string agent_class, Answer<std::vector<api::ReloadedFile>> answer) {
  // Shared, because a rejected request must be answered here, after the lock is released.
  const auto shared = std::make_shared<Answer<std::vector<api::ReloadedFile>>>(std::move(answer));
  const char* why_not = "the server is starting or stopping";
  {
    const MutexLock lock(mutex_);
    if (reloader_ != nullptr) {
      // Not on the pool: a trial may take seconds, and the reloader has a thread of its own.
      const auto told_of = [shared](const Result<plugins::PluginReloader::Outcomes>& outcomes) {
        if (!outcomes) return (*shared)(outcomes.error());
        (*shared)(told(*outcomes));
      };
      const bool accepted = reloader_->reload(
          agent_class.empty() ? std::string() : protocol::kebab_case(agent_class), told_of);
      if (accepted) return;
      why_not = "too much is asked at once; try again";
    }
  }
  (*shared)(Error{Errc::kUnavailable, why_not});
}

// ---- quarantine ---------------------------------------------------------------------------------

void AdminDesk::audit(storage::AuditQuery query, Answer<std::vector<storage::AuditEntry>> answer) {
  const auto shared = std::make_shared<Answer<std::vector<storage::AuditEntry>>>(std::move(answer));
  if (audit_.read(std::move(query), [shared](AuditLog::Page page) { (*shared)(std::move(page)); }))
    return;
  (*shared)(too_much());
}

void AdminDesk::quarantined(Answer<std::vector<api::QuarantinedView>> answer) {
  std::vector<api::QuarantinedView> views;
  for (const plugins::ClassFacts& each : ledger_.quarantined()) {
    views.push_back({.agent_class = each.agent_class,
                     .sha256 = each.sha256,
                     .library = each.library,
                     .reason = each.reason,
                     .call = each.call,
                     .since_ms = each.since_ms});
  }
  answer(std::move(views));
}

void AdminDesk::release(std::string agent_class, Answer<api::ReleasedClass> answer) {
  using Released = std::vector<plugins::ClassFacts>;
  const Answer<Released> then = [this,
                                 answer = std::move(answer)](const Result<Released>& released) {
    if (!released) return answer(released.error());
    serve_again(*released, answer);
  };
  ask<Released>(then, [this, given = std::move(agent_class)] {
    auto released = ledger_.release(given, "an administrator of the server");
    if (released) {
      logger_.record(LogLevel::kInfo, "class.released",
                     {{"class", released->front().agent_class},
                      {"library", released->front().library},
                      {"versions", released->size()},
                      {"actor", "administrator"}});
    }
    return released;
  });
}

void AdminDesk::serve_again(const std::vector<plugins::ClassFacts>& released,
                            const Answer<api::ReleasedClass>& answer) {
  const std::string name = released.front().agent_class;
  std::vector<std::string> hashes;
  hashes.reserve(released.size());
  for (const plugins::ClassFacts& each : released) hashes.push_back(each.sha256);
  {
    const MutexLock lock(mutex_);
    const auto told_of = [answer, name](const Result<plugins::PluginReloader::Outcomes>& outcomes) {
      // kNotFound: no library has the class now. The class is served when a library has it again.
      if (!outcomes && outcomes.error().code != Errc::kNotFound) return answer(outcomes.error());
      api::ReleasedClass all{.agent_class = name, .files = {}};
      if (outcomes) all.files = told(*outcomes);
      answer(std::move(all));
    };
    const bool accepted =
        reloader_ != nullptr &&
        reloader_->serve_again(protocol::kebab_case(name), std::move(hashes), told_of);
    if (accepted) return;
  }
  answer(Error{Errc::kUnavailable,
               "the class is released, but the server is busy, starting or stopping: reload it"});
}

// ---- classes ------------------------------------------------------------------------------------

void AdminDesk::classes(Answer<std::vector<api::ClassView>> answer) {
  ask<std::vector<api::ClassView>>(std::move(answer), [this] { return list_classes(); });
}

Result<std::vector<api::ClassView>> AdminDesk::list_classes() {
  std::vector<api::ClassView> views;
  for (const auto& served : runtime_.classes().all()) {
    const std::string name(served->agent_class->name());
    views.push_back({.name = name,
                     .segment = served->segment,
                     .aliases = runtime_.classes().aliases_of(served->segment),
                     .version = std::string(served->agent_class->version()),
                     .library = std::string(served->agent_class->origin()),
                     .code = std::string(served->agent_class->code()),
                     .refusal = served->refusal,
                     .agents = static_cast<std::uint64_t>(directory().count(name))});
  }
  using Counts = std::map<std::string, std::size_t>;
  Questions<Counts> questions(shard_patience_);
  for (unsigned index = 0; index < runtime_.shard_count(); ++index)
    questions.ask(runtime_, index, [](runtime::Shard& shard) { return shard.live_by_class(); });
  const auto all = questions.wait();
  if (!all) return no_answer();
  for (const Counts& counts : *all) {
    for (api::ClassView& view : views) {
      const auto found = counts.find(view.name);
      if (found != counts.end()) view.live += found->second;
    }
  }
  return views;
}

void AdminDesk::methods(std::string agent_class, Answer<api::ClassMethodsView> answer) {
  auto served = runtime_.classes().find_by_name(agent_class);
  if (served == nullptr) served = runtime_.classes().find(protocol::kebab_case(agent_class));
  if (served == nullptr)
    return answer(Error{Errc::kNotFound,
                        "no class " + quote_text(agent_class, kMaxShownName) + " is served"});
  answer(api::ClassMethodsView{served->segment, std::string(served->agent_class->methods())});
}

// The class that an operator has named: a class that is served or has agents.
Result<std::string> AdminDesk::class_name(const std::string& given) {
  if (runtime_.classes().find_by_name(given) != nullptr) return given;
  const std::string segment = protocol::kebab_case(given);
  if (const auto served = runtime_.classes().find(segment))
    return std::string(served->agent_class->name());
  for (const std::string& recorded : directory().classes()) {
    if (recorded == given || protocol::kebab_case(recorded) == segment) return recorded;
  }
  return Error{Errc::kNotFound, "no class " + quote_text(given, kMaxShownName) +
                                    " is served, and none has agents here"};
}

// ---- agents -------------------------------------------------------------------------------------

void AdminDesk::agents(api::AgentPageRequest request, Answer<api::AgentPage> answer) {
  ask<api::AgentPage>(std::move(answer),
                      [this, request = std::move(request)] { return list_agents(request); });
}

Result<api::AgentPage> AdminDesk::list_agents(const api::AgentPageRequest& request) {
  const auto name = class_name(request.agent_class);
  if (!name) return name.error();
  api::AgentPage page;
  page.agent_class = *name;
  // One more than requested: shows whether there is another page.
  const std::size_t at_most = request.limit + 1;
  std::map<std::string, std::optional<std::int64_t>> found;  // when each was created
  for (const storage::DirectoryEntry& entry : directory().list(*name, request.after, at_most))
    found[entry.key.name] = entry.created_at_ms;
  Questions<std::vector<std::string>> questions(shard_patience_);
  for (unsigned index = 0; index < runtime_.shard_count(); ++index) {
    questions.ask(runtime_, index,
                  [name = *name, after = request.after, at_most](runtime::Shard& shard) {
                    return shard.names_in_memory(name, after, at_most);
                  });
  }
  const auto in_memory = questions.wait();
  if (!in_memory) return no_answer();
  for (const auto& names : *in_memory) {
    for (const std::string& each : names) found.try_emplace(each);
  }
  page.more = found.size() > request.limit;
  for (const auto& [agent, created_at_ms] : found) {
    if (page.agents.size() == request.limit) break;
    api::AgentView view;
    view.name = agent;
    view.created_at_ms = created_at_ms;
    page.agents.push_back(std::move(view));
  }
  if (const auto completed = complete(*name, page.agents); !completed) return completed.error();
  return page;
}

Result<void> AdminDesk::complete(const std::string& agent_class, Views& views) {
  using Standings = std::vector<runtime::Shard::Standing>;
  std::map<unsigned, std::vector<std::size_t>> places;  // of `views`, by shard
  for (std::size_t i = 0; i < views.size(); ++i)
    places[runtime_.shard_index({agent_class, views[i].name})].push_back(i);
  Questions<Standings> questions(shard_patience_);
  for (const auto& [shard, here] : places) {
    std::vector<storage::AgentKey> keys;
    for (const std::size_t place : here) keys.push_back({agent_class, views[place].name});
    questions.ask(runtime_, shard, [keys = std::move(keys)](runtime::Shard& asked) {
      Standings standings;
      for (const storage::AgentKey& key : keys) standings.push_back(asked.standing(key));
      return standings;
    });
  }
  const auto all = questions.wait();
  if (!all) return no_answer();
  auto standings = all->begin();
  for (const auto& [shard, here] : places) {
    for (std::size_t i = 0; i < here.size(); ++i) add_standing(views[here[i]], (*standings)[i]);
    ++standings;
  }
  return {};
}

Result<storage::AgentKey> AdminDesk::existing(const api::AgentName& name) {
  auto agent_class = class_name(name.agent_class);
  if (!agent_class) return agent_class.error();
  storage::AgentKey key{*std::move(agent_class), name.name};
  if (directory().contains(key)) return key;
  const auto standing = ask_one<runtime::Shard::Standing>(
      runtime_, runtime_.shard_index(key), shard_patience_,
      [key](runtime::Shard& shard) { return shard.standing(key); });
  if (!standing) return no_answer();
  if (standing->in_memory || standing->connections != 0) return key;
  return Error{Errc::kNotFound, "there is no agent " + quote_text(name.name, kMaxShownName) +
                                    " of the class " + quote_text(key.agent_class, kMaxShownName)};
}

void AdminDesk::agent(api::AgentName name, Answer<api::AgentView> answer) {
  ask<api::AgentView>(std::move(answer),
                      [this, name = std::move(name)]() -> Result<api::AgentView> {
                        const auto key = existing(name);
                        if (!key) return key.error();
                        Views views(1);
                        views.front().name = key->name;
                        views.front().created_at_ms = directory().created_at_ms(*key);
                        if (const auto completed = complete(key->agent_class, views); !completed)
                          return completed.error();
                        return std::move(views.front());
                      });
}

void AdminDesk::evict(api::AgentName name, Answer<std::string> answer) {
  ask<std::string>(std::move(answer), [this, name = std::move(name)]() -> Result<std::string> {
    const auto key = existing(name);
    if (!key) return key.error();
    const auto state = ask_one<std::string>(
        runtime_, runtime_.shard_index(*key), shard_patience_,
        [key = *key](runtime::Shard& shard) { return word(shard.evict(key)); });
    if (!state) return no_answer();
    if (*state == "live" || *state == "waking") record("admin.evicted", *key);
    return *state;
  });
}

void AdminDesk::destroy(api::AgentName name, Answer<std::string> answer) {
  ask<std::string>(std::move(answer), [this, name = std::move(name)]() -> Result<std::string> {
    const auto key = existing(name);
    if (!key) return key.error();
    const auto destroyed =
        ask_one<Result<void>>(runtime_, runtime_.shard_index(*key), shard_patience_,
                              [key = *key](runtime::Shard& shard) { return shard.destroy(key); });
    if (!destroyed) return no_answer();
    if (!*destroyed) return destroyed->error();
    record("admin.destroyed", *key);
    if (!runtime_.sync_directory()) {
      return Error{Errc::kInternal,
                   "the agent is being destroyed, but a loss of power may bring it back: the "
                   "directory of agents could not be synced"};
    }
    return key->name;
  });
}

}  // namespace hearth::server
