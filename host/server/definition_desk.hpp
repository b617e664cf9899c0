#pragma once
// Keeps the definitions of classes, and starts their rollouts.

#include "api/admin_actions.hpp"
#include "api/definition_actions.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "config/config.hpp"
#include "runtime/blocking_pool.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hearth::server {

// A definition is a file below config::definitions_directory(), for the server's user alone (0600).
// Changes are recorded in the audit log (AdminDefinitionSet, AdminDefinitionRemoved).
//
// Promises   As api::DefinitionActions. A definition is refused if the class files have a mistake
//            with it, or if its alias names a class that is served. Then the definition before
//            stays, and no start reads the refused one. If such a class comes during the write, the
//            definition before is put back.
// Bounded    kMostDefinitions, and kMaxWaiting requests at a time.
// Threads    As api::DefinitionActions. A thread of the desk waits for the disk.
// Lifetime   Everything it is given outlives it. stop() before the reloader goes.
class DefinitionDesk final : public api::DefinitionActions {
 public:
  static constexpr std::size_t kMostDefinitions = 500;
  static constexpr std::size_t kMaxWaiting = 16;

  // Reads the class files again for a class, as when an operator asks for it. Answers with the
  // outcome for each file when the rollout has begun.
  using Reloaded = std::function<void(const Result<std::vector<api::ReloadedFile>>&)>;
  using Reload = std::function<void(std::string agent_class, Reloaded done)>;
  // The names of classes that are served now, by segment.
  using Served = std::map<std::string, std::string, std::less<>>;

  // `class_files`: the operator's directory. `server`: of the server file. `served` and `reload`
  // may be called on any thread.
  DefinitionDesk(const std::filesystem::path& data, std::filesystem::path class_files,
                 config::ForClasses server, std::function<Served()> served, Reload reload,
                 Logger& logger);

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
  // A definition that was written.
  struct Written {
    std::string agent_class;
    std::filesystem::path file;
    std::string text;
    std::optional<std::string> before;  // the text before; absent: there was no file
  };
  [[nodiscard]] Result<Written> write(const std::string& agent_class, const std::string& body,
                                      Mode mode);
  [[nodiscard]] Result<void> place(const std::string& agent_class, Mode mode) const;
  // Whether the class files have no mistake together with it.
  [[nodiscard]] Result<void> check(const std::filesystem::path& file,
                                   const std::string& text) const;

  // ---- on any thread ----
  void rolled_out(const Written& definition, const Result<std::vector<api::ReloadedFile>>& files,
                  const Answer& answer);
  // Puts the definition before back, unless another one was written meanwhile.
  void restore(const Written& definition);

  const std::filesystem::path directory_;
  const std::filesystem::path class_files_;
  const config::ForClasses server_;
  const std::function<Served()> served_;
  const Reload reload_;
  Logger& logger_;
  Mutex files_;                 // held while a file of the directory is written
  runtime::BlockingPool pool_;  // last: its jobs use the fields above
};

}  // namespace hearth::server
