// Clocks, environment variables, standard descriptors and the terminal.

import CLinux
import Glibc

enum Clock {
  /// Seconds on the monotonic clock that includes suspend.
  static var monotonic: Double { seconds(CLOCK_BOOTTIME) }
  /// Seconds since the Unix epoch.
  static var wall: Double { seconds(CLOCK_REALTIME) }

  private static func seconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

enum Environment {
  /// The value of a variable; nil if it is unset or empty.
  static subscript(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }
}

enum Descriptors {
  /// Opens any of stdin, stdout and stderr that is closed, so that no other file gets its number. Each is opened for the wrong direction,
  /// so that reading or writing it still fails.
  static func fillStandard() {
    for (descriptor, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
    where fcntl(descriptor, F_GETFD) < 0 {
      _ = open("/dev/null", mode)  // gets the lowest free number: this one
    }
  }
}

enum Terminal {
  static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// Columns and rows of the window; 80 by 24 if unknown.
  static var window: (columns: Int, rows: Int) {
    var columns: UInt32 = 0
    var rows: UInt32 = 0
    guard clinux_window(STDOUT_FILENO, &columns, &rows) == 0, columns > 0, rows > 0 else { return (80, 24) }
    return (Int(columns), Int(rows))
  }
}
