// create fails: the constructor throws.
#include <hearth/agent.hpp>

#include <stdexcept>

class ThrowsInCreate : public hearth::Agent {
 public:
  ThrowsInCreate() { throw std::runtime_error("no instance today"); }
};

HEARTH_PLUGIN("throws-in-create", "1.0.0", ThrowsInCreate)
