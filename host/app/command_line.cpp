#include "app/command_line.hpp"

#include "app/version.hpp"
#include "config/units.hpp"

#include <map>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>

namespace hearth::app {
namespace {

constexpr const char* kPurpose =
    "Hearth serves stateful agents: long-lived objects, each with a name, a database of its own "
    "and its own\n"
    "clients over WebSocket and HTTP. Their classes are shared libraries in a directory.\n";

constexpr const char* kExamples =
    "Examples:\n"
    "  hearth serve --plugins ./plugins              serve what is in ./plugins on 127.0.0.1:8787\n"
    "  hearth serve --config /etc/hearth/hearth.yaml --check-config\n"
    "  hearth new greeter && cd greeter              begin a library of your own\n"
    "\n"
    "An agent is at ws://HOST:PORT/agents/CLASS/NAME, and over HTTP at the same path; it comes to "
    "life when somebody\n"
    "asks for it:\n"
    "  curl -X POST http://127.0.0.1:8787/agents/counter/first\n"
    "\n"
    "Exit status: 0 done, 1 could not be done, 2 asked wrongly (a flag or a configuration file).\n"
    "`hearth COMMAND --help` explains a command; README.md and config/README.md tell the rest.";

constexpr const char* kServeNotes =
    "Prints one line on stdout when clients can connect: `hearth ready: listening on "
    "127.0.0.1:8787`. Logs go to\n"
    "stderr. At SIGTERM or SIGINT running work may finish, clients are told to come back, and "
    "databases are closed; a\n"
    "second signal ends the server at once.\n"
    "\n"
    "A flag wins over the configuration file, and the file over the defaults. Without --config no "
    "server file is\n"
    "read: data, plugins and classes are then the directories of these names below the current "
    "one.";

constexpr const char* kNewNotes =
    "The project has one source, a test that needs no server, the class's settings, CMakeLists.txt "
    "and README.md, and\n"
    "builds against an installed Hearth.";

constexpr unsigned kMaxShards = 256;  // as in the configuration file

// Takes the text of an option through a parser of the configuration, so that both are spelled alike.
template <class Target, class Parse>
auto into(Target& target, const char* option, Parse parse) {
  return [&target, option, parse = std::move(parse)](const std::string& text) {
    auto value = parse(text);
    if (!value) throw CLI::ValidationError(option, value.error().message);
    target = *std::move(value);
  };
}

Result<unsigned> parse_shards(const std::string& text) {
  const auto count = config::parse_count(text);
  if (!count || *count < 1 || *count > kMaxShards) {
    return Error{Errc::kInvalidArgument,
                 "expected a whole number from 1 to 256, found \"" + text + "\""};
  }
  return static_cast<unsigned>(*count);
}

template <class T>
auto one_of(std::map<std::string, T> words, std::string expected) {
  return [words = std::move(words),
          expected = std::move(expected)](const std::string& text) -> Result<T> {
    const auto found = words.find(text);
    if (found != words.end()) return found->second;
    return Error{Errc::kInvalidArgument, "expected " + expected + ", found \"" + text + "\""};
  };
}

void add_serve(CLI::App& app, ServeCommand& serve) {
  CLI::App& command = *app.add_subcommand("serve", "Serve agents until SIGTERM or SIGINT");
  command.footer(kServeNotes);
  command
      .add_option("--config", serve.config,
                  "Server file; its `classes` directory holds the class files")
      ->type_name("FILE");
  command
      .add_option_function<std::string>(
          "--listen", into(serve.listen, "--listen", config::parse_listen_address),
          "Where clients connect (127.0.0.1:8787); port 0 takes a free one")
      ->type_name("HOST:PORT");
  command.add_option("--data", serve.data, "Where databases are kept (data); one server at a time")
      ->type_name("DIR");
  command
      .add_option("--plugins", serve.plugins,
                  "Directory of libraries (plugins); may be given more than once")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>("--shards", into(serve.shards, "--shards", parse_shards),
                                        "Event loops, each with a thread (one a core)")
      ->type_name("N");
  const std::map<std::string, LogLevel> levels{{"trace", LogLevel::kTrace},
                                               {"debug", LogLevel::kDebug},
                                               {"info", LogLevel::kInfo},
                                               {"warn", LogLevel::kWarn},
                                               {"error", LogLevel::kError}};
  command
      .add_option_function<std::string>(
          "--log-level",
          into(serve.log_level, "--log-level", one_of(levels, "trace, debug, info, warn or error")),
          "trace, debug, info, warn or error (info)")
      ->type_name("L");
  const std::map<std::string, LogFormat> formats{
      {"auto", LogFormat::kAuto}, {"human", LogFormat::kHuman}, {"json", LogFormat::kJson}};
  command
      .add_option_function<std::string>(
          "--log-format",
          into(serve.log_format, "--log-format", one_of(formats, "auto, human or json")),
          "human, json, or auto: human on a terminal (auto)")
      ->type_name("F");
  command.add_flag("--check-config", serve.check_config,
                   "Only say what is wrong with the configuration");
}

void add_new(CLI::App& app, NewCommand& fresh) {
  CLI::App& command = *app.add_subcommand("new", "Begin a library of agents of your own");
  command.footer(kNewNotes);
  command
      .add_option(
          "NAME", fresh.name,
          "Of the library and its class: lower-case letters, digits and -, such as chat-room")
      ->required()
      ->type_name("");
  command
      .add_option("--dir", fresh.directory,
                  "Where to write it (./NAME); must not exist, or be empty")
      ->type_name("DIR");
}

// Help asked for is an answer; anything else that stops CLI11 is a mistake.
Answer answer_of(const CLI::App& app, const CLI::ParseError& stop) {
  std::ostringstream out;
  std::ostringstream mistakes;
  if (app.exit(stop, out, mistakes) == 0) return Answer{kExitClean, out.str()};
  return Answer{kExitBadUsage, "hearth: " + mistakes.str()};
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv) {
  CLI::App app(kPurpose, "hearth");
  app.footer(kExamples);
  app.get_formatter()->column_width(24);
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Subcommands", "Commands");
  app.set_version_flag("--version", version_text());
  ServeCommand serve;
  NewCommand fresh;
  add_serve(app, serve);
  add_new(app, fresh);
  const CLI::App* const version = app.add_subcommand("version", "Say which version this is");
  if (argc <= 1) return Answer{kExitBadUsage, app.help()};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& stop) {
    return answer_of(app, stop);
  }
  if (version->parsed()) return Answer{kExitClean, version_text() + "\n"};
  if (app.got_subcommand("new")) {
    if (fresh.directory.empty()) fresh.directory = fresh.name;
    return fresh;
  }
  if (app.got_subcommand("serve")) return serve;
  return Answer{kExitBadUsage, app.help()};
}

}  // namespace hearth::app
