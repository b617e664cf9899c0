#pragma once
// What /objects/definitions asks of a server. api knows no class files: the server implements it.

#include "base/error.hpp"

#include <functional>
#include <string>

namespace hearth::api {

// Definitions: settings of classes that are given while the server runs. A class has its settings
// from a definition or from a class file of the operator, never from both.
//
// Promises   Each answer is called exactly once, maybe before the member returns. By then the
//            change survives kill -9, and its rollout has begun. After a loss of power a removed
//            definition may be back.
// Failure    kNotFound: there is no such definition. kInvalidArgument: the definition is invalid.
//            kUnsupported: it asks for a process of its own. kConflict: there is a definition, or
//            the class has a class file. kLimitExceeded: there are too many definitions.
//            kUnavailable: too many requests are in progress, or the disk is full. kClosing: the
//            server stops.
// Threads    All members from any thread; answers come on any.
class DefinitionActions {
 public:
  using Answer = std::function<void(Result<std::string>)>;
  enum class Mode { kCreate, kReplace };

  DefinitionActions() = default;
  virtual ~DefinitionActions() = default;
  DefinitionActions(const DefinitionActions&) = delete;
  DefinitionActions& operator=(const DefinitionActions&) = delete;

  // A JSON array of definitions.
  virtual void list(Answer answer) = 0;
  // Each of these answers with a definition as JSON. `agent_class`: the name in the code, or the
  // spelling in URLs.
  virtual void show(std::string agent_class, Answer answer) = 0;
  // `agent_class`: the body must name the same class; empty: the body alone names the class.
  virtual void set(std::string agent_class, std::string body, Mode mode, Answer answer) = 0;
  virtual void remove(std::string agent_class, Answer answer) = 0;
};

}  // namespace hearth::api
