// A class whose segment is the path of the definitions. Plugin "definitions", class Definitions.
//
//   count()   how many there are: none

#include <hearth/agent.hpp>

class Definitions : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Definitions>& m) { m.add("count", &Definitions::count); }
  int count() { return 0; }
};

HEARTH_PLUGIN("definitions", "1.0.0", Definitions)
