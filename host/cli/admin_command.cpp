#include "base/clock.hpp"
#include "base/escape.hpp"
#include "cli/admin_client.hpp"
#include "cli/commands.hpp"
#include "cli/confirmation.hpp"
#include "cli/text_table.hpp"
#include "cli/why_text.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::cli {
namespace {

// How often the command asks the server whether its agents have moved.
constexpr std::chrono::milliseconds kLookAgain{100};

struct AdminOutput {
  int status = kExitClean;
  std::string out;  // to stdout
  std::string err;  // to stderr
};

AdminOutput failed(const std::string& why, int status = kExitFailed) {
  return {.status = status, .out = {}, .err = "hearth: " + why + "\n"};
}

AdminOutput printed(std::string text) {
  return {.out = std::move(text), .err = {}};
}

AdminOutput as_json(const Json& answer) {
  return printed(dump_json(answer) + "\n");
}

std::int64_t now_ms() {
  return unix_millis(SystemClock().wall_now());
}

std::string escaped(const std::string& text) {
  std::string safe;
  append_escaped(safe, text, EscapeStyle::kHuman);
  return safe;
}

// The options by which a printed command finds the same server.
std::string place_of(const DataFlags& flags) {
  std::string place;
  if (flags.config) place += " --config " + shell_word(flags.config->native());
  if (flags.data) place += " --data " + shell_word(flags.data->native());
  return one_line(place);
}

// What a command asks, and the server that it asks.
struct Asker {
  const AdminClient& client;
  const AdminCommand& command;

