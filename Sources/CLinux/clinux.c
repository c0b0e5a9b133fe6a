#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <linux/serial.h>
#include <pthread.h>
#include <string.h>

// The kernel's own termios2 carries any baud rate; its header cannot be included beside <termios.h>.
struct ktermios2 {
  tcflag_t iflag, oflag, cflag, lflag;
  cc_t line, cc[19];
  speed_t ispeed, ospeed;
};
#define KTCGETS2 _IOR('T', 0x2A, struct ktermios2)
#define KTCSETS2 _IOW('T', 0x2B, struct ktermios2)
#define KBOTHER 0010000
#define KCBAUD 0010017

int clinux_serial_raw(int fd, unsigned baud) {
  struct ktermios2 t;
  if (ioctl(fd, KTCGETS2, &t) < 0) return -errno;
  t.iflag = 0;
  t.oflag = 0;
  t.lflag = 0;
  t.cflag = KBOTHER | CS8 | CREAD | CLOCAL;
  t.ispeed = t.ospeed = baud;
  memset(t.cc, 0, sizeof t.cc);
  t.cc[VMIN] = 1;
  return ioctl(fd, KTCSETS2, &t) < 0 ? -errno : 0;
}

int clinux_serial_low_latency(int fd) {
  struct serial_struct s;
  if (ioctl(fd, TIOCGSERIAL, &s) < 0) return -errno;
  s.flags |= ASYNC_LOW_LATENCY;
  return ioctl(fd, TIOCSSERIAL, &s) < 0 ? -errno : 0;
}

int clinux_serial_lock(int fd) {
  if (flock(fd, LOCK_EX | LOCK_NB) < 0) return -errno;
  return ioctl(fd, TIOCEXCL) < 0 ? -errno : 0;
}

int clinux_peer(int fd, int32_t *pid, uint32_t *uid, uint32_t *gid, uint32_t *groups, int *count) {
  struct ucred c;
  socklen_t n = sizeof c;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0) return -errno;
  *pid = c.pid;
  *uid = c.uid;
  *gid = c.gid;
  n = (socklen_t)*count * sizeof(gid_t);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n) < 0) n = 0;
  *count = (int)(n / sizeof(gid_t));
  return 0;
}

int clinux_window(int fd, unsigned *columns, unsigned *rows) {
  struct winsize w;
  if (ioctl(fd, TIOCGWINSZ, &w) < 0) return -errno;
  *columns = w.ws_col;
  *rows = w.ws_row;
  return 0;
}

int clinux_poll(struct pollfd *fds, size_t count, int64_t nanoseconds) {
  struct timespec t = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  int ready = ppoll(fds, count, nanoseconds < 0 ? NULL : &t, NULL);
  return ready < 0 ? -errno : ready;
}

void clinux_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }
