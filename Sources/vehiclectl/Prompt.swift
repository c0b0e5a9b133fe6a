// Reads a line from the terminal or from stdin, byte by byte so that the rest of stdin is left unread. Restores the terminal's echo, even
// after Ctrl-C.

import Glibc

enum Prompt {
  /// The maximum length of a line in bytes.
  private static let maxLength = 4096

  /// Reads a line from stdin. On a terminal, shows the prompt and disables echo. Returns nil at the end of the input.
  static func secret(_ prompt: String) throws(Failure) -> String? {
    var before = termios()
    guard Terminal.isTerminal(STDIN_FILENO), tcgetattr(STDIN_FILENO, &before) == 0 else { return try readLine() }
    var silent = before
    silent.c_lflag &= ~tcflag_t(ECHO)
    Interrupt.catchSignals()
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
    Output.write(prompt, to: STDERR_FILENO)  // after echo is off
    defer {
      tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
      Output.write("\n", to: STDERR_FILENO)
    }
    return try readLine()
  }

  /// Shows the prompt and reads a line from stdin. Returns nil at the end of the input.
  static func line(_ prompt: String) throws(Failure) -> String? {
    Output.write(prompt, to: STDERR_FILENO)
    return try readLine()
  }

  /// Whether stdin and stderr are terminals.
  static var isInteractive: Bool { Terminal.isTerminal(STDIN_FILENO) && Terminal.isTerminal(STDERR_FILENO) }

  private static func readLine() throws(Failure) -> String? {
    Interrupt.catchSignals()
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while true {
      var entry = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
      let ready = poll(&entry, 1, 500)  // a signal that arrives just before poll does not interrupt it
      if Interrupt.received { throw .other("interrupted") }
      guard ready > 0 else { continue }
      let count = read(STDIN_FILENO, &byte, 1)
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      if count <= 0, bytes.isEmpty { return nil }
      if count <= 0 || byte == UInt8(ascii: "\n") { break }
      guard bytes.count < maxLength else { throw .usage("invalid input: longer than \(maxLength) bytes") }
      bytes.append(byte)
    }
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw .usage("invalid input: not UTF-8") }
    return text
  }
}
