#include "server/admin_desk.hpp"

#include "api/admin_api.hpp"
#include "api/admin_requests.hpp"
#include "api/http_errors.hpp"
#include "base/escape.hpp"
#include "protocol/class_segment.hpp"
#include "server/shard_questions.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace hearth::server {
namespace {

using api::or_null;
using api::RouteCall;

constexpr std::size_t kMaxShownName = 128;

void respond(const RouteCall& call, const Json& body) {
  call.exchange->respond(api::admin_answer(body));
}

void refuse(const RouteCall& call, const Error& error) {
  call.exchange->respond(api::admin_refusal(error));
}

std::string_view word(plugins::ReloadOutcome::What what) {
  using What = plugins::ReloadOutcome::What;
  switch (what) {
    case What::kUnchanged: return "unchanged";
    case What::kNewVersion: return "new_version";
    case What::kNewSettings: return "new_settings";
    case What::kRefused: return "refused";
    case What::kRemoved: return "removed";
  }
  return "unchanged";
}

Json files_json(const plugins::ReloadOutcomes& outcomes) {
  Json files = Json::array();
  for (const plugins::ReloadOutcome& each : outcomes) {
    Json file{{"file", each.file.native()}, {"outcome", word(each.what)}};
    if (!each.version.empty()) file["version"] = each.version;
    if (each.generation != 0) file["generation"] = each.generation;
    if (!each.reason.empty()) file["reason"] = each.reason;
    if (!each.agent_class.empty()) file["class"] = each.agent_class;
    if (!each.keys.empty()) file["keys"] = each.keys;
    if (!each.note.empty()) file["note"] = each.note;
    files.push_back(std::move(file));
  }
  return files;
}

auto files_answer(const RouteCall& call) {
  return [call](const Result<plugins::ReloadOutcomes>& outcomes) {
    if (!outcomes) return refuse(call, outcomes.error());
    respond(call, Json{{"files", files_json(*outcomes)}});
  };
}

Error no_class_named() {
  return {Errc::kInvalidArgument, R"(name a class: {"class":"counter"})"};
}

// Settings that the ledger knows as on trial or taken back.
Json unproven(const std::vector<plugins::Trial>& settings) {
  Json list = Json::array();
  for (const plugins::Trial& each : settings) {
    if (!each.on_trial.empty())
      list.push_back({{"class", each.of.name}, {"state", "on_trial"}, {"reason", nullptr}});
    if (const auto* const failed = each.taken_back()) {
      list.push_back(
          {{"class", each.of.name}, {"state", "taken_back"}, {"reason", or_null(failed->reason)}});
    }
  }
  return list;
}

// The state of a version; for the current one quarantined (it has a class in quarantine), on_trial
// (new agents get it; not proven yet) or current, as the ledger says.
std::string_view word(const plugins::GenerationInfo& version,
                      const plugins::VersionLedger& ledger) {
  if (version.state != plugins::GenerationInfo::State::kCurrent)
    return plugins::to_string(version.state);
  const bool is_quarantined = std::ranges::any_of(version.classes, [&](const std::string& name) {
    return ledger.is_quarantined(name, version.sha256);
  });
  if (is_quarantined) return "quarantined";
  const auto place = ledger.find(version.file);
  return place && place->on_trial == version.sha256 ? "on_trial" : "current";
}

Json entry_json(const storage::AuditEntry& entry) {
  auto detail = parse_host_json(entry.detail);
  return {{"id", entry.id},
          {"at_ms", entry.at_ms},
          {"event", entry.event},
          {"actor", entry.actor},
          {"class", or_null(entry.agent_class)},
          {"agent", or_null(entry.agent)},
          {"detail", detail ? *std::move(detail) : Json()}};
}

DefinitionDesk::Served names_of(const runtime::ClassRegistry& classes) {
  DefinitionDesk::Served served;
  for (const auto& each : classes.all()) served.emplace(each->segment, each->agent_class->name());
  return served;
}

}  // namespace

