// Teaches ThreadSanitizer the lock of Swift's Synchronization.Mutex. Its quick way is compiled into the caller, where the sanitizer
// sees it; what happens when two threads want it at once is in a library that was built without the sanitizer, so that each such
// hand-over looks like a race. Linked into every program of `make sanitize`, these stand before the library's and tell of the
// hand-over. Their names and forms: nm -D libswiftSynchronization.so, of Swift 6.3.
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
