#pragma once
// The tools of a turn, and the calls of them that the model has asked for in the answer.

#include <hearth/chat/running_turn.hpp>
#include <hearth/chat/tool.hpp>
#include <hearth/json.hpp>
#include <hearth/task.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace hearth::chat {

struct Chat;

// The tools that the client of this turn has.
[[nodiscard]] std::vector<ToolSpec> client_tools(const TurnRecord& turn);

// Whether a client has to answer a call of this message.
[[nodiscard]] bool awaits_client(const Json& message, const std::vector<ToolSpec>& client_tools);

// Each result is written into the answer in the commit that settles its operation, so that a call
// whose part has a result does not run again.
class ToolCalls {
 public:
  ToolCalls(Chat& chat, RunningTurn& running) : chat_(chat), running_(running) {}
  ToolCalls(const ToolCalls&) = delete;
  ToolCalls& operator=(const ToolCalls&) = delete;

  void add(Tool tool);
  // What the model may call, with the tools of the client.
  [[nodiscard]] std::vector<ToolSpec> specs() const;
  [[nodiscard]] bool awaits_client() const;
  // Runs, side by side, what the model has asked for and what a user has approved, and asks for
  // approvals. False: nothing was to be run.
  [[nodiscard]] Task<bool> run();

 private:
  [[nodiscard]] const Tool* find(std::string_view name) const;
  [[nodiscard]] Task<void> run_call(std::string call, const Tool& tool, Json input);
  [[nodiscard]] Task<Json> call_output(std::string call, const Tool& tool, Json input);
  void ask_approval(const std::string& call);

  Chat& chat_;
  RunningTurn& running_;
  std::vector<Tool> tools_;
};

}  // namespace hearth::chat
