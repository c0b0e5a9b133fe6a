// Linux headers that Glibc's module map lacks, and wrappers for macros and variadic functions that Swift cannot import.
#pragma once
#include <poll.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
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
// Whether the terminal belongs to a serial driver, unlike pseudo-terminals and RFCOMM. 1 or 0.
int clinux_serial_is_hardware(int fd);
// Sets low latency, so that FTDI chips deliver bytes immediately instead of after 16 ms. 0, or -errno if the driver does not support it.
int clinux_serial_low_latency(int fd);
// Locks the port for this process with flock and TIOCEXCL. 0, or -errno (-EWOULDBLOCK: another process has locked it).
int clinux_serial_lock(int fd);
// Gets the credentials of a Unix socket's peer. groups has room for *count supplementary groups; *count becomes their number. 0, or
// -errno (-ERANGE: groups is too small).
int clinux_peer(int fd, int32_t *pid, uint32_t *uid, uint32_t *gid, uint32_t *groups, int *count);
// Gets the user of a Unix socket's peer. 0, or -errno.
int clinux_peer_user(int fd, uint32_t *uid);
// Gets the window size of a terminal in characters. 0, or -errno.
int clinux_window(int fd, unsigned *columns, unsigned *rows);
// poll(2) with a timeout in nanoseconds; a negative one never expires. Returns the number of ready descriptors, or -errno.
int clinux_poll(struct pollfd *fds, size_t count, int64_t nanoseconds);
// The number of written bytes that a tty has not sent or a TCP peer has not acknowledged, or -errno.
int clinux_unsent(int fd);
// The number of received bytes that have not been read, or -errno.
int clinux_unread(int fd);
// Sends one message over a Unix socket, with a descriptor unless fd is negative. 0, or -errno.
int clinux_send(int socket, const void *bytes, size_t count, int fd);
// Receives one message, and its descriptor (close-on-exec) or -1. Returns the length (0: the peer has closed), or -errno.
ptrdiff_t clinux_receive(int socket, void *bytes, size_t count, int *fd);
// Starts a child process with one argument, all signals blocked, standard input and output on /dev/null, the caller's standard error, and
// fd as descriptor number `as`. It inherits no other descriptors. 0, or -errno.
int clinux_spawn(const char *path, const char *argument, int fd, int as, pid_t *pid);
// Names the calling thread for ps -L and debuggers; at most 15 bytes.
void clinux_name_thread(const char *name);
// Makes freed memory stay with the process until clinux_return_memory is called, for programs that allocate and free large buffers again
// and again.
void clinux_keep_memory(void);
void clinux_return_memory(void);
// Makes each block of at least 256 kB return to the system when it is freed. By default, malloc keeps those that it expects to need again:
// all that are no larger than the largest one freed so far.
void clinux_return_blocks(void);
// Whether the wall clock is synchronised (adjtimex). 1 or 0, or -errno.
int clinux_clock_is_synchronised(void);
// Creates a non-blocking raw CAN socket. Returns the descriptor, or -errno (-EAFNOSUPPORT: the kernel has no CAN, or a filter of system calls
// denies it).
int clinux_can_socket(void);
// Binds such a socket to an interface, so that it also receives error frames, except reports of lost arbitration. Returns the descriptor;
// after an error it is closed, and the result is -errno (-ENODEV: no such interface, -ENETDOWN: it is down, -EHOSTDOWN: it is bus-off,
// -EPROTONOSUPPORT: it is no CAN interface).
int clinux_can_bind(int fd, const char *interface);
// Creates a socket and binds it.
int clinux_can_open(const char *interface);
// Makes a CAN socket receive only data frames that match one of count filters: pairs of an identifier and a mask, with the kernel's flags.
// 0, or -errno.
int clinux_can_filter(int fd, const uint32_t *filters, size_t count);
// Reads at most count frames (struct can_frame; at most 64) that are waiting. Returns their number, or -errno (-EAGAIN: none).
int clinux_can_receive(int fd, void *frames, size_t count);
// The time of CLOCK_REALTIME in ns at which the kernel received the frame that was read last, or -errno.
int64_t clinux_can_received(int fd);
// The number of frames that the kernel has dropped because the socket's buffer was full, or -errno. SO_RXQ_OVFL reports the same counter.
int64_t clinux_can_drops(int fd);
// Opens a non-blocking netlink socket that receives the kernel's messages about links, addresses and routes of the network. It drops
// messages when its buffer is full, instead of failing. Returns the descriptor, or -errno.
int clinux_network_changes(void);
