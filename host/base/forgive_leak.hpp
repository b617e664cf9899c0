#pragma once
// HEARTH_FORGIVE_LEAK(pointer): the object behind it is never freed, on purpose. The leak sanitizer
// does not report it; other builds do nothing.

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define HEARTH_FORGIVE_LEAK(pointer) __lsan_ignore_object(pointer)
#endif
#endif
#ifndef HEARTH_FORGIVE_LEAK
#define HEARTH_FORGIVE_LEAK(pointer) static_cast<void>(pointer)
#endif
