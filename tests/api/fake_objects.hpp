#pragma once
// Objects that only note what they were asked.

#include "api/object_actions.hpp"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hearth::api::testing {

// Answers at once. Asked on any loop.
class FakeObjects final : public ObjectActions {
 public:
  void list(ObjectPageRequest /*request*/, Answer<ObjectPage> answer) override {
    answer(ObjectPage{});
  }
  void show(ObjectName name, Answer<ObjectView> answer) override { view("show", name, answer); }
  void find(std::string uuid, Answer<ObjectView> answer) override {
    view("find", {uuid, uuid}, answer);
  }
  void create(ObjectName name, std::string /*patch*/, std::string /*actor*/,
              Answer<ObjectView> answer) override {
    view("create", name, answer);
  }
  void remove(ObjectName name, std::string /*actor*/, Answer<ObjectView> answer) override {
    view("remove", name, answer);
  }
  void hibernate(ObjectName name, std::string /*actor*/, Answer<ObjectView> answer) override {
    view("hibernate", name, answer);
  }
  void checkpoint(ObjectName name, std::string /*actor*/, Answer<ObjectView> answer) override {
    view("checkpoint", name, answer);
  }
  void storage(ObjectName /*name*/, std::string /*after*/, std::size_t /*limit*/,
               Answer<std::string> answer) override {
    answer(std::string(R"({"storage":{},"next":null})"));
  }
  void patch_storage(ObjectName /*name*/, std::string /*patch*/, std::string /*actor*/,
                     Answer<std::string> answer) override {
    answer(std::string());
  }
  void set_alarm(ObjectAddress object, ObjectAlarm alarm, Answer<std::string> answer) override {
    note("set " + alarm.method, object.key);
    answer(std::string(R"({"fire_at":1})"));
  }
  void alarms(ObjectAddress object, AlarmPageRequest /*request*/,
              Answer<std::string> answer) override {
    note("alarms", object.key);
    answer(std::string(R"({"alarms":[],"next":null})"));
  }
  void cancel_alarm(ObjectAddress object, std::string id, std::string /*actor*/,
                    Answer<std::string> answer) override {
    note("cancel " + id, object.key);
    answer(std::string());
  }

  // What was asked since the last call.
  std::vector<std::string> take_asked() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }

 private:
  void note(const std::string& what, const storage::AgentKey& key) {
    const std::lock_guard lock(mutex_);
    asked_.push_back(what + ' ' + key.agent_class + ' ' + key.name);
  }
  void view(const std::string& what, const ObjectName& name, const Answer<ObjectView>& answer) {
    note(what, {name.agent_class, name.name});
    answer(ObjectView{});
  }

  std::mutex mutex_;
  std::vector<std::string> asked_;
};

}  // namespace hearth::api::testing
