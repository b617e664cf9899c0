#pragma once
// HEARTH_FORGIVE_LEAK(pointer): what it points to is kept for ever on purpose. The leak sanitizer
// does not complain; elsewhere nothing happens.

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define HEARTH_FORGIVE_LEAK(pointer) __lsan_ignore_object(pointer)
#endif
#endif
#ifndef HEARTH_FORGIVE_LEAK
#define HEARTH_FORGIVE_LEAK(pointer) static_cast<void>(pointer)
#endif
