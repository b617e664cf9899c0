/*
 * hearth/json_rules.h: rules for JSON text that the host and the SDK share, beyond JSON itself.
 * Plain C, and not part of the ABI.
 */
#ifndef HEARTH_JSON_RULES_H
#define HEARTH_JSON_RULES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Most levels of arrays and objects. Walking a value is recursive, so a deeper value of a client
 * could use up the stack.
 */
#define HEARTH_MAX_JSON_DEPTH 256

/* Replaces the four digits of a lone surrogate: U+FFFD, as JavaScript does when it turns a string
 * into UTF-8. */
#define HEARTH_REPLACEMENT_DIGITS "fffd"

static inline int hearth_is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* The kind of the escape at `text`: 1 for \uD800 to \uDBFF, 2 for \uDC00 to \uDFFF, else 0. */
static inline int hearth_surrogate_kind(const char* text, size_t size) {
  if (size < 6 || text[0] != '\\' || text[1] != 'u' || (text[2] | 0x20) != 'd') return 0;
  if (!hearth_is_hex_digit(text[3]) || !hearth_is_hex_digit(text[4]) ||
      !hearth_is_hex_digit(text[5]))
    return 0;
  if (text[3] < '8') return 0;
  return (text[3] | 0x20) <= 'b' ? 1 : 2;
}

/*
 * The place of the next lone surrogate, from `from` on: an escape \uXXXX that is half of a
 * surrogate pair without its other half. `size` if there is none. JavaScript writes one when a
 * string was cut in the middle of a character ("\uD83D"), and UTF-8 text cannot hold it.
 */
static inline size_t hearth_lone_surrogate(const char* text, size_t size, size_t from) {
  size_t at = from;
  while (at + 1 < size) {
    if (text[at] != '\\') {
      at += 1;
    } else if (text[at + 1] != 'u') {
      at += 2;
    } else {
      const int kind = hearth_surrogate_kind(text + at, size - at);
      if (kind == 0) {
        at += 2;
      } else if (kind == 1 && size - at > 6 &&
                 hearth_surrogate_kind(text + at + 6, size - at - 6) == 2) {
        at += 12;
      } else {
        return at;
      }
    }
  }
  return size;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_JSON_RULES_H */
