#include "cli/audit_command.hpp"

#include "base/clock.hpp"
#include "cli/admin_client.hpp"
#include "cli/commands.hpp"
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
constexpr std::chrono::minutes kSilence{1};  // with a server that does not answer

std::string with_filters(std::string target, const AuditCommand& command, std::int64_t now_ms) {
  const auto& since = command.since;
  return with_query(std::move(target),
                    {{"event", command.event},
                     {"actor", command.actor},
                     {"class", command.agent_class},
                     {"agent", name_in_url(command.agent)},
                     {"since_ms", since ? std::to_string(now_ms - since->count()) : ""}});
}

// 2026-11-24T12:00:00Z  AdminEvict  administrator  Counter/a  {"peer":"127.0.0.1:40000"}
std::string line_of(const Json& entry) {
  std::string line = moment_text(number_in(entry, "at_ms").value_or(0)) + "  " +
                     text_member(entry, "event") + "  " + text_member(entry, "actor");
  if (const std::string agent_class = text_member(entry, "class"); !agent_class.empty())
    line += "  " + agent_class;
  if (const std::string agent = text_member(entry, "agent"); !agent.empty()) line += "/" + agent;
  const auto detail = entry.is_object() ? entry.find("detail") : entry.end();
  if (detail != entry.end() && !detail->is_null()) line += "  " + dump_json(*detail);
  return line;
}

// Prints a page and returns the id of its last entry.
std::int64_t print(const AuditCommand& command, const Json& page) {
  for (const Json& each : list_in(page, "entries"))
    std::puts((command.json ? dump_json(each) : one_line(line_of(each))).c_str());
  std::fflush(stdout);
  return number_in(page, "next").value_or(0);
}

}  // namespace

std::string audit_target(const AuditCommand& command, std::int64_t now_ms) {
  return with_filters("/admin/audit?last=" + std::to_string(command.lines), command, now_ms);
}

std::string audit_target_after(const AuditCommand& command, std::int64_t now_ms,
                               std::int64_t after) {
  return with_filters("/admin/audit?limit=1000&after=" + std::to_string(after), command, now_ms);
}

int run(const AuditCommand& command) {
  const auto [data, mistake] = find_data(command);
  if (mistake) return run(*mistake);
  const auto client = AdminClient::on(data);
  if (!client) return run(failed_answer(client.error().message));
  const std::int64_t now_ms = unix_millis(SystemClock().wall_now());
  auto page = client->ask("GET", audit_target(command, now_ms));
  if (!page) return run(failed_answer(page.error().message));
  std::int64_t after = print(command, *page);
  auto heard = std::chrono::steady_clock::now();
  while (command.follow) {
    std::this_thread::sleep_for(kNextPage);
    page = client->ask("GET", audit_target_after(command, now_ms, after));
    const auto now = std::chrono::steady_clock::now();
    if (!page && page.error().code == Errc::kUnavailable && now - heard < kSilence &&
        AdminClient::on(data))
      continue;  // busy
    if (!page) return run(failed_answer(page.error().message));
    heard = now;
    after = print(command, *page);
  }
  return printed_status(kExitClean);
}

}  // namespace hearth::cli
