#pragma once
// /objects/definitions: keeps settings for classes that are given while the server runs, and starts
// their rollouts.

#include "api/routes.hpp"
#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "config/config.hpp"
#include "plugins/versions/errands.hpp"
#include "runtime/blocking_pool.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hearth::server {

// For administrators; the key of objects is not enough:
//  GET    /objects/definitions           {"success":true,"data":[definition...]}
//  POST   /objects/definitions           201; body: a definition. 409: the class has a definition
//                                        or a class file
//  GET, PUT, DELETE /objects/definitions/{class}
//
// A definition has the members of a class file, as JSON (config/definitions.hpp). `image` and
// `init_command` get 422 unsupported. A class has its settings from a definition or from a class
// file of the operator, never from both. A definition is a file below
// config::definitions_directory(), for the server's user alone (0600). Changes are recorded in the
// audit log (AdminDefinitionSet, AdminDefinitionRemoved).
//
// Promises   When a change is answered, it survives kill -9, and its rollout has begun. After a
//            loss of power a removed definition may be back. A definition is refused if the class
//            files have a mistake with it, or if its alias names a class that is served. Then the
//            definition before stays, and no start reads the refused one. If such a class comes
//            during the write, the definition before is put back.
// Bounded    kMostDefinitions, and kMaxWaiting requests at a time.
// Threads    A thread of the desk waits for the disk.
// Lifetime   Everything it is given outlives it. stop() before the reloader goes.
class DefinitionDesk {
 public:
  static constexpr std::size_t kMostDefinitions = 500;
  static constexpr std::size_t kMaxWaiting = 16;

  enum class Mode { kCreate, kReplace };
  // Gets a definition or all of them, as JSON.
  using Answer = std::function<void(const Result<std::string>&)>;
  // Reads the class files again for a class, as when an operator asks for it. Answers with the
  // outcome for each file when the rollout has begun.
  using Outcomes = Result<plugins::ReloadOutcomes>;
  using Reloaded = std::function<void(const Outcomes&)>;
  using Reload = std::function<void(const std::string& agent_class, const Reloaded& done)>;
  // The names of classes that are served now, by segment.
  using Served = std::map<std::string, std::string, std::less<>>;

  // `class_files`: the operator's directory. `server`: of the server file. `served` and `reload`
  // may be called on any thread.
  DefinitionDesk(const std::filesystem::path& data, std::filesystem::path class_files,
                 config::ForClasses server, std::function<Served()> served, Reload reload,
                 Logger& logger);

  void stop() { pool_.stop(); }

  // Add them before the rows of other objects: "definitions" is neither a class nor an id.
  void add_routes(std::vector<api::Route>& rows);

  // `agent_class`: the body must name the same class; empty: the body alone names the class.
  void set(std::string agent_class, std::string body, Mode mode, Answer answer);

 private:
  void ask(Answer answer, std::function<void(const Answer&)> work);
  void remove(std::string agent_class, Answer answer);

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
  void rolled_out(const Written& definition, const Outcomes& files, const Answer& answer);
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
