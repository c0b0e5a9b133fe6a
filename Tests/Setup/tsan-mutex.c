// Annotates Swift's Synchronization.Mutex for ThreadSanitizer. Its fast path is inlined in the caller and instrumented; its slow path for
// contended locks is in a library without instrumentation, so that each contended acquisition looks like a race. These functions,
// linked into every program of `make sanitize`, replace those of the library. Their names: nm -D libswiftSynchronization.so (Swift 6.3).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self
#define NAME(mangled) "$s15Synchronization12_MutexHandleV" mangled

SWIFT void lock_slow(uint32_t thread, SELF) __asm__(NAME("9_lockSlowyys6UInt32VF"));
SWIFT bool try_lock_slow(SELF) __asm__(NAME("12_tryLockSlowSbyF"));
SWIFT void unlock_slow(SELF) __asm__(NAME("11_unlockSlowyyF"));

SWIFT void lock_slow(uint32_t thread, SELF) {
  typedef SWIFT void (*Original)(uint32_t, SELF);
  ((Original)dlsym(RTLD_NEXT, NAME("9_lockSlowyys6UInt32VF")))(thread, self);
  __tsan_acquire(self);
}

SWIFT bool try_lock_slow(SELF) {
  typedef SWIFT bool (*Original)(SELF);
  bool is_locked = ((Original)dlsym(RTLD_NEXT, NAME("12_tryLockSlowSbyF")))(self);
  if (is_locked) __tsan_acquire(self);
  return is_locked;
}

SWIFT void unlock_slow(SELF) {
  typedef SWIFT void (*Original)(SELF);
  __tsan_release(self);
  ((Original)dlsym(RTLD_NEXT, NAME("11_unlockSlowyyF")))(self);
}
