// What a person types, or a pipe gives, a line at a time: read byte by byte, so that what follows is left for whoever reads
// next. Must always put the terminal's echo back, after Ctrl-C as well, and never show what was typed in secret.

import Glibc

enum Prompt {
  /// No answer to a question is longer, in bytes.
  private static let maxLength = 4096

  /// Reads a line from stdin; on a terminal the prompt is shown and the typing is not. nil at the end of the input.
  static func secret(_ prompt: String) throws(Failure) -> String? {
    var before = termios()
    guard Terminal.isTerminal(STDIN_FILENO), tcgetattr(STDIN_FILENO, &before) == 0 else { return try line() }
    var silent = before
    silent.c_lflag &= ~tcflag_t(ECHO)
    Interrupt.catchSignals()
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
    Output.write(prompt, to: STDERR_FILENO)  // whoever sees it types unseen
    defer {
      tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
      Output.write("\n", to: STDERR_FILENO)
    }
    return try line()
  }

  /// Shows the prompt and reads a line from the terminal. nil at the end of the input.
  static func shown(_ prompt: String) throws(Failure) -> String? {
    Output.write(prompt, to: STDERR_FILENO)
    return try line()
  }

  /// Whether there is somebody to ask.
  static var isInteractive: Bool { Terminal.isTerminal(STDIN_FILENO) && Terminal.isTerminal(STDERR_FILENO) }

  private static func line() throws(Failure) -> String? {
    Interrupt.catchSignals()
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while true {
      var entry = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
      let ready = poll(&entry, 1, 500)  // a signal that came just before it does not end it
      if Interrupt.received { throw .other("interrupted") }
      guard ready > 0 else { continue }
      let count = read(STDIN_FILENO, &byte, 1)
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      if count <= 0, bytes.isEmpty { return nil }
      if count <= 0 || byte == UInt8(ascii: "\n") { break }
      guard bytes.count < maxLength else { throw .usage("the answer is longer than \(maxLength) bytes") }
      bytes.append(byte)
    }
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw .usage("the answer is no text in UTF-8") }
    return text
  }
}
