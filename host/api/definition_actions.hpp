#pragma once
// What /objects/definitions asks of a server. api knows no class file: the server implements it.

#include "base/error.hpp"

#include <functional>
#include <string>

namespace hearth::api {

// Settings of classes that are given while the server runs. A class has them from a definition or
// from a class file of the operator, never from both.
//
// Promises   Each answer is called exactly once, maybe before the member returns. By then the
//            change survives kill -9, and its rollout has begun. After a loss of power a definition
//            that was removed may be there again.
// Failure    kNotFound: there is no such definition. kInvalidArgument: it is no right one.
//            kUnsupported: it asks for a process of its own. kConflict: there is a definition, or
//            the class has a class file. kLimitExceeded: there are too many. kUnavailable: too
//            much is asked at once, or the disk is full. kClosing: the server stops.
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
  // Each of these gives a definition as JSON. `agent_class`: as it is, or as URLs spell it.
  virtual void show(std::string agent_class, Answer answer) = 0;
  // `agent_class`: the body must say the same one; empty: it says which.
  virtual void set(std::string agent_class, std::string body, Mode mode, Answer answer) = 0;
  virtual void remove(std::string agent_class, Answer answer) = 0;
};

}  // namespace hearth::api
