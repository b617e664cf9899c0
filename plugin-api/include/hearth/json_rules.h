/*
 * hearth/json_rules.h: what the host and the SDK agree on about JSON text, beyond what JSON itself
 * says. Plain C, and no part of the ABI.
 */
#ifndef HEARTH_JSON_RULES_H
#define HEARTH_JSON_RULES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Arrays and objects inside each other, at most. Walking a value is recursive, and a client could
 * otherwise send one that uses up the stack.
 */
#define HEARTH_MAX_JSON_DEPTH 256

/* What takes the place of the four digits of a lone surrogate: U+FFFD, as wherever JavaScript turns
 * its strings into UTF-8. */
#define HEARTH_REPLACEMENT_DIGITS "fffd"

static inline int hearth_is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Of the escape at `text`: 1 if it is \uD800 to \uDBFF, 2 if it is \uDC00 to \uDFFF, else 0. */
static inline int hearth_surrogate_kind(const char* text, size_t size) {
  if (size < 6 || text[0] != '\\' || text[1] != 'u' || (text[2] | 0x20) != 'd') return 0;
  if (!hearth_is_hex_digit(text[3]) || !hearth_is_hex_digit(text[4]) ||
      !hearth_is_hex_digit(text[5]))
    return 0;
  if (text[3] < '8') return 0;
  return (text[3] | 0x20) <= 'b' ? 1 : 2;
}

/*
 * Where, from `from` on, the next \uXXXX escape stands that is half of a surrogate pair without the
 * other half; `size` if there is none. JavaScript writes one when a string was cut in the middle of
 * a character ("\uD83D"), and no UTF-8 text can hold it.
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
