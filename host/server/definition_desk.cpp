#include "server/definition_desk.hpp"

#include "api/object_answer.hpp"
#include "base/files.hpp"
#include "config/class_file.hpp"
#include "config/definitions.hpp"
#include "config/parse.hpp"
#include "protocol/class_segment.hpp"
#include "protocol/request_query.hpp"

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;

constexpr fs::perms kForUs = fs::perms::owner_read | fs::perms::owner_write;

std::vector<fs::path> definition_files(const fs::path& directory) {
  std::error_code failure;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end;
       entry.increment(failure))
    if (entry->path().extension() == ".yaml") files.push_back(entry->path());
  std::ranges::sort(files);
  return files;
}

Error no_definition() {
  return {Errc::kNotFound, "there is no definition of such a class"};
}

DefinitionDesk::Answer answer_to(const api::RouteCall& call, int status = 200) {
  return [exchange = call.exchange, status](const Result<std::string>& outcome) {
    if (outcome) return exchange->respond(api::object_data(*outcome, status));
    const Error& error = outcome.error();
    switch (error.code) {
      case Errc::kNotFound:
        return exchange->respond(api::object_error(404, "definition_not_found", error.message));
      case Errc::kConflict:
        return exchange->respond(api::object_error(409, "definition_exists", error.message));
      case Errc::kUnsupported:
        return exchange->respond(api::object_error(422, "unsupported", error.message));
      default: return exchange->respond(api::object_error(error));
    }
  };
}

std::string class_in(const api::RouteCall& call) {
  return protocol::percent_decode(call.values[0]);
}

}  // namespace

DefinitionDesk::DefinitionDesk(const fs::path& data, fs::path class_files,
                               config::ForClasses server, std::function<Served()> served,
                               Reload reload, Logger& logger)
    : directory_(config::definitions_directory(data)),
      class_files_(std::move(class_files)),
      server_(std::move(server)),
      served_(std::move(served)),
      reload_(std::move(reload)),
      logger_(logger),
      pool_(1, kMaxWaiting) {
  remove_unfinished(directory_);
}

void DefinitionDesk::add_routes(std::vector<api::Route>& rows) {
  constexpr auto kAccess = api::Access::kAdministrator;
  constexpr std::string_view kAll = "/objects/definitions";
  constexpr std::string_view kOne = "/objects/definitions/{class}";
  const auto add = [&rows](std::string_view method, std::string_view pattern,
                           std::string_view summary, api::RouteShape shape,
                           std::function<void(const api::RouteCall&)> answer) {
    rows.push_back({method, pattern, kAccess, summary, std::move(answer), shape});
  };
  add("GET", kAll, "The definitions of classes.", {.answer = "DefinitionList"},
      [this](const api::RouteCall& call) {
        ask(answer_to(call), [this](const Answer& told) { told(all()); });
      });
  add("POST", kAll, "Gives a class its settings.",
      {.body = "Definition", .status = 201, .answer = "DefinitionAnswer"},
      [this](const api::RouteCall& call) {
        set({}, call.exchange->request().body, Mode::kCreate, answer_to(call, 201));
      });
  add("GET", kOne, "The definition of a class.", {.answer = "DefinitionAnswer"},
      [this](const api::RouteCall& call) {
        ask(answer_to(call), [this, name = class_in(call)](const Answer& told) {
          const auto text = kept(name);
          if (!text) return told(text.error());
          told(dump_json(config::shown_definition(*text)));
        });
      });
  add("PUT", kOne, "Gives a class other settings.",
      {.body = "Definition", .answer = "DefinitionAnswer"}, [this](const api::RouteCall& call) {
        set(class_in(call), call.exchange->request().body, Mode::kReplace, answer_to(call));
      });
  add("DELETE", kOne, "Removes the settings of a class.", {.answer = "DefinitionAnswer"},
      [this](const api::RouteCall& call) { remove(class_in(call), answer_to(call)); });
}

void DefinitionDesk::ask(Answer answer, std::function<void(const Answer&)> work) {
  const auto shared = std::make_shared<Answer>(std::move(answer));
  const bool accepted = pool_.run([shared, work = std::move(work)](bool cancelled) {
    if (cancelled) return (*shared)(Error{Errc::kClosing, "the server is shutting down"});
    work(*shared);
  });
  if (!accepted) (*shared)(Error{Errc::kUnavailable, "too much is asked at once; try again"});
}

fs::path DefinitionDesk::file_of(const std::string& agent_class) const {
  return config::definition_file(directory_, protocol::kebab_case(agent_class));
}

Result<std::string> DefinitionDesk::kept(const std::string& agent_class) const {
  auto text = read_file(file_of(agent_class), config::kMaxConfigFileBytes);
  if (text) return text;
  if (text.error().code == Errc::kNotFound) return no_definition();
  return Error{Errc::kInternal, "the definition cannot be read; the server's log says why"};
}

