#include "CSQLiteDynamic.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

const char *csqlite_load(struct csqlite *functions) {
  void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
  // An installed library cannot be loaded if it needs a newer C library than that with which the program was started.
  if (!library && !strstr(dlerror(), "libsqlite3.so.0: cannot open"))
    return "SQLite cannot be loaded; if the system was upgraded, start the program again";
  if (!library) return "SQLite is not installed; apt install libsqlite3-0";
#define FIND(name)                                                                                                                   \
  if (!(functions->name = (__typeof__(functions->name))dlsym(library, "sqlite3_" #name)))                                            \
    return "SQLite is too old: it lacks sqlite3_" #name "; apt install libsqlite3-0";
  CSQLITE_FUNCTIONS(FIND)
  return NULL;
}
