#include "cli/audit_command.hpp"

#include "base/clock.hpp"
#include "cli/admin_client.hpp"
#include "cli/data_option.hpp"
#include "cli/text_table.hpp"
#include "json/json.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace hearth::cli {
namespace {

// How often the command asks the server for new entries.
constexpr std::chrono::milliseconds kNextPage{1000};

std::string filters_of(const AuditCommand& command, std::int64_t now_ms) {
  std::string query;
  for (const auto& [key, value] :
       {std::pair("event", &command.event), std::pair("actor", &command.actor),
        std::pair("class", &command.agent_class), std::pair("agent", &command.agent)}) {
    if (!value->empty()) query += std::string("&") + key + "=" + url_encoded(*value);
  }
  if (command.since) query += "&since_ms=" + std::to_string(now_ms - command.since->count());
  return query;
}

std::int64_t number_of(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

// 2026-11-24T12:00:00Z  AdminEvict  administrator  Counter/a  {"peer":"127.0.0.1:40000"}
std::string line_of(const Json& entry) {
  std::string line = moment_text(number_of(entry, "at_ms")) + "  " + text_member(entry, "event") +
                     "  " + text_member(entry, "actor");
  if (const std::string agent_class = text_member(entry, "class"); !agent_class.empty())
    line += "  " + agent_class;
  if (const std::string agent = text_member(entry, "agent"); !agent.empty()) line += "/" + agent;
  const auto detail = entry.is_object() ? entry.find("detail") : entry.end();
  if (detail != entry.end() && !detail->is_null()) line += "  " + dump_json(*detail);
  return line;
}

// Prints a page and returns the id of its last entry.
std::int64_t print(const AuditCommand& command, const Json& page) {
  const auto entries = page.is_object() ? page.find("entries") : page.end();
  if (entries != page.end() && entries->is_array()) {
    for (const Json& each : *entries) {
      const std::string line = command.json ? dump_json(each) : one_line(line_of(each));
      std::printf("%s\n", line.c_str());
    }
    std::fflush(stdout);
  }
  return number_of(page, "next");
}

int told_why(const std::string& why) {
  std::fprintf(stderr, "hearth: %s\n", why.c_str());
  return kExitFailed;
}

}  // namespace

std::string audit_target(const AuditCommand& command, std::int64_t now_ms) {
  return "/admin/audit?last=" + std::to_string(command.lines) + filters_of(command, now_ms);
}

std::string audit_target_after(const AuditCommand& command, std::int64_t now_ms,
                               std::int64_t after) {
  return "/admin/audit?limit=1000&after=" + std::to_string(after) + filters_of(command, now_ms);
}

int show_audit(const AuditCommand& command) {
  const auto [data, mistake] = find_data(command.config, command.data);
  if (mistake) {
    std::fputs(mistake->text.c_str(), stderr);
    return mistake->status;
  }
  const auto client = AdminClient::on(data);
  if (!client) return told_why(client.error().message);
  const std::int64_t now_ms = unix_millis(SystemClock().wall_now());
  auto page = client->ask("GET", audit_target(command, now_ms));
  if (!page) return told_why(page.error().message);
  std::int64_t after = print(command, *page);
  while (command.follow) {
    std::this_thread::sleep_for(kNextPage);
    page = client->ask("GET", audit_target_after(command, now_ms, after));
    if (!page) return told_why(page.error().message);
    after = print(command, *page);
  }
  return kExitClean;
}

}  // namespace hearth::cli
