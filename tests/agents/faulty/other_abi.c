/* A library of a later time: major version 2, in the symbol and in the note. */
#include "bare.h"

BARE_CLASS("OtherAbi")

#define OTHER_MAGIC UINT64_C(0x0200485452414548)

HEARTH_EXPORT const hearth_plugin hearth_plugin_v1 = {
    OTHER_MAGIC, sizeof(hearth_plugin), 2, 0, 0, 1, bare_init, bare_deinit, bare_get_class};

#define MANIFEST "{\"plugin\":\"other-abi\",\"version\":\"1.0.0\",\"classes\":[\"OtherAbi\"]}"

__attribute__((section(".note.hearth"), used, aligned(4))) static const struct {
  hearth_note head;
  char text[(sizeof(MANIFEST) + 3) / 4 * 4];
} note = {{7,
           24 + sizeof(MANIFEST) - 1,
           HEARTH_NOTE_TYPE,
           {'H', 'E', 'A', 'R', 'T', 'H', 0, 0},
           {(uint32_t)(OTHER_MAGIC & 0xffffffffU), (uint32_t)(OTHER_MAGIC >> 32)},
           2,
           0,
           0,
           0,
           (uint32_t)sizeof(hearth_plugin),
           sizeof(MANIFEST) - 1},
          MANIFEST};
