/* The note promises a class that the symbol does not have. */
#include "bare.h"

BARE_CLASS("ReallyThis")

HEARTH_EXPORT const hearth_plugin hearth_plugin_v1 = {
    HEARTH_MAGIC, sizeof(hearth_plugin), HEARTH_ABI_MAJOR, HEARTH_ABI_MINOR, 0, 1,
    bare_init,    bare_deinit,           bare_get_class};

HEARTH_PLUGIN_NOTE(
    "{\"plugin\":\"note-lies\",\"version\":\"1.0.0\",\"classes\":[\"SomethingElse\"]}");
