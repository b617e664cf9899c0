// Declares the class of another library: Counter.
#include <hearth/agent.hpp>

class Counter : public hearth::Agent {};

HEARTH_PLUGIN("duplicate", "2.0.0", Counter)