Result<std::string> DefinitionDesk::all() const {
  Json list = Json::array();
  for (const fs::path& file : definition_files(directory_)) {
    const auto text = read_file(file, config::kMaxConfigFileBytes);
    if (text) list.push_back(config::shown_definition(*text));
  }
  return dump_json(list);
}

// Whether the class may get a definition now.
Result<void> DefinitionDesk::place(const std::string& agent_class, Mode mode) const {
  const bool is_there = kept(agent_class).has_value();
  if (is_there && mode == Mode::kCreate)
    return Error{Errc::kConflict, "the class has a definition: PUT replaces it"};
  if (!is_there && mode == Mode::kReplace) return no_definition();
  const auto files = config::load_class_files(class_files_, false, protocol::kebab_case);
  if (!files)
    return Error{Errc::kUnavailable, "the server's class files have a mistake; its log says which"};
  const std::string segment = protocol::kebab_case(agent_class);
  for (const auto& [name, settings] : *files) {
    if (protocol::kebab_case(name) == segment)
      return Error{Errc::kConflict, "the class has its settings from a class file of the server"};
  }
  if (!is_there && definition_files(directory_).size() >= kMostDefinitions)
    return Error{Errc::kLimitExceeded, "there are too many definitions"};
  return {};
}

Result<void> DefinitionDesk::check(const fs::path& file, const std::string& text) const {
  const auto together = config::load_class_files(class_files_, false, protocol::kebab_case,
                                                 directory_, {{file, text}}, server_);
  if (!together) return Error{Errc::kInvalidArgument, together.error().front().message};
  const config::Diagnostics taken = config::taken_aliases(*together, served_());
  if (!taken.empty()) return Error{Errc::kInvalidArgument, taken.front().message};
  return {};
}

Result<DefinitionDesk::Written> DefinitionDesk::write(const std::string& agent_class,
                                                      const std::string& body, Mode mode) {
  auto definition = config::read_definition(body, server_);
  if (!definition) return definition.error();
  const std::string& named = definition->agent_class;
  if (!agent_class.empty() && protocol::kebab_case(agent_class) != protocol::kebab_case(named))
    return Error{Errc::kInvalidArgument, "class: the path names another class"};
  const MutexLock lock(files_);
  if (const auto free = place(named, mode); !free) return free.error();
  const fs::path file = file_of(named);
  // First: a start reads every file with such a name, and fails if one has a mistake.
  if (const auto right = check(file, definition->text); !right) return right.error();
  Written all{.agent_class = named, .file = file, .text = definition->text, .before = {}};
  if (auto before = read_file(file, config::kMaxConfigFileBytes)) all.before = *std::move(before);
  std::error_code failure;
  fs::create_directory(directory_, failure);
  const auto written = write_file_atomically(file, all.text, kForUs);
  if (written) return all;
  const bool is_full = written.error().code == Errc::kUnavailable;
  return Error{is_full ? Errc::kUnavailable : Errc::kInternal, "the definition cannot be kept"};
}

void DefinitionDesk::set(std::string agent_class, std::string body, Mode mode, Answer answer) {
  ask(std::move(answer),
      [this, name = std::move(agent_class), body = std::move(body), mode](const Answer& told) {
        const auto written = write(name, body, mode);
        if (!written) return told(written.error());
        logger_.record(LogLevel::kInfo, "admin.definition_set", {{"class", written->agent_class}});
        reload_(written->agent_class, [this, definition = *written, told](const auto& files) {
          rolled_out(definition, files, told);
        });
      });
}

void DefinitionDesk::rolled_out(const Written& definition, const Outcomes& files,
                                const Answer& answer) {
  using Outcome = plugins::ReloadOutcome;
  if (files) {
    for (const Outcome& each : *files) {
      if (each.what != Outcome::What::kRefused || each.file != definition.file) continue;
      restore(definition);
      // This also renews the server's list of mistakes.
      return reload_(definition.agent_class, [answer, why = each.reason](const auto& /*again*/) {
        answer(Error{Errc::kInvalidArgument, why});
      });
    }
  }
  answer(dump_json(config::shown_definition(definition.text)));
}

void DefinitionDesk::restore(const Written& definition) {
  const MutexLock lock(files_);
  const auto now = read_file(definition.file, config::kMaxConfigFileBytes);
  if (!now || *now != definition.text) return;
  if (definition.before) {
    (void)write_file_atomically(definition.file, *definition.before, kForUs);
  } else {
    std::error_code failure;
    fs::remove(definition.file, failure);
  }
}

void DefinitionDesk::remove(std::string agent_class, Answer answer) {
  ask(std::move(answer), [this, name = std::move(agent_class)](const Answer& told) {
    const auto text = kept(name);
    if (!text) return told(text.error());
    std::error_code failure;
    if (!std::filesystem::remove(file_of(name), failure))
      return told(Error{Errc::kInternal, "the definition cannot be removed"});
    logger_.record(LogLevel::kInfo, "admin.definition_removed", {{"class", name}});
    reload_(name, [told, shown = dump_json(config::shown_definition(*text))](
                      const auto& /*files*/) { told(shown); });
  });
}

}  // namespace hearth::server
