#pragma once
// What clang's -Wthread-safety (an error here) checks about locks. base/mutex.hpp has the mutex.
//
//   bool is_over_ GUARDED_BY(mutex_) = false;       only a thread that holds mutex_ touches it
//   void end_locked() REQUIRES(mutex_);             only a thread that holds mutex_ calls it

#if defined(__clang__)
#define HEARTH_THREAD_ANNOTATION(attribute) __attribute__((attribute))
#else
#define HEARTH_THREAD_ANNOTATION(attribute)
#endif

// NOLINTBEGIN(readability-identifier-naming): their names everywhere
#define CAPABILITY(name) HEARTH_THREAD_ANNOTATION(capability(name))
#define SCOPED_CAPABILITY HEARTH_THREAD_ANNOTATION(scoped_lockable)
#define GUARDED_BY(mutex) HEARTH_THREAD_ANNOTATION(guarded_by(mutex))
#define REQUIRES(...) HEARTH_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) HEARTH_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) HEARTH_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
// NOLINTEND(readability-identifier-naming)
