// START is completed with an error.
#include <hearth/agent.hpp>

#include <stdexcept>

class ThrowsInStart : public hearth::Agent {
 public:
  hearth::Task<void> on_start() override { throw std::runtime_error("no start today"); }
};

HEARTH_PLUGIN("throws-in-start", "1.0.0", ThrowsInStart)
