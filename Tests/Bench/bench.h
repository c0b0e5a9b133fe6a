// Shared by the tools: clock, errors, sockets, percentiles.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static inline int64_t clock_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static inline int64_t now(void) { return clock_ns(CLOCK_MONOTONIC); }
static inline int64_t own_cpu(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

static inline void die(const char *what) {
  perror(what);
  exit(1);
}

// Raises the limit of descriptors to the maximum.
static inline void raise_descriptor_limit(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static inline void add_to(int poller, int descriptor, void *owner) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = owner};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event)) die("epoll_ctl");
}

// Signals as a descriptor, so that they are handled between turns.
static inline int signals(const int *numbers, int count) {
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < count; i++) sigaddset(&set, numbers[i]);
  sigprocmask(SIG_BLOCK, &set, NULL);
  return signalfd(-1, &set, SFD_CLOEXEC);
}

static inline struct sockaddr_in loopback(int port) {
  return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static inline void no_delay(int descriptor) {
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

// Connects to a port on this machine, or to a Unix socket.
static inline int connect_to(const char *place) {
  int is_path = *place == '/', descriptor = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un path = {.sun_family = AF_UNIX};
  struct sockaddr_in port = loopback(atoi(place));
  snprintf(path.sun_path, sizeof path.sun_path, "%s", place);
  if (connect(descriptor, is_path ? (void *)&path : (void *)&port, is_path ? sizeof path : sizeof port)) die(place);
  if (!is_path) no_delay(descriptor);
  return descriptor;
}

static inline int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Prints "NAME_p50":…, "NAME_p99":…, "NAME_max":… of the values, which it sorts.
static inline void print_percentiles(const char *name, double *values, size_t count) {
  qsort(values, count, sizeof *values, by_size);
  printf("\"%s_p50\":%.1f,\"%s_p99\":%.1f,\"%s_max\":%.1f,", name, count ? values[count / 2] : 0.0, name,
         count ? values[(size_t)((count - 1) * 0.99)] : 0.0, name, count ? values[count - 1] : 0.0);
}
