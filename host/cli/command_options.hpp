#pragma once
// The options of one command, as the help shows them.

#include "cli/command_line.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
class Option;
}  // namespace CLI

namespace hearth::cli {

// Texts are literals. What parsing fills outlives the parsing.
class CommandOptions {
 public:
  using Target = std::variant<std::string*, std::filesystem::path*, unsigned*, std::uint64_t*, int*,
                              std::optional<std::string>*, std::optional<std::filesystem::path>*>;
  using List = std::variant<std::vector<std::string>*, std::vector<std::filesystem::path>*>;
  using Take = std::function<Result<void>(const std::string&)>;

  // `notes`: a text behind the options, behind a line feed.
  CommandOptions(CLI::App& parent, const char* name, const char* purpose,
                 const char* notes = nullptr);

  // Calls `done` once the command line is read and this command was given.
  void chosen(std::function<void()> done);
  // A subcommand, such as `list`. The command line must name one of them.
  [[nodiscard]] CommandOptions part(const char* name, const char* purpose,
                                    const char* notes = nullptr);

  CLI::Option& flag(const char* name, bool& to, const char* text);
  // An empty value is a mistake of this option, list or argument.
  CLI::Option& option(const char* name, Target to, const char* type, const char* text);
  // May be given more than once.
  void list(const char* name, List to, const char* type, const char* text);
  void option(const char* name, Take take, const char* type, const char* text);
  // Parsed by a parser of the configuration, so that both have the same form.
  template <class To, class Parse>
  void option(const char* name, To& to, Parse parse, const char* type, const char* text) {
    option(name, Take([&to, parse = std::move(parse)](const std::string& given) -> Result<void> {
             auto value = parse(given);
             if (!value) return value.error();
             to = *std::move(value);
             return {};
           }),
           type, text);
  }
  // An argument without a name of its own.
  CLI::Option& operand(const char* name, Target to, const char* text, bool required = true);
  // --config and --data.
  void data(DataFlags& to, const char* text = "Data directory of the server (data)");

  static void one_of(CLI::Option& option, std::vector<std::string> words);

 private:
  CLI::App& command_;
};

}  // namespace hearth::cli
