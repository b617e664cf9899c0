#include "cli/admin_options.hpp"

#include "config/units.hpp"

#include <string>
#include <string_view>
#include <tuple>

#include <CLI/CLI.hpp>

namespace hearth::cli {
namespace {

using AdminAction = AdminCommand::What;

constexpr const char* kNotes =
    "Asks the server that runs on the data directory. You must be able to read its "
    "administrators'\n"
    "token there (as its user, or root). Without --config and --data the data directory is ./data.";

constexpr unsigned kMaxLimit = 1000;  // as in the admin API

CLI::App& add(CLI::App& app, AdminCommand& command, AdminAction what, const char* name,
              const char* purpose) {
  CLI::App& added = *app.add_subcommand(name, purpose);
  added.footer(kNotes);
  added.parse_complete_callback([&command, what] { command.what = what; });
  added.add_option("--config", command.config, "Server file, which says where data is kept")
      ->type_name("FILE");
  added.add_option("--data", command.data, "Data directory of the server (data)")->type_name("DIR");
  added.add_flag("--json", command.json, "What the server answers, as one JSON object");
  return added;
}

void add_class(CLI::App& to, AdminCommand& command, bool required) {
  to.add_option("CLASS", command.agent_class,
                "As it is (ChatRoom), or as URLs spell it (chat-room)")
      ->required(required)
      ->type_name("");
}

void add_limit(CLI::App& to, AdminCommand& command) {
  to.add_option_function<std::string>(
        "--limit",
        [&command](const std::string& text) {
          const auto count = config::parse_count(text);
          if (!count || *count < 1 || *count > kMaxLimit) {
            throw CLI::ValidationError(
                "--limit", "expected a whole number from 1 to 1000, found \"" + text + "\"");
          }
          command.limit = static_cast<unsigned>(*count);
        },
        "How many at most (100)")
      ->type_name("N");
}

void add_operations(CLI::App& app, AdminCommand& command) {
  CLI::App& list = add(app, command, AdminAction::kOperations, "operations",
                       "Operations of agents that are not settled");
  add_class(list, command, false);
  list.add_option("NAME", command.name, "Only this agent, as in its URL")->type_name("");
  list.add_option("ID", command.id, "This operation, with its arguments and its result")
      ->type_name("");
  list.add_option("--kind", command.kind, "Only this kind")->type_name("KIND");
  list.add_option("--state", command.state,
                  "Only these, such as unknown or running,interrupted; for one agent also "
                  "completed and not_executed")
      ->type_name("STATES");
  list.add_option_function<std::string>(
          "--older",
          [&command](const std::string& text) {
            const auto age = config::parse_duration(text);
            if (!age) throw CLI::ValidationError("--older", age.error().message);
            command.older = *age;
          },
          "Only those that began at least this long ago, such as 10m")
      ->type_name("TIME");
  list.add_option("--after", command.after, "The page after the last one")->type_name("NEXT");
  add_limit(list, command);

  CLI::App& resolve = add(app, command, AdminAction::kResolve, "resolve",
                          "Record what became of an unknown or interrupted operation");
  add_class(resolve, command, true);
  resolve.add_option("NAME", command.name, "The agent, as in its URL")->required()->type_name("");
  resolve.add_option("ID", command.id, "The operation")->required()->type_name("");
  resolve
      .add_option("OUTCOME", command.state,
                  "completed: it was executed; not_executed: it runs when its work reaches it")
      ->required()
      ->check(CLI::IsMember({"completed", "not_executed"}))
      ->type_name("");
  resolve.add_option("--result", command.result, "Its result, for the agent's code (null)")
      ->type_name("JSON");
  resolve.add_option("--note", command.note, "How you know; it stays in the record")
      ->type_name("TEXT");
}

// A change of work, as its command calls it.
struct WorkVerb {
  const char* group;
  const char* verb;
  const char* action;  // of the route; empty: it only looks
  const char* purpose;
};
constexpr WorkVerb kWorkVerbs[] = {
    {"fibers", "list", "", "A page of them, the newest first"},
    {"fibers", "show", "", "One of them, with its input, checkpoint and result"},
    {"fibers", "cancel", "cancel", "End it as aborted, with those that it has started"},
    {"fibers", "end", "end", "Give it an outcome, dead, interrupted or waiting"},
    {"fibers", "revive", "revive", "Let it go on now, dead, interrupted or waiting"},
    {"schedules", "list", "", "A page of them"},
    {"schedules", "show", "", "One of them, with its payload"},
    {"schedules", "run", "run", "Run it now, and then as planned"},
    {"schedules", "pause", "pause", "Let it not run until it is resumed"},
    {"schedules", "resume", "resume", "Let it run again"},
    {"schedules", "revive", "revive", "Let a dead one run again"},
    {"schedules", "cancel", "cancel", "Remove it"},
    {"queue", "list", "", "A page of the items, the oldest first"},
    {"queue", "show", "", "One item, with its payload"},
    {"queue", "drop", "cancel", "Remove an item or a dead letter"},
    {"queue", "retry", "revive", "Deliver a dead letter again"},
};

void add_agent(CLI::App& to, AdminCommand& command) {
  to.add_option("AGENT", command.agent_class, "CLASS/NAME")->required()->type_name("");
}

void add_work(CLI::App& app, AdminCommand& command) {
  for (const auto& [name, kind, purpose] :
       {std::tuple("fibers", "fiber", "Look at the fibers of an agent, or decide about one"),
        std::tuple("schedules", "schedule", "Look at the schedules of an agent, or change one"),
        std::tuple("queue", "item", "Look at the queue of an agent and its dead letters")}) {
    CLI::App& group = *app.add_subcommand(name, purpose);
    group.require_subcommand(1);
    for (const WorkVerb& each : kWorkVerbs) {
      if (std::string_view(each.group) != name) continue;
      CLI::App& verb = add(group, command, AdminAction::kWork, each.verb, each.purpose);
      verb.parse_complete_callback([&command, kind, &each] {
        command.what = AdminAction::kWork;
        command.kind = kind;
        command.action = each.action;
      });
      add_agent(verb, command);
      const std::string_view word = each.verb;
      if (word == "list") {
        verb.add_option("--state", command.state, "Only these, such as dead")->type_name("STATE");
        verb.add_option("--after", command.after, "The page after the last one")->type_name("NEXT");
        add_limit(verb, command);
        continue;
      }
      verb.add_option("ID", command.id, "Its id")->required()->type_name("");
      if (word == "end") {
        verb.add_option("OUTCOME", command.state, "How it ended")
            ->required()
            ->check(CLI::IsMember({"completed", "error", "aborted"}))
            ->type_name("");
        verb.add_option("--result", command.result, "Of a completed one (null)")->type_name("JSON");
      }
      if (*each.action != '\0')
        verb.add_option("--note", command.note, "Why; it stays in the audit log")
            ->type_name("TEXT");
    }
  }
}

}  // namespace

void add_admin_commands(CLI::App& app, AdminCommand& command) {
  add(app, command, AdminAction::kConsole, "console",
      "Print a link to the server's page for administrators; it works once, for a minute");

  CLI::App& plugins =
      add(app, command, AdminAction::kPlugins, "plugins", "The libraries of a running server");
  plugins.add_flag("--all", command.all, "Also old versions that still have agents, or are pinned");

  CLI::App& reload = add(app, command, AdminAction::kReload, "reload",
                         "Make a running server look at its libraries and class files now");
  add_class(reload, command, false);
  reload.add_flag("--wait", command.wait,
                  "Wait until all agents have the new code, or it was taken back (status 1)");

  add_class(add(app, command, AdminAction::kMethods, "methods",
                "The methods of a class for clients, with their arguments"),
            command, true);

  CLI::App& agents = add(app, command, AdminAction::kAgents, "agents", "The agents of a class");
  add_class(agents, command, true);
  agents.add_option("--after", command.after, "Only names greater than this one")
      ->type_name("NAME");
  add_limit(agents, command);

  CLI::App& evict = add(app, command, AdminAction::kEvict, "evict",
                        "Remove an agent from memory; its data and clients stay");
  CLI::App& destroy = add(app, command, AdminAction::kDestroy, "destroy",
                          "Delete an agent with all its data, for ever");
  destroy.add_flag("--yes", command.yes, "Do not ask; needed where there is no terminal");
  for (CLI::App* const each : {&evict, &destroy}) {
    add_class(*each, command, true);
    each->add_option("NAME", command.name, "As in the agent's URL")->required()->type_name("");
  }

  CLI::App& call = add(app, command, AdminAction::kCall, "call",
                       "Call a method of an object, and print its result");
  add_class(call, command, true);
  call.add_option("ID", command.name, "The object's id")->required()->type_name("");
  call.add_option("METHOD", command.method, "The method")->required()->type_name("");
  call.add_option("JSON", command.arguments, "Its arguments: an array, or the only argument (none)")
      ->type_name("");

  CLI::App& why = add(app, command, AdminAction::kWhy, "why",
                      "What an agent does or waits for, what ends it, and what you can do");
  why.add_option("AGENT", command.agent_class, "CLASS/NAME, or the class and then the name")
      ->required()
      ->type_name("");
  why.add_option("NAME", command.name, "As in the agent's URL")->type_name("");
  CLI::App& stuck = add(app, command, AdminAction::kStuck, "stuck",
                        "The agents whose wait needs a person, or is older than it should be");
  add_class(stuck, command, false);
  stuck.get_option("CLASS")->description(
      "Look at each agent of this class. Without it dead work is not found");
  stuck.add_option("--after", command.after, "The page after the last one")->type_name("NEXT");
  add_limit(stuck, command);

  add_operations(app, command);
  add_work(app, command);
  CLI::App& sql = add(app, command, AdminAction::kSql, "sql",
                      "Read the database of an agent with SQL, live or cold");
  add_agent(sql, command);
  sql.add_option("SQL", command.arguments, "One statement that reads; at most 1,000 rows")
      ->required()
      ->type_name("");
}

}  // namespace hearth::cli
