#include "plugins/versions/class_news.hpp"

#include <span>
#include <vector>

namespace hearth::plugins {
namespace {

void write(Logger& logger, LogLevel level, std::string_view event,
           const std::vector<LogField>& fields) {
  if (logger.enabled(level)) logger.write(level, event, std::span(fields));
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

}  // namespace hearth::plugins
