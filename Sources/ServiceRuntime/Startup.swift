// What every program needs around its event loop: the environment, a place for errors, and its end.

import CSystemd
import Glibc

/// The value of an environment variable; nil if it is unset or empty.
public func environment(_ name: String) -> String? {
  guard let value = getenv(name), value.pointee != 0 else { return nil }
  return String(cString: value)
}

/// Prints a line to standard error, after the name of the program.
public func printError(_ text: String, of program: String) {
  let line = Array("\(program): \(text)\n".utf8)
  _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
}

/// Lets exit(3), with which ArgumentParser ends a program for an error, close the connections that wait at the sockets from systemd. A
/// restart does not correct such an error, and systemd would start the program for these connections again, as often as it can.
public func refuseWaitingClientsAtExit() {
  atexit { for index in 0..<max(0, sd_listen_fds(0)) { UnixSocket.refuseWaitingClients(SD_LISTEN_FDS_START + index) } }
}

/// Ends the process without the exit handlers of libraries: OpenSSL's free what a thread that is connecting still uses, and such a thread
/// cannot be waited for, because a connection can take minutes.
public func endProcess(_ status: CInt = 0) -> Never {
  fflush(nil)
  _exit(status)
}
