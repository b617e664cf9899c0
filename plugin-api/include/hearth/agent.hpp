#pragma once
// Everything that a plugin needs: derive from hearth::Agent, list the methods, and name the class
// in HEARTH_PLUGIN.
//
//     class Counter : public hearth::Agent {
//      public:
//       hearth::Json initial_state() override { return {{"count", 0}}; }
//       static void methods(hearth::Methods<Counter>& m) {
//         m.add("increment", &Counter::increment);
//       }
//       int increment(std::optional<int> by) {
//         const int count = state().at("count").get<int>() + by.value_or(1);
//         set_state({{"count", count}});
//         return count;
//       }
//     };
//     HEARTH_PLUGIN("counter", "1.0.0", Counter)
//
// plugin-api/README.md explains the rest in ten minutes.

#include <hearth/agent_base.hpp>
#include <hearth/plugin.hpp>
#include <hearth/stream_log.hpp>
