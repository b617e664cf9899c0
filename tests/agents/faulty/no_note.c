/* A good symbol, but no ELF note. */
#include "bare.h"

BARE_CLASS("NoNote")

HEARTH_EXPORT const hearth_plugin hearth_plugin_v1 = {
    HEARTH_MAGIC, sizeof(hearth_plugin), HEARTH_ABI_MAJOR, HEARTH_ABI_MINOR, 0, 1,
    bare_init,    bare_deinit,           bare_get_class};
