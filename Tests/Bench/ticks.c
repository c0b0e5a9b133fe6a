// A bare timer: the wake-up latency of a program that does nothing else, as a baseline for lateness.
//
//   ticks HZ      prints one line of JSON at SIGTERM
#include "bench.h"

enum { TIMES = 1 << 16 };

int main(int count, char **arguments) {
  double hz = count > 1 ? atof(arguments[1]) : 20;
  int64_t step = 1e9 / hz, first = now() / step * step + step;
  int poller = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, 0);
  int told = signals((int[]){SIGTERM, SIGINT}, 2);
  struct timespec begin = {first / 1000000000, first % 1000000000}, every = {step / 1000000000, step % 1000000000};
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &(struct itimerspec){every, begin}, NULL);
  add_to(poller, timer, &timer);
  add_to(poller, told, &told);
  static double late[TIMES];
  size_t known = 0;
  for (uint64_t missed = 0;;) {
    struct epoll_event event;
    if (epoll_wait(poller, &event, 1, -1) != 1) continue;
    if (event.data.ptr == &told) {
      putchar('{');
      print_percentiles("late", late, known);
      return printf("\"ticks\":%zu,\"missed\":%lu}\n", known, missed), 0;
    }
    uint64_t ticks;
    if (read(timer, &ticks, sizeof ticks) != sizeof ticks) continue;
    missed += ticks - 1;
    if (known < TIMES) late[known++] = (now() - first) % step / 1e3;
  }
}
