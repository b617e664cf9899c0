#pragma once
// Actions of administrators that only note what they were asked, and the actions of a server
// without objects and definitions.

#include "api/admin_actions.hpp"
#include "api/definition_actions.hpp"
#include "api/object_actions.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::api::testing {

// Answers at once, with the answers that the test sets; `asked` has the requests.
class FakeActions final : public AdminActions {
 public:
  void plugins(Answer<PluginList> answer) override {
    note("plugins");
    give(answer, list);
  }
  void reload(std::string agent_class, Answer<std::vector<ReloadedFile>> answer) override {
    note("reload " + agent_class);
    give(answer, files);
  }
  void classes(Answer<std::vector<ClassView>> answer) override {
    note("classes");
    give(answer, views);
  }
  void methods(std::string agent_class, Answer<ClassMethodsView> answer) override {
    note("methods " + agent_class);
    give(answer, methods_of_class);
  }
  void agents(AgentPageRequest request, Answer<AgentPage> answer) override {
    note("agents " + request.agent_class + " after=" + request.after +
         " limit=" + std::to_string(request.limit));
    give(answer, page);
  }
  void agent(AgentName name, Answer<AgentView> answer) override {
    note("agent " + name.agent_class + " " + name.name);
    give(answer, view);
  }
  void evict(AgentName name, Answer<std::string> answer) override {
    note("evict " + name.agent_class + " " + name.name);
    give(answer, state);
  }
  void destroy(AgentName name, Answer<std::string> answer) override {
    note("destroy " + name.agent_class + " " + name.name);
    give(answer, state);
  }

  void audit(storage::AuditQuery query, Answer<std::vector<storage::AuditEntry>> answer) override {
    note("audit after=" + std::to_string(query.after) + " limit=" + std::to_string(query.limit) +
         (query.newest ? " newest " : " ") + query.event + " " + query.actor + " " +
         query.agent_class + " " + query.agent + " " + std::to_string(query.since_ms.value_or(-1)) +
         " " + std::to_string(query.until_ms.value_or(-1)));
    give(answer, entries);
  }
  void quarantined(Answer<std::vector<QuarantinedView>> answer) override {
    note("quarantined");
    give(answer, held);
  }
  void release(std::string agent_class, Answer<ReleasedClass> answer) override {
    note("release " + agent_class);
    give(answer, released);
  }

  void operations(OperationQuery query, Answer<OperationPage> answer) override {
    std::string states;
    for (const std::string& each : query.states) states += each + ";";
    note("operations " + query.agent_class + "/" + query.agent + " kind=" + query.kind + " " +
         states + " before=" + std::to_string(query.begun_before_ms.value_or(-1)) +
         " after=" + query.after + " limit=" + std::to_string(query.limit));
    give(answer, ledger);
  }
  void operation(OperationName name, Answer<std::string> answer) override {
    note("operation " + name.agent.agent_class + " " + name.agent.name + " " + name.id);
    give(answer, record);
  }
  void resolve(OperationName name, Resolution how, Answer<std::string> answer) override {
    note("resolve " + name.agent.agent_class + " " + name.agent.name + " " + name.id +
         (how.was_executed ? " executed " : " not executed ") + how.result + " " + how.note);
    give(answer, record);
  }

  std::vector<std::string> asked;
  std::optional<Error> failure;
  PluginList list;
  std::vector<ReloadedFile> files;
  std::vector<ClassView> views;
  ClassMethodsView methods_of_class;
  std::vector<QuarantinedView> held;
  std::vector<storage::AuditEntry> entries;
  ReleasedClass released;
  AgentPage page;
  AgentView view;
  std::string state = "live";
  OperationPage ledger;
  std::string record = R"({"id":"x"})";

 private:
  void note(std::string what) { asked.push_back(std::move(what)); }
  template <class T>
  void give(const Answer<T>& answer, const T& value) {
    if (failure) return answer(*failure);
    answer(value);
  }
};

inline Error not_there() {
  return {Errc::kNotFound, "there is none"};
}

class NoDefinitions final : public DefinitionActions {
 public:
  void list(Answer answer) override { answer(not_there()); }
  void show(std::string, Answer answer) override { answer(not_there()); }
  void set(std::string, std::string, Mode, Answer answer) override { answer(not_there()); }
  void remove(std::string, Answer answer) override { answer(not_there()); }
};

}  // namespace hearth::api::testing
