#include "CSQLiteLater.h"

#include <dlfcn.h>
#include <pthread.h>

// The SQLite functions in use: result, name, parameters, arguments.
#define FUNCTIONS(F)                                                                                                                 \
  F(int, open_v2, (const char *a, sqlite3 **b, int c, const char *d), (a, b, c, d))                                                  \
  F(int, close_v2, (sqlite3 * a), (a))                                                                                               \
  F(int, limit, (sqlite3 * a, int b, int c), (a, b, c))                                                                              \
  F(int, exec, (sqlite3 * a, const char *b, int (*c)(void *, int, char **, char **), void *d, char **e), (a, b, c, d, e))            \
  F(int, set_authorizer,                                                                                                             \
    (sqlite3 * a, int (*b)(void *, int, const char *, const char *, const char *, const char *), void *c), (a, b, c))                \
  F(int, prepare_v2, (sqlite3 * a, const char *b, int c, sqlite3_stmt **d, const char **e), (a, b, c, d, e))                         \
  F(int, finalize, (sqlite3_stmt * a), (a))                                                                                          \
  F(int, step, (sqlite3_stmt * a), (a))                                                                                              \
  F(int, stmt_readonly, (sqlite3_stmt * a), (a))                                                                                     \
  F(int, bind_parameter_count, (sqlite3_stmt * a), (a))                                                                              \
  F(int, bind_int64, (sqlite3_stmt * a, int b, sqlite3_int64 c), (a, b, c))                                                          \
  F(int, bind_double, (sqlite3_stmt * a, int b, double c), (a, b, c))                                                                \
  F(int, bind_text, (sqlite3_stmt * a, int b, const char *c, int d, void (*e)(void *)), (a, b, c, d, e))                             \
  F(int, column_count, (sqlite3_stmt * a), (a))                                                                                      \
  F(int, column_type, (sqlite3_stmt * a, int b), (a, b))                                                                             \
  F(int, column_bytes, (sqlite3_stmt * a, int b), (a, b))                                                                            \
  F(double, column_double, (sqlite3_stmt * a, int b), (a, b))                                                                        \
  F(sqlite3_int64, column_int64, (sqlite3_stmt * a, int b), (a, b))                                                                  \
  F(const void *, column_blob, (sqlite3_stmt * a, int b), (a, b))                                                                    \
  F(const unsigned char *, column_text, (sqlite3_stmt * a, int b), (a, b))                                                           \
  F(const char *, errmsg, (sqlite3 * a), (a))                                                                                        \
  F(const char *, errstr, (int a), (a))

static struct {
#define MEMBER(type, name, parameters, arguments) __typeof__(sqlite3_##name) *name;
  FUNCTIONS(MEMBER)
  __typeof__(sqlite3_progress_handler) *progress_handler;
} sqlite;

static const char *load(void) {
  void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) return "SQLite is not installed; apt install libsqlite3-0";
#define FIND(type, name, parameters, arguments)                                                                                      \
  if (!(sqlite.name = (__typeof__(sqlite.name))dlsym(library, "sqlite3_" #name))) return "SQLite is too old: it lacks sqlite3_" #name "; apt install libsqlite3-0";
  FUNCTIONS(FIND)
  FIND(void, progress_handler, (), ())
  return NULL;
}

const char *csqlite_load(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static int is_loaded;
  pthread_mutex_lock(&lock);
  const char *problem = is_loaded ? NULL : load();
  is_loaded = !problem;
  pthread_mutex_unlock(&lock);
  return problem;
}

// These definitions replace SQLite's in the whole program, so each loads the library itself.
#define FORWARD(type, name, parameters, arguments)                                                                                   \
  type sqlite3_##name parameters {                                                                                                   \
    csqlite_load();                                                                                                                  \
    return sqlite.name arguments;                                                                                                    \
  }
FUNCTIONS(FORWARD)

void sqlite3_progress_handler(sqlite3 *a, int b, int (*c)(void *), void *d) {
  csqlite_load();
  sqlite.progress_handler(a, b, c, d);
}
