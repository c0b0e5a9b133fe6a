// The floor: the minimum work of a user-space program that polls ELM327s over TCP. Writes the request and reads up to `>`, without
// parsing, error handling or clients. One thread, one epoll, at most one timer. If REQUEST is a frame of slcan, the peer is a CAN adapter:
// writes the flow control after the first frame of the record, and reads up to its last one.
//
//   floor PORT [CONNECTIONS [HZ [SECONDS [REQUEST [COMMAND...]]]]]
//
// HZ 0 (the default) is back to back. Otherwise one timer on an absolute grid, and the connections take turns in ten
// phases of the period. REQUEST is the battery record with its number of frames by default; each COMMAND is an additional
// set-up command. Prints one line of JSON after SECONDS or at SIGTERM.
#include "bench.h"

enum { PHASES = 10 };

struct Connection {
  int descriptor, busy;
};

static char request[64] = "2201019\r";
static int is_slcan;

static void ask(struct Connection *c) {
  c->busy = 1;
  ssize_t length = strlen(request);
  if (write(c->descriptor, request, length) != length) die("write");
}

// Whether the prompt has been received.
static int take(struct Connection *c) {
  char bytes[2048];
  ssize_t count = read(c->descriptor, bytes, sizeof bytes);
  if (count <= 0) die("read");
  if (is_slcan) {
    static const char control[] = "t7E483000000000000000\r";
    ssize_t length = sizeof control - 1;
    if (!strncmp(bytes + 2, "t7EC810", 7) && write(c->descriptor, control, length) != length) die("write");
    if (count > 21 && !strncmp(bytes + count - 22, "t7EC828", 7)) c->busy = 0;
  } else if (bytes[count - 1] == '>') {
    c->busy = 0;
  }
  return !c->busy;
}

static void tell(struct Connection *c, const char *command) {
  c->busy = 1;
  if (dprintf(c->descriptor, "%s\r", command) < 0) die("write");
  while (!take(c)) {}
}

// The settings of vehicled, so that both get the same reply, and the given commands.
static void set_up(struct Connection *c, const char *port, char **more) {
  static const char *commands[] = {"ATZ", "ATE0", "ATL0", "ATS0", "ATH1"};
  c->descriptor = connect_to(port);
  if (is_slcan) return;
  for (int i = 0; i < 5; i++) tell(c, commands[i]);
  for (; *more; more++) tell(c, *more);
}

int main(int count, char **arguments) {
  if (count < 2) return fprintf(stderr, "floor PORT [CONNECTIONS [HZ [SECONDS [REQUEST [COMMAND...]]]]]\n"), 2;
  int number = count > 2 ? atoi(arguments[2]) : 1;
  double hz = count > 3 ? atof(arguments[3]) : 0, seconds = count > 4 ? atof(arguments[4]) : 1e6;
  char **more = arguments + (count > 6 ? 6 : count);
  if (count > 5) snprintf(request, sizeof request, "%s\r", arguments[5]);
  is_slcan = *request == 't';
  raise_descriptor_limit();
  int poller = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, 0);
  int told = signals((int[]){SIGTERM, SIGINT}, 2);
  struct Connection *connections = calloc(number, sizeof *connections);
  for (int i = 0; i < number; i++) {
    set_up(&connections[i], arguments[1], more);
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
