// What Glibc's module map leaves out: headers, and the few calls whose macros or variadics Swift cannot spell.
#pragma once
#include <poll.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/types.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <termios.h>

#include <stddef.h>
#include <stdint.h>

// Puts a terminal into raw mode at any baud rate: 8N1, no flow control, no hang-up on close. 0, or -errno.
int clinux_serial_raw(int fd, unsigned baud);
// Whether a serial chip's driver is behind a terminal: pseudo-terminals and RFCOMM have none. 1 or 0.
int clinux_serial_is_hardware(int fd);
// Asks the driver to hand bytes over at once (FTDI waits 16 ms otherwise). 0, or -errno where the driver cannot.
int clinux_serial_low_latency(int fd);
// Takes the port for this process alone: flock and TIOCEXCL. 0, or -errno (-EWOULDBLOCK: somebody has it).
int clinux_serial_lock(int fd);
// Who is at the other end of a Unix socket. groups takes up to *count supplementary groups and gives their number. 0, or -errno
// (-ERANGE: there are more, *count says how many).
int clinux_peer(int fd, int32_t *pid, uint32_t *uid, uint32_t *gid, uint32_t *groups, int *count);
// The window size of a terminal in characters. 0, or -errno.
int clinux_window(int fd, unsigned *columns, unsigned *rows);
// poll(2) with a timeout in nanoseconds; negative waits for ever. The number of descriptors that are ready, or -errno.
int clinux_poll(struct pollfd *fds, size_t count, int64_t nanoseconds);
// Bytes that were written and not yet sent by a tty, or not yet acknowledged by a TCP peer. The number, or -errno.
int clinux_unsent(int fd);
// Bytes that have come and were not read yet. The number, or -errno.
int clinux_unread(int fd);
// Sends one message over a Unix socket, with a descriptor unless it is negative. 0, or -errno.
int clinux_send(int socket, const void *bytes, size_t count, int fd);
// Receives one message, with a descriptor (close-on-exec; -1: none came). Its length (0: the other end is gone), or -errno.
ptrdiff_t clinux_receive(int socket, void *bytes, size_t count, int *fd);
// Starts a program with one argument, as a child with standard input from /dev/null, our standard error, and one descriptor more, under
// the number `as`; all signals are blocked, nothing else of ours is inherited. 0, or -errno.
int clinux_spawn(const char *path, const char *argument, int fd, int as, pid_t *pid);
// Names the calling thread, for those who look with ps -L or a debugger; at most 15 bytes.
void clinux_name_thread(const char *name);
// Whether something keeps the wall clock right (adjtimex): 1, 0, or -errno.
int clinux_clock_is_kept(void);
