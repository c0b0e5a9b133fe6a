// What every program needs before its event loop runs: the environment, and a place for errors.

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
