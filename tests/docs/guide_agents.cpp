// The whole classes of agents in the guides, as printed, as a library: `hearth check` accepts it.
#include <hearth/agent.hpp>
#include <hearth/chat/chat_agent.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <classes.inc>
#include <storyteller.inc>
#include <support.inc>
#include <translator.inc>

HEARTH_PLUGIN("guide-agents", "1.0.0", Turnstile, Digest, Intake, Importer, Kitchen, Shop, Gardener,
              Cashier, Inbox, Storyteller, Support, Translator)
