#pragma once
// Keeps the definitions of classes, and has them rolled out.

#include "api/definition_actions.hpp"
#include "base/logger.hpp"
#include "runtime/blocking_pool.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

namespace hearth::server {

// A definition is a file below config::definitions_directory(), for the server's user alone (0600).
// What changes one is recorded (AdminDefinitionSet, AdminDefinitionRemoved).
//
// Promises   As api::DefinitionActions. A definition with which the class files together have a
//            mistake is refused, and what was there before stays.
// Bounded    kMostDefinitions, and kMaxWaiting requests at a time.
// Threads    As api::DefinitionActions; the disk is waited for on a thread of its own.
// Lifetime   Everything it is given outlives it. stop() before the reloader goes.
class DefinitionDesk final : public api::DefinitionActions {
 public:
  static constexpr std::size_t kMostDefinitions = 500;
  static constexpr std::size_t kMaxWaiting = 16;

  // Reads the class files again for a class, as a person asks for it, and answers when the rollout
  // has begun.
  using Reload = std::function<void(std::string agent_class, std::function<void()> done)>;

  // `class_files`: the operator's directory.
  DefinitionDesk(const std::filesystem::path& data, std::filesystem::path class_files,
                 Reload reload, Logger& logger);

  void stop() { pool_.stop(); }

  void list(Answer answer) override;
  void show(std::string agent_class, Answer answer) override;
  void set(std::string agent_class, std::string body, Mode mode, Answer answer) override;
  void remove(std::string agent_class, Answer answer) override;

 private:
  void ask(Answer answer, std::function<void(const Answer&)> work);

  // ---- on the pool's thread ----
  [[nodiscard]] std::filesystem::path file_of(const std::string& agent_class) const;
  [[nodiscard]] Result<std::string> kept(const std::string& agent_class) const;
  [[nodiscard]] Result<std::string> all() const;
  // Gives the definition, which is written.
  [[nodiscard]] Result<std::string> write(const std::string& agent_class, const std::string& body,
                                          Mode mode, std::string& named);
  [[nodiscard]] Result<void> place(const std::string& agent_class, Mode mode) const;
  void roll_out(std::string_view event, const std::string& agent_class, std::string shown,
                const Answer& answer);

  const std::filesystem::path directory_;
  const std::filesystem::path class_files_;
  const Reload reload_;
  Logger& logger_;
  runtime::BlockingPool pool_;  // last: its jobs use the fields above
};

}  // namespace hearth::server
