#include "cli/admin_options.hpp"

#include "cli/command_options.hpp"
#include "config/units.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace hearth::cli {
namespace {

using Ask = AdminCommand::What;

constexpr const char* kNotes = R"(
Asks the server that runs on the data directory. You must be able to read its administrators'
token there (as its user, or root). Without --config and --data the data directory is ./data.)";

constexpr unsigned kMaxLimit = 1000;  // as in the admin API

Result<unsigned> parse_limit(const std::string& text) {
  const auto count = config::parse_count(text);
  if (count && *count >= 1 && *count <= kMaxLimit) return static_cast<unsigned>(*count);
  return Error{Errc::kInvalidArgument,
               "expected a whole number from 1 to 1000, found \"" + text + "\""};
}

// A command while its options are described, and what they fill.
class Asked : public CommandOptions {
 public:
  Asked(CommandOptions options, std::optional<Command>& chosen, Ask what)
      : CommandOptions(options), fills_(std::make_shared<AdminCommand>()) {
    fills_->what = what;
    CommandOptions::chosen([&chosen, fills = fills_] { chosen = *fills; });
    data(*fills_);
    flag("--json", fills_->json, "What the server answers, as one JSON object");
  }

  AdminCommand* operator->() const { return fills_.get(); }

  void agent_class(bool is_required,
                   const char* text = "As it is (ChatRoom), or as URLs spell it (chat-room)") {
    operand("CLASS", &fills_->agent_class, text, is_required);
  }
  void agent() { operand("AGENT", &fills_->agent_class, "CLASS/NAME"); }
  // May be empty: then the page is the first, as in a script's loop.
  void after(const char* type = "NEXT", const char* text = "The page after the last one") {
    const auto take = [fills = fills_](const std::string& given) -> Result<void> {
      fills->after = given;
      return {};
    };
    option("--after", take, type, text);
  }
  void limit() { option("--limit", fills_->limit, parse_limit, "N", "How many at most (100)"); }

 private:
  std::shared_ptr<AdminCommand> fills_;
};

// A change of work, as its command calls it.
struct WorkVerb {
  std::string_view group;
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

void add_work_verb(Asked verb, const char* kind, const WorkVerb& row) {
  verb->kind = kind;
  verb->action = row.action;
  verb.agent();
  const std::string_view word = row.verb;
  if (word == "list") {
    verb.option("--state", &verb->state, "STATE", "Only these, such as dead");
    verb.after();
    return verb.limit();
  }
  verb.operand("ID", &verb->id, "Its id");
  if (word == "end") {
    CommandOptions::one_of(verb.operand("OUTCOME", &verb->state, "How it ended"),
                           {"completed", "error", "aborted"});
    verb.option("--result", &verb->result, "JSON", "Of a completed one (null)");
  }
  if (*row.action != '\0')
    verb.option("--note", &verb->note, "TEXT", "Why; it stays in the audit log");
}

void add_work(CLI::App& app, std::optional<Command>& chosen) {
  struct Group {
    const char* name;
    const char* kind;
    const char* purpose;
  };
  for (const auto& [name, kind, purpose] :
       {Group{"fibers", "fiber", "Look at the fibers of an agent, or decide about one"},
        Group{"schedules", "schedule", "Look at the schedules of an agent, or change one"},
        Group{"queue", "item", "Look at the queue of an agent and its dead letters"}}) {
    CommandOptions group(app, name, purpose);
    for (const WorkVerb& each : kWorkVerbs) {
      if (each.group == name)
        add_work_verb({group.part(each.verb, each.purpose, kNotes), chosen, Ask::kWork}, kind,
                      each);
    }
  }
}

void add_chats(CLI::App& app, std::optional<Command>& chosen) {
  CommandOptions group(app, "chats", "Look at the chats of a class, or cancel a turn");
  Asked list(group.part("list", "A page of them", kNotes), chosen, Ask::kChats);
  list.agent_class(true);
  list.after();
  list.limit();
  Asked show(
      group.part("show", "The turns of a chat, the newest first, or all of one of them", kNotes),
      chosen, Ask::kWork);
  show.agent();
  show.operand("TURN", &show->id, "This one, with the record of its fiber", false);
  show.option("--state", &show->state, "STATE", "Only these, such as error");
  show.after();
  show.limit();
  Asked cancel(group.part("cancel", "Cancel the turn that runs", kNotes), chosen, Ask::kWork);
  cancel->action = "cancel";
  cancel.agent();
  cancel.operand("TURN", &cancel->id, "Its id");
  cancel.option("--note", &cancel->note, "TEXT", "Why; it stays in the audit log");
  for (Asked* const each : {&show, &cancel}) (*each)->kind = "turn";
}

}  // namespace

