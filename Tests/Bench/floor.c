// The floor: the least that a program in user space can do to poll ELM327s over TCP. It writes the request and reads to
// `>`; it looks at nothing, recovers from nothing, serves nobody. One thread, one epoll, at most one timer.
//
//   floor PORT [CONNECTIONS [HZ [SECONDS]]]
//
// HZ 0 (the default) is back to back. Otherwise one timer on an absolute grid, and the connections take turns in ten
// phases of the period. Prints one line of JSON after SECONDS or at SIGTERM.
#include "bench.h"

enum { PHASES = 10 };

struct Connection {
  int descriptor, busy;
};

static const char request[] = "2201019\r";

static void ask(struct Connection *c) {
  c->busy = 1;
  if (write(c->descriptor, request, sizeof request - 1) != sizeof request - 1) die("write");
}

// Whether the prompt has come.
static int take(struct Connection *c) {
  char bytes[2048];
  ssize_t count = read(c->descriptor, bytes, sizeof bytes);
  if (count <= 0) die("read");
  if (bytes[count - 1] == '>') c->busy = 0;
  return !c->busy;
}

// The settings that vehicled polls with, so that both read the same reply.
static void set_up(struct Connection *c, const char *port) {
  static const char *commands[] = {"ATZ\r", "ATE0\r", "ATL0\r", "ATS0\r", "ATH1\r"};
  c->descriptor = connect_to(port);
  for (int i = 0; i < 5; i++) {
    c->busy = 1;
    if (write(c->descriptor, commands[i], strlen(commands[i])) < 0) die("write");
    while (!take(c)) {}
  }
}

int main(int count, char **arguments) {
  if (count < 2) return fprintf(stderr, "floor PORT [CONNECTIONS [HZ [SECONDS]]]\n"), 2;
  int number = count > 2 ? atoi(arguments[2]) : 1;
  double hz = count > 3 ? atof(arguments[3]) : 0, seconds = count > 4 ? atof(arguments[4]) : 1e6;
  raise_descriptor_limit();
  int poller = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, 0);
  int told = signals((int[]){SIGTERM, SIGINT}, 2);
  struct Connection *connections = calloc(number, sizeof *connections);
  for (int i = 0; i < number; i++) {
    set_up(&connections[i], arguments[1]);
    add_to(poller, connections[i].descriptor, &connections[i]);
  }
  add_to(poller, told, &told);

  int phases = number < PHASES ? number : PHASES;
  int64_t begun = now(), cpu = own_cpu(), step = hz > 0 ? 1e9 / hz / phases : 0;
  if (hz > 0) {
    struct timespec first = {begun / 1000000000 + 1, 0}, every = {step / 1000000000, step % 1000000000};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &(struct itimerspec){every, first}, NULL);
    add_to(poller, timer, &timer);
  } else {
    for (int i = 0; i < number; i++) ask(&connections[i]);
  }
  uint64_t polls = 0, missed = 0, tick = 0;
  while (now() - begun < seconds * 1e9) {
    struct epoll_event events[256];
    int ready = epoll_wait(poller, events, 256, seconds < 1e6 ? 100 : -1);
    for (int i = 0; i < ready; i++) {
      void *owner = events[i].data.ptr;
      if (owner == &told) {
        seconds = 0;
      } else if (owner == &timer) {
        uint64_t ticks;
        if (read(timer, &ticks, sizeof ticks) != sizeof ticks) continue;
        for (; ticks; ticks--, tick++)
          for (int j = tick % phases; j < number; j += phases)
            if (connections[j].busy) missed++;
            else ask(&connections[j]);
      } else if (take(owner)) {
        polls++;
        if (hz <= 0) ask(owner);
      }
    }
  }
  double elapsed = (now() - begun) / 1e9;
  printf("{\"polls\":%lu,\"rate\":%.1f,\"missed\":%lu,\"cpu_per_poll_us\":%.3f}\n", polls, polls / elapsed, missed,
         polls ? (own_cpu() - cpu) / 1e3 / polls : 0.0);
  return 0;
}