  // Prints the answer: with --json as it is, otherwise as `show` does, with its status both ways.
  template <class Show>
  [[nodiscard]] AdminOutput ask(std::string_view method, const std::string& target,
                                const std::string& body, const Show& show) const {
    const auto answer = client.ask(method, target, body);
    if (!answer) return failed(answer.error().message);
    AdminOutput output = show(*answer);
    if (command.json) output.out = as_json(*answer).out;
    return output;
  }
  template <class Show>
  [[nodiscard]] AdminOutput get(const std::string& target, const Show& show) const {
    return ask("GET", target, {}, show);
  }
};

// ---- tables -------------------------------------------------------------------------------------

std::string joined(const Json& texts) {
  std::string all;
  for (const Json& each : texts) {
    if (each.is_string()) all += (all.empty() ? "" : ", ") + each.get<std::string>();
  }
  return all;
}

// A number whose name ends with _at or _ms is a time.
std::string cell_in(const Json& row, std::string_view key) {
  const std::string name(key);
  if (const Json& list = list_in(row, name.c_str()); !list.empty()) return joined(list);
  const auto number = number_in(row, name.c_str());
  const bool is_time = number && (key.ends_with("_at") || key.ends_with("_ms"));
  return is_time ? moment_text(*number) : text_in(row, name.c_str());
}

// A row for each object of the list; empty: the list is empty. A column is "HEAD key".
std::string table_of(const Json& list, std::initializer_list<std::string_view> columns) {
  if (list.empty()) return {};
  std::vector<std::string> cells;
  for (const std::string_view each : columns) cells.emplace_back(each.substr(0, each.rfind(' ')));
  TextTable table(cells);
  for (const Json& row : list) {
    cells.clear();
    for (const std::string_view each : columns)
      cells.push_back(cell_in(row, each.substr(each.rfind(' ') + 1)));
    table.add(cells);
  }
  return table.text();
}

// A page: what it shows, or `none` if this page and the next ones show nothing; the agents that the
// server could not look at; the command for the next page.
AdminOutput page_of(const Json& answer, std::string shown, std::string_view none,
                    const std::string& as_typed) {
  AdminOutput output = printed(std::move(shown));
  const std::string next = text_in(answer, "next");
  if (output.out.empty() && next.empty()) output.out = none;
  for (const Json& each : list_in(answer, "skipped")) {
    const std::string agent_class = text_in(each, "class");
    const std::string who =
        agent_class.empty() ? "a part of the agents" : agent_class + "/" + text_in(each, "agent");
    output.err +=
        escaped("hearth: " + who + " was not looked at: " + text_in(each, "reason")) + "\n";
    output.status = kExitFailed;
  }
  if (!next.empty())
    output.out +=
        "more: " + one_line(with_options(as_typed, " --after " + shell_word(next))) + "\n";
  return output;
}

// ---- libraries ----------------------------------------------------------------------------------

std::string refused_file(const Json& file) {
  const std::string reason = text_in(file, "reason");
  // The message of a mistake in a class file has its place.
  if (text_in(file, "rule") == "config") return one_line(reason) + "\n";
  return escaped(text_in(file, "file") + " is refused by rule " + text_in(file, "rule") + ": " +
                 reason) +
         "\n";
}

std::string plugins_text(const Json& answer) {
  std::string text =
      table_of(list_in(answer, answer.contains("plugins") ? "plugins" : "generations"),
               {"PLUGIN plugin", "VERSION version", "GENERATION generation", "STATE state",
                "CLASSES classes", "FILE file", "PINNED BECAUSE pinned_because"});
  if (text.empty()) text = "no library is served\n";
  for (const Json& each : list_in(answer, "refused")) text += refused_file(each);
  for (const Json& each : list_in(answer, "settings"))
    text += "settings of " + escaped(text_in(each, "class")) + ": " +
            escaped(text_in(each, "state")) + "\n";
  return text;
}

AdminOutput show_console(const Asker& asker) {
  return asker.ask("POST", "/admin/console/link", {},
                   [](const Json& answer) { return printed(text_in(answer, "url") + "\n"); });
}

AdminOutput show_plugins(const Asker& asker) {
  return asker.get(asker.command.all ? "/admin/generations" : "/admin/plugins",
                   [](const Json& answer) { return printed(plugins_text(answer)); });
}

std::string reloaded_text(const Json& file) {
  const std::string outcome = text_in(file, "outcome");
  std::string text = text_in(file, "file") + ": ";
  if (outcome == "new_version") {
    text += "version " + text_in(file, "version") + " (generation " + text_in(file, "generation") +
            ") is coming in";
  } else if (outcome == "new_settings") {
    text += "new settings of " + text_in(file, "class") + " (" + joined(list_in(file, "keys")) +
            ") are coming in";
  } else if (outcome == "refused") {
    const std::string reason = text_in(file, "reason");
    const bool says_where = reason.starts_with(text_in(file, "file") + ":");
    text = says_where ? "REFUSED: " + reason : text + "REFUSED: " + reason;
  } else {
    text += outcome;
  }
  if (const std::string note = text_in(file, "note"); !note.empty()) text += " (" + note + ")";
  return one_line(text) + "\n";
}

// The outcome of a rollout of a version; empty while it is in progress.
std::string fate_of(const Json& file, const Json& generations) {
  bool is_current = false;
  bool others_drain = false;
  for (const Json& each : generations) {
    if (text_in(each, "file") != text_in(file, "file")) continue;
    const std::string state = text_in(each, "state");
    const bool is_it = text_in(each, "generation") == text_in(file, "generation");
    if (is_it && (state == "current" || state == "on_trial")) is_current = true;
    if (!is_it && state == "draining") others_drain = true;
  }
  if (!is_current) return "FAILED: it was taken back or replaced; the server's log says why";
  return others_drain ? "" : "all agents have it";
}

// The same for settings.
std::string fate_of_settings(const Json& file, const Json& plugins) {
  for (const Json& each : list_in(plugins, "moving")) {
    if (each == text_in(file, "class")) return "";
  }
  for (const Json& each : list_in(plugins, "refused")) {
    if (text_in(each, "rule") == "R1" && text_in(each, "file") == text_in(file, "file"))
      return "FAILED: " + text_in(each, "reason");
  }
  return "all agents have them";
}

// Waits until the rollouts of these versions and settings are over.
void wait_for_agents(const AdminClient& client, const Json& files, AdminOutput& output) {
  for (const Json& file : files) {
    const std::string outcome = text_in(file, "outcome");
    const bool is_settings = outcome == "new_settings";
    if (outcome != "new_version" && !is_settings) continue;
    std::string fate;
    while (fate.empty()) {
      const auto answer = client.ask("GET", is_settings ? "/admin/plugins" : "/admin/generations");
      if (!answer) {
        fate = "FAILED: " + answer.error().message;
      } else {
        fate = is_settings ? fate_of_settings(file, *answer)
                           : fate_of(file, list_in(*answer, "generations"));
      }
      if (fate.empty()) std::this_thread::sleep_for(kLookAgain);
    }
    output.out += escaped(text_in(file, "file") + ": " + fate) + "\n";
    if (fate.starts_with("FAILED")) output.status = kExitFailed;
  }
}

AdminOutput reload(const Asker& asker) {
  const auto& [client, command] = asker;
  const std::string body =
      command.agent_class.empty() ? "" : dump_json({{"class", command.agent_class}});
  const auto answer = client.ask("POST", "/admin/plugins/reload", body);
  if (!answer) return failed(answer.error().message);
  AdminOutput output;
  for (const Json& file : list_in(*answer, "files")) {
    output.out += reloaded_text(file);
    if (text_in(file, "outcome") == "refused") output.status = kExitFailed;
  }
  if (output.out.empty()) output.out = "no library is there\n";
  if (command.wait) wait_for_agents(client, list_in(*answer, "files"), output);
  if (command.json) output.out = as_json(*answer).out;
  return output;
}

AdminOutput take_back(const Asker& asker) {
  const std::string body = dump_json({{"class", asker.command.agent_class}});
  return asker.ask("POST", "/admin/plugins/take-back", body, [](const Json& answer) {
    AdminOutput output;
    for (const Json& file : list_in(answer, "files"))
      output.out +=
          escaped(text_in(file, "file")) +
          ": its new version is being taken back: the one before goes on if its agents start\n";
    return output;
  });
}

// The type of a value by its schema: "string", "integer or null", "any".
std::string type_in(const Json& schema) {
  if (const std::string type = text_in(schema, "type"); !type.empty()) return type;
  std::string types;
  for (const Json& each : list_in(schema, "anyOf"))
    types += (types.empty() ? "" : " or ") + type_in(each);
  return types.empty() ? "any" : types;
}

std::string arguments_in(const Json& method) {
  if (!method.contains("arguments")) return "not known";
  std::string types;
  for (const Json& each : list_in(method["arguments"], "prefixItems"))
    types += (types.empty() ? "" : ", ") + type_in(each);
  return types;
}

AdminOutput show_methods(const Asker& asker) {
  const std::string target = "/admin/classes/" + url_encoded(asker.command.agent_class);
  return asker.get(target + "/methods", [](const Json& answer) {
    Json methods = list_in(answer, "methods");
    for (Json& method : methods) {
      Json kinds = Json::array();
      for (const char* const each : {"streaming", "read_only", "idempotent", "exclusive"}) {
        if (method.value(each, false)) kinds.push_back(each);
      }
      method["kinds"] = std::move(kinds);
      method["arguments"] = arguments_in(method);
    }
    const std::string text = table_of(
        methods, {"METHOD name", "ARGUMENTS arguments", "KIND kinds", "DESCRIPTION description"});
    return printed(text.empty() ? "no methods are listed\n" : text);
  });
}

// ---- agents -------------------------------------------------------------------------------------

AdminOutput show_agents(const Asker& asker) {
  const AdminCommand& command = asker.command;
  const std::string target = "/admin/agents?class=" + url_encoded(command.agent_class) +
                             "&limit=" + std::to_string(command.limit);
  return asker.get(
      with_query(target, {{"after", name_in_url(command.after)}}), [&command](const Json& answer) {
        Json agents = list_in(answer, "agents");
        for (Json& each : agents) {
          if (each.value("working", false)) each["next_wake_ms"] = "at once, if interrupted";
        }
        std::string text =
            table_of(agents, {"NAME name", "STATE state", "CLIENTS connections", "VERSION version",
                              "CREATED created_at_ms", "WAKES next_wake_ms"});
        return page_of(answer, std::move(text), "no agents\n", command.as_typed);
      });
}

// "/admin/agents/CLASS/NAME" of the agent CLASS/NAME, or of a class and a name; empty: no agent.
std::string agent_path(const AdminCommand& command) {
  std::string agent_class = command.agent_class;
  std::string name = command.name;
  if (const std::size_t slash = agent_class.find('/'); name.empty() && slash != std::string::npos) {
    name = agent_class.substr(slash + 1);
    agent_class.resize(slash);
  }
  if (name.empty()) return {};
  return "/admin/agents/" + url_encoded(agent_class) + "/" + name_in_url(name);
}

AdminOutput bad_usage(const std::string& why) {
  return failed(why, kExitBadUsage);
}

AdminOutput no_agent_named() {
  return bad_usage("name an agent: CLASS/NAME");
}

std::string shown_name(const AdminCommand& command) {
  return escaped(command.agent_class) + "/" + name_in_url(command.name);
}

AdminOutput evict(const Asker& asker) {
  return asker.ask("POST", agent_path(asker.command) + "/evict", {}, [&asker](const Json& answer) {
    const std::string who = shown_name(asker.command);
    if (answer.value("evicted", false)) return printed(who + " is evicted\n");
    return printed(who + " is " + escaped(text_in(answer, "state")) + ": nothing was done\n");
  });
}

AdminOutput destroy(const Asker& asker) {
  const auto& [client, command] = asker;
  const std::string target = agent_path(command);
  const std::string who = shown_name(command);
  // Report a misspelled name before the question.
  if (const auto found = client.ask("GET", target); !found) return failed(found.error().message);
  if (!command.yes) {
    const std::string question =
        "Destroy " + who +
        " with its database, and close its clients? This cannot be undone [y/N] ";
    switch (ask_person(question, STDIN_FILENO, STDERR_FILENO)) {
      case Confirmation::kYes: break;
      case Confirmation::kNo: return failed("nothing was done");
      case Confirmation::kNobody:
        return bad_usage("there is no terminal to ask at: use --yes to destroy " + who);
    }
  }
  return asker.ask("DELETE", target, {},
                   [&who](const Json&) { return printed(who + " is destroyed\n"); });
}

// Prints only the result, so that programs can use it.
AdminOutput call_object(const Asker& asker) {
  const AdminCommand& command = asker.command;
  AdminOutput output =
      asker.ask("POST",
                "/objects/" + url_encoded(command.agent_class) + "/" + url_encoded(command.name) +
                    "/call/" + url_encoded(command.method),
                command.arguments,
                [](const Json& answer) { return as_json(answer.value("result", Json())); });
  // A command does not have the token of a client, which `auth` asks for.
  if (output.err.ends_with("(unauthorized)\n"))
    output.err +=
        "hearth: the command has the administrators' token, which calls of objects take only if "
        "objects.token_file is set\n";
  return output;
}

AdminOutput show_why(const Asker& asker) {
  const std::string path = agent_path(asker.command);
  if (path.empty()) return no_agent_named();
  return asker.get(path + "/why", [place = place_of(asker.command)](const Json& answer) {
    return printed(why_text(answer, now_ms(), place));
  });
}

AdminOutput show_stuck(const Asker& asker) {
  const AdminCommand& command = asker.command;
  if (command.all && !command.agent_class.empty())
    return bad_usage("stuck takes a CLASS or --all, not both");
  return asker.get(
      with_query("/admin/stuck?limit=" + std::to_string(command.limit),
                 {{"class", command.all ? "*" : command.agent_class}, {"after", command.after}}),
      [&command](const Json& answer) {
        std::string stuck;
        for (const Json& each : list_in(answer, "agents"))
          stuck += why_text(each, now_ms(), place_of(command), true);
        return page_of(answer, std::move(stuck), "no agent is stuck\n", command.as_typed);
      });
}

// ---- operations ---------------------------------------------------------------------------------

std::string operation_path(const AdminCommand& command) {
  return "/admin/operations/" + url_encoded(command.agent_class) + "/" + name_in_url(command.name) +
         "/" + url_encoded(command.id);
}

AdminOutput show_operations(const Asker& asker) {
  const AdminCommand& command = asker.command;
  if (!command.id.empty()) return asker.get(operation_path(command), as_json);
  const std::string before = command.older ? std::to_string(now_ms() - command.older->count()) : "";
  const std::string target = with_query("/admin/operations?limit=" + std::to_string(command.limit),
                                        {{"class", command.agent_class},
                                         {"agent", name_in_url(command.name)},
                                         {"kind", command.kind},
                                         {"state", command.state},
                                         {"after", command.after},
                                         {"begun_before_ms", before}});
  return asker.get(target, [&command](const Json& answer) {
    Json operations = list_in(answer, "operations");
    for (Json& each : operations)
      each["agent"] = text_in(each, "class") + "/" + text_in(each, "agent");
    std::string text =
        table_of(operations, {"AGENT agent", "KIND kind", "STATE state", "EFFECT effect",
                              "STARTED started_at", "ATTEMPTS attempts", "ID id", "NOTE note"});
    return page_of(answer, std::move(text), "no operations\n", command.as_typed);
  });
}

// Adds the result that the command gives. False: it is not JSON.
bool add_result(const AdminCommand& command, Json& to) {
  if (command.result.empty()) return true;
  const auto result = parse_client_json(command.result);
  if (result) to["result"] = *result;
  return result.has_value();
}

AdminOutput resolve_operation(const Asker& asker) {
  const AdminCommand& command = asker.command;
  Json body{{"outcome", command.state}};
  if (!command.note.empty()) body["note"] = command.note;
  if (!add_result(command, body)) return bad_usage("--result is JSON");
  return asker.ask("POST", operation_path(command) + "/resolve", dump_json(body),
                   [&command](const Json& answer) {
                     return printed("operation " + escaped(command.id) + " is " +
                                    escaped(text_in(answer, "state")) + "\n");
                   });
}

// ---- work and tables of an agent ----------------------------------------------------------------

AdminOutput list_work(const Asker& asker, const std::string& path) {
  const AdminCommand& command = asker.command;
  const std::string target = path + "?kind=" + command.kind;
  return asker.get(with_query(target + "&limit=" + std::to_string(command.limit),
                              {{"state", command.state}, {"after", command.after}}),
                   [&command](const Json& answer) {
                     std::string text =
                         table_of(list_in(answer, "work"),
                                  {"ID id", "NAME name", "STATE state", "CREATED created_at",
                                   "NEXT next_at", "ERROR error"});
                     return page_of(answer, std::move(text), "none\n", command.as_typed);
                   });
}

AdminOutput show_chats(const Asker& asker) {
  const AdminCommand& command = asker.command;
  const std::string target = "/admin/chats?class=" + url_encoded(command.agent_class) +
                             "&limit=" + std::to_string(command.limit);
  return asker.get(
      with_query(target, {{"after", name_in_url(command.after)}}), [&command](const Json& answer) {
        std::string text = table_of(list_in(answer, "chats"),
                                    {"NAME agent", "STATE state", "TURN turn", "SINCE since_ms",
                                     "WAITING waiting", "MESSAGES messages", "LAST last_at_ms"});
        return page_of(answer, std::move(text), "no chats\n", command.as_typed);
      });
}

AdminOutput change_work(const Asker& asker, const std::string& path) {
  const AdminCommand& command = asker.command;
  Json body = Json::object();
  if (!command.note.empty()) body["note"] = command.note;
  if (command.action == "end") {
    Json& outcome = body["outcome"] = {{"status", command.state}};
    if (command.state != "completed" && !command.note.empty()) outcome["error"] = command.note;
    if (!add_result(command, outcome)) return bad_usage("--result is JSON");
  }
  return asker.ask(
      "POST", path + "/" + command.action, dump_json(body), [&command](const Json& answer) {
        const bool is_gone = answer.is_object() && answer.value("record", Json(0)).is_null();
        return printed(command.kind + " " + escaped(command.id) + " is " +
                       (is_gone ? "removed" : escaped(text_in(answer, "state"))) + "\n");
      });
}

AdminOutput ask_about_work(const Asker& asker) {
  const AdminCommand& command = asker.command;
  std::string path = agent_path(command);
  if (path.empty()) return no_agent_named();
  path += "/work";
  if (command.id.empty()) return list_work(asker, path);
  path += "/" + command.kind + "/" + url_encoded(command.id);
  if (!command.action.empty()) return change_work(asker, path);
  const auto answer = asker.client.ask("GET", path);
  if (!answer) return failed(answer.error().message);
  // ASCII, so that no control character of the agent's data reaches a terminal.
  return printed(answer->dump(-1, ' ', true) + "\n");
}

AdminOutput show_sql(const Asker& asker) {
  const std::string path = agent_path(asker.command);
  if (path.empty()) return no_agent_named();
  const std::string body = dump_json({{"sql", asker.command.arguments}});
  return asker.ask("POST", path + "/sql", body, [](const Json& answer) {
    const auto cells_of = [](const Json& values) {
      std::vector<std::string> cells;
      for (const Json& each : values)
        cells.push_back(each.is_string() ? each.get<std::string>()
                        : each.is_null() ? "null"
                                         : dump_json(each));
      return cells;
    };
    TextTable table(cells_of(list_in(answer, "columns")));
    for (const Json& row : list_in(answer, "rows")) table.add(cells_of(row));
    AdminOutput output = printed(table.text());
    if (answer.value("truncated", false)) output.err = "hearth: there are more rows\n";
    return output;
  });
}

// In the order of AdminCommand::What.
constexpr std::array kCommands = {show_console,      show_plugins, reload,         take_back,
                                  show_methods,      show_agents,  evict,          destroy,
                                  call_object,       show_why,     show_stuck,     show_operations,
                                  resolve_operation, show_chats,   ask_about_work, show_sql};

}  // namespace

int run(const AdminCommand& command) {
  const auto [data, mistake] = find_data(command, false);
  if (mistake) return run(*mistake);
  const auto client = AdminClient::on(data);
  if (!client) return run(failed_answer(client.error().message));
  const AdminOutput output =
      kCommands.at(static_cast<std::size_t>(command.what))({*client, command});
  std::fputs(output.out.c_str(), stdout);
  std::fputs(output.err.c_str(), stderr);
  return printed_status(output.status);
}

}  // namespace hearth::cli
