#include "server/definition_desk.hpp"

#include "base/files.hpp"
#include "config/definitions.hpp"
#include "config/parse.hpp"
#include "protocol/class_segment.hpp"

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

namespace hearth::server {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

DefinitionDesk::DefinitionDesk(const fs::path& data, fs::path class_files, Reload reload,
                               Logger& logger)
    : directory_(config::definitions_directory(data)),
      class_files_(std::move(class_files)),
      reload_(std::move(reload)),
      logger_(logger),
      pool_(1, kMaxWaiting) {}

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

void DefinitionDesk::list(Answer answer) {
  ask(std::move(answer), [this](const Answer& told) { told(all()); });
}

void DefinitionDesk::show(std::string agent_class, Answer answer) {
  ask(std::move(answer), [this, name = std::move(agent_class)](const Answer& told) {
    const auto text = kept(name);
    if (!text) return told(text.error());
    told(dump_json(config::shown_definition(*text)));
  });
}

// Whether there may be a definition of the class now.
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

Result<std::string> DefinitionDesk::write(const std::string& agent_class, const std::string& body,
                                          Mode mode, std::string& named) {
  auto definition = config::read_definition(body);
  if (!definition) return definition.error();
  named = definition->agent_class;
  if (!agent_class.empty() && protocol::kebab_case(agent_class) != protocol::kebab_case(named))
    return Error{Errc::kInvalidArgument, "class: the path names another class"};
  if (const auto free = place(named, mode); !free) return free.error();
  std::error_code failure;
  fs::create_directory(directory_, failure);
  const fs::path file = file_of(named);
  const auto before = read_file(file, config::kMaxConfigFileBytes);
  const auto written =
      write_file_atomically(file, definition->text, fs::perms::owner_read | fs::perms::owner_write);
  if (!written) {
    const bool is_full = written.error().code == Errc::kUnavailable;
    return Error{is_full ? Errc::kUnavailable : Errc::kInternal, "the definition cannot be kept"};
  }
  const auto together =
      config::load_class_files(class_files_, false, protocol::kebab_case, directory_);
  if (together) return dump_json(config::shown_definition(definition->text));
  if (before) {
    (void)write_file_atomically(file, *before, fs::perms::owner_read | fs::perms::owner_write);
  } else {
    fs::remove(file, failure);
  }
  return Error{Errc::kInvalidArgument, together.error().front().message};
}

void DefinitionDesk::roll_out(std::string_view event, const std::string& agent_class,
                              std::string shown, const Answer& answer) {
  logger_.record(LogLevel::kInfo, event, {{"class", agent_class}});
  reload_(agent_class, [answer, shown = std::move(shown)] { answer(shown); });
}

void DefinitionDesk::set(std::string agent_class, std::string body, Mode mode, Answer answer) {
  ask(std::move(answer),
      [this, name = std::move(agent_class), body = std::move(body), mode](const Answer& told) {
        std::string named;
        auto shown = write(name, body, mode, named);
        if (!shown) return told(shown.error());
        roll_out("admin.definition_set", named, *std::move(shown), told);
      });
}

void DefinitionDesk::remove(std::string agent_class, Answer answer) {
  ask(std::move(answer), [this, name = std::move(agent_class)](const Answer& told) {
    const auto text = kept(name);
    if (!text) return told(text.error());
    std::error_code failure;
    if (!std::filesystem::remove(file_of(name), failure))
      return told(Error{Errc::kInternal, "the definition cannot be removed"});
    roll_out("admin.definition_removed", name, dump_json(config::shown_definition(*text)), told);
  });
}

}  // namespace hearth::server