void add_admin_commands(CLI::App& app, std::optional<Command>& chosen) {
  const auto add = [&](Ask what, const char* name, const char* purpose) {
    return Asked(CommandOptions(app, name, purpose, kNotes), chosen, what);
  };
  add(Ask::kConsole, "console",
      "Print a link to the server's page for administrators; it works once, for a minute");

  Asked plugins = add(Ask::kPlugins, "plugins", "The libraries of a running server");
  plugins.flag("--all", plugins->all, "Also old versions that still have agents, or are pinned");

  Asked reload = add(Ask::kReload, "reload",
                     "Make a running server look at its libraries and class files now");
  reload.agent_class(false);
  reload.flag("--wait", reload->wait,
              "Wait until all agents have the new code, or it was taken back (status 1)");

  add(Ask::kTakeBack, "take-back",
      "Serve the version before again, if the library of a class has a new one on trial")
      .agent_class(true);

  add(Ask::kMethods, "methods", "The methods of a class for clients, with their arguments")
      .agent_class(true);

  Asked agents = add(Ask::kAgents, "agents", "The agents of a class");
  agents.agent_class(true);
  agents.after("NAME", "Only names greater than this one");
  agents.limit();

  Asked evict = add(Ask::kEvict, "evict", "Remove an agent from memory; its data and clients stay");
  Asked destroy = add(Ask::kDestroy, "destroy", "Delete an agent with all its data, for ever");
  destroy.flag("--yes", destroy->yes, "Do not ask; needed where there is no terminal");
  for (Asked* const each : {&evict, &destroy}) {
    each->agent_class(true);
    each->operand("NAME", &(*each)->name, "As in the agent's URL");
  }

  Asked call = add(Ask::kCall, "call", "Call a method of an object, and print its result");
  call.agent_class(true);
  call.operand("ID", &call->name, "The object's id");
  call.operand("METHOD", &call->method, "The method");
  call.operand("JSON", &call->arguments, "Its arguments: an array, or the only argument (none)",
               false);

  Asked why =
      add(Ask::kWhy, "why", "What an agent does or waits for, what ends it, and what you can do");
  why.operand("AGENT", &why->agent_class, "CLASS/NAME, or the class and then the name");
  why.operand("NAME", &why->name, "As in the agent's URL", false);
  Asked stuck = add(Ask::kStuck, "stuck",
                    "The agents whose wait needs a person, or is older than it should be");
  stuck.agent_class(false, "Look at each agent of this class, not only at those known to wait");
  stuck.flag("--all", stuck->all, "Look at each agent of each class; takes no CLASS");
  stuck.after();
  stuck.limit();

  Asked list = add(Ask::kOperations, "operations", "Operations of agents that are not settled");
  list.agent_class(false);
  list.operand("NAME", &list->name, "Only this agent, as in its URL", false);
  list.operand("ID", &list->id, "This operation, with its arguments and its result", false);
  list.option("--kind", &list->kind, "KIND", "Only this kind");
  list.option("--state", &list->state, "STATES",
              "Only these, such as unknown or running,interrupted; for one agent also completed "
              "and not_executed");
  list.option("--older", list->older, config::parse_duration, "TIME",
              "Only those that began at least this long ago, such as 10m");
  list.after();
  list.limit();

  Asked resolve =
      add(Ask::kResolve, "resolve", "Record what became of an unknown or interrupted operation");
  resolve.agent_class(true);
  resolve.operand("NAME", &resolve->name, "The agent, as in its URL");
  resolve.operand("ID", &resolve->id, "The operation");
  CommandOptions::one_of(
      resolve.operand("OUTCOME", &resolve->state,
                      "completed: it was executed; not_executed: it runs when its work reaches it"),
      {"completed", "not_executed"});
  resolve.option("--result", &resolve->result, "JSON", "Its result, for the agent's code (null)");
  resolve.option("--note", &resolve->note, "TEXT", "How you know; it stays in the record");

  add_work(app, chosen);
  add_chats(app, chosen);
  Asked sql = add(Ask::kSql, "sql", "Read the database of an agent with SQL, live or cold");
  sql.agent();
  sql.operand("SQL", &sql->arguments, "One statement that reads; at most 1,000 rows");
}

}  // namespace hearth::cli
