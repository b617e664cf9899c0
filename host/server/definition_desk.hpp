#pragma once
// Keeps the definitions of classes, and has them rolled out.

#include "api/admin_actions.hpp"
#include "api/definition_actions.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
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
// What changes one is recorded (AdminDefinitionSet, AdminDefinitionRemoved).
//
// Promises   As api::DefinitionActions. A definition with which the class files together have a
//            mistake is refused before it is a file that a start reads, and what was there before
//            stays. So it is with one whose alias leads to a class that is served already; if such
//            a class comes while it is written, what was there before is put back.
// Bounded    kMostDefinitions, and kMaxWaiting requests at a time.
// Threads    As api::DefinitionActions; the disk is waited for on a thread of its own.
// Lifetime   Everything it is given outlives it. stop() before the reloader goes.
class DefinitionDesk final : public api::DefinitionActions {
 public:
  static constexpr std::size_t kMostDefinitions = 500;
  static constexpr std::size_t kMaxWaiting = 16;

  // Reads the class files again for a class, as a person asks for it, and answers when the rollout
  // has begun: with what came of each file.
  using Reloaded = std::function<void(const Result<std::vector<api::ReloadedFile>>&)>;
  using Reload = std::function<void(std::string agent_class, Reloaded done)>;
  // The names of classes that are served now, by segment.
  using Served = std::map<std::string, std::string, std::less<>>;

  // `class_files`: the operator's directory. `served` and `reload` may be called on any thread.
  DefinitionDesk(const std::filesystem::path& data, std::filesystem::path class_files,
                 std::function<Served()> served, Reload reload, Logger& logger);

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
    std::optional<std::string> before;  // what the file held
  };
  [[nodiscard]] Result<Written> write(const std::string& agent_class, const std::string& body,
                                      Mode mode);
  [[nodiscard]] Result<void> place(const std::string& agent_class, Mode mode) const;
  // Whether the class files are right together with it.
  [[nodiscard]] Result<void> check(const std::filesystem::path& file,
                                   const std::string& text) const;

  // ---- on any thread ----
  void rolled_out(const Written& definition, const Result<std::vector<api::ReloadedFile>>& files,
                  const Answer& answer);
  // Unless something else was written meanwhile.
  void restore(const Written& definition);

  const std::filesystem::path directory_;
  const std::filesystem::path class_files_;
  const std::function<Served()> served_;
  const Reload reload_;
  Logger& logger_;
  Mutex files_;                 // one writes a file of the directory at a time
  runtime::BlockingPool pool_;  // last: its jobs use the fields above
};

}  // namespace hearth::server