Json quarantine_json(const std::vector<plugins::ClassFacts>& quarantined) {
  Json held = Json::array();
  for (const plugins::ClassFacts& each : quarantined) {
    held.push_back({{"class", each.agent_class},
                    {"library", each.library},
                    {"sha256", each.sha256},
                    {"reason", each.reason},
                    {"call", each.call},
                    {"since_ms", each.since_ms}});
  }
  return {{"quarantined", std::move(held)}};
}

AdminDesk::AdminDesk(runtime::Runtime& runtime, plugins::PluginLoader& loader,
                     const storage::DataDirectory& data, plugins::VersionLedger& ledger,
                     AuditLog& audit, Logger& logger, const config::ServerConfig& server,
                     std::chrono::milliseconds shard_patience,
                     std::function<std::string(const diagnosis::RunningCall&)> stack_of)
    : runtime_(runtime),
      loader_(loader),
      ledger_(ledger),
      audit_(audit),
      logger_(logger),
      shard_patience_(shard_patience),
      desk_(data, logger, "admin.storage_failed", api::admin_refusal),
      agents_(desk_, runtime, logger, shard_patience,
              AgentWaits({.runtime = runtime,
                          .ledger = ledger,
                          .stack_of = std::move(stack_of),
                          .started_ms = unix_millis(std::chrono::system_clock::now())})),
      data_desk_(desk_, agents_, logger),
      backups_(runtime, data, audit),
      definitions_(
          data.path(), server.classes, server.for_classes(),
          [this] { return names_of(runtime_.classes()); },
          [this](const std::string& agent_class, const DefinitionDesk::Reloaded& done) {
            give(&plugins::PluginReloader::reload, agent_class, done);
          },
          logger) {}

void AdminDesk::add_routes(std::vector<api::Route>& rows) {
  const auto add = row_adder(rows);
  add("GET", "/admin/plugins", "The libraries that are served, and the files that are not.",
      on_desk(desk_, *this, &AdminDesk::plugins), {.answer = "PluginList"});
  add("POST", "/admin/plugins/reload", "Looks at the libraries and the class files.",
      at_once(*this, &AdminDesk::reload), {.body = "NamedClass", .answer = "ReloadedFiles"});
  add("POST", "/admin/plugins/take-back", "Serves the version before again.",
      at_once(*this, &AdminDesk::take_back), {.body = "NamedClass", .answer = "ReloadedFiles"});
  add("GET", "/admin/generations", "All versions of libraries that are loaded.",
      on_desk(desk_, *this, &AdminDesk::generations), {.answer = "GenerationList"});
  add("GET", "/admin/classes", "The classes that are served.",
      on_desk(desk_, *this, &AdminDesk::classes), {.answer = "ClassList"});
  add("GET", "/admin/classes/{class}/methods", "The methods of a class.",
      at_once(*this, &AdminDesk::methods), {.answer = "MethodList"});
  add("GET", "/admin/quarantine", "The classes that crashed the server too often.",
      at_once(*this, &AdminDesk::quarantined), {.answer = "QuarantineList"});
  add("POST", "/admin/quarantine/release", "Serves a class again.",
      at_once(*this, &AdminDesk::release), {.body = "NamedClass", .answer = "Released"});
  add("GET", "/admin/audit", "A page of the audit log.", at_once(*this, &AdminDesk::audit),
      {.query = "after limit last event actor class agent since_ms until_ms",
       .answer = "AuditPage"});
  data_desk_.add_routes(rows);
  add("POST", "/admin/backup", "Begins a backup of all data.",
      on_desk(desk_, backups_, &Backups::begin), {.body = "BackupOrder", .answer = "Backup"});
  add("GET", "/admin/backup", "How far the last backup is.",
      on_desk(desk_, backups_, &Backups::status), {.answer = "Backup"});
  add("DELETE", "/admin/backup", "Stops the backup in progress.",
      on_desk(desk_, backups_, &Backups::cancel), {.answer = "Backup"});
  agents_.add_routes(rows);
  definitions_.add_routes(rows);
}

void AdminDesk::stop() {
  definitions_.stop();
  desk_.stop();
  backups_.stop();
}

