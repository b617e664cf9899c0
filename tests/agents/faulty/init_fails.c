/* init() answers with an error. */
#include "bare.h"

BARE_CLASS("InitFails")

static hearth_status fail(const hearth_host* host, hearth_bytes config) {
  (void)host, (void)config;
  return HEARTH_E_PLUGIN;
}

HEARTH_EXPORT const hearth_plugin hearth_plugin_v1 = {
    HEARTH_MAGIC, sizeof(hearth_plugin), HEARTH_ABI_MAJOR, HEARTH_ABI_MINOR, 0, 1,
    fail,         bare_deinit,           bare_get_class};

HEARTH_PLUGIN_NOTE("{\"plugin\":\"init-fails\",\"version\":\"1.0.0\",\"classes\":[\"InitFails\"]}");
