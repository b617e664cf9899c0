#include "cli/tail_command.hpp"

#include "base/clock.hpp"
#include "cli/admin_client.hpp"
#include "cli/commands.hpp"
#include "cli/text_table.hpp"
#include "json/json.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <utility>

namespace hearth::cli {
namespace {

constexpr std::chrono::seconds kConnectAgain{1};

void print(const EventLines::Event& event, bool json) {
  if (event.data.empty()) return;
  if (event.type == "gap") {
    const auto gap = parse_host_json(event.data);
    const std::string why = gap ? text_member(*gap, "reason") : event.data;
    std::fprintf(stderr, "hearth: events are missing here: %s\n", one_line(why).c_str());
  } else {
    std::printf("%s\n", json ? event.data.c_str() : event_text(event.data).c_str());
  }
}

// `agent` with the class's own name, as events have it. As it is while no server answers.
// kNotFound: the server has no such class, so no event of it would come.
Result<std::string> known_agent(const std::filesystem::path& data, const std::string& agent) {
  const auto client = AdminClient::on(data);
  if (agent.empty() || !client) return agent;
  const std::size_t slash = std::min(agent.find('/'), agent.size());
  const auto known =
      client->ask("GET", with_query("/admin/agents?limit=1", {{"class", agent.substr(0, slash)}}));
  if (known) return text_member(*known, "class") + agent.substr(slash);
  return known.error().code == Errc::kNotFound ? known.error() : Result<std::string>(agent);
}

}  // namespace

std::string tail_target(const TailCommand& command, std::int64_t now_ms) {
  const std::size_t slash = std::min(command.agent.find('/'), command.agent.size());
  const std::string agent_class = command.agent.substr(0, slash);
  const std::string name =
      slash < command.agent.size() ? name_in_url(command.agent.substr(slash + 1)) : "";
  const auto& since = command.since;
  return with_query("/admin/events?level=" + command.level,
                    {{"class", agent_class},
                     {"agent", name},
                     {"trace", command.trace},
                     {"since_ms", since ? std::to_string(now_ms - since->count()) : ""}});
}

std::vector<EventLines::Event> EventLines::add(std::string_view piece) {
  std::vector<Event> events;
  for (const char each : piece) {
    if (each != '\n') {
      line_ += each;
      continue;
    }
    const std::string line = std::exchange(line_, {});
    const std::string value = line.substr(std::min(line.size(), line.find(':') + 2));
    if (line.empty()) {
      if (!next_id_.empty()) last_id_ = std::exchange(next_id_, {});
      events.push_back(std::exchange(event_, {}));
    } else if (line.starts_with("data:")) {
      event_.data = value;
    } else if (line.starts_with("event:")) {
      event_.type = value;
    } else if (line.starts_with("id:")) {
      next_id_ = value;
    }
  }
  return events;
}

void EventLines::cut() {
  line_.clear();
  next_id_.clear();
  event_ = {};
}

std::string event_text(std::string_view json) {
  const auto event = parse_host_json(json);
  if (!event || !event->is_object()) return one_line(std::string(json));
  std::string level = text_member(*event, "level");
  level.resize(std::max<std::size_t>(level.size(), 5), ' ');
  std::string text = text_member(*event, "time") + " " + level + " " + text_member(*event, "event");
  for (const auto& [key, value] : event->items()) {
    if (key == "time" || key == "level" || key == "event") continue;
    const bool is_word =
        value.is_string() && value.get_ref<const std::string&>().find(' ') == std::string::npos;
    text += " " + key + "=" + (is_word ? value.get<std::string>() : dump_json(value));
  }
  return one_line(text);
}

int run(const TailCommand& given) {
  const auto [data, mistake] = find_data(given);
  if (mistake) return run(*mistake);
  auto known = known_agent(data, given.agent);
  if (!known) return run(failed_answer(known.error().message));
  TailCommand command = given;
  command.agent = *std::move(known);
  const std::string target = tail_target(command, unix_millis(SystemClock().wall_now()));
  EventLines lines;
  bool is_away = false;  // and this was said
  for (;;) {
    bool has_come = false;
    const auto client = AdminClient::on(data);  // a server that restarts may have another address
    Result<void> ended = client ? Result<void>() : Result<void>(client.error());
    if (client) {
      ended = client->follow(target, lines.last_id(), [&](std::string_view piece) {
        has_come = true;
        for (const EventLines::Event& event : lines.add(piece)) print(event, command.json);
        std::fflush(stdout);
      });
    }
    const bool is_refused = !ended && (ended.error().code == Errc::kForbidden ||
                                       ended.error().code == Errc::kInvalidArgument);
    const bool may_come_back =
        ended || ended.error().code == Errc::kUnavailable || (is_away && !is_refused);
    if (!may_come_back || (!has_come && !is_away)) return run(failed_answer(ended.error().message));
    if (has_come || !is_away) std::fputs("hearth: the server has gone; waiting for it\n", stderr);
    is_away = true;
    lines.cut();
    std::this_thread::sleep_for(kConnectAgain);
  }
}

}  // namespace hearth::cli