void AdminDesk::use(plugins::PluginReloader* reloader) {
  const MutexLock lock(mutex_);
  reloader_ = reloader;
}

// ---- libraries ----------------------------------------------------------------------------------

Json AdminDesk::version_json(const plugins::GenerationInfo& version) const {
  return {{"file", version.file.native()},
          {"plugin", version.plugin},
          {"version", version.version},
          {"sha256", version.sha256},
          {"generation", version.generation},
          {"state", word(version, ledger_)},
          {"pinned_because", or_null(version.pinned_because)},
          {"classes", version.classes}};
}

Result<Json> AdminDesk::generations(const RouteCall& /*call*/) {
  Json all = Json::array();
  for (const plugins::GenerationInfo& each : loader_.generations())
    all.push_back(version_json(each));
  return Json{{"generations", std::move(all)}};
}

Result<Json> AdminDesk::plugins(const RouteCall& /*call*/) {
  Json current = Json::array();
  for (const plugins::GenerationInfo& each : loader_.generations()) {
    if (each.state == plugins::GenerationInfo::State::kCurrent)
      current.push_back(version_json(each));
  }
  Json refused = Json::array();
  Json moving = Json::array();
  const MutexLock lock(mutex_);
  if (reloader_ != nullptr) {
    for (const plugins::Refusal& each : reloader_->refusals()) {
      refused.push_back(
          {{"file", each.file.native()}, {"rule", each.rule}, {"reason", each.reason}});
    }
    moving = reloader_->moving();
  }
  return Json{{"plugins", std::move(current)},
              {"refused", std::move(refused)},
              {"moving", std::move(moving)},
              {"settings", unproven(ledger_.settings())}};
}

void AdminDesk::reload(const RouteCall& call) {
  const auto name = api::read_named_class(call.exchange->request().body);
  if (!name) return refuse(call, name.error());
  // The loader records the versions that it loads, but does not know the administrator.
  logger_.record(
      LogLevel::kInfo, "admin.reload",
      {{"class", *name}, {"peer", call.exchange->request().peer}, {"actor", call.actor}});
  give(&plugins::PluginReloader::reload, *name, files_answer(call));
}

void AdminDesk::take_back(const RouteCall& call) {
  const auto name = api::read_named_class(call.exchange->request().body);
  if (!name) return refuse(call, name.error());
  if (name->empty()) return refuse(call, no_class_named());
  logger_.record(
      LogLevel::kInfo, "admin.take_back",
      {{"class", *name}, {"peer", call.exchange->request().peer}, {"actor", call.actor}});
  give(&plugins::PluginReloader::take_back, *name, files_answer(call));
}

void AdminDesk::give(Order order, const std::string& agent_class, const Answer& answer) {
  const char* why_not = "the server is starting or stopping";
  {
    const MutexLock lock(mutex_);
    if (reloader_ != nullptr) {
      // Not on the desk's thread: a trial may take seconds, and the reloader has its own.
      if ((reloader_->*order)(
              agent_class.empty() ? std::string() : protocol::kebab_case(agent_class), answer))
        return;
      why_not = "too much is asked at once; try again";
    }
  }
  answer(Error{Errc::kUnavailable, why_not});
}

// ---- quarantine ---------------------------------------------------------------------------------

void AdminDesk::quarantined(const RouteCall& call) {
  respond(call, quarantine_json(ledger_.quarantined()));
}

std::size_t AdminDesk::count_quarantined() const {
  std::set<std::string> held;
  for (const plugins::ClassFacts& each : ledger_.quarantined()) held.insert(each.agent_class);
  for (const auto& served : runtime_.classes().all())
    if (served->refusal.empty()) held.erase(std::string(served->agent_class->name()));
  return held.size();
}

