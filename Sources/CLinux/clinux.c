#define _GNU_SOURCE
#include "CLinux.h"

#include <sys/timex.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/can.h>
#include <linux/can/error.h>
#include <linux/can/raw.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/serial.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <malloc.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

// The kernel's own termios2 supports any baud rate, but its header cannot be included together with <termios.h>.
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

int clinux_serial_is_hardware(int fd) {
  struct serial_struct s;
  return ioctl(fd, TIOCGSERIAL, &s) == 0;
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
  // If groups is too small, the kernel returns ERANGE and the required size.
  int error = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n) < 0 ? errno : 0;
  *count = error && error != ERANGE ? 0 : (int)(n / sizeof(gid_t));
  return error == ERANGE ? -ERANGE : 0;
}

int clinux_peer_user(int fd, uint32_t *uid) {
  struct ucred c;
  socklen_t n = sizeof c;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0) return -errno;
  *uid = c.uid;
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

int clinux_unsent(int fd) {
  int count = 0;
  return ioctl(fd, TIOCOUTQ, &count) < 0 ? -errno : count;
}

int clinux_unread(int fd) {
  int count = 0;
  return ioctl(fd, FIONREAD, &count) < 0 ? -errno : count;
}

union control {
  struct cmsghdr header;
  char space[CMSG_SPACE(sizeof(int))];
};

int clinux_send(int socket, const void *bytes, size_t count, int fd) {
  struct iovec part = {(void *)bytes, count};
  union control control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof control.space;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

ptrdiff_t clinux_receive(int socket, void *bytes, size_t count, int *fd) {
  struct iovec part = {bytes, count};
  union control control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
  *fd = -1;
  ptrdiff_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (length < 0) return -errno;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) memcpy(fd, CMSG_DATA(header), sizeof *fd);
  return length;
}

int clinux_spawn(const char *path, const char *argument, int fd, int as, pid_t *pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t all;
  sigfillset(&all);
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask(&attributes, &all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawn_file_actions_adddup2(&files, fd, as);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&files, as + 1);
  char *arguments[] = {"vehicled", (char *)argument, NULL};
  int result = posix_spawn(pid, path, &files, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return -result;
}

void clinux_keep_memory(void) {
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

void clinux_return_blocks(void) { mallopt(M_MMAP_THRESHOLD, 256 << 10); }

void clinux_return_memory(void) { malloc_trim(0); }

void clinux_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

int clinux_clock_is_synchronised(void) {
  struct timex kernel = {0};
  if (adjtimex(&kernel) < 0) return -errno;
  return !(kernel.status & STA_UNSYNC);
}

int clinux_network_changes(void) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (fd < 0) return -errno;
  int on = 1;
  struct sockaddr_nl address = {
      .nl_family = AF_NETLINK,
      .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE,
  };
  if (setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof on) < 0 ||
      bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
    int error = errno;
    close(fd);
    return -error;
  }
  return fd;
}

int clinux_can_socket(void) {
  int fd = socket(AF_CAN, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, CAN_RAW);
  return fd < 0 ? -errno : fd;
}

int clinux_can_open(const char *interface) {
  int fd = clinux_can_socket();
  return fd < 0 ? fd : clinux_can_bind(fd, interface);
}

int clinux_can_bind(int fd, const char *interface) {
  struct ifreq request = {0};
  strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  can_err_mask_t errors = CAN_ERR_MASK & ~CAN_ERR_LOSTARB;
  int error = 0;
  if (ioctl(fd, SIOCGIFFLAGS, &request) < 0) {
    error = errno;
  } else if (!(request.ifr_flags & IFF_UP)) {
    error = ENETDOWN;
  } else if (!(request.ifr_flags & IFF_RUNNING)) {
    error = EHOSTDOWN;
  } else if (ioctl(fd, SIOCGIFHWADDR, &request) < 0) {
    error = errno;
  } else if (request.ifr_hwaddr.sa_family != ARPHRD_CAN) {
    error = EPROTONOSUPPORT;
  } else if (ioctl(fd, SIOCGIFINDEX, &request) < 0) {
    error = errno;
  } else {
    struct sockaddr_can address = {.can_family = AF_CAN, .can_ifindex = request.ifr_ifindex};
    if (setsockopt(fd, SOL_CAN_RAW, CAN_RAW_ERR_FILTER, &errors, sizeof errors) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
      error = errno;
    }
  }
  if (error == 0) {
    // The kernel limits the size to net.core.rmem_max. The first request for a time makes it record them.
    int size = 1 << 20;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    clinux_can_received(fd);
    return fd;
  }
  close(fd);
  return -error;
}

int clinux_can_filter(int fd, const uint32_t *filters, size_t count) {
  return setsockopt(fd, SOL_CAN_RAW, CAN_RAW_FILTER, filters, count * sizeof(struct can_filter)) < 0 ? -errno : 0;
}

int clinux_can_receive(int fd, void *frames, size_t count) {
  struct mmsghdr messages[64] = {0};
  struct iovec parts[64];
  if (count > 64) count = 64;
  for (size_t index = 0; index < count; index++) {
    parts[index] = (struct iovec){(struct can_frame *)frames + index, sizeof(struct can_frame)};
    messages[index].msg_hdr = (struct msghdr){.msg_iov = &parts[index], .msg_iovlen = 1};
  }
  int received = recvmmsg(fd, messages, (unsigned)count, MSG_DONTWAIT, NULL);
  if (received < 0) return -errno;
  // Only whole frames: at its end, a socket of another kind has an empty message.
  int whole = 0;
  while (whole < received && messages[whole].msg_len == sizeof(struct can_frame)) whole++;
  return whole;
}

int64_t clinux_can_received(int fd) {
  struct timespec time = {0};
  if (ioctl(fd, SIOCGSTAMPNS, &time) < 0) return -errno;
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t clinux_can_drops(int fd) {
  uint32_t memory[SK_MEMINFO_VARS] = {0};
  socklen_t length = sizeof memory;
  if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length) < 0) return -errno;
  return memory[SK_MEMINFO_DROPS];
}
