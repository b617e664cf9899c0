#pragma once
// A scenario: the steps that are done to one agent (tests/agents/diary_agent.cpp), and what is seen
// of them. Read from a .json file here; played by a World.
//
//   {"call": method, "args": [...], "as": "x"}   runs it, and its answer is seen
//   {"start": method, "args": [...], "as": "x"}  begins it
//   {"answer": "x"}     the answer of the call "x", or "open"
//   {"shown": true}     the state, as a client sees it that is connected from the beginning
//   {"advance": ms}     time passes
//   {"kill": true}      the process is killed, and started again. Its open calls stay open
//   {"evict": true}     out of memory, without a warning
//   {"upgrade": true}   the library is replaced by its next version
//   "$x.record.id" in args is the value at that place of the answer called x; null: there is none

#include <nlohmann/json.hpp>

#include <map>
#include <stdexcept>
#include <string>

namespace hearth::scenarios {

using Value = nlohmann::json;

class World {
 public:
  World() = default;
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Begins a call; the number is good for answer().
  virtual std::size_t start(const std::string& method, const Value& args) = 0;
  // {"ok": value}, {"error": text}, or "open".
  virtual Value answer(std::size_t call) = 0;
  virtual Value shown() = 0;
  virtual void advance(int ms) = 0;
  virtual void kill() = 0;
  virtual void evict() = 0;
  virtual void upgrade() = 0;
};

// Without what differs between two runs: of ids and moments only their presence counts.
inline Value comparable(const Value& seen) {
  if (seen.is_array()) {
    Value list = Value::array();
    for (const Value& each : seen) list.push_back(comparable(each));
    return list;
  }
  if (!seen.is_object()) return seen;
  Value out = Value::object();
  for (const auto& [key, value] : seen.items()) {
    if (key == "id" || key == "time" || key == "last_run" || key.ends_with("_at"))
      out[key] = !value.is_null();
    else
      out[key] = comparable(value);
  }
  return out;
}

class Run {
 public:
  explicit Run(World& world) : world_(world) {}

  // Everything that was seen, in order.
  Value all(const Value& steps) {
    for (const Value& step : steps) one(step);
    return seen_;
  }

 private:
  void one(const Value& step) {
    if (step.contains("call") || step.contains("start")) {
      const bool waits = step.contains("call");
      const std::string method = step.at(waits ? "call" : "start").get<std::string>();
      const std::size_t call = world_.start(method, resolved(step.value("args", Value::array())));
      const std::string name = step.value("as", method);
      calls_[name] = call;
      if (waits) see(name);
    } else if (step.contains("answer")) {
      see(step.at("answer").get<std::string>());
    } else if (step.contains("shown")) {
      seen_.push_back({{"shown", world_.shown()}});
    } else if (step.contains("advance")) {
      world_.advance(step.at("advance").get<int>());
    } else if (step.contains("kill")) {
      world_.kill();
    } else if (step.contains("evict")) {
      world_.evict();
    } else if (step.contains("upgrade")) {
      world_.upgrade();
    } else {
      throw std::runtime_error("no such step: " + step.dump());
    }
  }

  void see(const std::string& name) {
    const Value answer = world_.answer(calls_.at(name));
    if (answer.is_object() && answer.contains("ok")) answers_[name] = answer.at("ok");
    seen_.push_back({{name, comparable(answer)}});
  }

  Value resolved(const Value& value) {
    if (value.is_array()) {
      Value list = Value::array();
      for (const Value& each : value) list.push_back(resolved(each));
      return list;
    }
    if (!value.is_string() || !value.get_ref<const std::string&>().starts_with("$")) return value;
    const std::string path = value.get<std::string>().substr(1);
    std::size_t dot = path.find('.');
    const auto found = answers_.find(path.substr(0, dot));
    if (found == answers_.end()) return {};
    const Value* at = &found->second;
    while (dot != std::string::npos) {
      const std::size_t next = path.find('.', dot + 1);
      const std::string key =
          path.substr(dot + 1, next == std::string::npos ? next : next - dot - 1);
      at = at->is_array() ? &at->at(std::stoul(key)) : &at->at(key);
      dot = next;
    }
    return *at;
  }

  World& world_;
  std::map<std::string, std::size_t> calls_;
  std::map<std::string, Value> answers_;
  Value seen_ = Value::array();
};

}  // namespace hearth::scenarios