void AdminDesk::release(const RouteCall& call) {
  const auto name = api::read_named_class(call.exchange->request().body);
  if (!name) return refuse(call, name.error());
  if (name->empty()) return refuse(call, no_class_named());
  logger_.write(LogLevel::kInfo, "admin.release",
                {{"class", *name}, {"agent", ""}, {"peer", call.exchange->request().peer}});
  desk_.run(call.exchange, [this, call, given = *name] {
    const auto released = ledger_.release(given, "an administrator of the server");
    if (!released) return refuse(call, released.error());
    logger_.record(LogLevel::kInfo, "class.released",
                   {{"class", released->front().agent_class},
                    {"library", released->front().library},
                    {"versions", released->size()},
                    {"actor", call.actor}});
    serve_again(*released, call.exchange);
  });
}

void AdminDesk::serve_again(const std::vector<plugins::ClassFacts>& released,
                            const Exchange& exchange) {
  const std::string name = released.front().agent_class;
  std::vector<std::string> hashes;
  hashes.reserve(released.size());
  for (const plugins::ClassFacts& each : released) hashes.push_back(each.sha256);
  const auto told_of = [this, exchange, name](const Outcomes& outcomes) {
    // kNotFound: no library has the class now. The class is served when a library has it again.
    if (!outcomes && outcomes.error().code != Errc::kNotFound)
      return desk_.refuse(exchange, outcomes.error());
    const Json files = outcomes ? files_json(*outcomes) : Json::array();
    exchange->respond(api::admin_answer(Json{{"released", name}, {"files", files}}));
  };
  {
    const MutexLock lock(mutex_);
    if (reloader_ != nullptr &&
        reloader_->serve_again(protocol::kebab_case(name), std::move(hashes), told_of))
      return;
  }
  desk_.refuse(exchange, {Errc::kUnavailable,
                          "the class is released, but the server is busy, starting or stopping: "
                          "reload it"});
}

// ---- classes ------------------------------------------------------------------------------------

Result<Json> AdminDesk::classes(const RouteCall& /*call*/) {
  using Counts = std::map<std::string, std::size_t>;
  const auto all = ask_all(runtime_, shard_patience_,
                           [](runtime::Shard& shard) { return shard.admin().live_by_class(); });
  if (!all) return no_loop();
  Counts live;
  for (const Counts& counts : *all) {
    for (const auto& [name, count] : counts) live[name] += count;
  }
  Json list = Json::array();
  for (const auto& served : runtime_.classes().all()) {
    const std::string name(served->agent_class->name());
    Json aliases = Json::array();
    for (const std::string& alias : runtime_.classes().aliases_of(served->segment))
      aliases.push_back("/agents/" + alias);
    list.push_back({{"class", name},
                    {"path", "/agents/" + served->segment},
                    {"aliases", std::move(aliases)},
                    {"version", served->agent_class->version()},
                    {"library", served->agent_class->origin()},
                    {"code", served->agent_class->code()},
                    {"refusal", or_null(served->refusal)},
                    {"agents", desk_.directory().count(name)},
                    {"live", live[name]}});
  }
  return Json{{"classes", std::move(list)}};
}

void AdminDesk::methods(const RouteCall& call) {
  const std::string given(call.values[0]);
  auto served = runtime_.classes().find_by_name(given);
  if (served == nullptr) served = runtime_.classes().find_for_client(protocol::kebab_case(given));
  if (served == nullptr)
    return refuse(call,
                  {Errc::kNotFound, "no class " + quote_text(given, kMaxShownName) + " is served"});
  call.exchange->respond(
      api::admin_sealed(api::methods_answer(served->segment, served->agent_class->methods())));
}

// ---- the audit log ------------------------------------------------------------------------------

void AdminDesk::audit(const RouteCall& call) {
  const auto query = api::read_audit_query(call.query);
  if (!query) return refuse(call, query.error());
  const bool accepted = audit_.read(*query, [call, after = query->after](const auto& page) {
    if (!page) return refuse(call, page.error());
    Json entries = Json::array();
    for (const storage::AuditEntry& each : *page) entries.push_back(entry_json(each));
    const auto next = page->empty() ? after : page->back().id;
    respond(call, Json{{"entries", std::move(entries)}, {"next", next}});
  });
  if (!accepted) refuse(call, desk_.too_much());
}

}  // namespace hearth::server
