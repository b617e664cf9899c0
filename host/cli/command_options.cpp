#include "cli/command_options.hpp"

#include <CLI/CLI.hpp>

namespace hearth::cli {
namespace {

// Else a script's variable that is empty would stand for what an absent option means: all.
std::string not_empty(const std::string& text) {
  return text.empty() ? "is empty" : "";
}

}  // namespace

CommandOptions::CommandOptions(CLI::App& parent, const char* name, const char* purpose,
                               const char* notes)
    : command_(*parent.add_subcommand(name, purpose)) {
  if (notes != nullptr) command_.footer(notes + 1);
}

void CommandOptions::chosen(std::function<void()> done) {
  command_.callback(std::move(done));
}

CommandOptions CommandOptions::part(const char* name, const char* purpose, const char* notes) {
  command_.require_subcommand(1);
  return {command_, name, purpose, notes};
}

CLI::Option& CommandOptions::flag(const char* name, bool& to, const char* text) {
  return *command_.add_flag(name, to, text);
}

CLI::Option& CommandOptions::option(const char* name, Target to, const char* type,
                                    const char* text) {
  CLI::Option* const added =
      std::visit([&](auto* target) { return command_.add_option(name, *target, text); }, to);
  return *added->check(not_empty)->type_name(type);
}

void CommandOptions::list(const char* name, List to, const char* type, const char* text) {
  CLI::Option* const added =
      std::visit([&](auto* target) { return command_.add_option(name, *target, text); }, to);
  added->check(not_empty)->type_name(type)->allow_extra_args(false);
}

void CommandOptions::option(const char* name, Take take, const char* type, const char* text) {
  const auto checked = [name, take = std::move(take)](const std::string& given) {
    if (const auto taken = take(given); !taken)
      throw CLI::ValidationError(name, taken.error().message);
  };
  command_.add_option_function<std::string>(name, checked, text)->type_name(type);
}

CLI::Option& CommandOptions::operand(const char* name, Target to, const char* text, bool required) {
  return *option(name, to, "", text).required(required);
}

void CommandOptions::data(DataFlags& to, const char* text) {
  option("--config", &to.config, "FILE", "Server file, which says where data is kept");
  option("--data", &to.data, "DIR", text);
}

void CommandOptions::one_of(CLI::Option& option, std::vector<std::string> words) {
  option.check(CLI::IsMember(std::move(words)));
}

}  // namespace hearth::cli
