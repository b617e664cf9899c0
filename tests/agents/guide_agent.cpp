// A chat whose answers show what their turn was given, and data parts of each kind. Plugin
// "guide-agent", class Guide.
//
//   data-body       the other fields of the client's request
//   data-progress   the same part twice: 1 before the model is asked, then 2
//   data-note       transient
//   data-options    what the plugin got as options, if the body has "show": "options"

#include <hearth/chat/chat_agent.hpp>

class Guide : public hearth::ChatAgent {
 public:
  static void methods(hearth::Methods<Guide>& m) { chat_methods(m); }

  hearth::Task<void> on_turn(hearth::chat::Turn& turn) override {
    turn.write("body", {{"type", "data-body"}, {"data", turn.body()}});
    turn.write("note", {{"type", "data-note"}, {"data", "begun"}, {"transient", true}});
    if (turn.body().is_object() && turn.body().value("show", "") == "options")
      turn.write("options", {{"type", "data-options"}, {"data", options()}});
    turn.write("begun", {{"type", "data-progress"}, {"id", "p"}, {"data", 1}});
    co_await turn.generate();
    turn.write("done", {{"type", "data-progress"}, {"id", "p"}, {"data", 2}});
  }
};

HEARTH_PLUGIN("guide-agent", "1.0.0", Guide)
