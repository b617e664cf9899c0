#include "plugins/versions/class_news.hpp"

#include "config/class_file.hpp"

#include <algorithm>
#include <span>

namespace hearth::plugins {
namespace {

void write(Logger& logger, LogLevel level, std::string_view event,
           const std::vector<LogField>& fields) {
  if (logger.enabled(level)) logger.write(level, event, std::span(fields));
}

// A log line names at most this many keys.
constexpr std::size_t kMaxNamedKeys = 20;

std::string named(const std::vector<std::string>& keys) {
  std::string text;
  for (std::size_t i = 0; i < std::min(keys.size(), kMaxNamedKeys); ++i)
    text += (i == 0 ? "" : ", ") + keys[i];
  if (keys.size() > kMaxNamedKeys)
    text += " and " + std::to_string(keys.size() - kMaxNamedKeys) + " more";
  return text;
}

}  // namespace

void tell_served(Logger& logger, const runtime::ServedClass& served, std::string_view paths,
                 std::string_view file) {
  const runtime::AgentClass& its = *served.agent_class;
  std::vector<LogField> fields{{"class", its.name()}};
  if (its.code() != its.name()) fields.emplace_back("code", its.code());
  if (!served.refusal.empty()) {
    fields.insert(
        fields.end(),
        {{"library", its.origin()}, {"sha256", its.sha256()}, {"reason", served.refusal}});
    return write(logger, LogLevel::kError, "class.not_served", fields);
  }
  fields.insert(fields.end(), {{"version", its.version()},
                               {"library", its.origin()},
                               {"path", paths},
                               {"settings", file.empty() ? "defaults" : file}});
  write(logger, LogLevel::kInfo, "class.served", fields);
}

void tell_not_found(Logger& logger, std::string_view name, const config::ClassConfig& its) {
  const std::string& code = its.settings.code;
  std::vector<LogField> fields{{"class", name}};
  if (!code.empty()) fields.emplace_back("code", code);
  fields.emplace_back("file", its.file);
  fields.emplace_back(
      "advice", code.empty() ? "no library that is served has this class: its settings are unused"
                             : "no library that is served has the class of this code: its settings "
                               "are unused, and its agents cannot wake");
  write(logger, LogLevel::kWarn, "class.not_found", fields);
}

void warn_of_unlisted_kinds(Logger& logger, const ClassVersion& version) {
  if (version.settings == nullptr) return;
  std::string unlisted;
  for (const auto& [kind, settings] : version.settings->settings.operations.kinds) {
    if (version.served->agent_class->listed_effect(kind)) continue;
    unlisted += (unlisted.empty() ? "" : ", ") + kind;
  }
  if (unlisted.empty()) return;
  logger.write(LogLevel::kWarn, "config.doubtful",
               {{"class", version.served->agent_class->name()},
                {"file", version.settings->file},
                {"advice",
                 "operations.kinds has kinds that the class does not list, and limits nothing for "
                 "them: " +
                     unlisted}});
}

void tell_new_settings(Logger& logger, const ClassVersion& version,
                       const std::vector<std::string>& keys, std::size_t trying) {
  logger.write(LogLevel::kInfo, "config.changed",
               {{"class", version.served->agent_class->name()},
                {"keys", named(keys)},
                {"file", version.settings->file.empty() ? "defaults" : version.settings->file},
                {"trying", trying}});
  if (const std::string doubts = config::doubts(*version.settings); !doubts.empty()) {
    logger.write(LogLevel::kWarn, "config.doubtful",
                 {{"class", version.served->agent_class->name()},
                  {"file", version.settings->file},
                  {"advice", doubts}});
  }
  warn_of_unlisted_kinds(logger, version);
}

void tell_settings_done(Logger& logger, const ClassVersion& version) {
  logger.record(LogLevel::kInfo, "config.done", {{"class", version.served->agent_class->name()}});
}

void tell_settings_taken_back(Logger& logger, std::string_view agent_class, const std::string& file,
                              const std::string& reason, std::string_view advice) {
  logger.record(LogLevel::kError, "config.taken_back",
                {{"class", agent_class},
                 {"file", file.empty() ? "defaults" : file},
                 {"reason", reason},
                 {"advice", advice}});
}

}  // namespace hearth::plugins
