// Load for a control socket: many watchers of one stream, or requests back to back. Independent of the protocol: the options give the
// first bytes, the request, the delimiter of messages, and a text in the messages that count.
//
//   fan watch|ask PLACE [-n CONNECTIONS] [-s SECONDS] [-h HELLO] [-r REQUEST] [-m MARK] [-d DELIMITER] [-x STALLED]
//
// PLACE is a path or a port on this machine; DELIMITER is `nul` (the default, also appended to HELLO and REQUEST) or `line`. The first
// STALLED watchers send HELLO and never read. Prints `begin` when counting begins, then one line of JSON: messages; for watch the
// spread (the time from the first to the last watcher that receives the same message, compared from MARK on) and the longest gap; for
// ask the time from request to reply. All times in µs.
#include "bench.h"

struct Connection {
  int descriptor;
  size_t length;
  char *buffer;
  unsigned messages;
  int64_t last;  // time of the last message or request
};
struct Arrival {
  uint64_t content;
  int64_t time;
};

enum { BUFFER = 1 << 18, MOST = 1 << 22 };

static const char *mark = "", *request = "";
static char delimiter = 0;
static int is_watch, counting;
static size_t messages;
static struct Arrival *arrivals;
static double *waits;

static void say(struct Connection *c, const char *text) {
  size_t length = strlen(text) + 1;
  char copy[4096];
  if (length > sizeof copy) die("too long");
  memcpy(copy, text, length);
  copy[length - 1] = delimiter;
  c->last = now();
  if (write(c->descriptor, copy, length) != (ssize_t)length) die("write");
}

static uint64_t hash(const char *bytes, const char *end) {
  uint64_t value = 14695981039346656037u;
  for (; bytes < end; bytes++) value = (value ^ (unsigned char)*bytes) * 1099511628211u;
  return value;
}

static void take_message(struct Connection *c, char *start, char *end, int64_t time) {
  char *found = *mark ? memmem(start, end - start, mark, strlen(mark)) : start;
  if (!found) return;
  if (counting && messages < MOST) {
    waits[messages] = (time - c->last) / 1e3;
    arrivals[messages++] = (struct Arrival){is_watch ? hash(found, end) : 0, time};
    c->messages++;
  }
  c->last = time;
  if (!is_watch) say(c, request);
}

static void take(struct Connection *c) {
  ssize_t count = read(c->descriptor, c->buffer + c->length, BUFFER - c->length);
  if (count <= 0) { fprintf(stderr, "fan: connection closed by peer\n"); exit(1); }
  int64_t time = now();
  char *start = c->buffer, *end = start + c->length + count, *stop;
  for (; (stop = memchr(start, delimiter, end - start)); start = stop + 1) take_message(c, start, stop, time);
  c->length = end - start;
  if (c->length == BUFFER) { fprintf(stderr, "fan: message without delimiter\n"); exit(1); }
  memmove(c->buffer, start, c->length);
}

static int by_content(const void *a, const void *b) {
  const struct Arrival *x = a, *y = b;
  return x->content != y->content ? (x->content > y->content) - (x->content < y->content) : (x->time > y->time) - (x->time < y->time);
}

// The spread of each message that all watchers received.
static void print_spread(size_t readers) {
  size_t count = 0;
  double *spread = malloc((messages + 1) * sizeof *spread);
  qsort(arrivals, messages, sizeof *arrivals, by_content);
  for (size_t i = 0, j; i < messages; i = j) {
    for (j = i; j < messages && arrivals[j].content == arrivals[i].content; j++) {}
    if (j - i == readers) spread[count++] = (arrivals[j - 1].time - arrivals[i].time) / 1e3;
  }
  print_percentiles("spread", spread, count);
}

int main(int count, char **arguments) {
  int number = 1, stalled = 0, option;
  double seconds = 5;
  const char *hello = "";
  if (count < 3) return fprintf(stderr, "fan watch|ask PLACE [options]\n"), 2;
  const char *place = arguments[2];
  is_watch = !strcmp(arguments[1], "watch");
  optind = 3;
  while ((option = getopt(count, arguments, "n:s:h:r:m:d:x:")) != -1) switch (option) {
    case 'n': number = atoi(optarg); break;
    case 's': seconds = atof(optarg); break;
    case 'h': hello = optarg; break;
    case 'r': request = optarg; break;
    case 'm': mark = optarg; break;
    case 'd': delimiter = !strcmp(optarg, "line") ? '\n' : 0; break;
    case 'x': stalled = atoi(optarg); break;
    default: return 2;
  }
  raise_descriptor_limit();
  arrivals = malloc(MOST * sizeof *arrivals);
  waits = malloc(MOST * sizeof *waits);
  int poller = epoll_create1(EPOLL_CLOEXEC);
  struct Connection *connections = calloc(number, sizeof *connections);
  for (int i = 0; i < number; i++) {
    connections[i] = (struct Connection){.descriptor = connect_to(place), .buffer = malloc(BUFFER)};
    if (i >= stalled) add_to(poller, connections[i].descriptor, &connections[i]);
    if (*hello) say(&connections[i], hello);
    if (!is_watch) say(&connections[i], request);
  }
  // Long enough for the snapshots, and for the buffers of stalled watchers to fill.
  int64_t begin = now() + (stalled ? 3000000000 : 1000000000), end = begin + seconds * 1e9;
  while (now() < end) {
    struct epoll_event events[256];
    int64_t left = ((counting ? end : begin) - now()) / 1000000 + 1;
    int ready = epoll_wait(poller, events, 256, left > 0 ? (int)left : 0);
    for (int i = 0; i < ready; i++) take(events[i].data.ptr);
    if (!counting && now() >= begin) {
      counting = 1;
      printf("begin\n");
      fflush(stdout);
    }
  }
  unsigned least = messages, most = 0;
  for (int i = stalled; i < number; i++) {
    if (connections[i].messages < least) least = connections[i].messages;
    if (connections[i].messages > most) most = connections[i].messages;
  }
  double elapsed = (now() - begin) / 1e9;
  printf("{\"messages\":%zu,\"rate\":%.1f,\"least\":%u,\"most\":%u,", messages, messages / elapsed, least, most);
  if (is_watch) print_spread(number - stalled);
  print_percentiles("wait", waits, messages);
  printf("\"seconds\":%.3f}\n", elapsed);
  return 0;
}
